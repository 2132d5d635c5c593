"""Rewards: what a set of new rules is worth (paper, section 3.3)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import InvalidOptionError


class Reward(Protocol):
    """The value of a set of rules, given as columns.

    With `pca`, their `predictions` are only those that the partial completeness assumption can judge.
    """

    pca: bool

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the reward of rules of one length."""
        ...


class Support:
    """R_s(S) = sum of support(r) over the rules r in S."""

    pca = False

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of the supports."""
        return float(supports.sum(dtype=np.float64))


class SupportConfidence:
    """R_sxc(S) = sum of support(r) * conf(r) over the rules r in S."""

    pca = False

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of support times confidence."""
        products = supports.astype(np.float64)
        np.square(products, out=products)
        return float((products / np.maximum(predictions, 1)).sum())


class LengthDiscounted(SupportConfidence):
    """R_sxc/2^l(S) = sum of support(r) * conf(r) / 2^l(r) over the rules r in S, l(r) the length of r."""

    def of(self, supports: NDArray[np.int32], predictions: NDArray[np.int64], length: int) -> float:
        """Return the sum of support times confidence, halved for each body atom."""
        return float(super().of(supports, predictions, length) / 2**length)


class SupportPca(SupportConfidence):
    """R_sxpca(S) = sum of support(r) * PCA conf(r) over the rules r in S, as AMIE would value them."""

    pca = True


def make_reward(name: str) -> Reward:
    """Return the reward of that name."""
    rewards: dict[str, type[Reward]] = {
        "support": Support,
        "support-confidence": SupportConfidence,
        "length-discounted": LengthDiscounted,
        "support-pca": SupportPca,
    }
    if name not in rewards:
        raise InvalidOptionError("reward", f"one of {', '.join(rewards)}", name)
    return rewards[name]()
