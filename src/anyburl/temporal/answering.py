"""Ask questions with a moment: threads run the kernel on ranges of questions; ranks and best candidates come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import Spare, map_in_threads
from anyburl.temporal.arrays import N_FADES, CellArrays, HistoryArrays, QuestionArrays, TableArrays
from anyburl.temporal.kernel_answer import answer_moments, list_components
from anyburl.temporal.kernel_bodies import EMPTY, N_SHAPES
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

QUESTIONS_AT_A_TIME = 4000
RANGES_OF_A_THREAD = 4  # questions of some relations take longer than others

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Asked:
    """Where a history, its rules and how they are mixed meet questions."""

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
        places = np.arange(len(self.kept))
        return np.flatnonzero(places % max(self.n_kept, 1) < np.repeat(self.sizes, self.n_kept))


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
    places = np.empty(len(order), np.int64)
    places[order] = np.arange(len(order))
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
        places,
    )


def fit_weights(
    relations: Ids, contexts: Ids, components: Floats, n_relations: int, rounds: int = 30, prior: float = 50.0
) -> Floats:
    """Return how the components are mixed for each relation and context, most likely for the answers (EM).

    A relation's weights in a context are shrunk to those of all relations in it, with `prior` answers, and those to the
    weights of everything. `relations` and `contexts` are those of each answer.
    """
    even = np.full(N_COMPONENTS, 1 / N_COMPONENTS)
    told = components.sum(axis=1) > 0
    relations, contexts, components = relations[told], contexts[told], components[told]
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
