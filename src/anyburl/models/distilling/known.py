"""Known answers: facts of the valid split and of train, and which rules predict them.

Facts of train were counted when their rules were; they are left out of these counts, one at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import SimpleQueue
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.data.dataset import Dataset
from anyburl.models.distilling.kernel import LeftOutScores, RankSpace, WitnessArrays, find_witnesses
from anyburl.models.distilling.kernel_worth import (
    WORTH_UNIT,
    ChangeArrays,
    SortedRules,
    WorthArrays,
    measure_worth,
    rank_known,
)
from anyburl.ranking.arrays import (
    QueryArrays,
    Workspace,
    empty_candidates,
    empty_firings,
    empty_walk,
)
from anyburl.ranking.index import count_confidences, number_counts_of, to_scores
from anyburl.ranking.queries import joins_unconnected, make_queries, take_queries
from anyburl.ranking.ranker import LocalBackend, Progress, Ranker

Triples = NDArray[np.int32]
QUESTIONS_AT_A_TIME = 32
FIRST_ROOM = 1 << 16  # for the firings of one query; it grows where that is too little


@dataclass(frozen=True)
class KnownAnswers:
    """Questions and their known answers; `from_train`: the answers are facts of train, to be left out."""

    queries: QueryArrays
    from_train: bool

    def __len__(self) -> int:
        return len(self.queries.targets)


@dataclass(frozen=True)
class KnownFacts:
    """Facts whose rules are looked at: some to choose rules by, others to judge the choice."""

    dataset: Dataset
    valid: Triples
    train: Triples
    judged: Triples  # from valid or, if there is none, from train
    judged_from_train: bool

    @classmethod
    def draw(cls, dataset: Dataset, *, most: int, most_judged: int, blocked: bool, seed: int) -> KnownFacts:
        """Draw at most `most` facts to choose by, those of valid first, and `most_judged` others, half of valid at
        most. Where connected entities are `blocked`, facts of train join entities that no other fact joins.
        """
        rng = np.random.default_rng(seed)
        valid, train = dataset.valid.triples, dataset.train.triples
        usable = np.flatnonzero(joins_unconnected(train)) if blocked else np.arange(len(train))
        valid, train = valid[rng.permutation(len(valid))], train[rng.permutation(usable)]
        if not len(valid) and len(train) < 2:
            raise DataError(f"distilling needs known facts, and {dataset.name} has {len(train)} that it can use")
        from_train = not len(valid)
        source = train if from_train else valid
        n_judged = min(most_judged, len(source) // 2)
        judged, rest = source[:n_judged], source[n_judged:]
        valid, train = (valid, rest) if from_train else (rest, train)
        return cls(dataset, valid[:most], train[: most - min(most, len(valid))], judged, from_train)

    def to_choose_by(self, *, with_judged: bool) -> list[KnownAnswers]:
        """Return the questions to choose by; finally, also those that the choice was judged by."""
        valid, train = self.valid, self.train
        if with_judged and self.judged_from_train:
            train = np.concatenate([self.judged, train])
        elif with_judged:
            valid = np.concatenate([self.judged, valid])
        return [self._asked(some, is_train) for some, is_train in ((valid, False), (train, True)) if len(some)]

    def to_judge_by(self) -> KnownAnswers:
        """Return the questions that a choice is judged by."""
        return self._asked(self.judged, self.judged_from_train)

    def _asked(self, facts: Triples, from_train: bool) -> KnownAnswers:
        known = [self.dataset.train.triples, self.dataset.valid.triples]
        queries, _ = make_queries(facts, known, self.dataset.vocabulary.n_relations)
        return KnownAnswers(queries, from_train)


class _Buffers(NamedTuple):
    workspace: Workspace
    space: RankSpace
    lists: SortedRules
    changes: ChangeArrays


class Observer:
    """Runs the kernels of this room over questions, on the threads of a ranker."""

    def __init__(self, ranker: Ranker, least_support: int) -> None:
        self._ranker, self._backend = ranker, LocalBackend(ranker.ready, ranker.options.threads)
        self._left_out = left_out_scores(ranker, least_support)
        self._spare: SimpleQueue[_Buffers | None] = SimpleQueue()
        for _ in range(self._backend.threads):
            self._spare.put(None)

    def witnesses(
        self, known: KnownAnswers, width: int, *, only_targets: bool = False, progress: Progress | None = None
    ) -> WitnessArrays:
        """Return the `width` best rules of each known answer and, unless `only_targets`, its rank by each alone."""
        n, ready = len(known), self._ranker.ready
        out = WitnessArrays(
            rules=np.full((n, width), -1, np.int32),
            scores=np.zeros((n, width), np.int64),
            ranks=np.zeros((n, width), np.float32),
            n_rules=np.zeros(n, np.int32),
        )
        protocol = ready.protocol(self._ranker.lister().aggregation, 0)

        def work(buffers: _Buffers, first: int, last: int) -> tuple[int, int]:
            return find_witnesses(
                ready.graph,
                ready.index,
                known.queries,
                first,
                last,
                protocol,
                buffers.workspace,
                known.from_train,
                only_targets,
                self._left_out,
                buffers.space,
                out,
            )

        self._over_questions(known, work, width, progress)
        return out

    def reciprocal_ranks(self, known: KnownAnswers, progress: Progress | None = None) -> NDArray[np.float64]:
        """Return 1 / rank of each known answer; facts of train rank as if they were not known."""
        ready, out = self._ranker.ready, np.zeros(len(known), np.float64)
        protocol = ready.protocol(self._ranker.lister().aggregation, 0)

        def work(buffers: _Buffers, first: int, last: int) -> tuple[int, int]:
            return rank_known(
                ready.graph,
                ready.index,
                known.queries,
                first,
                last,
                protocol,
                buffers.workspace,
                known.from_train,
                self._left_out,
                buffers.space,
                buffers.lists,
                out,
            )

        self._over_questions(known, work, 1, progress)
        return out

    def worth(self, known: Sequence[KnownAnswers], progress: Progress | None = None) -> WorthArrays:
        """Return what each rule is worth to known answers; `worth` is still in whole units."""
        ready, n_rules = self._ranker.ready, len(self._ranker.rules)
        protocol = ready.protocol(self._ranker.lister().aggregation, 0)
        parts: list[WorthArrays] = []

        def new_part() -> WorthArrays:
            parts.append(
                WorthArrays(np.zeros(n_rules, np.int64), np.zeros(n_rules, np.int32), np.zeros(n_rules, np.int32))
            )
            return parts[-1]

        own: SimpleQueue[WorthArrays | None] = SimpleQueue()
        for _ in range(self._backend.threads):
            own.put(None)
        for some in known:

            def work(buffers: _Buffers, first: int, last: int, some: KnownAnswers = some) -> tuple[int, int]:
                out = own.get() or new_part()
                try:
                    return measure_worth(
                        ready.graph,
                        ready.index,
                        some.queries,
                        first,
                        last,
                        protocol,
                        buffers.workspace,
                        some.from_train,
                        self._left_out,
                        buffers.space,
                        buffers.lists,
                        buffers.changes,
                        out,
                    )
                finally:
                    own.put(out)

            self._over_questions(some, work, 1, progress)
        total = parts[0] if parts else new_part()
        for part in parts[1:]:
            for name in WorthArrays._fields:
                np.add(getattr(total, name), getattr(part, name), out=getattr(total, name))
        return total

    def _over_questions(
        self,
        known: KnownAnswers,
        work: Callable[[_Buffers, int, int], tuple[int, int]],
        width: int,
        progress: Progress | None,
    ) -> None:
        """Do `work` on batches of questions, with more room for firings where a question needs it."""
        n_queries = len(known.queries.entities)

        def answer(first: int) -> None:
            last, place = min(first + QUESTIONS_AT_A_TIME, n_queries), first
            buffers = self._spare.get() or self._new_buffers(width, FIRST_ROOM)
            try:
                if len(buffers.space.better) < width:
                    buffers = self._new_buffers(width, len(buffers.lists.rules))
                while place < last:
                    place, needed = work(buffers, place, last)
                    if needed:
                        buffers = self._new_buffers(width, 2 * needed)
            finally:
                self._spare.put(buffers)
            if progress:
                progress(last - first)

        for _ in self._backend.map(answer, range(0, n_queries, QUESTIONS_AT_A_TIME)):  # Ctrl-C drops what is waiting
            pass

    def _new_buffers(self, width: int, room: int) -> _Buffers:
        n_entities, n_rules = self._ranker.ready.graph.n_entities, len(self._ranker.rules)
        return _Buffers(
            Workspace(
                empty_walk(n_entities, self._ranker.ready.longest), empty_candidates(n_entities), empty_firings(room)
            ),
            RankSpace(
                np.zeros(n_rules, np.int64), np.zeros(1, np.int64), np.zeros(width, np.int64), np.zeros(width, np.int64)
            ),
            SortedRules(
                np.empty(room, np.int64),
                np.empty(room, np.int32),
                np.zeros(n_entities + 1, np.int64),
                np.zeros(n_entities + 1, np.int32),
                np.zeros(n_entities + 1, np.int64),
                np.zeros(n_entities + 1, np.int64),
            ),
            ChangeArrays(
                np.zeros(n_rules, np.int32),
                np.zeros(n_rules, np.int32),
                np.zeros(n_rules, np.int32),
                np.zeros(n_rules, np.int64),
                np.zeros(room, np.int32),
            ),
        )


def take_answers(known: KnownAnswers, most: int, seed: int) -> KnownAnswers:
    """Return the answers of at most so many of the questions."""
    n_queries = len(known.queries.entities)
    rows = np.sort(np.random.default_rng(seed).permutation(n_queries)[:most])
    return KnownAnswers(take_queries(known.queries, rows), known.from_train)


def left_out_scores(ranker: Ranker, least_support: int) -> LeftOutScores:
    """Return the scores of the rules with one correct prediction less; -1 if less than `least_support` is left."""
    codes, counts = number_counts_of(ranker.rules)
    types, support, predictions = counts.T
    fewer = np.maximum(support - 1, 0).astype(np.int32)
    confidences = count_confidences(ranker.options, types.astype(np.uint8), fewer, np.ascontiguousarray(predictions))
    scores = to_scores(confidences)
    scores[support - 1 < least_support] = -1
    return LeftOutScores(scores, codes)


def in_answers(worth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return worth as a sum of reciprocal ranks."""
    return worth / WORTH_UNIT
