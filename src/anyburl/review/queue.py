"""Predicted facts that nobody has judged yet, the best first, found within a time limit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import checking
from anyburl.completion.facts import FactColumns
from anyburl.completion.missing import missing_facts
from anyburl.completion.selection import LEVELS, best_of_each
from anyburl.errors import InvalidOptionError
from anyburl.reasoning.reasoner import Reasoner
from anyburl.review.log import ReviewLog
from anyburl.review.review import Fact
from anyburl.triples.frames import COLUMNS
from anyburl.triples.vocabulary import Vocabulary

FEW_LEVELS = (0.5,)
"""Scores to begin with where only one relation is searched: to start a search takes as long as to go through it."""

Keys = NDArray[np.int64]


@dataclass(frozen=True)
class QueuedFact:
    """A predicted fact that waits for a verdict; `probability` is None where scores are not calibrated."""

    triple: Fact
    score: float
    probability: float | None
    rule: str
    n_rules: int


@dataclass(frozen=True)
class ReviewQueue:
    """Facts that wait, the best first.

    If `is_complete`, there are no better ones; if not, time was up before everything was searched.
    """

    facts: tuple[QueuedFact, ...]
    is_complete: bool

    def __len__(self) -> int:
        return len(self.facts)

    def __iter__(self) -> Iterator[QueuedFact]:
        return iter(self.facts)


class _TimeIsUp(Exception):  # noqa: N818
    """Ends a search."""


def review_queue(
    reasoner: Reasoner,
    log: ReviewLog,
    *,
    relation: str | None = None,
    top: int = 50,
    min_score: float = 0.3,
    seconds: float = 5.0,
) -> ReviewQueue:
    """Return the `top` best facts that no split states and no standing verdict covers, of one relation or of all.

    High scores are searched first, and the search ends once there are enough facts, or after about this many seconds.
    """
    checking.whole("top", top, 1, checking.MOST_KEPT)
    if not 0 <= min_score <= 1:
        raise InvalidOptionError("min_score", "from 0 to 1", min_score)
    wanted = None if relation is None else reasoner.vocabulary.relation_id(relation)
    search = _Search(reasoner, log, top, time.monotonic() + seconds)
    best, is_complete = FactColumns.empty(), False
    levels = LEVELS if relation is None else FEW_LEVELS
    for level in [*(level for level in levels if level > min_score), min_score]:
        best, is_complete = search.above(level, wanted)
        if not is_complete or len(best) == top:
            break
    return ReviewQueue(_facts(reasoner, best), is_complete)


class _Search:
    """Looks for facts that wait until time is up."""

    def __init__(self, reasoner: Reasoner, log: ReviewLog, top: int, end: float) -> None:
        self._reasoner, self._top, self._end = reasoner, top, end
        self._judged = _keys(reasoner.vocabulary, _encoded(reasoner.vocabulary, log))

    def above(self, level: float, relation: int | None) -> tuple[FactColumns, bool]:
        """Return the best facts with at least the score `level`, and whether all of them were looked at."""
        reasoner, best = self._reasoner, FactColumns.empty()
        least = np.full(reasoner.vocabulary.n_relations, level if relation is None else np.inf)
        if relation is not None:
            least[relation] = level
        try:
            for facts in missing_facts(reasoner.ranker, reasoner.dataset, least, progress=self._watch):
                waiting = facts.take(~np.isin(_keys(reasoner.vocabulary, facts.triples), self._judged))
                joined = FactColumns.concat([best, waiting])
                best = best_of_each(joined, np.zeros(len(joined), np.int64), self._top)
        except _TimeIsUp:
            return best, False
        return best, True

    def _watch(self, _: int) -> None:
        if time.monotonic() > self._end:
            raise _TimeIsUp


def _encoded(vocabulary: Vocabulary, log: ReviewLog) -> NDArray[np.int32]:
    """Return the ids of the facts with a verdict; those with labels of other data are left out."""
    labels = pl.DataFrame(list(log.standing()), schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    triples = np.column_stack(vocabulary.encode_triples(labels))
    return triples[(triples >= 0).all(axis=1)]


def _keys(vocabulary: Vocabulary, triples: NDArray[np.int32]) -> Keys:
    """Return one number for each triple."""
    subjects, relations, objects = triples.astype(np.int64).T
    return np.asarray((subjects * vocabulary.n_relations + relations) * vocabulary.n_entities + objects)


def _facts(reasoner: Reasoner, best: FactColumns) -> tuple[QueuedFact, ...]:
    """Return facts as objects, the best first."""
    subjects, relations, objects = best.triples.T
    order = np.lexsort((objects, relations, subjects, -best.n_rules, -best.scores))
    sure = np.full(len(best), np.nan)
    if reasoner.calibration is not None:
        sure = reasoner.calibration.probabilities(relations, best.scores)
    labels = reasoner.vocabulary
    return tuple(
        QueuedFact(
            labels.triple_labels(*best.triples[row].tolist()),
            score=float(best.scores[row]),
            probability=None if np.isnan(sure[row]) else float(sure[row]),
            rule=str(reasoner.rules.rule(int(best.rules[row]))),
            n_rules=int(best.n_rules[row]),
        )
        for row in order.tolist()
    )
