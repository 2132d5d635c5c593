"""Counts rules h(X,Y,T) <= b(X,Y,U) of all pairs (h, b) at once, by cells of recency and frequency; smooths the counts.

The facts of an entity are walked once, in the order of time. At each of its moments, its triples are counted by *code*:
the relation and the cell that a triple is in. A triple changes its cell only when it is seen again, or when its last
fact crosses an edge of recency, for which one pointer an edge moves along the facts. So the walk costs facts times
edges, whatever the number of heads, and every case (h, x, t) reads the short list of codes of its moment.

Counts by cell become curves that fall with age: a common shape, and a ratio of each rule to it.
"""

from __future__ import annotations

from typing import NamedTuple

from anyburl.base.jit import inlined, kernel, part
from anyburl.temporal.kernel_bodies import (
    N_CELLS,
    N_FADES,
    N_FREQUENCY,
    N_RECENCY,
    RECENCY,
    CaseArrays,
    CellArrays,
    Doubles,
    Floats,
    HistoryArrays,
    Ids,
    Ints,
    MomentArrays,
    cell_of,
    faded,
    faded_total,
    first_not_before,
    popularity_rows,
)

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


LEAST_POPULARITY = 1e-5


class HistoryWalk(NamedTuple):
    """Buffers of one thread: the state of one entity; all but `pointers` are as long as its name says, or longer."""

    last: Ints  # triple -> the position of its last fact
    counts: Ids  # triple -> how often it was seen
    codes: Ids  # triple -> its code
    others: Ids  # triple -> another triple with the same object, -1 if there is none
    triples: Ids  # object -> one of its triples, -1 for those that the entity has not met
    tallies: Ids  # code -> how many triples have it; all 0 between entities
    rows: Ids  # code -> its row in `listed`
    listed: Ids  # codes that any triple has
    pointers: Ints  # edge of recency -> the first fact that is younger


@inlined
def change_tally(work: HistoryWalk, code: int, by: int, n: int) -> int:
    """Count one triple more or less with a code; return how many codes are listed then."""
    work.tallies[code] += by
    if by > 0 and work.tallies[code] == 1:
        work.listed[n] = code
        work.rows[code] = n
        return n + 1
    if work.tallies[code] == 0:
        moved = work.listed[n - 1]
        work.listed[work.rows[code]] = moved
        work.rows[moved] = work.rows[code]
        return n - 1
    return n


@part
def grow_older(history: HistoryArrays, now: int, position: int, n: int, work: HistoryWalk) -> int:
    """Move the triples whose last fact, before `position`, has crossed an edge of recency; return the codes listed."""
    for edge in range(N_RECENCY - 1):
        fact = work.pointers[edge]
        while fact < position and now - history.fact_times[fact] >= RECENCY[edge + 1]:
            triple = history.fact_triples[fact]
            if work.last[triple] == fact:
                n = change_tally(work, int(work.codes[triple]), -1, n)
                work.codes[triple] += N_FREQUENCY
                n = change_tally(work, int(work.codes[triple]), 1, n)
            fact += 1
        work.pointers[edge] = fact
    return n


