"""Training data: some of the candidates of each list, and how well they are ordered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.tuning.kernel_gradients import fill_choice, fill_pairs

MANY_LISTS = 6_000  # with fewer, every candidate is learned from
ALL_OF = 10  # candidates at the head of a list; of those that follow, some are learned from, and count for the others
SHARE_OF_OTHERS = 0.2  # of many lists

Objective = Callable[[NDArray[np.float64], Any], tuple[NDArray[np.float64], NDArray[np.float64]]]


def share_of_others(n_lists: int) -> float:
    """Return the share of the candidates far down that is learned from: of many lists, a few teach as much as all."""
    return SHARE_OF_OTHERS if n_lists > MANY_LISTS else 1.0


@dataclass(frozen=True)
class Lessons:
    """What trees are fitted to: rows of candidates, list after list, each an answer or not.

    A row counts for `weights` candidates of its list.
    """

    rows: NDArray[np.float32]
    labels: NDArray[np.float32]
    weights: NDArray[np.float64]
    sizes: NDArray[np.int64]

    @classmethod
    def of(
        cls, rows: NDArray[np.float32], is_answer: NDArray[np.bool_], sizes: NDArray[np.int64], share: float, seed: int
    ) -> Lessons:
        """Choose what to learn from: lists without an answer, or of one candidate, teach nothing, and of the candidates
        far down, a `share` is drawn.
        """
        questions = np.repeat(np.arange(len(sizes)), sizes)
        places = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        useful = (np.bincount(questions, weights=is_answer, minlength=len(sizes)) > 0) & (sizes > 1)
        certain = (places < ALL_OF) | is_answer
        drawn = np.random.default_rng(seed).random(len(rows)) < share
        kept = useful[questions] & (certain | drawn)
        return cls(
            rows[kept],
            is_answer[kept].astype(np.float32),
            np.where(certain[kept], 1.0, 1 / share),
            np.bincount(questions[kept], minlength=len(sizes))[useful],
        )

    def objectives(self) -> list[Objective]:
        """Return what one forest and the other are fitted to: the choice of an answer, and the order of pairs."""
        offsets = np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)
        gains, gradients, hessians = np.empty((3, len(self.labels)))
        ordered = np.arange(len(self.labels))

        def choose(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            fill_choice(scores, self.labels, self.weights, offsets, gradients, hessians)
            return gradients, hessians

        def order(scores: NDArray[np.float64], _: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
            fill_pairs(scores, self.labels, self.weights, offsets, ordered, gains, gradients, hessians)
            return gradients, hessians

        return [choose, order]
