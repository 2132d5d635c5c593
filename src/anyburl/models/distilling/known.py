"""Known answers: facts of the valid split and of train, and which rules predict them.

Facts of train were counted when their rules were; they are left out of these counts, one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.machine import Spare
from anyburl.data.dataset import Dataset
from anyburl.models.distilling.contests import Contests, Scale, add_worth
from anyburl.models.distilling.kernel import AnswerRules, KnownArrays, KnownSpace, LeftOutScores, find_best_rules
from anyburl.models.distilling.kernel_contest import ContestArrays, EntryArrays, list_contests
from anyburl.models.distilling.kernel_weigh import WORTH_UNIT, WorthArrays
from anyburl.ranking.arrays import QueryArrays, RuleIndex, Workspace, empty_candidates, empty_firings, empty_walk
from anyburl.ranking.index import number_counts_of, to_scores, weighted_confidences, with_scores
from anyburl.ranking.queries import joins_unconnected, make_queries, take_queries
from anyburl.ranking.ranker import LocalBackend, Ranker
from anyburl.rules.combine import rule_keys

Triples = NDArray[np.int32]
QUESTIONS_AT_A_TIME = 32
QUESTIONS_OF_A_PART = 2_048
FIRST_ROOM = 1 << 16  # for the firings of one query; it grows where that is too little


@dataclass(frozen=True)
class KnownAnswers:
    """Questions and their known answers; `from_train`: the answers are facts of train, to be left out."""

    queries: QueryArrays
    from_train: bool

    def __len__(self) -> int:
        return len(self.queries.targets)

    def parts(self, n_questions: int) -> Iterator[KnownAnswers]:
        """Yield the questions, so many at a time."""
        n = len(self.queries.entities)
        for first in range(0, n, n_questions):
            yield replace(self, queries=take_queries(self.queries, np.arange(first, min(first + n_questions, n))))


@dataclass(frozen=True)
class KnownFacts:
    """Facts whose rules are looked at: some to choose rules by, others to judge the choice."""

    dataset: Dataset
    valid: Triples
    train: Triples
    judged: Triples  # from valid or, if there is none, from train
    judged_from_train: bool

    @classmethod
    def draw(
        cls, dataset: Dataset, *, most: int, most_judged: int, blocked: bool, seed: int, fits_valid: bool = False
    ) -> KnownFacts:
        """Draw at most `most` facts to choose by, those of valid first, and `most_judged` others, half of valid at
        most. Where connected entities are `blocked`, facts of train join entities that no other fact joins.

        Where a model is fitted on valid afterwards (`fits_valid`), rules are chosen by train: chosen by valid, they
        would know its answers, and the model would trust them too much.
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
        valid, train = (valid, rest) if from_train else (rest[:0] if fits_valid else rest, train)
        return cls(dataset, valid[:most], train[: most - min(most, len(valid))], judged, from_train)

    def first(self, most: int) -> KnownFacts:
        """Return fewer facts to choose by."""
        return replace(self, valid=self.valid[:most], train=self.train[: max(0, most - len(self.valid))])

    def to_choose_by(self) -> list[KnownAnswers]:
        """Return the questions to choose by."""
        parts = ((self.valid, False), (self.train, True))
        return [self._known_answers(some, is_train) for some, is_train in parts if len(some)]

    def to_judge_by(self) -> KnownAnswers:
        """Return the questions that a choice is judged by."""
        return self._known_answers(self.judged, self.judged_from_train)

    def _known_answers(self, facts: Triples, from_train: bool) -> KnownAnswers:
        known = [self.dataset.train.triples, self.dataset.valid.triples]
        queries, _ = make_queries(facts, known, self.dataset.vocabulary.n_relations)
        return KnownAnswers(queries, from_train)