@kernel
def walk_moments(
    history: HistoryArrays,
    cells: CellArrays,
    first: int,
    last: int,
    moment: int,
    write: bool,
    out: MomentArrays,
    work: HistoryWalk,
) -> None:
    """Count the triples of each entity from `first` to before `last` by code, at each of its moments, from `moment` on.

    The answers of a moment are its facts: their codes are those of the triples with the same object. Unless `write`,
    only the sizes of lists are written, as offsets one place ahead.
    """
    for entity in range(first, last):
        begin, end = int(history.fact_offsets[entity]), int(history.fact_offsets[entity + 1])
        base = int(history.triple_offsets[entity])
        position, live, n = begin, 0, 0
        for edge in range(N_RECENCY - 1):
            work.pointers[edge] = begin
        while position < end:
            now = int(history.fact_times[position])
            n = grow_older(history, now, position, n, work)
            if write:
                start = out.offsets[moment]
                for i in range(n):
                    out.codes[start + i] = work.listed[i]
                    out.tallies[start + i] = work.tallies[work.listed[i]]
            else:
                out.offsets[moment + 1] = n
            after = position
            while after < end and history.fact_times[after] == now:
                triple, row = work.triples[history.fact_objects[after]], int(out.answer_offsets[after]) if write else 0
                n_answers = 0
                while triple >= 0:
                    if write:
                        out.answer_codes[row + n_answers] = work.codes[triple]
                    n_answers += 1
                    triple = work.others[triple]
                if not write:
                    out.answer_offsets[after + 1] = n_answers
                after += 1
            for fact in range(position, after):
                triple = history.fact_triples[fact]
                if triple >= live:
                    live = triple + 1
                    work.counts[triple] = 0
                    object = history.fact_objects[fact]
                    work.others[triple] = work.triples[object]
                    work.triples[object] = triple
                else:
                    n = change_tally(work, int(work.codes[triple]), -1, n)
                work.counts[triple] += 1
                work.last[triple] = fact
                relation = int(history.fact_relations[fact])
                work.codes[triple] = relation * N_CELLS + cell_of(cells, 1, int(work.counts[triple]))
                n = change_tally(work, int(work.codes[triple]), 1, n)
            position = after
            moment += 1
        for i in range(n):
            work.tallies[work.listed[i]] = 0
        for triple in range(live):
            work.triples[history.triple_objects[base + triple]] = -1


@kernel
def mark_pairs(moments: MomentArrays, cases: CaseArrays, head: int, cut: int, seen: Ids) -> None:
    """Set `seen` for every relation that was once right for `head`: in row 0 before the time `cut`, in row 1 ever."""
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        for row in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            fact = cases.facts[row]
            for i in range(moments.answer_offsets[fact], moments.answer_offsets[fact + 1]):
                body = moments.answer_codes[i] // N_CELLS
                seen[1, body] = 1
                if cases.times[case] < cut:
                    seen[0, body] = 1


@kernel
def count_pairs(
    moments: MomentArrays,
    cases: CaseArrays,
    head: int,
    low: int,
    high: int,
    slots: Ids,
    right: Ids,
    every: Ids,
    silent: Floats,
    spread: Ids,
) -> None:
    """Count the cases of `head` in which each body spoke for any answer, by cell, and those in which it was right.

    Cases from the time `low` to before `high` are added to `spread`, which has two rows of codes, and the sums are
    written for the rules that have `slots`; those of other bodies than `head`, by cell, into `silent`.
    """
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        if not low <= cases.times[case] < high:
            continue
        moment = cases.moments[case]
        for i in range(moments.offsets[moment], moments.offsets[moment + 1]):
            spread[0, moments.codes[i]] += moments.tallies[i]
        for row in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            fact = cases.facts[row]
            for i in range(moments.answer_offsets[fact], moments.answer_offsets[fact + 1]):
                spread[1, moments.answer_codes[i]] += 1
    for body in range(slots.shape[0]):
        slot = int(slots[head, body])
        for cell in range(N_CELLS if slot < 0 and body != head else 0):
            silent[head, cell] += spread[0, body * N_CELLS + cell]
        if slot >= 0:
            for cell in range(N_CELLS):
                every[slot * N_CELLS + cell] = spread[0, body * N_CELLS + cell]
                right[slot * N_CELLS + cell] = spread[1, body * N_CELLS + cell]


@kernel
def count_exposure(history: HistoryArrays, cells: CellArrays, first: int, last: int, end: int, steps: Ints) -> None:
    """Count, for every relation and cell, the steps of the clock before `end` that its triples spent there.

    `first` and `last` bound the triples; `steps` is a table of relations and cells.
    """
    for triple in range(first, last):
        relation = int(history.triple_relations[triple])
        start, stop = int(history.time_offsets[triple]), int(history.time_offsets[triple + 1])
        for i in range(start, stop):
            if history.times[i] >= end:
                break
            until = end if i + 1 == stop else min(end, history.times[i + 1] + 1)
            longest = int(until - 1 - history.times[i])
            for k in range(N_RECENCY):
                youngest = RECENCY[k]
                if youngest > longest:
                    break
                oldest = longest if k + 1 == N_RECENCY else min(longest, RECENCY[k + 1] - 1)
                cell = relation * N_CELLS + cell_of(cells, youngest, i - start + 1)
                steps[cell] += oldest - youngest + 1


