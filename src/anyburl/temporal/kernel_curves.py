"""Smooth counts by cell: a common shape, a ratio of each rule to it, and curves that fall with age."""

from __future__ import annotations

from anyburl.base.jit import kernel, part
from anyburl.temporal.arrays import N_CELLS, N_FREQUENCY, N_RECENCY, Doubles, Floats, Ids

LEAST_CASES = 1e-3  # of a cell, so that curves go on where there are none


@part
def fall_with_age(values: Doubles, weights: Doubles, lengths: Doubles, curve: Doubles, mass: Doubles) -> None:
    """Make the values of one rule fall, or stay, from bin to bin of recency, by pooling neighbours that rise."""
    for frequency in range(N_FREQUENCY):
        rises = False
        for cell in range(frequency + N_FREQUENCY, N_CELLS, N_FREQUENCY):
            rises |= values[cell - N_FREQUENCY] < values[cell]
        if not rises:
            continue
        n = 0
        for recency in range(N_RECENCY):
            cell = recency * N_FREQUENCY + frequency
            curve[n], mass[n], lengths[n] = values[cell], weights[cell], 1.0
            n += 1
            while n > 1 and curve[n - 2] < curve[n - 1]:
                total = mass[n - 2] + mass[n - 1]
                curve[n - 2] = (curve[n - 2] * mass[n - 2] + curve[n - 1] * mass[n - 1]) / total
                mass[n - 2], lengths[n - 2] = total, lengths[n - 2] + lengths[n - 1]
                n -= 1
        recency = 0
        for block in range(n):
            for _ in range(int(lengths[block])):
                values[recency * N_FREQUENCY + frequency] = curve[block]
                recency += 1


@kernel
def smooth_head(
    head: int,
    slots: Ids,
    numerators: Floats,
    denominators: Floats,
    silent: Floats,
    own_shape: Doubles,
    shape: Doubles,
    prior_ratio: float,
    prior_cell: float,
    out: Floats,
    buffers: Doubles,
) -> None:
    """Write the smoothed values of all rules of `head`.

    A rule's ratio to the common shape (of its own relation, or of all others) is shrunk to that of its head, with
    `prior_ratio` cases; a cell to the shape times the ratio, with `prior_cell`. `silent` are the denominators of bodies
    that are no rules since they were never right. `buffers` has five rows of cells.
    """
    values, weights, lengths, curve, mass = buffers[0], buffers[1], buffers[2], buffers[3], buffers[4]
    n_relations = slots.shape[0]
    cases, expected = prior_ratio, prior_ratio
    for cell in range(N_CELLS):
        expected += silent[head, cell] * shape[cell]
    for body in range(n_relations):
        slot = int(slots[head, body])
        if slot >= 0 and body != head:
            for cell in range(N_CELLS):
                cases += numerators[slot * N_CELLS + cell]
                expected += denominators[slot * N_CELLS + cell] * shape[cell]
    ratio_of_head = cases / expected
    for body in range(n_relations):
        slot = int(slots[head, body])
        if slot < 0:
            continue
        start = slot * N_CELLS
        is_own = body == head
        cases = prior_ratio * (1.0 if is_own else ratio_of_head)
        expected = prior_ratio
        for cell in range(N_CELLS):
            common = own_shape[cell] if is_own else shape[cell]
            cases += numerators[start + cell]
            expected += denominators[start + cell] * common
        ratio = cases / expected
        for cell in range(N_CELLS):
            common = min(1.0, ratio * (own_shape[cell] if is_own else shape[cell]))
            weights[cell] = denominators[start + cell] + prior_cell
            values[cell] = (numerators[start + cell] + prior_cell * common) / weights[cell]
        fall_with_age(values, weights, lengths, curve, mass)
        for cell in range(N_CELLS):
            out[start + cell] = values[cell]


@kernel
def add_shapes(head: int, slots: Ids, numerators: Floats, denominators: Floats, silent: Floats, sums: Doubles) -> None:
    """Add the counts of a head: rows 0 and 1 of `sums` for its own relation as body, 2 and 3 for all others."""
    for cell in range(N_CELLS):
        sums[3, cell] += silent[head, cell]
    for body in range(slots.shape[0]):
        slot = int(slots[head, body])
        if slot >= 0:
            row = 0 if body == head else 2
            for cell in range(N_CELLS):
                sums[row, cell] += numerators[slot * N_CELLS + cell]
                sums[row + 1, cell] += denominators[slot * N_CELLS + cell]


@kernel
def fill_curves(values: Floats, cases: Ids, curves: Floats) -> None:
    """Write the confidence of each rule by age: the mean over frequencies, weighed by cases, never rising.

    Ages that no case had have confidence 0.
    """
    for row in range(len(curves)):
        start, lowest, last = row * N_CELLS, 1.0, -1
        for recency in range(N_RECENCY):
            total, weighed = 0.0, 0.0
            for cell in range(start + recency * N_FREQUENCY, start + (recency + 1) * N_FREQUENCY):
                weight = cases[cell] + LEAST_CASES
                total += weight
                weighed += weight * values[cell]
                if cases[cell] > 0:
                    last = recency
            lowest = min(lowest, weighed / total)
            curves[row, recency] = lowest
        for recency in range(last + 1, N_RECENCY):
            curves[row, recency] = 0.0