class Observer:
    """Runs the kernels of this room over questions, on the threads of a ranker."""

    def __init__(self, ranker: Ranker, least_support: int) -> None:
        self._ranker, self._backend = ranker, LocalBackend(ranker.ready, ranker.options.threads)
        self._spare = Spare(partial(self._new_space, FIRST_ROOM), self._backend.threads)
        self._protocol = ranker.ready.protocol(ranker.lister().aggregation, 0)
        self._left_out = left_out_scores(ranker, least_support)

    @cached_property
    def _tie_keys(self) -> NDArray[np.int64]:
        return rule_keys(self._ranker.rules)[0]

    def best_rules(self, known: KnownAnswers, width: int) -> AnswerRules:
        """Return the `width` best rules of each known answer."""
        n, ready, keys = len(known), self._ranker.ready, self._tie_keys
        fired = KnownArrays(ready.graph, ready.index, known.queries, self._protocol, known.from_train, self._left_out)
        out = AnswerRules(np.full((n, width), -1, np.int32), np.zeros((n, width), np.int64))

        def work(first: int) -> None:
            last = min(first + QUESTIONS_AT_A_TIME, len(known.queries.entities))
            space = self._spare.take()
            try:
                while first < last:
                    first, needed = find_best_rules(fired, first, last, keys, space, out)
                    if needed:
                        space = self._new_space(2 * needed)
            finally:
                self._spare.put(space)

        for _ in self._backend.map(work, range(0, len(known.queries.entities), QUESTIONS_AT_A_TIME)):
            pass  # Ctrl-C drops what is waiting
        return out

    def contests(self, known: Sequence[KnownAnswers], width: int, most: int) -> Contests:
        """Return the contests of known answers, down to the `width` best rules of each, with at most `most` entries."""
        numbered = self._numbered()
        parts = chain.from_iterable(some.parts(QUESTIONS_OF_A_PART) for some in known)
        work = partial(self._list, numbered, width, most)
        return Contests(list(self._backend.map(work, parts)), self._scale(numbered))

    def worth(self, known: Sequence[KnownAnswers]) -> tuple[float, WorthArrays]:
        """Return the sum of the reciprocal ranks of known answers, and what each rule is worth to them: what taking it
        away loses. That is still in whole units. An answer that no rule predicts counts 0.
        """
        numbered = self._numbered()
        scale = self._scale(numbered)
        spare: Spare[WorthArrays] = Spare(scale.new_worth, self._backend.threads)
        made: dict[int, WorthArrays] = {}
        kept = np.ones(len(self._ranker.rules), np.bool_)

        def work(some: KnownAnswers) -> int:
            contests = self._list(numbered, 0, 0, some)
            worth = spare.take()
            try:
                return scale.weigh(contests, kept, worth, is_exact=True)[0]
            finally:
                made[id(worth)] = worth
                spare.put(worth)

        parts = chain.from_iterable(some.parts(QUESTIONS_AT_A_TIME) for some in known)
        total = sum(self._backend.map(work, parts))
        return total / WORTH_UNIT, add_worth(list(made.values()), scale.new_worth)

    def _numbered(self) -> _NumberedScores:
        """Return the index and the left-out scores with numbers for scores: as ordered, and half as large."""
        index, left_out = self._ranker.ready.index, self._left_out
        values = np.unique(np.concatenate([[0], index.scores, left_out.scores[left_out.scores >= 0]]))
        numbers = np.where(left_out.scores >= 0, np.searchsorted(values, left_out.scores), -1)
        return _NumberedScores(
            with_scores(index, np.searchsorted(values, index.scores)),
            LeftOutScores(numbers.astype(np.int64), left_out.codes),
            values,
        )

    def _scale(self, numbered: _NumberedScores) -> Scale:
        return Scale(len(self._ranker.rules), self._protocol, numbered.values, self._backend.threads)

    def _list(self, numbered: _NumberedScores, width: int, most: int, known: KnownAnswers) -> ContestArrays:
        """Return the contests of some questions, see `contests`; of `width` 0, with all rules."""
        queries, protocol = known.queries, self._protocol
        if protocol.least_binary > 0:
            protocol = protocol._replace(least_binary=int(np.searchsorted(numbered.values, protocol.least_binary)))
        sizes, n_candidates = np.zeros(len(known) + 1, np.int64), np.zeros(len(known), np.int32)
        chunks: list[list[NDArray[np.int32]]] = []
        room, n = FIRST_ROOM, 0
        chunk = [np.empty(room, np.int32) for _ in range(3)]
        fired = KnownArrays(
            self._ranker.ready.graph, numbered.rule_index, queries, protocol, known.from_train, numbered.left_out
        )
        space = self._spare.take()
        entries, first, last = _new_entries(space, width), 0, len(queries.entities)
        try:
            while first < last:
                before, written, out = first, n, ContestArrays(sizes, n_candidates, *chunk)
                first, needed, n = list_contests(fired, first, most or len(entries.rules), space, entries, out, n)
                if needed:
                    space = self._new_space(2 * needed)
                    entries = _new_entries(space, width)
                elif first < last:
                    room = 2 * room if (before, written) == (first, n) else room
                    chunks.append([column[:n] for column in chunk])
                    chunk, n = [np.empty(room, np.int32) for _ in range(3)], 0
        finally:
            self._spare.put(space)
        chunks.append([column[:n] for column in chunk])
        columns = (np.concatenate(parts) for parts in zip(*chunks, strict=True))
        return ContestArrays(np.cumsum(sizes), n_candidates, *columns)

    def _new_space(self, room: int) -> KnownSpace:
        n_entities, n_rules = self._ranker.ready.graph.n_entities, len(self._ranker.rules)
        walk = empty_walk(self._ranker.ready.graph, self._ranker.ready.longest)
        workspace = Workspace(walk, empty_candidates(n_entities), empty_firings(room))
        return KnownSpace(workspace, np.zeros(n_rules, np.int64), np.zeros(1, np.int64))


class _NumberedScores(NamedTuple):
    """An index of rules and their left-out scores with numbers in place of scores; `values` are the scores."""

    rule_index: RuleIndex
    left_out: LeftOutScores
    values: NDArray[np.int64]


def _new_entries(space: KnownSpace, width: int) -> EntryArrays:
    room = len(space.workspace.firings.rules)
    return EntryArrays(
        np.empty(room, np.int64), np.empty(room, np.int32), np.empty(room, np.int32), np.empty(width, np.int64)
    )


def left_out_scores(ranker: Ranker, least_support: int) -> LeftOutScores:
    """Return the scores of the rules with one correct prediction less; -1 if less than `least_support` is left."""
    codes, counts = number_counts_of(ranker.rules)
    types, support, predictions = counts.T
    fewer = np.maximum(support - 1, 0).astype(np.int32)
    confidences = weighted_confidences(ranker.options, types.astype(np.uint8), fewer, np.ascontiguousarray(predictions))
    scores = to_scores(confidences)
    scores[support - 1 < least_support] = -1
    return LeftOutScores(scores, codes)


def in_answers(worth: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return worth as a sum of reciprocal ranks."""
    return worth / WORTH_UNIT