@kernel
def fill_popularity(history: HistoryArrays, cases: CaseArrays, head: int, out: Floats) -> None:
    """Write how popular each answer of the cases of `head` was before: (answers, fades), shares of all objects."""
    begin, end = int(history.favourite_offsets[head]), int(history.favourite_offsets[head + 1])
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        time = int(cases.times[case])
        total = popularity_rows(history, head, time)
        for i in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            low, high = begin, end
            while low < high:
                middle = (low + high) >> 1
                if history.favourites[middle] < cases.answers[i]:
                    low = middle + 1
                else:
                    high = middle
            start = int(history.favour_offsets[low])
            row = first_not_before(history.favour_times, start, int(history.favour_offsets[low + 1]), time) - 1
            for k in range(N_FADES):
                out[i, k] = 0.0
                if row >= start:
                    out[i, k] = faded(history, row, k, time) / faded_total(history, total, k, time)


@kernel
def share_credit(
    history: HistoryArrays,
    moments: MomentArrays,
    cases: CaseArrays,
    head: int,
    cut: int,
    slots: Ids,
    values: Floats,
    favour: Doubles,
    popularity: Floats,
    credits: Floats,
    exposures: Floats,
    favour_sums: Doubles,
    spread: Floats,
) -> None:
    """Divide each answer of `head` before `cut` among the cells that spoke for it, by their intensities `values`.

    A cell's exposure grows by 1 / Z, the sum of all intensities, for each answer and candidate that it speaks for.
    `favour` are the intensities of popularity, whose credits and exposures are added to the rows of `favour_sums`.
    `spread` has three rows of codes.
    """
    value, credit, exposure = spread[0], spread[1], spread[2]
    for body in range(slots.shape[0]):
        slot = int(slots[head, body])
        for cell in range(N_CELLS):
            value[body * N_CELLS + cell] = values[slot * N_CELLS + cell] if slot >= 0 else 0.0
    credit[:] = 0.0
    exposure[:] = 0.0
    start = int(history.total_times[history.total_offsets[head]])
    popular = 0.0
    for k in range(N_FADES):
        popular += favour[k]
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        if cases.times[case] >= cut or cases.times[case] <= start:
            continue  # nothing is popular yet: no other candidate shares the credit
        moment, total = cases.moments[case], popular
        for i in range(moments.offsets[moment], moments.offsets[moment + 1]):
            total += moments.tallies[i] * value[moments.codes[i]]
        begin, end = int(cases.answer_offsets[case]), int(cases.answer_offsets[case + 1])
        weight = (end - begin) / total
        for i in range(moments.offsets[moment], moments.offsets[moment + 1]):
            exposure[moments.codes[i]] += weight * moments.tallies[i]
        for k in range(N_FADES):
            favour_sums[1, k] += weight
        for row in range(begin, end):
            own, fact = 0.0, cases.facts[row]
            for k in range(N_FADES):
                own += favour[k] * (popularity[row, k] + LEAST_POPULARITY)
            for i in range(moments.answer_offsets[fact], moments.answer_offsets[fact + 1]):
                own += value[moments.answer_codes[i]]
            for k in range(N_FADES):
                favour_sums[0, k] += favour[k] * (popularity[row, k] + LEAST_POPULARITY) / own
            for i in range(moments.answer_offsets[fact], moments.answer_offsets[fact + 1]):
                credit[moments.answer_codes[i]] += value[moments.answer_codes[i]] / own
    for body in range(slots.shape[0]):
        slot = int(slots[head, body])
        if slot >= 0:
            for cell in range(N_CELLS):
                credits[slot * N_CELLS + cell] = credit[body * N_CELLS + cell]
                exposures[slot * N_CELLS + cell] = exposure[body * N_CELLS + cell]
