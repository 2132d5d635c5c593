"""Find the facts behind a prediction, depth first and under object identity: no entity stands for two terms.

A body is a path of directed relations; position i is the term after i steps, so position 0 is the head's variable. The
strongest rule that predicts a fact is searched for among rules that are grouped by head, the strongest first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.kernel import GraphArrays, has_edge, inverse, steps


class GroundingSearch(NamedTuple):
    """The state of a depth-first search, with an entry for each variable of a body."""

    nodes: NDArray[np.int32]  # position on the body's path -> entity, `self`, or -1 where anything would do
    taken: NDArray[np.int32]  # the same entities in the order in which they were chosen
    next_rows: NDArray[np.int64]  # depth -> the next choice to try
    end_rows: NDArray[np.int64]
    ends: NDArray[np.bool_]  # where walks may end that have no given end: an entry for each entity; empty for anywhere


ANYWHERE = np.empty(0, np.bool_)


class WalkGoal(NamedTuple):
    """Where a walk starts and ends, and what it avoids."""

    start: int
    end: int  # an entity, `self`, or -1 for anywhere
    avoided: int  # an entity that may only be the end
    object_identity: bool


def empty_search(longest: int, ends: NDArray[np.bool_] = ANYWHERE) -> GroundingSearch:
    """Return room for bodies of up to `longest` atoms, which may end at `ends`."""
    nodes, taken = np.zeros(longest + 2, np.int32), np.zeros(longest + 2, np.int32)
    return GroundingSearch(nodes, taken, np.zeros(longest + 2, np.int64), np.zeros(longest + 2, np.int64), ends)


@kernel
def degree_along(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return how many entities the directed `relation` leads to."""
    start, end = steps(graph, entity, relation)
    return end - start


@inlined
def is_free(taken: NDArray[np.int32], n: int, entity: int, goal: WalkGoal) -> bool:
    """Whether one more variable may stand for `entity`, after the first `n` of `taken`."""
    if not goal.object_identity:
        return True
    if entity in (goal.end, goal.avoided):
        return False
    for i in range(n):
        if taken[i] == entity:
            return False
    return True


@inlined
def may_end(ends: NDArray[np.bool_], entity: int) -> bool:
    """Whether a walk may end at an entity."""
    return len(ends) == 0 or bool(ends[entity])


@kernel
def find_walks(
    graph: GraphArrays,
    body: NDArray[np.int32],
    goal: WalkGoal,
    most_tried: int,
    search: GroundingSearch,
    out: NDArray[np.int32],
) -> int:
    """Write walks along `body`; return how many. An empty body leads from the start to itself.

    Stops when the rows of `out` are full, or with what there is (if anything) after `most_tried` entities.
    """
    length, start, end = len(body), goal.start, goal.end
    if length == 0:
        out[0, 0] = start
        return int(may_end(search.ends, start))
    n_walked = length if end < 0 else length - 1  # a step to a given end is looked up, not walked
    if n_walked == 0:
        if has_edge(graph, start, int(body[0]), end):
            out[0, 0], out[0, 1] = start, end
            return 1
        return 0
    last_step = int(body[length - 1])
    end_start, end_end = 0, 0
    if end >= 0:
        end_start, end_end = steps(graph, end, inverse(graph, last_step))
    search.nodes[0] = start
    search.next_rows[0], search.end_rows[0] = steps(graph, start, int(body[0]))
    n_walks, n_tried, depth = 0, 0, 0
    from_end = False
    if n_walked == 1 and end >= 0 and end_end - end_start < search.end_rows[0] - search.next_rows[0]:
        from_end = True
        search.next_rows[0], search.end_rows[0] = end_start, end_end
    while depth >= 0:
        if search.next_rows[depth] >= search.end_rows[depth]:
            depth -= 1
            continue
        entity = int(graph.targets[search.next_rows[depth]])
        search.next_rows[depth] += 1
        n_tried += 1
        if n_walks > 0 and n_tried > most_tried:
            return n_walks
        if not is_free(search.nodes, depth + 1, entity, goal):
            continue
        search.nodes[depth + 1] = entity
        if depth + 1 < n_walked:
            depth += 1
            search.next_rows[depth], search.end_rows[depth] = steps(graph, entity, int(body[depth]))
            if depth == n_walked - 1 and end >= 0:
                # What lies next to both ends: the shorter list is gone through, the longer one looked up.
                from_end = end_end - end_start < search.end_rows[depth] - search.next_rows[depth]
                if from_end:
                    search.next_rows[depth], search.end_rows[depth] = end_start, end_end
            continue
        if end >= 0:
            before = int(search.nodes[depth])
            if from_end and not has_edge(graph, before, int(body[depth]), entity):
                continue
            if not from_end and not has_edge(graph, entity, last_step, end):
                continue
            out[n_walks, length] = end
        elif not may_end(search.ends, entity):
            continue
        for position in range(n_walked + 1):
            out[n_walks, position] = search.nodes[position]
        n_walks += 1
        if n_walks == len(out):
            return n_walks
    return n_walks


