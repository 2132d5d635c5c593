"""Count all temporal rules of a history: pairs with shared credit, constants, hops, popularity."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anyburl.temporal.arrays import (
    N_CELLS,
    N_FADES,
    CaseArrays,
    CellArrays,
    ConstantArrays,
    HistoryArrays,
    HopArrays,
)
from anyburl.temporal.kernel_bodies import EMPTY, N_SHAPES, KeyCounts, count_constants, count_hops, put_keys
from anyburl.temporal.kernel_curves import add_shapes, smooth_head
from anyburl.temporal.kernel_pairs import (
    ReplayArrays,
    count_exposure,
    count_pairs,
    fill_popularity,
    mark_pairs,
    share_credit,
)
from anyburl.temporal.options import TemporalOptions

FIRST_FAVOUR = 0.2  # the intensity of popularity before any credit was shared
MOST_KEYS = 1 << 25  # of rules with constants of one head
CASES_AT_A_TIME = 20_000


@dataclass(frozen=True)
class Counts:
    """What was counted, in flat tables of (rows of pairs, cells), before any smoothing."""

    slots: NDArray[np.int32]
    true_cases: NDArray[np.int64]
    all_cases: NDArray[np.int64]
    steps: NDArray[np.int64]  # (relations, cells)


@dataclass
class Workers:
    """Threads, each with buffers of its own."""

    history: HistoryArrays
    threads: int
    _free: list[ReplayArrays] = field(default_factory=list)

    def buffers(self) -> ReplayArrays:
        """Return buffers that no other thread uses; give them back with `give_back`."""
        if self._free:
            made = self._free.pop()
            made.stamps.fill(-1)
            return made
        longest = int(np.diff(self.history.triple_offsets).max(initial=0))
        n = self.history.n_entities
        last, counts, places = np.zeros((3, longest), np.int64)
        return ReplayArrays(last, counts, places, np.full(n, -1, np.int64), np.zeros(n))

    def each_head(self, cases: CaseArrays, work: Callable[[int, ReplayArrays], None]) -> None:
        """Call `work` for every relation that has cases, those with the most cases first."""
        sizes = np.diff(cases.offsets)
        heads = [int(head) for head in np.argsort(-sizes, kind="stable") if sizes[head]]

        def run(head: int) -> None:
            buffers = self.buffers()
            try:
                work(head, buffers)
            finally:
                self._free.append(buffers)

        if self.threads == 1 or len(heads) <= 1:
            for head in heads:
                run(head)
            return
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(run, heads))


def count_history(history: HistoryArrays, cells: CellArrays, cases: CaseArrays, end: int, workers: Workers) -> Counts:
    """Count pair rules over `cases`, and the steps that triples spent in each cell before `end`."""
    n = history.n_relations
    seen = np.zeros((n, n), np.int32)
    workers.each_head(cases, lambda head, _: mark_pairs(history, cases, head, seen[head]))
    slots = np.where(seen > 0, np.cumsum(seen.ravel()).reshape(n, n) - 1, -1).astype(np.int32)
    n_cells = int(seen.sum()) * N_CELLS
    true_cases, all_cases = np.zeros((2, n_cells), np.int64)
    workers.each_head(
        cases, lambda head, buffers: count_pairs(history, cells, cases, head, slots, true_cases, all_cases, buffers)
    )
    steps = np.zeros(n * N_CELLS, np.int64)
    count_exposure(history, cells, 0, len(history.triple_relations), end, steps)
    return Counts(slots, true_cases, all_cases, steps.reshape(n, N_CELLS))


def smooth(
    slots: NDArray[np.int32],
    numerators: NDArray[np.float32],
    denominators: NDArray[np.float32],
    cases: CaseArrays,
    workers: Workers,
    prior_ratio: float,
    prior_cell: float,
) -> NDArray[np.float32]:
    """Return smoothed values of every cell, see `smooth_head`."""
    sums = np.zeros((len(slots), 4, N_CELLS))
    workers.each_head(cases, lambda head, _: add_shapes(head, slots, numerators, denominators, sums[head]))
    own_true, own_all, true, every = sums.sum(axis=0)
    own_shape, shape = own_true / (own_all + 1), true / (every + 1)
    values = np.zeros(len(numerators), np.float32)

    def work(head: int, _: ReplayArrays) -> None:
        buffers = np.empty((5, N_CELLS))
        smooth_head(head, slots, numerators, denominators, own_shape, shape, prior_ratio, prior_cell, values, buffers)

    workers.each_head(cases, work)
    return values


def share_credits(
    history: HistoryArrays,
    cells: CellArrays,
    cases: CaseArrays,
    slots: NDArray[np.int32],
    values: NDArray[np.float32],
    workers: Workers,
    rounds: int,
    priors: tuple[float, float],
    favour: NDArray[np.float64] | None = None,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """Return intensities of cells and of popularity that share the credit for each answer (EM), from `values` on."""
    n = history.n_relations
    popularity = np.zeros((len(cases.answers), N_FADES), np.float32)
    workers.each_head(cases, lambda head, _: fill_popularity(history, cases, head, popularity))
    favour = np.full((n, N_FADES), FIRST_FAVOUR / N_FADES) if favour is None else favour
    for _ in range(rounds):
        credits, exposures = np.zeros((2, len(values)), np.float32)
        sums = np.zeros((n, 2, N_FADES))

        def work(
            head: int,
            buffers: ReplayArrays,
            known: NDArray[np.float32] = values,
            before: NDArray[np.float64] = favour,
            credits: NDArray[np.float32] = credits,
            exposures: NDArray[np.float32] = exposures,
            sums: NDArray[np.float64] = sums,
        ) -> None:
            own = before[head], popularity, credits, exposures, sums[head]
            share_credit(history, cells, cases, head, slots, known, *own, buffers)

        workers.each_head(cases, work)
        favour = (sums[:, 0] + 1 / N_FADES) / (sums[:, 1] + 5)
        values = smooth(slots, credits, exposures, cases, workers, *priors)
    return values, favour


def count_constant_rules(
    history: HistoryArrays, cases: CaseArrays, options: TemporalOptions, workers: Workers
) -> tuple[ConstantArrays, NDArray[np.int64]]:
    """Return rules with constants, and in two rows their right cases and the cases of their bodies."""
    n, n_entities = history.n_relations, history.n_entities
    parts: list[tuple[NDArray[np.int64], ...]] = [()] * n
    longest = options.n_last * N_SHAPES

    def work(head: int, _: ReplayArrays) -> None:
        seen = np.full(1 << (2 * longest).bit_length(), EMPTY, np.int64)
        found = np.empty(longest, np.int64)
        bodies, rules = _room(1 << 14), _room(1 << 15)
        case, last = int(cases.offsets[head]), int(cases.offsets[head + 1])
        while case < last:
            until = min(case + CASES_AT_A_TIME, last)
            reached = count_constants(
                history, cases, case, until, options.n_last, options.oldest, bodies, rules, seen, found
            )
            if reached < until:
                if len(rules.keys) >= MOST_KEYS:
                    break
                bodies, rules = _grown(bodies), _grown(rules)
            case = reached
        parts[head] = _kept_rules(bodies, rules, n_entities, options)

    workers.each_head(cases, work)
    empty = np.empty(0, np.int64)
    columns = [np.concatenate([part[i] if part else empty for part in parts]) for i in range(4)]
    sizes = np.array([len(part[0]) if part else 0 for part in parts])
    heads = np.repeat(np.arange(n), sizes)
    body_keys, constants, right, whole = columns
    firsts = np.flatnonzero(np.diff(heads, prepend=-1) | np.diff(body_keys, prepend=-1)) if len(heads) else empty
    return (
        ConstantArrays(
            np.searchsorted(heads[firsts], np.arange(n + 1)).astype(np.int64),
            body_keys[firsts].astype(np.int64),
            np.append(firsts, len(heads)).astype(np.int64),
            constants.astype(np.int32),
            (right / (whole + options.smoothing)).astype(np.float32),
        ),
        np.stack([right, whole]),
    )


def no_constants(n_relations: int) -> tuple[ConstantArrays, NDArray[np.int64]]:
    """Return no rules with constants."""
    starts, empty = np.zeros(n_relations + 1, np.int64), np.empty(0, np.int64)
    made = ConstantArrays(starts, empty, np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return made, np.empty((2, 0), np.int64)


def no_hops(n_relations: int) -> tuple[HopArrays, NDArray[np.int64]]:
    """Return no rules of two hops."""
    made = HopArrays(np.zeros(n_relations + 1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))
    return made, np.empty((2, 0), np.int64)


def _room(n_keys: int) -> KeyCounts:
    """Return an empty hash table with room for `n_keys`, a power of 2."""
    places = 2 * n_keys
    return KeyCounts(
        np.full(places, EMPTY, np.int64), np.zeros(places, np.int32), np.empty(n_keys, np.int64), np.zeros(1, np.int64)
    )


def _grown(table: KeyCounts) -> KeyCounts:
    """Return a table of twice the size with the same keys and counts."""
    used = table.used[: int(table.n_used[0])]
    made = _room(2 * len(table.used))
    put_keys(table.keys[used], table.counts[used], made)
    return made


def _kept_rules(
    bodies: KeyCounts, rules: KeyCounts, n_entities: int, options: TemporalOptions
) -> tuple[NDArray[np.int64], ...]:
    """Return bodies, constants, right cases and all cases of the rules worth keeping, sorted."""
    used = rules.used[: int(rules.n_used[0])]
    used = used[rules.counts[used] >= options.min_support]
    keys, right = rules.keys[used], rules.counts[used].astype(np.int64)
    order = np.argsort(keys)
    keys, right = keys[order], right[order]
    known = bodies.used[: int(bodies.n_used[0])]
    body_keys, body_counts = bodies.keys[known], bodies.counts[known]
    by_key = np.argsort(body_keys)
    whole = body_counts[by_key][np.searchsorted(body_keys[by_key], keys // n_entities)].astype(np.int64)
    kept = right >= options.min_confidence * (whole + options.smoothing)
    return keys[kept] // n_entities, keys[kept] % n_entities, right[kept], whole[kept]


def count_hop_rules(
    history: HistoryArrays, cases: CaseArrays, options: TemporalOptions, workers: Workers
) -> tuple[HopArrays, NDArray[np.int64]]:
    """Return rules of two hops, and in two rows their right ways and all ways."""
    n = history.n_relations
    parts: list[tuple[NDArray[np.int64], ...]] = [()] * n

    def work(head: int, buffers: ReplayArrays) -> None:
        true_paths, all_paths = np.zeros((2, n * n), np.int32)
        count_hops(history, cases, head, options.n_first, options.n_second, true_paths, all_paths, buffers.stamps)
        kept = np.flatnonzero(true_paths >= options.min_support)
        parts[head] = (kept, true_paths[kept].astype(np.int64), all_paths[kept].astype(np.int64))

    workers.each_head(cases, work)
    empty = np.empty(0, np.int64)
    bodies, right, whole = (np.concatenate([part[i] if part else empty for part in parts]) for i in range(3))
    sizes = np.array([len(part[0]) if part else 0 for part in parts])
    confidences = right / (whole + options.smoothing)
    return (
        HopArrays(
            np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
            bodies.astype(np.int32),
            confidences.astype(np.float32),
        ),
        np.stack([right, whole]),
    )
