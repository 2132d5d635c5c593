"""What each rule of a set is worth: known answers are ranked with all rules, and without each rule that matters.

Without a rule, a known answer changes its place if it is one of the answer's own rules, or one of a candidate that
ranks before it or ties with it. Everything else stays as it is, so nothing has to fire again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.graph.arrays import GraphArrays
from anyburl.models.distilling.kernel import LeftOutScores, RankSpace, fire_known, score_without, stamp_rules
from anyburl.ranking.arrays import AnswerSettings, QueryArrays, RuleIndex, Workspace
from anyburl.ranking.kernel_order import MOST_EVIDENCE

WORTH_UNIT = 1 << 36  # of reciprocal ranks: whole numbers add up to the same in any order
NO_RULE = -1


class SortedRules(NamedTuple):
    """The rules of each candidate, those with the highest scores first; one candidate after the other."""

    scores: NDArray[np.int64]
    rules: NDArray[np.int32]
    starts: NDArray[np.int64]  # entity -> where its rules start
    sizes: NDArray[np.int32]  # entity -> how many it has
    keys: NDArray[np.int64]  # entity -> what it is ordered by; -1 without rules
    sorted_at: NDArray[np.int64]  # entity -> the target for which its rules were sorted: most never are


class WorthArrays(NamedTuple):
    """What is found out about each rule."""

    worth: NDArray[np.int64]  # in units of `WORTH_UNIT`
    decides: NDArray[np.int32]
    only: NDArray[np.int32]


class ChangeArrays(NamedTuple):
    """Scratch, zeros between targets: how the place of a target would change without a rule."""

    better: NDArray[np.int32]  # rule -> how many fewer candidates would rank before the target
    equal: NDArray[np.int32]  # rule -> how many fewer would tie with it
    gone: NDArray[np.int32]  # rule -> how many fewer candidates there would be
    stamps: NDArray[np.int64]
    touched: NDArray[np.int32]


class Standing(NamedTuple):
    """Where a target stands: candidates before it, tied with it, all of them, and the entities to rank it among."""

    better: int
    equal: int
    n_candidates: int
    n_others: int


@part
def sort_rules_of(lists: SortedRules, start: int, n: int) -> None:
    """Sort `n` rules from `start` on by score, the highest first; equal scores by rule (shell sort)."""
    scores, rules = lists.scores, lists.rules
    gap = 1
    while 3 * gap < n:
        gap = 3 * gap + 1
    while gap > 0:
        for i in range(start + gap, start + n):
            score, rule = scores[i], rules[i]
            j = i - gap
            while j >= start and (scores[j] < score or (scores[j] == score and rules[j] > rule)):
                scores[j + gap], rules[j + gap] = scores[j], rules[j]
                j -= gap
            scores[j + gap], rules[j + gap] = score, rule
        gap //= 3


@inlined
def key_without(lists: SortedRules, entity: int, rule: int, n_counted: int) -> int:
    """Return the sum of the `n_counted` highest scores of an entity, without those of a rule; -1 if none is left."""
    total, counted = 0, 0
    start = lists.starts[entity]
    for i in range(start, start + lists.sizes[entity]):
        if lists.rules[i] == rule:
            continue
        total = min(total + int(lists.scores[i]), MOST_EVIDENCE)
        counted += 1
        if counted >= n_counted:
            break
    return total if counted else -1


@inlined
def sort_if_needed(lists: SortedRules, entity: int, space: RankSpace) -> None:
    """Sort the rules of an entity, unless that was done for the same target."""
    if lists.sorted_at[entity] != space.clock[0]:
        lists.sorted_at[entity] = space.clock[0]
        sort_rules_of(lists, int(lists.starts[entity]), int(lists.sizes[entity]))


@part
def list_all_rules(
    workspace: Workspace,
    n_candidates: int,
    n_counted: int,
    is_left_out: bool,
    left_out: LeftOutScores,
    space: RankSpace,
    lists: SortedRules,
) -> None:
    """List the rules of all candidates with the scores that they have for the target that rules are stamped for.

    Where the best rule decides, they are sorted when they are looked at, see `sort_if_needed`.
    """
    candidates, firings, n = workspace.candidates, workspace.firings, 0
    for c in range(n_candidates):
        entity = int(candidates.listed[c])
        start, best = n, -1
        i = int(candidates.firsts[entity])
        while i >= 0:
            score = score_without(left_out, is_left_out, firings, i, space)
            if score >= 0:
                lists.scores[n], lists.rules[n] = score, firings.rules[i]
                best = max(best, score)
                n += 1
            i = int(firings.following[i])
        lists.starts[entity], lists.sizes[entity], lists.keys[entity] = start, n - start, best
        if n_counted > 1:
            sort_if_needed(lists, entity, space)
            lists.keys[entity] = key_without(lists, entity, NO_RULE, n_counted)


@part
def compare_without(lists: SortedRules, entity: int, target: int, rule: int, n_counted: int, breaks_ties: bool) -> int:
    """Return 1 if `entity` ranks before `target` without a rule, 0 if they tie, else -1."""
    own, other = key_without(lists, entity, rule, n_counted), key_without(lists, target, rule, n_counted)
    if own != other:
        return 1 if own > other else -1
    if not breaks_ties:
        return 0
    i, j = int(lists.starts[entity]), int(lists.starts[target])
    end_i, end_j = i + int(lists.sizes[entity]), j + int(lists.sizes[target])
    while True:
        while i < end_i and lists.rules[i] == rule:
            i += 1
        while j < end_j and lists.rules[j] == rule:
            j += 1
        if i == end_i or j == end_j:
            return int(i < end_i) - int(j < end_j)
        if lists.scores[i] != lists.scores[j]:
            return 1 if lists.scores[i] > lists.scores[j] else -1
        i, j = i + 1, j + 1


@inlined
def reciprocal_rank(standing: Standing, is_predicted: bool) -> float:
    """Return 1 / rank of a target, ties counted half; where no rule predicts it, it ties with all such entities."""
    if is_predicted:
        return 1.0 / (1.0 + standing.better + 0.5 * standing.equal)
    n = standing.n_candidates
    return 2.0 / (n + 1 + max(standing.n_others, n) + 1)


@part
def count_candidates(workspace: Workspace, lists: SortedRules, n_listed: int, query: int, rule: int) -> int:
    """Return how many candidates besides the targets some rule predicts, other than `rule`."""
    candidates, n_candidates = workspace.candidates, 0
    for c in range(n_listed):
        entity = int(candidates.listed[c])
        size = lists.sizes[entity]
        if candidates.targets[entity] != query and size > 0:
            n_candidates += size > 1 or lists.rules[lists.starts[entity]] != rule
    return n_candidates


@part
def stand_without(
    workspace: Workspace,
    lists: SortedRules,
    n_listed: int,
    target: int,
    query: int,
    rule: int,
    protocol: AnswerSettings,
    n_others: int,
    space: RankSpace,
) -> Standing:
    """Return where a target stands without a rule, or with all if that is `NO_RULE`."""
    candidates = workspace.candidates
    sort_if_needed(lists, target, space)
    least = key_without(lists, target, rule, protocol.n_counted)
    if least < 0:
        return Standing(0, 0, count_candidates(workspace, lists, n_listed, query, rule), n_others)
    better, equal = 0, 0
    for c in range(n_listed):
        entity = int(candidates.listed[c])
        if lists.keys[entity] < least or candidates.targets[entity] == query:
            continue
        sort_if_needed(lists, entity, space)
        if key_without(lists, entity, rule, protocol.n_counted) >= least:
            order = compare_without(lists, entity, target, rule, protocol.n_counted, protocol.breaks_ties)
            better += order > 0
            equal += order == 0
    return Standing(better, equal, 0, n_others)


@part
def note_change(changes: ChangeArrays, clock: int, n_touched: int, rule: int) -> int:
    """Make room for a rule whose absence would change something; return how many there are."""
    if changes.stamps[rule] != clock:
        changes.stamps[rule] = clock
        changes.touched[n_touched] = rule
        changes.better[rule], changes.equal[rule], changes.gone[rule] = 0, 0, 0
        return n_touched + 1
    return n_touched


@part
def add_worth_of_rivals(
    workspace: Workspace,
    lists: SortedRules,
    n_listed: int,
    target: int,
    query: int,
    protocol: AnswerSettings,
    standing: Standing,
    is_predicted: bool,
    space: RankSpace,
    changes: ChangeArrays,
    out: WorthArrays,
) -> None:
    """Add what the rules are worth (below 0, mostly) that predict rivals of a target, but not the target."""
    candidates, clock, n_touched = workspace.candidates, space.clock[0], 0
    for c in range(n_listed):
        entity = int(candidates.listed[c])
        if candidates.targets[entity] == query or not lists.sizes[entity]:
            continue
        before = -1
        if is_predicted:
            if lists.keys[entity] < lists.keys[target]:
                continue
            sort_if_needed(lists, entity, space)
            before = compare_without(lists, entity, target, NO_RULE, protocol.n_counted, protocol.breaks_ties)
            if before < 0:
                continue
        elif lists.sizes[entity] > 1:
            continue  # it stays a candidate
        start = int(lists.starts[entity])
        for i in range(start, start + lists.sizes[entity]):
            rule = int(lists.rules[i])
            if space.stamps[rule] == clock:  # it predicts the target, too
                continue
            if not is_predicted:
                n_touched = note_change(changes, clock, n_touched, rule)
                changes.gone[rule] += 1
                continue
            after = -1
            if lists.sizes[entity] > 1:
                after = compare_without(lists, entity, target, rule, protocol.n_counted, protocol.breaks_ties)
            if after != before:
                n_touched = note_change(changes, clock, n_touched, rule)
                changes.better[rule] += int(before > 0) - int(after > 0)
                changes.equal[rule] += int(before == 0) - int(after == 0)
    all_rules = reciprocal_rank(standing, is_predicted)
    for i in range(n_touched):
        rule = changes.touched[i]
        left = Standing(
            standing.better - changes.better[rule],
            standing.equal - changes.equal[rule],
            standing.n_candidates - changes.gone[rule],
            standing.n_others,
        )
        lost = all_rules - reciprocal_rank(left, is_predicted)
        out.worth[rule] += int(np.rint(lost * WORTH_UNIT))


@part
def stand(
    workspace: Workspace,
    lists: SortedRules,
    n_listed: int,
    target: int,
    query: int,
    protocol: AnswerSettings,
    n_others: int,
    space: RankSpace,
) -> tuple[Standing, bool]:
    """Return where a target stands with all rules, and whether any predicts it."""
    if workspace.candidates.stamps[target] == query and lists.sizes[target] > 0:
        return stand_without(workspace, lists, n_listed, target, query, NO_RULE, protocol, n_others, space), True
    return Standing(0, 0, count_candidates(workspace, lists, n_listed, query, NO_RULE), n_others), False


@part
def add_worth(
    workspace: Workspace,
    lists: SortedRules,
    n_listed: int,
    target: int,
    query: int,
    protocol: AnswerSettings,
    n_others: int,
    space: RankSpace,
    changes: ChangeArrays,
    out: WorthArrays,
) -> None:
    """Add what each rule is worth to one target."""
    standing, is_predicted = stand(workspace, lists, n_listed, target, query, protocol, n_others, space)
    if is_predicted:
        start, size = int(lists.starts[target]), int(lists.sizes[target])
        out.decides[lists.rules[start]] += 1
        out.only[lists.rules[start]] += size == 1
        all_rules = reciprocal_rank(standing, True)
        for i in range(start, start + size):
            rule = int(lists.rules[i])
            left = stand_without(workspace, lists, n_listed, target, query, rule, protocol, n_others, space)
            lost = all_rules - reciprocal_rank(left, size > 1)
            out.worth[rule] += int(np.rint(lost * WORTH_UNIT))
    add_worth_of_rivals(
        workspace, lists, n_listed, target, query, protocol, standing, is_predicted, space, changes, out
    )


@kernel
def measure_worth(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: AnswerSettings,
    workspace: Workspace,
    is_left_out: bool,
    left_out: LeftOutScores,
    space: RankSpace,
    lists: SortedRules,
    changes: ChangeArrays,
    out: WorthArrays,
) -> tuple[int, int]:
    """Add what each rule is worth to the targets of the queries from `first` to before `last`.

    Return the next query, and the room for firings that it would need: stops where there is too little, in `lists` too.
    """
    candidates = workspace.candidates
    for q in range(first, last):
        n, n_listed, query, n_excluded = fire_known(graph, index, queries, q, protocol, False, workspace)
        if n > len(lists.rules):
            return q, n
        n_targets = int(queries.target_offsets[q + 1] - queries.target_offsets[q])
        n_others = graph.n_entities - n_excluded - n_targets
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            stamp_rules(candidates, workspace.firings, target, query, space)
            list_all_rules(workspace, n_listed, protocol.n_counted, is_left_out, left_out, space, lists)
            add_worth(workspace, lists, n_listed, target, query, protocol, n_others, space, changes, out)
    return last, 0


@kernel
def rank_known(
    graph: GraphArrays,
    index: RuleIndex,
    queries: QueryArrays,
    first: int,
    last: int,
    protocol: AnswerSettings,
    workspace: Workspace,
    is_left_out: bool,
    left_out: LeftOutScores,
    space: RankSpace,
    lists: SortedRules,
    out: NDArray[np.float64],
) -> tuple[int, int]:
    """Write 1 / rank of the targets of the queries from `first` to before `last`; returns as `measure_worth` does."""
    candidates = workspace.candidates
    for q in range(first, last):
        n, n_listed, query, n_excluded = fire_known(graph, index, queries, q, protocol, False, workspace)
        if n > len(lists.rules):
            return q, n
        n_targets = int(queries.target_offsets[q + 1] - queries.target_offsets[q])
        n_others = graph.n_entities - n_excluded - n_targets
        for i in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(np.int64(queries.targets[i]))
            stamp_rules(candidates, workspace.firings, target, query, space)
            list_all_rules(workspace, n_listed, protocol.n_counted, is_left_out, left_out, space, lists)
            standing, is_predicted = stand(workspace, lists, n_listed, target, query, protocol, n_others, space)
            out[i] = reciprocal_rank(standing, is_predicted)
    return last, 0
