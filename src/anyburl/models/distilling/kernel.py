"""Which rules predict a known answer, and where it would rank by each of them alone.

A fact of train is a known answer as well, but its rules were counted with it. It is *left out*: the rules that predict
it have one correct prediction less, for all candidates of this question.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.arrays import (
    AnswerSettings,
    CandidateArrays,
    FiringArrays,
    QueryArrays,
    QueryState,
    RuleIndex,
    Workspace,
)
from anyburl.ranking.kernel import exclude, mark_targets, next_query
from anyburl.ranking.kernel_fire import fire_unary
from anyburl.ranking.kernel_order import keep_undecided, link_firings
from anyburl.ranking.kernel_trie import fire_trie


class LeftOutScores(NamedTuple):
    """The scores of rules with one correct prediction less, by rule; -1: too little support is left."""

    scores: NDArray[np.int64]  # code -> score
    codes: NDArray[np.int32]  # rule -> code


class WitnessArrays(NamedTuple):
    """The best rules of each target, the best first, and where it would rank by each alone: (targets, width)."""

    rules: NDArray[np.int32]  # -1 where there are no more
    scores: NDArray[np.int64]
    ranks: NDArray[np.float32]  # against what all rules say for the others; ties count half
    n_rules: NDArray[np.int32]  # how many predict it


class RankSpace(NamedTuple):
    """Scratch of one worker."""

    stamps: NDArray[np.int64]  # rule -> the number of the target that it was last left out for
    clock: NDArray[np.int64]
    better: NDArray[np.int64]  # place -> rivals that are better than the rule there, but not than the one before
    equal: NDArray[np.int64]  # place -> rivals that are as good


@part
def keep_witness(out: WitnessArrays, target: int, rule: int, score: int) -> None:
    """Enter a rule among the best of a target, if it is one of them; of equals, the first of the rule set."""
    width = out.rules.shape[1]
    place = width
    while place > 0 and (
        out.rules[target, place - 1] < 0
        or out.scores[target, place - 1] < score
        or (out.scores[target, place - 1] == score and out.rules[target, place - 1] > rule)
    ):
        place -= 1
    if place == width:
        return
    for i in range(width - 1, place, -1):
        out.rules[target, i] = out.rules[target, i - 1]
        out.scores[target, i] = out.scores[target, i - 1]
    out.rules[target, place] = rule
    out.scores[target, place] = score


@inlined
def stamp_rules(candidates: CandidateArrays, firings: FiringArrays, target: int, query: int, space: RankSpace) -> None:
    """Stamp the rules that predict a target with a new number."""
    space.clock[0] += 1
    i = int(candidates.firsts[target]) if candidates.stamps[target] == query else -1
    while i >= 0:
        space.stamps[firings.rules[i]] = space.clock[0]
        i = int(firings.following[i])


@inlined
def score_without(left_out: LeftOutScores, is_left_out: bool, firings: FiringArrays, i: int, space: RankSpace) -> int:
    """Return the score of a firing; of a rule that predicts the target, as if that were not known."""
    rule = firings.rules[i]
    if is_left_out and space.stamps[rule] == space.clock[0]:
        return int(left_out.scores[left_out.codes[rule]])
    return int(firings.scores[i])


@part
def witness_target(
    candidates: CandidateArrays,
    firings: FiringArrays,
    n_candidates: int,
    target: int,
    row: int,
    query: int,
    is_left_out: bool,
    left_out: LeftOutScores,
    space: RankSpace,
    out: WitnessArrays,
) -> None:
    """Write the best rules of one target, and its rank by each of them."""
    stamp_rules(candidates, firings, target, query, space)
    i = int(candidates.firsts[target]) if candidates.stamps[target] == query else -1
    while i >= 0:
        score = score_without(left_out, is_left_out, firings, i, space)
        if score >= 0:
            keep_witness(out, row, int(firings.rules[i]), score)
            out.n_rules[row] += 1
        i = int(firings.following[i])
    n_kept = min(int(out.n_rules[row]), out.rules.shape[1])
    space.better[:n_kept] = 0
    space.equal[:n_kept] = 0
    least = int(out.scores[row, n_kept - 1]) if n_kept else 0
    for c in range(n_candidates if n_kept else 0):
        entity = int(candidates.listed[c])
        if candidates.keys[entity] < least or candidates.targets[entity] == query:  # most are not as good as any
            continue
        best = int(candidates.keys[entity])
        if is_left_out:
            best = -1
            i = int(candidates.firsts[entity])
            while i >= 0:
                best = max(best, score_without(left_out, True, firings, i, space))
                i = int(firings.following[i])
        place = 0
        while place < n_kept and out.scores[row, place] > best:
            place += 1
        while place < n_kept and out.scores[row, place] == best:
            space.equal[place] += 1
            place += 1
        if place < n_kept:
            space.better[place] += 1
    n_better = 0
    for place in range(n_kept):
        n_better += space.better[place]
        out.ranks[row, place] = np.float32(1.0 + n_better + 0.5 * space.equal[place])


@part
def fire_known(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    q: int,
    protocol: AnswerSettings,
    only_targets: bool,
    workspace: Workspace,
) -> tuple[int, int, int, int]:
    """Fire all rules for a query, whose targets may be facts of the graph, and list the candidates.

    With `only_targets`, firings for others are left out, or most of them. That is less work for B rules.
    Return the number of firings (nothing is listed if there is no room for them), of candidates, the number that the
    query has, and how many entities are not ranked.
    """
    candidates, firings = workspace.candidates, workspace.firings
    room = len(firings.candidates)
    s, d = int(np.int64(queries.entities[q])), int(np.int64(queries.relations[q]))
    asked = QueryState(
        q, s, d, next_query(candidates), protocol.object_identity, protocol.longest, protocol.least_binary
    )
    n_excluded = exclude(graph, queries, asked, protocol, candidates)
    n_excluded -= mark_targets(queries, asked, candidates)
    n_asked = 0
    for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
        target = queries.targets[i]
        candidates.excluded[target] = 0  # a fact connects its own two entities
        candidates.tied[target] = asked.query
        candidates.undecided[n_asked] = target
        n_asked += 1
    n = fire_unary(graph, index, asked, workspace)
    if n <= room:
        if only_targets:
            n = keep_undecided(candidates, firings, n, asked.query)
        n, _ = fire_trie(graph, index, queries, asked, False, n_asked if only_targets else -1, workspace, n)
    n_candidates = link_firings(candidates, firings, n, asked.query) if n <= room else 0
    return n, n_candidates, asked.query, n_excluded


@kernel
def find_witnesses(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: AnswerSettings,
    workspace: Workspace,
    is_left_out: bool,
    only_targets: bool,
    left_out: LeftOutScores,
    space: RankSpace,
    out: WitnessArrays,
) -> tuple[int, int]:
    """Find the best rules of all targets of the queries from `first` to before `last`.

    With `only_targets`, not where each would rank by them, which is less work.

    Return the next query, and the room for firings that it would need: stops where there is too little.
    """
    candidates, firings = workspace.candidates, workspace.firings
    for q in range(first, last):
        n, n_candidates, query, _ = fire_known(graph, index, queries, q, protocol, only_targets, workspace)
        if n > len(firings.candidates):
            return q, n
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            n_ranked = 0 if only_targets else n_candidates
            witness_target(candidates, firings, n_ranked, target, i, query, is_left_out, left_out, space, out)
    return last, 0
