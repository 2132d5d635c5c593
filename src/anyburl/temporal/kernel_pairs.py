"""Count rules h(X,Y,T) <= b(X,Y,U) of all pairs (h, b) at once, by cells of recency and frequency.

For a head h, the cases of each entity come in the order of time, and the entity's facts are replayed once between
them: what was seen last when, and how often. So every (h, x) costs its facts and, for each case, the distinct triples
of x. Heads are independent of each other, which makes results the same for any number of threads.
"""

from __future__ import annotations

from typing import NamedTuple

from anyburl.base.jit import kernel, part
from anyburl.temporal.arrays import (
    N_CELLS,
    N_FADES,
    N_RECENCY,
    RECENCY,
    CaseArrays,
    CellArrays,
    Doubles,
    Floats,
    HistoryArrays,
    Ids,
    Ints,
)
from anyburl.temporal.kernel_history import cell_of, faded, faded_total, first_not_before, popularity_rows

LEAST_POPULARITY = 1e-5


class ReplayArrays(NamedTuple):
    """Buffers of one thread: the state of one entity, as long as its distinct triples, and of all candidates."""

    last: Ints
    counts: Ints
    places: Ints  # triple -> its row and cell, as an index of flat tables
    stamps: Ints  # entity -> the case whose answer it last was
    sums: Doubles  # entity -> the sum of its intensities; all 0 between cases


@part
def replay(history: HistoryArrays, entity: int, position: int, live: int, time: int, work: ReplayArrays) -> int:
    """Fold the facts of an entity before `time` into its state, from `position` on; return how many triples it has."""
    end = int(history.fact_offsets[entity + 1])
    while position < end and history.fact_times[position] < time:
        triple = int(history.fact_triples[position])
        if triple >= live:
            live = triple + 1
            work.counts[triple] = 0
        work.last[triple] = history.fact_times[position]
        work.counts[triple] += 1
        position += 1
    return live


@kernel
def mark_pairs(history: HistoryArrays, cases: CaseArrays, head: int, seen: Ids) -> None:
    """Set `seen` for every relation that an entity had before a case of `head`."""
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        if case + 1 < cases.offsets[head + 1] and cases.entities[case] == cases.entities[case + 1]:
            continue  # the last case of an entity sees the most
        entity, time = cases.entities[case], cases.times[case]
        for triple in range(history.triple_offsets[entity], history.triple_offsets[entity + 1]):
            if history.times[history.time_offsets[triple]] >= time:
                break
            seen[history.triple_relations[triple]] = 1


@kernel
def count_pairs(
    history: HistoryArrays,
    cells: CellArrays,
    cases: CaseArrays,
    head: int,
    slots: Ids,
    true_cases: Ints,
    all_cases: Ints,
    work: ReplayArrays,
) -> None:
    """Count the cases of `head` for which each body spoke, by cell, and those for which it was right."""
    entity, position, live = -1, 0, 0
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        time = int(cases.times[case])
        if cases.entities[case] != entity:
            entity, live = int(cases.entities[case]), 0
            position = int(history.fact_offsets[entity])
        live = replay(history, entity, position, live, time, work)
        position = first_not_before(history.fact_times, position, int(history.fact_offsets[entity + 1]), time)
        for i in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            work.stamps[cases.answers[i]] = case
        first = int(history.triple_offsets[entity])
        for triple in range(live):
            slot = int(slots[head, history.triple_relations[first + triple]])
            place = slot * N_CELLS + cell_of(cells, time - work.last[triple], work.counts[triple])
            all_cases[place] += 1
            if work.stamps[history.triple_objects[first + triple]] == case:
                true_cases[place] += 1


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
                place = relation * N_CELLS + cell_of(cells, youngest, i - start + 1)
                steps[place] += oldest - youngest + 1


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
    cells: CellArrays,
    cases: CaseArrays,
    head: int,
    slots: Ids,
    values: Floats,
    favour: Doubles,
    popularity: Floats,
    credits: Floats,
    exposures: Floats,
    favour_sums: Doubles,
    work: ReplayArrays,
) -> None:
    """Divide each answer of `head` among the cells that spoke for it, in proportion to their intensities `values`.

    A cell's exposure grows by 1 / Z, the sum of all intensities, for each answer and candidate that it speaks for.
    `favour` are the intensities of popularity, whose credits and exposures are added to the rows of `favour_sums`.
    """
    entity, position, live = -1, 0, 0
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        time = int(cases.times[case])
        if cases.entities[case] != entity:
            entity, live = int(cases.entities[case]), 0
            position = int(history.fact_offsets[entity])
        live = replay(history, entity, position, live, time, work)
        position = first_not_before(history.fact_times, position, int(history.fact_offsets[entity + 1]), time)
        first = int(history.triple_offsets[entity])
        total = 0.0
        if popularity_rows(history, head, time) < 0:
            continue
        for k in range(N_FADES):
            total += favour[k]
        for triple in range(live):
            slot = int(slots[head, history.triple_relations[first + triple]])
            place = slot * N_CELLS + cell_of(cells, time - work.last[triple], work.counts[triple])
            work.places[triple] = place
            work.sums[history.triple_objects[first + triple]] += values[place]
            total += values[place]
        begin, end = int(cases.answer_offsets[case]), int(cases.answer_offsets[case + 1])
        weight = (end - begin) / total
        for i in range(begin, end):
            answer = cases.answers[i]
            for k in range(N_FADES):
                work.sums[answer] += favour[k] * (popularity[i, k] + LEAST_POPULARITY)
            work.stamps[answer] = case
            for k in range(N_FADES):
                favour_sums[0, k] += favour[k] * (popularity[i, k] + LEAST_POPULARITY) / work.sums[answer]
        for k in range(N_FADES):
            favour_sums[1, k] += weight
        for triple in range(live):
            place, candidate = work.places[triple], history.triple_objects[first + triple]
            exposures[place] += weight
            if work.stamps[candidate] == case:
                credits[place] += values[place] / work.sums[candidate]
        for triple in range(live):
            work.sums[history.triple_objects[first + triple]] = 0.0
        for i in range(begin, end):
            work.sums[cases.answers[i]] = 0.0