@kernel
def find_first_walks(
    graph: GraphArrays,
    bodies: NDArray[np.int32],
    lengths: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    avoided: NDArray[np.int32],
    object_identity: bool,
    search: GroundingSearch,
    out: NDArray[np.int32],
) -> None:
    """Write the first walk along each body; -1 where there is none."""
    for i in range(len(lengths)):
        out[i] = -1
        goal = WalkGoal(int(np.int64(starts[i])), int(np.int64(ends[i])), int(np.int64(avoided[i])), object_identity)
        find_walks(graph, bodies[i, : lengths[i]], goal, 0, search, out[i : i + 1])


@inlined
def chosen_position(length: int, end: int, missing: int, depth: int) -> int:
    """Return the position that is filled at `depth`: those before the missing atom first.

    Then those after it, backward from the end; forward where the end is free.
    """
    return depth + 1 if depth < missing or end < 0 else length - 1 - (depth - missing)


@inlined
def open_choice(
    graph: GraphArrays, body: NDArray[np.int32], end: int, missing: int, depth: int, search: GroundingSearch
) -> None:
    """Set the rows to choose from at `depth`: of `targets`, or of `domains` right after the missing atom if the end is
    free.
    """
    position = chosen_position(len(body), end, missing, depth)
    if end < 0 and depth == missing:
        after = body[missing + 1]
        search.next_rows[depth] = graph.domain_offsets[after]
        search.end_rows[depth] = graph.domain_offsets[after + 1]
    elif end < 0 or depth < missing:
        rows = steps(graph, int(search.nodes[depth]), int(body[depth]))
        search.next_rows[depth], search.end_rows[depth] = rows
    else:
        rows = steps(graph, int(search.nodes[position + 1]), inverse(graph, int(body[position])))
        search.next_rows[depth], search.end_rows[depth] = rows


@part
def holds_but_for(
    graph: GraphArrays, body: NDArray[np.int32], goal: WalkGoal, missing: int, most_tried: int, search: GroundingSearch
) -> bool:
    """Whether all atoms of `body` but the one at `missing` can hold; `search.nodes` is then the path.

    An end that is free stands as -1 if only the missing atom leads there. Gives up after `most_tried` entities.
    """
    length, start, end = len(body), goal.start, goal.end
    is_open = end < 0 and missing == length - 1
    n_choices = length if end < 0 and not is_open else length - 1
    search.nodes[0], search.nodes[length] = start, end
    search.taken[0] = start
    depth, n_tried = 0, 0
    if n_choices > 0:
        open_choice(graph, body, end, missing, 0, search)
    while depth < n_choices:
        if search.next_rows[depth] >= search.end_rows[depth]:
            if depth == 0:
                return False
            depth -= 1
            continue
        row = search.next_rows[depth]
        search.next_rows[depth] += 1
        n_tried += 1
        if n_tried > most_tried:
            return False
        from_domain = end < 0 and depth == missing
        entity = int(graph.domains[row]) if from_domain else int(graph.targets[row])
        if not is_free(search.taken, depth + 1, entity, goal):
            continue
        search.nodes[chosen_position(length, end, missing, depth)] = entity
        search.taken[depth + 1] = entity
        depth += 1
        if depth < n_choices:
            open_choice(graph, body, end, missing, depth, search)
    return True


