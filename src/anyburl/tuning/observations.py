"""Scored answers to questions of a split, to compare scores with what the split states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.scores import shown_scores
from anyburl.tuning.evidence import lists_of
from anyburl.tuning.rerank import find_answers

N_FOLDS = 10


@dataclass(frozen=True)
class Observations:
    """One row per listed answer of each question.

    `has_others` tells of a stated answer that the split states others to its question. All rows of one triple, which
    may answer two questions, have the same fold.
    """

    relations: NDArray[np.int32]
    scores: NDArray[np.float64]
    is_stated: NDArray[np.bool_]
    has_others: NDArray[np.bool_]
    folds: NDArray[np.uint8]

    def __len__(self) -> int:
        return len(self.scores)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Observations:
        """Return some of the rows."""
        return Observations(*(getattr(self, field.name)[rows] for field in fields(self)))


NOTHING = Observations(
    relations=np.empty(0, np.int32),
    scores=np.empty(0, np.float64),
    is_stated=np.empty(0, np.bool_),
    has_others=np.empty(0, np.bool_),
    folds=np.empty(0, np.uint8),
)


def join_observations(parts: Sequence[Observations]) -> Observations:
    """Return the rows of all parts."""
    names = [field.name for field in fields(Observations)]
    return Observations(*(np.concatenate([getattr(part, name) for part in (NOTHING, *parts)]) for name in names))


def observe(queries: QueryArrays, answers: AnswerArrays, n_relations: int) -> Observations:
    """Return the listed answers, each stated if it is among the targets of its query."""
    lists = lists_of(answers, answers.best.shape[1])
    questions = lists.questions
    is_stated = find_answers(lists, queries) >= 0
    directed = queries.relations[questions]
    kept = np.arange(answers.best.shape[1])[None, :] < lists.sizes[:, None]
    return Observations(
        relations=directed % n_relations,
        scores=shown_scores(answers.best_keys[kept]),
        is_stated=is_stated,
        has_others=is_stated & (np.diff(queries.target_offsets) > 1)[questions],
        folds=_folds(queries.entities[questions], directed, lists.candidates, n_relations),
    )


def _folds(
    entities: NDArray[np.int32], directed: NDArray[np.int32], candidates: NDArray[np.int32], n_relations: int
) -> NDArray[np.uint8]:
    """Put triples into folds, at random but always in the same way."""
    backward = directed >= n_relations
    subjects, objects = np.where(backward, candidates, entities), np.where(backward, entities, candidates)
    mixed = np.zeros(len(subjects), np.uint64)
    for column in (subjects, directed % n_relations, objects):
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(N_FOLDS)).astype(np.uint8)
