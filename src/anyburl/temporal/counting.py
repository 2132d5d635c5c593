"""Count all temporal rules of a history: pairs with shared credit, constants, hops, popularity.

Everything is counted twice in one pass: over the cases before a `cut`, on which rules are tried, and over all cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import Spare, map_in_threads
from anyburl.learning.options import TemporalOptions
from anyburl.temporal.answering import Directed, index_cases, index_cells, index_history
from anyburl.temporal.kernel_bodies import (
    EMPTY,
    N_CELLS,
    N_FADES,
    N_RECENCY,
    N_SHAPES,
    ConstantArrays,
    HopArrays,
    KeyCounts,
    MomentArrays,
    count_constants,
    count_hops,
    count_three_hops,
    keep_rules,
    put_keys,
)
from anyburl.temporal.kernel_pairs import (
    HistoryWalk,
    add_shapes,
    count_exposure,
    count_pairs,
    fill_curves,
    fill_popularity,
    mark_pairs,
    share_credit,
    smooth_head,
    walk_moments,
)

FIRST_FAVOUR = 0.2  # the intensity of popularity before any credit was shared
MOST_KEYS = 1 << 25  # of rules with constants of one head
CASES_AT_A_TIME = 20_000
RANGES_OF_A_THREAD = 4
PARTS_OF_A_THREAD = 16

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Buffers = TypeVar("Buffers")
Tables = tuple[KeyCounts, KeyCounts]


@dataclass(frozen=True)
class Counted:
    """Pair rules as counted before any smoothing: flat tables of (rows, cells)."""

    slots: Ids
    right: Ids
    every: Ids
    silent: Floats  # (relations, cells): the cases of bodies that were never right, which are no rules


class RuleCounter:
    """Counts the rules of facts by threads, head by head, which makes results the same for any number of threads.

    `is_stopped` is asked between heads: then what was counted so far is returned.
    """

    def __init__(
        self,
        facts: Directed,
        cut: int,
        threads: int,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.history, self.cells, self.cases = index_history(facts), index_cells(), index_cases(facts)
        self.first, self.cut, self.end = int(facts.times[0]), cut, int(facts.times[-1]) + 1
        self.threads, self.is_stopped = threads, is_stopped
        self.moments = self._walk()

    def each_head(
        self,
        work: Callable[[int, Buffers], None],
        make: Callable[[], Buffers],
        *,
        whole: bool = True,
    ) -> bool:
        """Call `work` for every relation that has cases, those with the most first; return whether all were done.

        Unless the `whole` is needed, no more heads are begun after a stop.
        """
        sizes, spare = np.diff(self.cases.offsets), Spare(make, self.threads)
        heads = [int(head) for head in np.argsort(-sizes, kind="stable") if sizes[head]]
        n_parts = PARTS_OF_A_THREAD * self.threads  # a task for each head would cost more than a small head itself

        def run(part: int) -> bool:
            buffers = spare.take()
            try:
                for head in heads[part::n_parts]:
                    if not whole and self.is_stopped():
                        return False
                    work(head, buffers)
            finally:
                spare.put(buffers)
            return True

        return all(map_in_threads(run, range(n_parts), self.threads))

    def _walk(self) -> MomentArrays:
        """Return the triples of every entity at each of its moments, by relation and cell."""
        history, n = self.history, self.history.n_entities
        longest, width = int(np.diff(history.triple_offsets).max(initial=0)), self.n_codes
        ends = np.linspace(0, len(history.fact_times), RANGES_OF_A_THREAD * self.threads + 1)
        bounds = np.unique(np.searchsorted(history.fact_offsets, ends)).tolist()
        begins = np.diff(history.fact_times, prepend=-1) != 0
        begins[history.fact_offsets[:-1][np.diff(history.fact_offsets) > 0]] = True
        moment_of = np.concatenate([[0], np.cumsum(begins)])
        spare = Spare(
            lambda: HistoryWalk(
                last=np.empty(longest, np.int64),
                counts=np.empty(longest, np.int32),
                codes=np.empty(longest, np.int32),
                others=np.empty(longest, np.int32),
                triples=np.full(n, -1, np.int32),
                tallies=np.zeros(width, np.int32),
                rows=np.zeros(width, np.int32),
                listed=np.zeros(width, np.int32),
                pointers=np.zeros(N_RECENCY, np.int64),
            ),
            self.threads,
        )

        def walk(out: MomentArrays, *, write: bool) -> None:
            def run(part: tuple[int, int]) -> None:
                work = spare.take()
                moment = int(moment_of[history.fact_offsets[part[0]]])
                walk_moments(history, self.cells, *part, moment, write, out, work)
                spare.put(work)

            map_in_threads(run, list(pairwise([0, *bounds, n])), self.threads)

        nothing = np.empty(0, np.int32)
        offsets, answer_offsets = np.zeros(moment_of[-1] + 1, np.int64), np.zeros(len(begins) + 1, np.int64)
        walk(MomentArrays(offsets, nothing, nothing, answer_offsets, nothing), write=False)
        np.cumsum(offsets, out=offsets)
        np.cumsum(answer_offsets, out=answer_offsets)
        codes, tallies = np.empty((2, offsets[-1]), np.int32)
        made = MomentArrays(offsets, codes, tallies, answer_offsets, np.empty(answer_offsets[-1], np.int32))
        walk(made, write=True)
        return made

    @property
    def n_codes(self) -> int:
        """How many pairs of a relation and a cell there are."""
        return self.history.n_relations * N_CELLS

    def pairs(self) -> list[Counted]:
        """Count the pair rules that were right at least once, before the cut and over all cases."""
        n = self.history.n_relations
        seen = np.zeros((n, 2, n), np.int32)
        self.each_head(lambda head, _: mark_pairs(self.moments, self.cases, head, self.cut, seen[head]), lambda: None)
        made = []
        for half in range(2):
            slots = number_rows(seen[:, half])
            right, every = np.zeros((2, (int(slots.max()) + 1) * N_CELLS), np.int32)
            made.append(Counted(slots, right, every, np.zeros((n, N_CELLS), np.float32)))

        def work(head: int, spread: Ids) -> None:
            spread[:] = 0
            for counted, (low, high) in zip(made, self.halves, strict=True):
                count_pairs(
                    self.moments, self.cases, head, low, high, counted.slots, counted.right, counted.every,
                    counted.silent, spread,
                )  # fmt: skip

        self.each_head(work, lambda: np.empty((2, self.n_codes), np.int32))
        return made

    @property
    def halves(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """The first time and the end of the cases before the cut, and of those after it."""
        return (self.first, self.cut), (self.cut, self.end)

    def steps(self, end: int) -> Ints:
        """Return the steps of the clock before `end` that triples spent in each cell: (relations, cells)."""
        steps = np.zeros(self.n_codes, np.int64)
        count_exposure(self.history, self.cells, 0, len(self.history.triple_relations), end, steps)
        return steps.reshape(-1, N_CELLS)

    def smooth(
        self,
        slots: Ids,
        numerators: Floats,
        denominators: Floats,
        priors: tuple[float, float],
        silent: Floats | None = None,
    ) -> Floats:
        """Return smoothed values of every cell, see `smooth_head`."""
        silent = np.zeros((len(slots), N_CELLS), np.float32) if silent is None else silent
        sums = np.zeros((len(slots), 4, N_CELLS))
        self.each_head(
            lambda head, _: add_shapes(head, slots, numerators, denominators, silent, sums[head]), lambda: None
        )
        own_right, own_every, right, every = sums.sum(axis=0)
        own_shape, shape = own_right / (own_every + 1), right / (every + 1)
        values = np.zeros(len(numerators), np.float32)
        self.each_head(
            lambda head, buffers: smooth_head(
                head, slots, numerators, denominators, silent, own_shape, shape, *priors, values, buffers
            ),
            lambda: np.empty((5, N_CELLS)),
        )
        return values

    def popularity(self) -> Floats:
        """Return how popular every answer was just before: (answers, fades)."""
        popularity = np.zeros((len(self.cases.answers), N_FADES), np.float32)
        self.each_head(lambda head, _: fill_popularity(self.history, self.cases, head, popularity), lambda: None)
        return popularity

    def share_credits(
        self,
        end: int,
        slots: Ids,
        values: Floats,
        favour: NDArray[np.float64] | None,
        popularity: Floats,
        rounds: int,
        priors: tuple[float, float],
    ) -> tuple[Floats, NDArray[np.float64]]:
        """Return intensities of cells and of popularity that share the credit for answers before `end` (EM)."""
        n = self.history.n_relations
        favour = np.full((n, N_FADES), FIRST_FAVOUR / N_FADES) if favour is None else favour
        for _ in range(rounds):
            credits, exposures = np.zeros((2, len(values)), np.float32)
            sums = np.zeros((n, 2, N_FADES))

            def work(
                head: int,
                spread: Floats,
                known: Floats = values,
                before: NDArray[np.float64] = favour,
                credits: Floats = credits,
                exposures: Floats = exposures,
                sums: NDArray[np.float64] = sums,
            ) -> None:
                own = before[head], popularity, credits, exposures, sums[head], spread
                share_credit(self.history, self.moments, self.cases, head, end, slots, known, *own)

            if not self.each_head(work, lambda: np.empty((3, self.n_codes), np.float32), whole=False):
                break
            favour = (sums[:, 0] + 1 / N_FADES) / (sums[:, 1] + 5)
            values = self.smooth(slots, credits, exposures, priors)
        return values, favour

    def constants(self, options: TemporalOptions) -> list[tuple[ConstantArrays, Ints]]:
        """Count rules with constants, before the cut and over all cases.

        Each time, return the rules, and in two rows their right cases and the cases of their bodies.
        """
        parts: list[list[tuple[Ints, ...]]] = [[NO_RULES] * self.history.n_relations for _ in range(2)]
        longest, n = options.n_last * N_SHAPES, self.history.n_entities

        def work(head: int, buffers: tuple[Ints, Ints]) -> None:
            def count(first: int, last: int, low: int, high: int, tables: Tables) -> int:
                return count_constants(
                    self.history, self.cases, first, last, low, high, options.n_last, options.oldest, *tables, *buffers
                )

            tables = _room(1 << 14), _room(1 << 15)
            for half, times in enumerate(self.halves):
                tables = self._count_keys(head, times, tables, count)
                keys, right, every = _kept(*tables, n, options.min_support, options.min_confidence, options.smoothing)
                parts[half][head] = keys // n, keys % n, right, every

        self.each_head(
            work,
            lambda: (np.full(1 << (2 * longest).bit_length(), EMPTY, np.int64), np.empty(longest, np.int64)),
            whole=False,
        )
        return [_join_constants(part, options.smoothing) for part in parts]

    def _count_keys(
        self, head: int, times: tuple[int, int], tables: Tables, count: Callable[[int, int, int, int, Tables], int]
    ) -> Tables:
        """Count the cases of a head between two times into tables of bodies and rules, which grow; return the tables.

        `count` is called with a range of cases, the times and the tables, and returns the first case that there was no
        room for.
        """
        case, last = (int(row) for row in self.cases.offsets[head : head + 2])
        while case < last:
            until = min(case + CASES_AT_A_TIME, last)
            reached = count(case, until, *times, tables)
            if reached < until:
                if len(tables[1].keys) >= MOST_KEYS:
                    break
                tables = _grown(tables[0]), _grown(tables[1])
            case = reached
        return tables

    def hops(self, options: TemporalOptions) -> list[tuple[HopArrays, Ints]]:
        """Count rules of two hops, and of three if wanted, before the cut and over all cases.

        Each time, return the rules, and in two rows their right ways and all ways.
        """
        n = self.history.n_relations
        parts: list[list[tuple[Ints, ...]]] = [[NO_RULES] * n for _ in range(2)]

        def work(head: int, buffers: tuple[Ids, Ids, Ids, Ints]) -> None:
            right, every, used, stamps = buffers

            def count(first: int, last: int, low: int, high: int, tables: Tables) -> int:
                return count_three_hops(
                    self.history, self.cases, first, last, low, high, options.three_hops, *tables, stamps
                )

            n_used, tables = 0, (_room(1 << 14), _room(1 << 14))
            for half, times in enumerate(self.halves):
                n_used = count_hops(
                    self.history, self.cases, head, *times, options.n_first, options.n_second, right, every, used,
                    n_used, stamps,
                )  # fmt: skip
                kept = np.sort(used[:n_used][right[used[:n_used]] >= options.min_support])
                rows = np.stack([kept, right[kept], every[kept]]).astype(np.int64)
                if options.three_hops:
                    tables = self._count_keys(head, times, tables, count)
                    longer = _kept(*tables, 1, options.min_support, 0.0, options.smoothing)
                    rows = np.concatenate([rows, longer], axis=1)
                parts[half][head] = tuple(rows)
            right[used[:n_used]] = every[used[:n_used]] = 0

        def make() -> tuple[Ids, Ids, Ids, Ints]:
            right, every, used = np.zeros((3, n * n), np.int32)
            return right, every, used, np.full(self.history.n_entities, -1, np.int64)

        self.each_head(work, make, whole=False)
        return [_join_hops(part, options.smoothing) for part in parts]


NO_RULES: tuple[Ints, ...] = (np.empty(0, np.int64),) * 4


def number_rows(seen: Ids) -> Ids:
    """Return a row for every pair that was seen, -1 for others."""
    return np.where(seen > 0, np.cumsum(seen.ravel()).reshape(seen.shape) - 1, -1).astype(np.int32)


def no_constants(n_relations: int) -> tuple[ConstantArrays, Ints]:
    """Return no rules with constants."""
    return _join_constants([NO_RULES] * n_relations, 1.0)


def no_hops(n_relations: int) -> tuple[HopArrays, Ints]:
    """Return no rules of hops."""
    return _join_hops([NO_RULES] * n_relations, 1.0)


def curves_of(values: Floats, cases: Ids) -> Floats:
    """Return the confidence by age of each rule: the mean over frequencies, weighed by cases, never rising."""
    curves = np.zeros((len(values) // N_CELLS, N_RECENCY), np.float32)
    fill_curves(values, cases, curves)
    return curves


def _join_constants(parts: list[tuple[Ints, ...]], smoothing: float) -> tuple[ConstantArrays, Ints]:
    """Return the rules with constants of all heads."""
    body_keys, constants, right, every = (np.concatenate([part[i] for part in parts]) for i in range(4))
    heads = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    firsts = np.flatnonzero(np.diff(heads, prepend=-1) | np.diff(body_keys, prepend=-1))
    rules = ConstantArrays(
        np.searchsorted(heads[firsts], np.arange(len(parts) + 1)).astype(np.int64),
        body_keys[firsts],
        np.append(firsts, len(heads)).astype(np.int64),
        constants.astype(np.int32),
        (right / (every + smoothing)).astype(np.float32),
    )
    return rules, np.stack([right, every])


def _join_hops(parts: list[tuple[Ints, ...]], smoothing: float) -> tuple[HopArrays, Ints]:
    """Return the rules of hops of all heads."""
    bodies, right, every = (np.concatenate([part[i] for part in parts]) for i in range(3))
    offsets = np.concatenate([[0], np.cumsum([len(part[0]) for part in parts])]).astype(np.int64)
    confidences = (right / (every + smoothing)).astype(np.float32)
    return HopArrays(offsets, bodies, confidences), np.stack([right, every])


def _kept(
    bodies: KeyCounts, rules: KeyCounts, n_answers: int, min_support: int, min_confidence: float, smoothing: float
) -> Ints:
    """Return the keys, right cases and all cases of the rules worth keeping, in three rows, sorted by key."""
    kept = np.empty((3, int(rules.n_used[0])), np.int64)
    n = keep_rules(bodies, rules, n_answers, min_support, min_confidence, smoothing, kept)
    return kept[:, np.argsort(kept[0, :n])]


def _room(n_keys: int) -> KeyCounts:
    """Return an empty hash table with room for `n_keys`, a power of 2."""
    positions = 2 * n_keys
    return KeyCounts(
        np.full(positions, EMPTY, np.int64),
        np.zeros(positions, np.int32),
        np.empty(n_keys, np.int64),
        np.zeros(1, np.int64),
    )


def _grown(table: KeyCounts) -> KeyCounts:
    """Return a table of twice the size with the same keys and counts."""
    used = table.used[: int(table.n_used[0])]
    made = _room(2 * len(table.used))
    put_keys(table.keys[used], table.counts[used], made)
    return made
