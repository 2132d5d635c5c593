"""How candidates are ranked. Imports no compiler, so the command line can take its defaults and choices from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import TypedDict

from anyburl import checking
from anyburl.errors import InvalidOptionError
from anyburl.kept import no_effect_on
from anyburl.ranking.aggregation import parse_aggregation
from anyburl.rules.types import RuleType

BLOCK_CHOICES = ("auto", "on", "off")
PROTOCOLS = ("all", "sampled", "estimated")
"""Against whom answers are ranked when they are evaluated."""
SCORES, MODEL = "scores", "model"
"""What is kept of an evaluation or calibration, and of tuning: options say on which of them they have no effect."""
WEIGHTS = f"a factor from 0 to 1 for each of {', '.join(RuleType)}"


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """Options of ranking, checked on creation.

    `aggregation` is "max" (best rule first, ties by the next best), "noisy-or", "noisy-or-top:H" (the H best rules) or
    "tuned" (a model trained on held-out facts). With `fallback`, answers that no rule predicts follow, ordered by how
    well they fit the question; "tuned" always does this. `weights` are factors on confidences by rule type: AnyBURL-23
    and PyClause use {"Ud": 0.1, "Z": 0.01}.
    """

    aggregation: str = field(default="max", metadata=no_effect_on(MODEL))
    smoothing: float = 5.0
    weights: Mapping[str, float] = field(default_factory=dict)
    block_connected: str = "auto"
    object_identity: bool = True
    fallback: bool = field(default=False, metadata=no_effect_on(MODEL))  # a model's answers always have it
    top_k: int = field(default=100, metadata=no_effect_on(SCORES, MODEL))
    threads: int | None = field(default=None, metadata=no_effect_on(SCORES, MODEL))

    def __post_init__(self) -> None:
        parse_aggregation(self.aggregation)
        checking.real("smoothing", self.smoothing, 0)
        checking.choice("block_connected", self.block_connected, BLOCK_CHOICES)
        checking.flag("object_identity", self.object_identity)
        checking.flag("fallback", self.fallback)
        checking.whole("top_k", self.top_k, 1, checking.MOST_KEPT)
        checking.threads(self.threads)
        if not isinstance(self.weights, Mapping):
            raise InvalidOptionError("weights", WEIGHTS, self.weights)
        for name, factor in self.weights.items():
            if name not in list(RuleType) or not isinstance(factor, Real) or not 0 <= factor <= 1:
                raise InvalidOptionError("weights", WEIGHTS, f"{name}={factor}")


class RankKeywords(TypedDict, total=False):
    """The fields of `RankOptions` as keywords."""

    aggregation: str
    smoothing: float
    weights: Mapping[str, float]
    block_connected: str
    object_identity: bool
    fallback: bool
    top_k: int
    threads: int | None
