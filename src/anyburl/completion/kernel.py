"""Find facts, entity by entity: list where the bodies lead, then answer the question of every head from the lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel, part
from anyburl.completion.arrays import BodyRules, FactArrays, FindSpace, ListArrays, ShelfArrays, Stopped
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import find_segment
from anyburl.ranking.arrays import Asked, CandidateArrays, Protocol, QueryArrays, RuleIndex, Workspace
from anyburl.ranking.kernel import exclude_connected, fire_unary, next_query
from anyburl.ranking.kernel_evidence import tell_evidence
from anyburl.ranking.kernel_order import MOST_EVIDENCE, best_rule, count_rules, link_firings, set_keys
from anyburl.ranking.kernel_rank import find_least_key, keep_best, keep_undecided
from anyburl.ranking.kernel_trie import fire_trie

AT = Stopped()


@part
def fill_shelf(bodies: BodyRules, shelf: ShelfArrays, n_ends: int) -> None:
    """Note which of the listed ends are those of which body, and chain the rules that this concerns by head."""
    shelf.stamps[-1] += 1
    entity, i = shelf.stamps[-1], 0
    while i < n_ends:
        body = shelf.ends.rules[i]
        shelf.starts[body] = i
        while i < n_ends and shelf.ends.rules[i] == body:
            i += 1
        shelf.stops[body] = i
        for rule in range(bodies.rule_offsets[body], bodies.rule_offsets[body + 1]):
            head = bodies.heads[rule]
            if shelf.stamps[head] != entity:
                shelf.stamps[head] = entity
                shelf.firsts[head] = -1
            shelf.following[rule] = shelf.firsts[head]
            shelf.firsts[head] = rule


@inlined
def weigh(candidates: CandidateArrays, entity: int, score: int, number: int, n: int) -> int:
    """Add a score to those of a candidate; return how many candidates there are then.

    The highest score is its key, their sum what it may reach: no aggregation gives a candidate more.
    """
    is_new = candidates.stamps[entity] != number
    candidates.stamps[entity] = number
    candidates.listed[n] = entity
    best = -1 if is_new else candidates.keys[entity]
    total = 0 if is_new else candidates.reached[entity]
    candidates.keys[entity] = max(best, score)
    candidates.reached[entity] = min(total + score, MOST_EVIDENCE)
    return int(n + is_new)


@part
def weigh_all(
    bodies: BodyRules,
    scores: NDArray[np.int64],
    shelf: ShelfArrays,
    n_unary: int,
    number: int,
    asked: Asked,
    space: Workspace,
) -> int:
    """Weigh the candidates of a question: of the unary rules that fired, and of the ends of bodies; return how many."""
    candidates, firings, query, n = space.candidates, space.firings, asked.query, 0
    for i in range(n_unary):
        n = weigh(candidates, int(np.int64(firings.candidates[i])), int(firings.scores[i]), number, n)
    if shelf.stamps[asked.d] != shelf.stamps[-1]:
        return n
    rule = int(shelf.firsts[asked.d])
    while rule >= 0:
        score = int(scores[bodies.codes[rule]])
        for i in range(shelf.starts[bodies.bodies[rule]], shelf.stops[bodies.bodies[rule]]):
            end = int(np.int64(shelf.ends.candidates[i]))
            if candidates.excluded[end] != query:
                n = weigh(candidates, end, score, number, n)
        rule = int(shelf.following[rule])
    return n


@inlined
def choose(candidates: CandidateArrays, n_candidates: int, least: int, number: int) -> int:
    """Mark the candidates that may reach `least`; return how many there are."""
    n = 0
    for c in range(n_candidates):
        entity = candidates.listed[c]
        if candidates.reached[entity] >= least:
            candidates.tied[entity] = number
            n += 1
    return n


@part
def fire_shelf(
    bodies: BodyRules,
    scores: NDArray[np.int64],
    shelf: ShelfArrays,
    number: int,
    asked: Asked,
    space: Workspace,
    n: int,
) -> int:
    """Fire the B rules with head d for the chosen candidates among the ends of their bodies; return the number of
    firings, past the room there is if that is too small.
    """
    if shelf.stamps[asked.d] != shelf.stamps[-1]:
        return n
    candidates, firings = space.candidates, space.firings
    room = len(firings.candidates)
    rule = int(shelf.firsts[asked.d])
    while rule >= 0:
        score, row = int(scores[bodies.codes[rule]]), int(bodies.rows[rule])
        start, stop = int(shelf.starts[bodies.bodies[rule]]), int(shelf.stops[bodies.bodies[rule]])
        if n + stop - start <= room:
            for i in range(start, stop):
                end = shelf.ends.candidates[i]
                firings.candidates[n] = end
                firings.scores[n] = score
                firings.rules[n] = row
                n += candidates.tied[end] == number
        else:
            for i in range(start, stop):
                n += candidates.tied[shelf.ends.candidates[i]] == number
        rule = int(shelf.following[rule])
    return n


@inlined
def exclude_known(graph: GraphArrays, s: int, d: int, query: int, candidates: CandidateArrays) -> None:
    """Mark the answers to (s, d, ?) that the graph states."""
    segment = find_segment(graph, s, d)
    if segment >= 0:
        for row in range(graph.segment_starts[segment], graph.segment_starts[segment + 1]):
            target = int(graph.targets[row])
            candidates.excluded[s if target == graph.n_entities else target] = query


@inlined
def note_fact(asked: Asked, entity: int, n: int, space: Workspace, out: FactArrays) -> int:
    """Write one fact; return how many there are then."""
    candidates, firings = space.candidates, space.firings
    out.entities[n] = asked.s
    out.relations[n] = asked.d
    out.candidates[n] = entity
    out.keys[n] = candidates.keys[entity]
    out.rules[n] = best_rule(candidates, firings, entity)
    out.n_rules[n] = count_rules(candidates, firings, entity)
    return n + 1


@part
def note_above(asked: Asked, least: int, n_candidates: int, space: Workspace, n: int, out: FactArrays) -> int:
    """Write the candidates with a key of at least `least`; return how many facts there are then."""
    for c in range(n_candidates):
        entity = int(space.candidates.listed[c])
        if space.candidates.keys[entity] >= least:
            n = note_fact(asked, entity, n, space, out)
    return n


@part
def note_list(
    asked: Asked,
    least: int,
    n_candidates: int,
    protocol: Protocol,
    groups: NDArray[np.uint8],
    best: NDArray[np.int32],
    space: Workspace,
    stopped: NDArray[np.int64],
    out: FactArrays,
    lists: ListArrays,
) -> None:
    """Write the best candidates with their evidence, then those after them with a key of at least `least`."""
    candidates, firings, n = space.candidates, space.firings, int(stopped[AT.facts])
    n_best = keep_best(candidates, firings, n_candidates, protocol.breaks_ties, protocol.top_k, best)
    for i in range(n_best):
        entity = int(np.int64(best[i]))
        candidates.targets[entity] = candidates.clock[0]
        tell_evidence(candidates, firings, entity, groups, out.evidence[n])
        n = note_fact(asked, entity, n, space, out)
    n_listed = n
    if n_candidates > n_best:
        for c in range(n_candidates):
            entity = int(candidates.listed[c])
            if candidates.keys[entity] >= least and candidates.targets[entity] != candidates.clock[0]:
                n = note_fact(asked, entity, n, space, out)
    place = stopped[AT.questions]
    lists.entities[place] = asked.s
    lists.relations[place] = asked.d
    lists.sizes[place] = n_best
    lists.n_later[place] = n - n_listed
    stopped[AT.questions] += 1
    stopped[AT.facts] = n


@kernel
def find_facts(
    graph: GraphArrays,
    index: RuleIndex,
    bodies: BodyRules,
    subjects: NDArray[np.int32],
    heads: NDArray[np.int32],
    least: NDArray[np.int64],
    queries: QueryArrays,
    protocol: Protocol,
    groups: NDArray[np.uint8],
    best: NDArray[np.int32],
    space: FindSpace,
    out: FactArrays,
    lists: ListArrays,
) -> None:
    """Find the answers to (s, d, ?) that the graph does not state, for all subjects s and directed relations d.

    Without groups of rules, those with a key of at least `least[d]` are facts; with groups, the best are listed.
    Begins at `space.stopped`, and stops there where room runs out.
    """
    stopped, answering, shelf = space.stopped, space.answering, space.shelf
    candidates, firings, walk = answering.candidates, answering.firings, answering.walk
    listing = Workspace(walk, candidates, shelf.ends)
    has_lists = len(groups) > 0
    stopped[AT.facts] = 0
    stopped[AT.questions] = 0
    stopped[AT.firings] = 0
    stopped[AT.ends] = 0
    for place in range(stopped[AT.subject], len(subjects)):
        s = int(np.int64(subjects[place]))
        entity = next_query(candidates)
        if protocol.block_connected:
            exclude_connected(graph, s, entity, candidates)
        walked = Asked(0, s, 0, entity, protocol.object_identity, protocol.longest)
        n_ends, _ = fire_trie(graph, index, queries, walked, False, -1, listing, 0)
        if n_ends > len(shelf.ends.candidates):
            stopped[AT.ends] = n_ends
            return
        fill_shelf(bodies, shelf, n_ends)
        for turn in range(stopped[AT.head], len(heads)):
            d = int(np.int64(heads[turn]))
            query = entity
            if not protocol.block_connected:
                query = next_query(candidates)
                exclude_known(graph, s, d, query, candidates)
            asked = Asked(0, s, d, query, protocol.object_identity, protocol.longest)
            n_unary = fire_unary(graph, index, asked, answering)
            if n_unary > len(firings.candidates):
                stopped[AT.firings] = n_unary
                return
            number = next_query(candidates)
            n_candidates = weigh_all(bodies, index.scores, shelf, n_unary, number, asked, answering)
            needed = int(least[d])
            if has_lists:
                candidates.list_end[0] = 0
                needed = min(needed, find_least_key(candidates, firings, n_candidates, protocol.top_k))
            n_chosen = choose(candidates, n_candidates, needed, number)
            if n_chosen == 0:
                continue
            if stopped[AT.facts] + n_chosen > len(out.keys) or stopped[AT.questions] == len(lists.sizes):
                return
            n = keep_undecided(candidates, firings, n_unary, number)
            n = fire_shelf(bodies, index.scores, shelf, number, asked, answering, n)
            if n > len(firings.candidates):
                stopped[AT.firings] = n
                return
            link_firings(candidates, firings, n, next_query(candidates))
            set_keys(candidates, firings, n_chosen, protocol.n_counted)
            if has_lists:
                lists.n_candidates[stopped[AT.questions]] = n_candidates
                note_list(asked, least[d], n_chosen, protocol, groups, best, answering, stopped, out, lists)
            else:
                stopped[AT.facts] = note_above(asked, least[d], n_chosen, answering, stopped[AT.facts], out)
            stopped[AT.head] = turn + 1
        stopped[AT.head] = 0
        stopped[AT.subject] = place + 1
