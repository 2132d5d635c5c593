"""Which of many rules to keep, by the contests of known answers: rules are dropped and exchanged while that pays.

To drop the rules that are worth least, round by round, sees what rules get wrong and which of them say the same; to
choose one rule after the other does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import Spare, map_in_threads
from anyburl.models.distilling.kernel_contest import ContestArrays
from anyburl.models.distilling.kernel_weigh import (
    WORTH_UNIT,
    WeighingArrays,
    WorthArrays,
    copy_contests,
    drop_rules,
    weigh_rules,
)
from anyburl.ranking.arrays import AnswerSettings

Mask = NDArray[np.bool_]

DROPPED_AT_ONCE = 0.1  # of the kept rules
ROUGHLY = 0.3  # as much, where a set is only a point of a curve
ADDED_AT_ONCE = 0.1  # of the rules to keep
EXCHANGES = 4
HARM = 0.6  # what predicting a rival counts: some rivals are true, and just not known
COPIED_AT = 0.6  # of the rules: to leave out the entries of the others pays


class Weighed(NamedTuple):
    """The sum of the reciprocal ranks (rivals count `HARM`), what each rule is worth, the two best rules of answers."""

    total: float
    rules: WorthArrays
    best: NDArray[np.int32]


class Scale:
    """Weighs rules on several threads, by the order of one aggregation; `values` are the scores behind numbers."""

    def __init__(self, n_rules: int, protocol: AnswerSettings, values: NDArray[np.int64], threads: int) -> None:
        self.n_rules, self.protocol, self.values, self.threads = n_rules, protocol, values, threads
        self._spare = Spare(partial(self._make_space, 1 << 10), threads)

    def _make_space(self, n_candidates: int) -> WeighingArrays:
        wide = [np.zeros(n_candidates, np.int32) for _ in range(5)]
        return WeighingArrays(
            status=np.zeros(n_candidates, np.int8),
            counts=wide[0],
            touched=wide[1],
            tied=wide[2],
            sums=np.zeros(n_candidates, np.int64),
            above=wide[3],
            above_rules=wide[4],
            changes=np.zeros(self.n_rules, np.float64),
            stamps=np.zeros(self.n_rules, np.int64),
            own=np.zeros(self.n_rules, np.int64),
            clock=np.zeros(1, np.int64),
            changed=np.zeros(self.n_rules, np.int32),
        )

    def new_worth(self) -> WorthArrays:
        """Return zeros for all rules."""
        n = self.n_rules
        return WorthArrays(np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int32))

    def weigh(
        self,
        contests: ContestArrays,
        kept: Mask,
        out: WorthArrays,
        *,
        with_gains: bool = False,
        is_exact: bool = False,
    ) -> tuple[int, NDArray[np.int32]]:
        """Add what rules are worth to `out`; return the total in units and the best rules, see `weigh_rules`."""
        n_contests, most = len(contests.n_candidates), int(contests.n_candidates.max(initial=1))
        best, space = np.empty((n_contests, 2), np.int32), self._spare.take()
        try:
            if len(space.status) < most:
                space = self._make_space(2 * most)
            total = weigh_rules(
                contests, 0, n_contests, kept, self.protocol, self.values, with_gains, is_exact, HARM, space, best, out
            )
        finally:
            self._spare.put(space)
        return total, best


@dataclass(frozen=True)
class Contests:
    """The contests of many answers, in parts."""

    parts: list[ContestArrays]
    scale: Scale = field(repr=False)

    def weigh(self, kept: Mask, *, with_gains: bool = False) -> Weighed:
        """Return what each rule is worth beside the kept ones, the others if `with_gains`."""

        def work(part: ContestArrays) -> tuple[int, NDArray[np.int32], WorthArrays]:
            worth = self.scale.new_worth()
            return *self.scale.weigh(part, kept, worth, with_gains=with_gains), worth

        done = map_in_threads(work, self.parts, self.scale.threads)
        worth = add_worth([part for _, _, part in done], self.scale.new_worth)
        best = [np.empty((0, 2), np.int32), *(part for _, part, _ in done)]
        return Weighed(sum(total for total, _, _ in done) / WORTH_UNIT, worth, np.vstack(best))

    def of_rules(self, kept: Mask) -> Contests:
        """Return the contests among fewer rules."""

        def work(part: ContestArrays) -> ContestArrays:
            n_contests, n = len(part.n_candidates), len(part.rules)
            out = ContestArrays(
                np.zeros(n_contests + 1, np.int64),
                np.zeros(n_contests, np.int32),
                *(np.empty(n, np.int32) for _ in range(3)),
            )
            n = copy_contests(part, kept, np.zeros(int(part.n_candidates.max(initial=1)), np.int32), out)
            return ContestArrays(*out[:2], *(column[:n].copy() for column in out[2:]))

        return replace(self, parts=map_in_threads(work, self.parts, self.scale.threads))


def add_worth(parts: list[WorthArrays], zeros: Callable[[], WorthArrays]) -> WorthArrays:
    """Return the sum of the results of several threads."""
    total = zeros()
    for part in parts:
        for name in WorthArrays._fields:
            np.add(getattr(total, name), getattr(part, name), out=getattr(total, name))
    return total


def drop_to(
    contests: Contests,
    kept: Mask,
    room: NDArray[np.int64],
    groups: NDArray[np.int32],
    share: float = DROPPED_AT_ONCE,
) -> Mask:
    """Drop the rules that are worth least until no group has more than there is `room` for, a share of the rules at a
    time; return what is kept.
    """
    kept, whole, n_whole = kept.copy(), contests, len(kept)
    while True:
        spare = np.bincount(groups[kept], minlength=len(room)) - room
        n_kept, n_over = int(kept.sum()), int(np.maximum(spare, 0).sum())
        if n_over == 0:
            return kept
        if n_kept < COPIED_AT * n_whole:
            whole, n_whole = whole.of_rules(kept), n_kept
        weighed = whole.weigh(kept)
        rows = np.flatnonzero(kept)
        rows = rows[spare[groups[rows]] > 0]
        order = rows[np.lexsort((rows, weighed.rules.worth[rows]))]
        n_dropped = min(n_over, max(1, int(share * n_kept)))
        is_best = weighed.best >= 0
        rules, numbers = weighed.best[is_best], np.nonzero(is_best)[0]
        by_rule = np.argsort(rules, kind="stable")
        offsets = np.concatenate([[0], np.cumsum(np.bincount(rules, minlength=len(kept)))])
        # Further down are rules that are worth something: rather drop fewer than these.
        order = order[: 2 * n_dropped]
        is_touched = np.zeros(len(weighed.best), np.bool_)
        drop_rules(order, n_dropped, offsets, numbers[by_rule], groups, spare, is_touched, kept)


def exchange(contests: Contests, kept: Mask) -> Mask:
    """Exchange kept rules for others that are worth more to known answers; return what is kept then."""
    n_kept, share = int(kept.sum()), ADDED_AT_ONCE
    one_group, room = np.zeros(len(kept), np.int32), np.array([n_kept])
    weighed = contests.weigh(kept, with_gains=True)
    for _ in range(EXCHANGES):
        others = np.flatnonzero(~kept & (weighed.rules.worth > 0))
        added = others[np.lexsort((others, -weighed.rules.worth[others]))][: max(1, int(share * n_kept))]
        if not len(added):
            break
        tried = kept.copy()
        tried[added] = True
        tried = drop_to(contests, tried, room, one_group)
        after = contests.weigh(tried, with_gains=True)
        if after.total > weighed.total:
            kept, weighed = tried, after
        else:
            share /= 2
    return kept
