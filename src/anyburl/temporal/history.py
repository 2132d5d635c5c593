"""Index a history: facts in both directions by entity and time, and how popular objects of a relation were when."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.temporal.arrays import (
    FREQUENCY,
    N_FADES,
    RECENCY,
    CaseArrays,
    CellArrays,
    HistoryArrays,
)
from anyburl.temporal.facts import NEVER, TemporalFacts
from anyburl.temporal.kernel_bodies import fade_counts

HALF_LIVES = (3.0, 10.0, 100.0)
"""Of popularity, in steps of the clock."""
HALF_LIFE = 20.0
"""Of the faded count of a triple."""
MOST_FACTS = 1 << 31
MOST_SINGLE = 4096  # ages and counts with an entry of their own in the table of bins; all above are in the last bin

Ints = NDArray[np.int64]


class Directed:
    """Facts in both directions, each once: of a fact that holds for an interval, one for each of its steps."""

    def __init__(self, parts: list[TemporalFacts], n_entities: int, n_relations: int) -> None:
        last = max((last_step(part) for part in parts), default=0)
        columns = [expand(part, last) for part in parts]
        subjects, relations, objects, times = (
            np.concatenate([part[i] for part in columns] or [np.empty(0, np.int64)]) for i in range(4)
        )
        self.n_entities, self.n_relations = n_entities, 2 * n_relations
        entities, directed = np.concatenate([subjects, objects]), np.concatenate([relations, relations + n_relations])
        answers, moments = np.concatenate([objects, subjects]), np.concatenate([times, times])
        order = sort_rows(moments, entities, directed, answers)
        entities, directed, answers, moments = (column[order] for column in (entities, directed, answers, moments))
        is_new = np.ones(len(order), np.bool_)
        is_new[1:] = (
            (np.diff(moments) != 0) | (np.diff(entities) != 0) | (np.diff(directed) != 0) | (np.diff(answers) != 0)
        )
        self.entities, self.relations, self.answers, self.times = (
            column[is_new] for column in (entities, directed, answers, moments)
        )

    def __len__(self) -> int:
        return len(self.times)

    def between(self, first: int | None, last: int | None) -> slice:
        """Return where the facts from `first` to before `last` stand."""
        start = 0 if first is None else int(np.searchsorted(self.times, first))
        return slice(start, len(self) if last is None else int(np.searchsorted(self.times, last)))


def last_step(facts: TemporalFacts) -> int:
    """Return the last step that facts name; an end that lies beyond all steps is none."""
    steps = [facts.times] if facts.ends is None else [facts.times, facts.ends[facts.ends < NEVER]]
    return max((int(column.max()) for column in steps if len(column)), default=0)


def expand(facts: TemporalFacts, last: int) -> tuple[Ints, Ints, Ints, Ints]:
    """Return subjects, relations, objects and times, with one fact for each step of an interval, up to `last`."""
    columns = [np.asarray(column, np.int64) for column in (facts.subjects, facts.relations, facts.objects)]
    times = np.asarray(facts.times, np.int64)
    if facts.ends is None or not len(times):
        return columns[0], columns[1], columns[2], times
    lengths = np.minimum(np.asarray(facts.ends, np.int64), last) - times + 1
    if int(lengths.min()) < 1:
        raise DataError("a fact ends before it begins: an end must be at or after its beginning")
    total = int(lengths.sum())
    if total > MOST_FACTS:
        raise DataError(f"the facts hold for {total:,} steps together, too many: choose a coarser unit of time")
    steps = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    subjects, relations, objects = (np.repeat(column, lengths) for column in columns)
    return subjects, relations, objects, np.repeat(times, lengths) + steps


def sort_rows(*columns: Ints) -> Ints:
    """Return the order of rows by their columns, the first one first; values are not negative, but times may be.

    One sort by a number for each row takes a third of the time of a sort by column after column.
    """
    lows = [int(column.min(initial=0)) for column in columns]
    widths = [int(column.max(initial=0)) - low + 1 for column, low in zip(columns, lows, strict=True)]
    if math.prod(widths) >= 1 << 62:
        return np.lexsort(columns[::-1])
    keys = np.zeros(len(columns[0]), np.int64)
    for column, low, width in zip(columns, lows, widths, strict=True):
        keys *= width
        keys += column - low
    return np.argsort(keys, kind="stable")


def _offsets(keys: NDArray[np.integer], n: int) -> Ints:
    """Return where each of `n` keys begins in a sorted column, and its end."""
    return np.searchsorted(keys, np.arange(n + 1)).astype(np.int64)


def _freeze(array: NDArray[Any], kind: type) -> Any:
    """Return the array as kernels read it."""
    made: NDArray[Any] = np.ascontiguousarray(array, kind)
    made.setflags(write=False)
    return made


def _firsts(*columns: Ints) -> Ints:
    """Return where a combination of values differs from the one before."""
    changed = np.ones(len(columns[0]), np.bool_)
    changed[1:] = False
    for column in columns:
        changed[1:] |= np.diff(column) != 0
    return np.flatnonzero(changed)


def index_history(facts: Directed) -> HistoryArrays:
    """Return the index of a history."""
    n, width = facts.n_entities, facts.n_relations
    by_triple = sort_rows(facts.entities, facts.relations, facts.answers, facts.times)
    entities, relations, answers, times = (
        column[by_triple] for column in (facts.entities, facts.relations, facts.answers, facts.times)
    )
    firsts = _firsts(entities, relations, answers)
    by_age = sort_rows(entities[firsts], times[firsts])  # stable: of equal times, the smaller relation and object
    rank = np.empty(len(firsts), np.int64)
    rank[by_age] = np.arange(len(firsts))
    lengths = np.diff(np.append(firsts, len(times)))
    triple_of = np.repeat(rank, lengths)
    order = sort_rows(triple_of, times)
    triple_entities = entities[firsts][by_age]
    triple_offsets = _offsets(triple_entities, n)
    triples = np.empty(len(facts), np.int64)
    triples[by_triple] = triple_of
    by_entity = sort_rows(facts.entities)  # facts are in the order of time
    fact_triples = triples[by_entity] - triple_offsets[facts.entities[by_entity]]
    favour = _index_favourites(facts)
    time_offsets = np.concatenate([[0], np.cumsum(lengths[by_age])]).astype(np.int64)
    fresh = np.empty((len(times), 1), np.float32)
    fade_counts(time_offsets, times[order], np.ones(len(times), np.int64), np.log(2) / np.array([HALF_LIFE]), fresh)
    return HistoryArrays(
        n,
        width,
        _freeze(_offsets(facts.entities[by_entity], n), np.int64),
        _freeze(facts.times[by_entity], np.int64),
        _freeze(fact_triples, np.int32),
        _freeze(facts.relations[by_entity], np.int32),
        _freeze(facts.answers[by_entity], np.int32),
        _freeze(triple_offsets, np.int64),
        _freeze(relations[firsts][by_age], np.int32),
        _freeze(answers[firsts][by_age], np.int32),
        _freeze(time_offsets, np.int64),
        _freeze(times[order], np.int64),
        _freeze(fresh, np.float32),
        *favour,
    )


def _index_favourites(facts: Directed) -> tuple[Any, ...]:
    """Return the columns of the index that tell how popular an object was at a moment."""
    width, fades = facts.n_relations, np.log(2) / np.array(HALF_LIVES)
    order = sort_rows(facts.relations, facts.answers, facts.times)
    relations, objects, times = (column[order] for column in (facts.relations, facts.answers, facts.times))
    moments = _firsts(relations, objects, times)
    counts = np.diff(np.append(moments, len(times)))
    relations, objects, times = relations[moments], objects[moments], times[moments]
    favourites = _firsts(relations, objects)
    favour_offsets = np.append(favourites, len(times)).astype(np.int64)
    favours = np.empty((len(times), N_FADES), np.float32)
    fade_counts(favour_offsets, times, counts.astype(np.int64), fades, favours)
    in_time = sort_rows(facts.relations, facts.times)
    steps = _firsts(facts.relations[in_time], facts.times[in_time])
    totals = np.diff(np.append(steps, len(in_time)))
    total_offsets = _offsets(facts.relations[in_time][steps], width)
    total_times = facts.times[in_time][steps]
    faded = np.empty((len(steps), N_FADES), np.float32)
    fade_counts(total_offsets, total_times, totals.astype(np.int64), fades, faded)
    return (
        _freeze(_offsets(relations[favourites], width), np.int64),
        _freeze(objects[favourites], np.int32),
        _freeze(favour_offsets, np.int64),
        _freeze(times, np.int64),
        _freeze(favours, np.float32),
        _freeze(total_offsets, np.int64),
        _freeze(total_times, np.int64),
        _freeze(faded, np.float32),
        _freeze(fades, np.float64),
    )


def index_cells() -> CellArrays:
    """Return the tables of bins."""
    counts = np.arange(MOST_SINGLE)
    bins = (np.searchsorted(edges, counts, side="right") - 1 for edges in (RECENCY, FREQUENCY))
    return CellArrays(*(_freeze(np.maximum(found, 0), np.int32) for found in bins))


def index_cases(facts: Directed) -> CaseArrays:
    """Return the questions that facts answer, with their answers."""
    order = sort_rows(facts.relations, facts.entities, facts.times, facts.answers)
    entities, relations, answers, times = (
        column[order] for column in (facts.entities, facts.relations, facts.answers, facts.times)
    )
    cases = _firsts(relations, entities, times)
    by_entity = sort_rows(facts.entities)
    moments = np.zeros(len(facts), np.int64)
    moments[_firsts(facts.entities[by_entity], facts.times[by_entity])] = 1
    rows = np.empty(len(facts), np.int64)
    rows[by_entity] = np.arange(len(facts))
    rows = rows[order]
    return CaseArrays(
        _freeze(_offsets(relations[cases], facts.n_relations), np.int64),
        _freeze(entities[cases], np.int32),
        _freeze(times[cases], np.int64),
        _freeze((np.cumsum(moments) - 1)[rows[cases]], np.int64),
        _freeze(np.append(cases, len(order)), np.int64),
        _freeze(answers, np.int32),
        _freeze(rows, np.int64),
    )
