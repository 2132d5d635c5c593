"""What each rule of a set is worth to known answers, by their contests; and dropping those that are worth least."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part
from anyburl.models.distilling.kernel_contest import ContestArrays
from anyburl.ranking.arrays import AnswerSettings
from anyburl.ranking.kernel_order import MOST_EVIDENCE

WORTH_UNIT = 1 << 36  # of reciprocal ranks: whole numbers add up to the same in any order
NO_RULE = -1
UNSEEN, BETTER, TIED, WORSE = 0, 1, 2, 3


class WeighingArrays(NamedTuple):
    """Scratch of one worker; `counts`, `above` are zero between contests."""

    status: NDArray[np.int8]  # candidate -> how it compares with the target
    counts: NDArray[np.int32]  # candidate -> its rules with the score under way
    touched: NDArray[np.int32]
    tied: NDArray[np.int32]
    sums: NDArray[np.int64]  # candidate -> its scores, added up
    above: NDArray[np.int32]  # candidate -> its kept rules that are better than the target's
    above_rules: NDArray[np.int32]  # candidate -> one of them
    changes: NDArray[np.float64]  # rule -> how many more rivals rank before the target if it is switched
    stamps: NDArray[np.int64]  # rule -> the contest that `changes` is about
    own: NDArray[np.int64]  # rule -> the contest whose target it predicts
    clock: NDArray[np.int64]
    changed: NDArray[np.int32]


class WorthArrays(NamedTuple):
    """What is found out about each rule: what is lost without a kept one, or gained by another."""

    worth: NDArray[np.int64]  # in units of `WORTH_UNIT`
    decides: NDArray[np.int32]  # contests whose target has it as its best rule
    only: NDArray[np.int32]  # contests whose target has no other rule


@part
def stand_by_sums(
    contests: ContestArrays,
    contest: int,
    kept: NDArray[np.bool_],
    without: int,
    extra: int,
    n_counted: int,
    values: NDArray[np.int64],
    space: WeighingArrays,
) -> tuple[int, int, int, int]:
    """As `stand` does, by the sums of the `n_counted` highest scores of each candidate."""
    better, equal, at = 0, 0, -1
    end, n_candidates = int(contests.offsets[contest + 1]), int(contests.n_candidates[contest])
    space.sums[:n_candidates] = 0
    for i in range(contests.offsets[contest], end):
        rule, candidate = contests.rules[i], contests.candidates[i]
        if not ((kept[rule] and rule != without) or rule == extra) or space.counts[candidate] >= n_counted:
            continue
        space.counts[candidate] += 1
        space.sums[candidate] = min(space.sums[candidate] + values[contests.scores[i]], MOST_EVIDENCE)
        if candidate == 0 and at < 0:
            at = i
    for candidate in range(1, n_candidates):
        if space.counts[candidate] == 0:
            continue
        space.status[candidate] = WORSE
        if space.sums[candidate] > space.sums[0]:
            space.status[candidate] = BETTER
            better += 1
        elif space.sums[candidate] == space.sums[0]:
            space.status[candidate] = TIED
            equal += 1
    space.counts[:n_candidates] = 0
    return better, equal, end, at


@part
def stand_by_best(
    contests: ContestArrays, contest: int, kept: NDArray[np.bool_], without: int, extra: int, space: WeighingArrays
) -> tuple[int, int, int, int]:
    """As `stand` does, by the scores of each candidate one by one.

    That is to compare how many rules candidates have at each score, the highest score first: the first difference
    decides. What is decided is not looked at again, and nothing is once no rival is tied.
    """
    scores, status, counts = contests.scores, space.status, space.counts
    better, n_tied, at = 0, 0, -1
    i, end = int(contests.offsets[contest]), int(contests.offsets[contest + 1])
    while i < end:
        start, n_own, n_touched = i, 0, 0
        while True:
            rule, candidate = contests.rules[i], contests.candidates[i]
            if (kept[rule] and rule != without) or rule == extra:
                if candidate == 0:
                    n_own += 1
                elif status[candidate] == (UNSEEN if at < 0 else TIED):
                    if counts[candidate] == 0:
                        space.touched[n_touched] = candidate
                        n_touched += 1
                    counts[candidate] += 1
            i += 1
            if i >= end or scores[i] != scores[i - 1]:
                break
        if n_own == 0 and n_touched == 0:
            continue
        if at < 0:
            for j in range(n_touched):
                candidate = space.touched[j]
                status[candidate] = BETTER if counts[candidate] > n_own else WORSE
                better += counts[candidate] > n_own
                if counts[candidate] == n_own:
                    status[candidate] = TIED
                    space.tied[n_tied] = candidate
                    n_tied += 1
                counts[candidate] = 0
            at = start if n_own > 0 else -1
        else:
            n_before, n_tied = n_tied, 0
            for j in range(n_before):
                candidate = space.tied[j]
                if counts[candidate] == n_own:
                    space.tied[n_tied] = candidate
                    n_tied += 1
                else:
                    status[candidate] = BETTER if counts[candidate] > n_own else WORSE
                    better += counts[candidate] > n_own
                counts[candidate] = 0
        if at >= 0 and n_tied == 0:
            break
    return better, n_tied, i, at


@part
def stand(
    contests: ContestArrays,
    contest: int,
    kept: NDArray[np.bool_],
    without: int,
    extra: int,
    protocol: AnswerSettings,
    values: NDArray[np.int64],
    space: WeighingArrays,
) -> tuple[int, int, int, int]:
    """Return where a target ranks by the kept rules, without one of them or with another one.

    That is the rivals before it, those tied with it, the entry up to which rules matter, and the first one with the
    highest score of the target (-1: no rule predicts it). `space.status` says it of each candidate.
    """
    space.status[: contests.n_candidates[contest]] = UNSEEN
    if protocol.breaks_ties:
        return stand_by_best(contests, contest, kept, without, extra, space)
    return stand_by_sums(contests, contest, kept, without, extra, protocol.n_counted, values, space)


@inlined
def reciprocal(better: float, equal: float, is_predicted: bool) -> float:
    """Return 1 / rank, ties counted half; 0 where no rule predicts the target."""
    return 1.0 / (1.0 + max(better, 0.0) + 0.5 * equal) if is_predicted else 0.0


@inlined
def in_units(value: float) -> int:
    """Return a difference of reciprocal ranks in whole units."""
    return int(np.rint(value * WORTH_UNIT))


@part
def note_change(space: WeighingArrays, n_changed: int, rule: int, change: float) -> int:
    """Add to the rivals that a rule would bring before the target; return how many rules there are."""
    if space.stamps[rule] != space.clock[0]:
        space.stamps[rule] = space.clock[0]
        space.changes[rule] = 0.0
        space.changed[n_changed] = rule
        n_changed += 1
    space.changes[rule] += change
    return n_changed


@part
def note_rivals(
    contests: ContestArrays,
    start: int,
    decided: int,
    at: int,
    kept: NDArray[np.bool_],
    with_gains: bool,
    space: WeighingArrays,
) -> int:
    """Note what switching each rule would do that predicts rivals alone, by the best rules; return how many do.

    This is an estimate: a rival that loses its only rule above those of the target is taken to fall behind it.
    """
    n_changed, clock = 0, space.clock[0]
    for i in range(start, at):
        rule, candidate = int(contests.rules[i]), contests.candidates[i]
        if kept[rule]:
            space.above[candidate] += 1
            space.above_rules[candidate] = rule
        elif with_gains and space.own[rule] != clock and space.status[candidate] != BETTER:
            n_changed = note_change(space, n_changed, rule, 0.5 if space.status[candidate] == TIED else 1.0)
    for i in range(start, at):
        candidate = contests.candidates[i]
        rule = int(space.above_rules[candidate])
        if space.above[candidate] == 1 and space.own[rule] != clock:
            n_changed = note_change(space, n_changed, rule, -1.0)
        space.above[candidate] = 0
    for i in range(at, decided):
        rule, candidate = int(contests.rules[i]), contests.candidates[i]
        if candidate != 0 and space.status[candidate] == TIED and space.own[rule] != clock:
            if kept[rule]:
                n_changed = note_change(space, n_changed, rule, -0.5)
            elif with_gains:
                n_changed = note_change(space, n_changed, rule, 0.5)
    return n_changed


@part
def note_rivals_by_sums(
    contests: ContestArrays,
    start: int,
    end: int,
    kept: NDArray[np.bool_],
    with_gains: bool,
    values: NDArray[np.int64],
    space: WeighingArrays,
) -> int:
    """The same by sums of scores; that a lower score may take the place of one that is gone is left out."""
    n_changed = 0
    for i in range(start, end):
        rule, candidate = int(contests.rules[i]), contests.candidates[i]
        if candidate == 0 or space.own[rule] == space.clock[0] or not (kept[rule] or with_gains):
            continue
        is_before, score = space.sums[candidate] > space.sums[0], values[contests.scores[i]]
        if kept[rule] and is_before and space.sums[candidate] - score < space.sums[0]:
            n_changed = note_change(space, n_changed, rule, -1.0)
        elif not kept[rule] and not is_before and space.sums[candidate] + score > space.sums[0]:
            n_changed = note_change(space, n_changed, rule, 1.0)
    return n_changed


@part
def find_deciding_rules(
    contests: ContestArrays,
    start: int,
    decided: int,
    at: int,
    kept: NDArray[np.bool_],
    breaks_ties: bool,
    space: WeighingArrays,
) -> int:
    """Write the kept rules without which a target might rank elsewhere to `space.changed`; return how many.

    These predict the target, or a rival that is not behind it already. A rival with two rules above those of the target
    stays before it without one of them.
    """
    if at < 0:
        return 0
    n_changed, clock = 0, space.clock[0]
    if breaks_ties:
        for i in range(start, at):
            space.above[contests.candidates[i]] += kept[contests.rules[i]]
    for i in range(start, decided):
        rule, candidate = int(contests.rules[i]), contests.candidates[i]
        status = space.status[candidate]
        matters = candidate == 0 or status == TIED or (status == BETTER and space.above[candidate] < 2)
        if matters and kept[rule] and space.stamps[rule] != clock:
            space.stamps[rule] = clock
            space.changed[n_changed] = rule
            n_changed += 1
    for i in range(start, at):
        space.above[contests.candidates[i]] = 0
    return n_changed


@kernel
def weigh_rules(
    contests: ContestArrays,
    first: int,
    last: int,
    kept: NDArray[np.bool_],
    protocol: AnswerSettings,
    values: NDArray[np.int64],
    with_gains: bool,
    is_exact: bool,
    harm: float,
    space: WeighingArrays,
    best: NDArray[np.int32],
    out: WorthArrays,
) -> int:
    """Add what switching each rule does to the targets of some contests; return the sum of their reciprocal ranks.

    Rules of a target are taken away, or with `with_gains` added, and it is ranked again. What the rules of rivals do is
    estimated and multiplied by `harm`, and rivals count `harm` in the sum, unless `is_exact`: then all kept rules are
    taken away. `best` gets the two best kept rules of each target.
    """
    total = 0
    for contest in range(first, last):
        start = int(contests.offsets[contest])
        best[contest, 0], best[contest, 1] = NO_RULE, NO_RULE
        if start == contests.offsets[contest + 1]:
            continue
        better, equal, decided, at = stand(contests, contest, kept, NO_RULE, NO_RULE, protocol, values, space)
        now = reciprocal(better, equal, at >= 0)
        total += in_units(now if is_exact else reciprocal(harm * better, harm * equal, at >= 0))
        space.clock[0] += 1
        clock, n_changed, n_own = space.clock[0], 0, 0
        for i in range(start, contests.offsets[contest + 1]):
            rule = contests.rules[i]
            if contests.candidates[i] != 0:
                continue
            space.own[rule] = clock
            if kept[rule]:
                if n_own < 2:
                    best[contest, n_own] = rule
                n_own += 1
        if n_own > 0:
            out.decides[best[contest, 0]] += 1
            out.only[best[contest, 0]] += n_own == 1
        if at >= 0 and not is_exact:
            if protocol.breaks_ties:
                n_changed = note_rivals(contests, start, decided, at, kept, with_gains, space)
            else:
                n_changed = note_rivals_by_sums(contests, start, decided, kept, with_gains, values, space)
        for j in range(n_changed):
            rule = space.changed[j]
            change = harm * (reciprocal(better + space.changes[rule], equal, True) - now)
            out.worth[rule] += in_units(-change if kept[rule] else change)
        if is_exact:
            n_changed = find_deciding_rules(contests, start, decided, at, kept, protocol.breaks_ties, space)
            for j in range(n_changed):
                rule = int(space.changed[j])
                b, e, _, a = stand(contests, contest, kept, rule, NO_RULE, protocol, values, space)
                out.worth[rule] += in_units(now - reciprocal(b, e, a >= 0))
            continue
        for i in range(start, decided):
            rule = int(contests.rules[i])
            if contests.candidates[i] != 0 or not (kept[rule] or with_gains):
                continue
            without, extra = (rule, NO_RULE) if kept[rule] else (NO_RULE, rule)
            b, e, _, a = stand(contests, contest, kept, without, extra, protocol, values, space)
            change = reciprocal(b, e, a >= 0) - now
            out.worth[rule] += in_units(-change if kept[rule] else change)
    return total


@kernel
def copy_contests(
    contests: ContestArrays, kept: NDArray[np.bool_], numbers: NDArray[np.int32], out: ContestArrays
) -> int:
    """Write the entries of kept rules to `out`, none where the target has none; return how many there are.

    `numbers` has room for every candidate, and is zero on entry and exit.
    """
    n = 0
    for contest in range(len(contests.offsets) - 1):
        start, end = contests.offsets[contest], contests.offsets[contest + 1]
        begin, n_own, n_candidates = n, 0, 1
        for i in range(start, end):
            rule, candidate = contests.rules[i], contests.candidates[i]
            if not kept[rule]:
                continue
            n_own += candidate == 0
            if candidate != 0 and numbers[candidate] == 0:
                numbers[candidate] = n_candidates
                n_candidates += 1
            out.rules[n], out.candidates[n], out.scores[n] = rule, numbers[candidate], contests.scores[i]
            n += 1
        for i in range(start, end):
            numbers[contests.candidates[i]] = 0
        if n_own == 0:
            n, n_candidates = begin, 1
        out.offsets[contest + 1] = n
        out.n_candidates[contest] = n_candidates
    return n


@kernel
def drop_rules(
    order: NDArray[np.int64],
    most: int,
    rule_offsets: NDArray[np.int64],
    rule_contests: NDArray[np.int64],
    groups: NDArray[np.int32],
    spare: NDArray[np.int64],
    is_touched: NDArray[np.bool_],
    kept: NDArray[np.bool_],
) -> int:
    """Drop up to `most` rules in order, and as many of each group as `spare` says; return how many.

    Of two rules that say the same, each seems worthless beside the other: of those that matter to one contest, see
    `rule_contests`, only one is dropped at a time. `is_touched` are these contests, all False on entry.
    """
    n_dropped = 0
    for j in range(len(order)):
        if n_dropped >= most:
            break
        rule = order[j]
        is_free = spare[groups[rule]] > 0
        for i in range(rule_offsets[rule], rule_offsets[rule + 1]):
            is_free = is_free and not is_touched[rule_contests[i]]
        if not is_free:
            continue
        for i in range(rule_offsets[rule], rule_offsets[rule + 1]):
            is_touched[rule_contests[i]] = True
        kept[rule] = False
        spare[groups[rule]] -= 1
        n_dropped += 1
    return n_dropped