@kernel
def first_near_miss(
    graph: GraphArrays,
    bodies: NDArray[np.int32],
    lengths: NDArray[np.int32],
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    avoided: NDArray[np.int32],
    fails: NDArray[np.bool_],
    object_identity: bool,
    most_tried: int,
    search: GroundingSearch,
    walk: NDArray[np.int32],
) -> tuple[int, int]:
    """Return the first of some rules that lacks one fact only, and which atom that is; (-1, -1) if none does.

    `search.nodes` is then the path of its body. Of rules whose condition `fails`, all atoms have to hold: what they
    lack comes after these. `walk` has a row for a body.
    """
    for i in range(len(lengths)):
        body = bodies[i, : lengths[i]]
        goal = WalkGoal(int(np.int64(starts[i])), int(np.int64(ends[i])), int(np.int64(avoided[i])), object_identity)
        if fails[i]:
            if find_walks(graph, body, goal, most_tried, search, walk) > 0:
                for position in range(len(body) + 1):
                    search.nodes[position] = walk[0, position]
                return i, int(lengths[i])
            continue
        for back in range(lengths[i]):
            missing = int(lengths[i]) - 1 - back
            if holds_but_for(graph, body, goal, missing, most_tried, search):
                return i, missing
    return -1, -1


class CheckedRules(NamedTuple):
    """Rules in groups: those of one head relation without constants (B), or with the same constant (U_c, U_d)."""

    offsets: NDArray[np.int64]  # group -> its rules, those with the highest scores first
    bodies: NDArray[np.int32]  # (rules, longest), from the head's variable, padded with -1
    lengths: NDArray[np.int32]
    ends: NDArray[np.int32]  # the constant at the end of the body, -1 where that is a variable
    scores: NDArray[np.float64]
    rows: NDArray[np.int32]  # of the rule set


TWO_VARIABLES, FORWARD = 0, 1  # places in `groups`, of heads h(X, Y) and h(X, c); the third is for h(c, Y)


@kernel
def find_support(
    graph: GraphArrays,
    rules: CheckedRules,
    triples: NDArray[np.int32],
    groups: NDArray[np.int32],
    constants: NDArray[np.int32],
    object_identity: bool,
    search: GroundingSearch,
    walk: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write to `out`, for each triple, the place of the strongest rule that predicts it, -1 if none does.

    `groups` are those of the rules that may: without constants, with the object and with the subject as constant (-1:
    there are none). `constants` are object and subject as heads name them. `search` and `walk`, one row, are scratch.
    """
    for i in range(len(triples)):
        out[i] = -1
        best = -1.0
        for form in range(3):
            group = groups[i, form]
            if group < 0:
                continue
            start = int(np.int64(triples[i, 0 if form <= FORWARD else 2]))
            avoided = -1 if form == TWO_VARIABLES else int(np.int64(constants[i, form - 1]))
            for rule in range(rules.offsets[group], rules.offsets[group + 1]):
                if rules.scores[rule] <= best:
                    break
                end = int(np.int64(triples[i, 2] if form == TWO_VARIABLES else rules.ends[rule]))
                if end == start and object_identity:
                    continue
                goal = WalkGoal(start, end, avoided, object_identity)
                if find_walks(graph, rules.bodies[rule, : rules.lengths[rule]], goal, 0, search, walk) > 0:
                    out[i], best = rule, rules.scores[rule]
                    break
