"""Reorders the best candidates of each query with a model; the rest keep their places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.scores import to_confidences, to_scores
from anyburl.tuning.evidence import Lists


def find_answers(lists: Lists, queries: QueryArrays) -> NDArray[np.int64]:
    """Return for each candidate of the lists its place among the targets of its question, or -1 if it is none.

    The targets of a question are sorted, and questions follow each other: question and entity make sorted keys.
    """
    if not len(queries.targets):
        return np.full(len(lists.candidates), -1, np.int64)
    span = int(max(lists.candidates.max(initial=0), queries.targets.max(initial=0))) + 1
    keys = np.repeat(np.arange(len(lists.sizes)), np.diff(queries.target_offsets)) * span + queries.targets
    wanted = lists.questions * span + lists.candidates
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, places, -1)


def rerank(
    lists: Lists,
    queries: QueryArrays,
    targets: NDArray[np.int64],
    scores: NDArray[np.float64],
    answers: AnswerArrays,
) -> None:
    """Overwrite in `answers` how many candidates rank before each target, and with it.

    `targets` is what `find_answers` gave. Other targets are known answers: they do not count against each other. A
    target that is not listed comes after all that are, also after those that it tied with.
    """
    rivals_listed = np.bincount(lists.questions[targets < 0], minlength=len(lists.sizes))
    before = np.repeat(rivals_listed, np.diff(queries.target_offsets)) - answers.better
    moved = np.clip(before, 0, answers.equal)
    answers.better[:] += moved
    answers.equal[:] -= moved
    table = np.full((len(lists.sizes), int(lists.sizes.max(initial=0))), -np.inf)
    questions = lists.questions
    table[questions, lists.places] = np.where(targets >= 0, -np.inf, scores)
    rows = np.flatnonzero(targets >= 0)
    rivals, own = table[questions[rows]], scores[rows, None]
    answers.better[targets[rows]] = (rivals > own).sum(axis=1)
    answers.equal[targets[rows]] = (rivals == own).sum(axis=1)


def logistic(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the model's scores as numbers from 0 to 1, in the same order."""
    return np.asarray(1 / (1 + np.exp(-scores)), np.float64)


def reorder(lists: Lists, scores: NDArray[np.float64], answers: AnswerArrays) -> None:
    """Put the candidates in `answers.best` in the order of `scores`, and let `best_keys` tell it.

    Keys stand for the logistic of the model's score: an order from 0 to 1, not a probability. What comes after the
    lists stays below them.
    """
    questions, places = lists.questions, lists.places
    order = np.lexsort((lists.candidates, -scores, questions))
    confidences = logistic(scores[order])
    for column in (answers.best, answers.best_rules, answers.best_counts):
        column[questions, places] = column[questions, places][order]
    lowest = np.ones(len(lists.sizes))
    np.minimum.at(lowest, questions, confidences)
    later = np.arange(answers.best.shape[1])[None, :] >= lists.sizes[:, None]
    below = to_confidences(answers.best_keys) * lowest[:, None]
    answers.best_keys[later] = to_scores(below[later])
    answers.best_keys[questions, places] = to_scores(confidences)
