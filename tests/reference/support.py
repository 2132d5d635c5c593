"""The strongest rule behind a fact, if the fact itself does not count: rule by rule."""

from __future__ import annotations

from collections.abc import Sequence

from .graph import Triple
from .ranking import Answered


def one_short(support: int, predictions: int, smoothing: float) -> float:
    """The confidence of a rule without one of the facts that it predicts; 0 if there is no other."""
    return (support - 1) / (predictions - 1 + smoothing) if support > 1 else 0.0


def best_score(triple: Triple, answers: Sequence[Answered], scores: Sequence[float]) -> float:
    """The highest score of a rule that predicts the triple, 0 if there is none."""
    return max((score for score, answered in zip(scores, answers, strict=True) if triple in answered), default=0.0)
