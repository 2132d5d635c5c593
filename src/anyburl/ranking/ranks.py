"""The ranks of targets among the candidates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import AnswerArrays, QueryArrays


@dataclass(frozen=True)
class Ranks:
    """The filtered rank of every target."""

    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]

    @property
    def realistic(self) -> NDArray[np.float64]:
        """The mean of the optimistic and the pessimistic rank."""
        mean: NDArray[np.float64] = (self.optimistic + self.pessimistic) / 2
        return mean

    def of(self, ties: str) -> NDArray[np.float64]:
        """Return the ranks under one way to treat ties."""
        return np.asarray(getattr(self, ties), np.float64)

    def at(self, places: NDArray[np.int64]) -> Ranks:
        """Return the ranks in another order."""
        return Ranks(self.optimistic[places], self.pessimistic[places])


def target_ranks(queries: QueryArrays, answers: AnswerArrays, n_entities: int) -> Ranks:
    """Return the ranks of the targets.

    A target that no rule predicts ties with every other entity that none predicts, after all candidates.
    """
    sizes = np.diff(queries.target_offsets)
    question = np.repeat(np.arange(len(sizes)), sizes)
    fired_targets = np.bincount(question, weights=answers.fired, minlength=len(sizes)).astype(np.int64)
    n_candidates = (answers.n_candidates - fired_targets)[question]
    n_others = (n_entities - answers.n_excluded - sizes)[question]
    optimistic = np.where(answers.fired, answers.better + 1, n_candidates + 1)
    pessimistic = np.where(answers.fired, answers.better + answers.equal + 1, np.maximum(n_others, n_candidates) + 1)
    return Ranks(optimistic, pessimistic)
