"""Index a history, and ask it questions with a moment.

The index holds facts in both directions by entity and time, and how popular objects of a relation were when. Threads
run the kernel on ranges of questions; ranks and best candidates come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.machine import Spare, map_in_threads
from anyburl.temporal.facts import NEVER, TemporalFacts
from anyburl.temporal.kernel_answer import answer_moments, list_components
from anyburl.temporal.kernel_bodies import (
    EMPTY,
    FREQUENCY,
    N_FADES,
    N_SHAPES,
    RECENCY,
    CaseArrays,
    CellArrays,
    HistoryArrays,
    QuestionArrays,
    TableArrays,
    fade_counts,
)
from anyburl.temporal.kernel_candidates import (
    MIXTURE,
    N_ACTIVITY,
    N_COMPONENTS,
    N_CONTEXTS,
    N_FEATURES,
    N_NEAR,
    N_TOTALS,
    N_VALUES,
    ListedArrays,
)

HALF_LIVES = (3.0, 10.0, 100.0)
"""Of popularity, in steps of the clock."""
HALF_LIFE = 20.0
"""Of the faded count of a triple."""
MOST_FACTS = 1 << 31
MOST_SINGLE = 4096  # ages and counts with an entry of their own in the table of bins; all above are in the last bin


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
    return CellArrays(*(_freeze(np.maximum(cells, 0), np.int32) for cells in bins))


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


QUESTIONS_AT_A_TIME = 4000
RANGES_OF_A_THREAD = 4  # questions of some relations take longer than others

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Answerer:
    """Answers questions with a moment from a history and rules; `weights` say how forms of rules are mixed."""

    history: HistoryArrays
    cells: CellArrays
    tables: TableArrays
    weights: Floats  # (relations, contexts, components)
    threads: int
    mode: int = MIXTURE

    def buffers(self, n_kept: int) -> ListedArrays:
        """Return buffers for one thread."""
        n, width = self.history.n_entities, self.history.n_relations
        longest = self.tables.n_last * N_SHAPES
        return ListedArrays(
            listed=np.empty(n, np.int32),
            marks=np.full(n, -1, np.int64),
            values=np.zeros((n, N_VALUES)),
            popular=np.empty(n, np.int32),
            n_popular=np.array([0, -1, -1, -1, 0]),
            popularity=np.zeros((n, N_FADES)),
            favoured=np.zeros(n, np.int64),
            activity=np.zeros((n, N_ACTIVITY), np.float32),
            active=np.full(n, -1, np.int64),
            hops=np.zeros(width * width, np.float32),
            seen=np.full(1 << (2 * longest).bit_length(), EMPTY, np.int64),
            bodies=np.empty(longest, np.int64),
            scores=np.zeros(n),
            excluded=np.full(n, -1, np.int64),
            answers=np.full(n, -1, np.int64),
            totals=np.zeros(N_TOTALS),
            heap=np.empty(max(n_kept, 1), np.int32),
            query=np.zeros(self.tables.vectors.shape[1]),
            near=np.empty((2, N_NEAR), np.int32),
        )

    def ranges(self, n: int) -> list[tuple[int, int]]:
        """Return the ranges of questions that threads take one after the other."""
        n_ranges = RANGES_OF_A_THREAD * self.threads if self.threads > 1 else 1
        bounds = np.linspace(0, n, min(n_ranges, max(n, 1)) + 1).astype(int).tolist()
        return list(pairwise(bounds))

    def components(self, questions: QuestionArrays) -> tuple[Ids, Floats]:
        """Return the context of every question and what the components say for every answer."""
        contexts = np.zeros(len(questions.entities), np.int32)
        components = np.zeros((len(questions.answers), N_COMPONENTS))

        spare = Spare(lambda: self.buffers(0), self.threads)

        def work(part: tuple[int, int]) -> None:
            buffers = spare.take()
            list_components(self.history, self.cells, self.tables, questions, *part, buffers, contexts, components)
            spare.put(buffers)

        map_in_threads(work, self.ranges(len(contexts)), self.threads)
        return contexts, components

    def answer(
        self,
        questions: QuestionArrays,
        n_kept: int = 0,
        *,
        with_features: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Answered]:
        """Yield ranks, and the best candidates of each question, in bounded parts."""
        n = len(questions.entities)
        spare = Spare(lambda: self.buffers(n_kept), self.threads)
        step = QUESTIONS_AT_A_TIME * self.threads
        for start in range(0, n, step):
            part = Answered.empty(start, min(start + step, n), questions, n_kept, with_features=with_features)
            bounds = [(start + first, start + last) for first, last in self.ranges(part.stop - start)]

            def work(rows: tuple[int, int], part: Answered = part) -> None:
                buffers = spare.take()
                self._answer_range(questions, *rows, buffers, part)
                spare.put(buffers)

            map_in_threads(work, bounds, self.threads)
            yield part
            if progress:
                progress(part.stop - start)

    def _answer_range(
        self, questions: QuestionArrays, first: int, last: int, buffers: ListedArrays, part: Answered
    ) -> None:
        """Answer the questions from `first` to before `last` into the part that holds them."""
        rows = slice((first - part.start) * part.n_kept, (last - part.start) * part.n_kept)
        answers = slice(
            *(int(questions.answer_offsets[row] - questions.answer_offsets[part.start]) for row in (first, last))
        )
        answer_moments(
            self.history,
            self.cells,
            self.tables,
            self.weights,
            self.mode,
            questions,
            first,
            last,
            buffers,
            part.better[answers],
            part.equal[answers],
            part.n_kept,
            part.sizes[first - part.start : last - part.start],
            part.kept[rows],
            part.scores[rows],
            part.features[rows] if len(part.features) else part.features,
        )


@dataclass(frozen=True)
class Answered:
    """Questions from `start` to before `stop`: the ranks of their answers, and their best candidates."""

    start: int
    stop: int
    better: Ints
    equal: Ints
    n_kept: int
    sizes: Ints
    kept: Ids
    scores: Floats
    features: NDArray[np.float32]

    @classmethod
    def empty(cls, start: int, stop: int, questions: QuestionArrays, n_kept: int, *, with_features: bool) -> Answered:
        """Return room for the answers of some questions."""
        n_answers = int(questions.answer_offsets[stop] - questions.answer_offsets[start])
        better, equal = np.zeros((2, n_answers), np.int64)
        room = (stop - start) * n_kept
        return cls(
            start,
            stop,
            better,
            equal,
            n_kept,
            np.zeros(stop - start, np.int64),
            np.zeros(room, np.int32),
            np.zeros(room),
            np.zeros((room if with_features else 0, N_FEATURES), np.float32),
        )

    def rows(self) -> Ints:
        """Return which rows of candidates are in use."""
        positions = np.arange(len(self.kept))
        return np.flatnonzero(positions % max(self.n_kept, 1) < np.repeat(self.sizes, self.n_kept))


def make_questions(
    entities: Ints, relations: Ints, times: Ints, answers: Ints, *, still: int | None = None
) -> tuple[QuestionArrays, Ints]:
    """Group facts by question, sorted by relation and time; return them and where each fact's answer stands.

    With `still`, the clock stands still there for all later questions. Nothing is excluded yet.
    """
    moments = times if still is None else np.minimum(times, still)
    order = np.lexsort((answers, entities, times, relations))
    columns = [column[order] for column in (entities, relations, times, answers, moments)]
    changed = np.ones(len(order), np.bool_)
    changed[1:] = (np.diff(columns[0]) != 0) | (np.diff(columns[1]) != 0) | (np.diff(columns[2]) != 0)
    firsts = np.flatnonzero(changed)
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    now = columns[4][firsts].astype(np.int64)
    return (
        QuestionArrays(
            columns[0][firsts].astype(np.int32),
            columns[1][firsts].astype(np.int32),
            now,
            now,
            np.append(firsts, len(order)).astype(np.int64),
            columns[3].astype(np.int32),
            np.zeros(len(firsts) + 1, np.int64),
            np.empty(0, np.int32),
        ),
        positions,
    )


def fit_weights(
    relations: Ids, contexts: Ids, components: Floats, n_relations: int, rounds: int = 30, prior: float = 50.0
) -> Floats:
    """Return how the components are mixed for each relation and context, most likely for the answers (EM).

    A relation's weights in a context are shrunk to those of all relations in it, with `prior` answers, and those to the
    weights of everything. `relations` and `contexts` are those of each answer.
    """
    even = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    is_known = components.sum(axis=1) > 0
    relations, contexts, components = relations[is_known], contexts[is_known], components[is_known]
    overall = _mix(np.zeros(len(contexts), np.int64), components, even[None, :], 1.0, rounds)
    by_context = _mix(contexts.astype(np.int64), components, np.repeat(overall, N_CONTEXTS, axis=0), prior, rounds)
    groups = relations.astype(np.int64) * N_CONTEXTS + contexts
    start = np.tile(by_context, (n_relations, 1))
    return _mix(groups, components, start, prior, rounds).reshape(n_relations, N_CONTEXTS, N_COMPONENTS)


def _mix(groups: Ints, components: Floats, base: Floats, prior: float, rounds: int) -> Floats:
    """Return the weights of each group, shrunk to its row of `base`."""
    weights = base.copy()
    for _ in range(rounds):
        shares = components * weights[groups]
        shares /= shares.sum(axis=1, keepdims=True)
        sums = np.stack([np.bincount(groups, column, len(base)) for column in shares.T], axis=1) + prior * base
        weights = sums / sums.sum(axis=1, keepdims=True)
    return weights
