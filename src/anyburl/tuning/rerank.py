"""Ranks by a model: it orders the best candidates anew, what comes after them keeps its place."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.ranks import Ranks
from anyburl.tuning.features import Lists
from anyburl.tuning.model import TunedModel


def find_answers(part: Lists, queries: QueryArrays) -> NDArray[np.int64]:
    """Return for each candidate of the lists its place among the targets of its question, or -1 if it is none.

    The targets of a question are sorted, and questions follow each other: question and entity make sorted keys.
    """
    n_questions = len(queries.entities)
    span = int(max(part.candidates.max(initial=0), queries.targets.max(initial=0))) + 1
    question = np.repeat(np.arange(n_questions), np.diff(queries.target_offsets))
    keys = question * span + queries.targets
    wanted = np.repeat(part.first + np.arange(len(part.sizes)), part.sizes) * span + part.candidates
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def rerank(ranks: Ranks, part: Lists, answers: NDArray[np.int64], model: TunedModel) -> None:
    """Overwrite in `ranks` those of the targets in the lists `part`; `answers` is what `find_answers` gave."""
    scores = model.scores(part.rows)
    width = int(part.sizes.max(initial=0))
    table = np.full((len(part.sizes), width), -np.inf)
    kept = np.arange(width)[None, :] < part.sizes[:, None]
    rivals = np.where(answers >= 0, -np.inf, scores)  # other answers are known: they do not count against each other
    table[kept] = rivals
    rows = np.flatnonzero(answers >= 0)
    question = np.repeat(np.arange(len(part.sizes)), part.sizes)[rows]
    better = (table[question] > scores[rows, None]).sum(axis=1)
    equal = (table[question] == scores[rows, None]).sum(axis=1)
    ranks.optimistic[answers[rows]] = better + 1
    ranks.pessimistic[answers[rows]] = better + equal + 1
