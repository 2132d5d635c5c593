"""How candidates are ranked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import OptionError
from anyburl.ranking.kernel_order import MAXIMUM, NOISY_OR, NOISY_OR_TOP
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet

BLOCK_CHOICES = ("auto", "on", "off")


@dataclass(frozen=True, kw_only=True)
class RankOptions:
    """Options of ranking; checked when made.

    `aggregation` is "max" (best rule first, ties by the next best), "noisy-or", "noisy-or-top:H" (of the H best
    rules), or "tuned" (learned from the validation split). `weights` are factors on confidences by rule type:
    AnyBURL-23 and PyClause use {"Ud": 0.1, "Z": 0.01}.
    """

    aggregation: str = "max"
    smoothing: float = 5.0
    weights: Mapping[str, float] = field(default_factory=dict)
    block_connected: str = "auto"
    object_identity: bool = True
    top_k: int = 100
    threads: int | None = None

    def __post_init__(self) -> None:
        parse_aggregation(self.aggregation)
        if not self.smoothing >= 0:
            raise OptionError(f"RankOptions.smoothing must be at least 0, got {self.smoothing}")
        if self.block_connected not in BLOCK_CHOICES:
            choices = ", ".join(BLOCK_CHOICES)
            raise OptionError(f"RankOptions.block_connected must be one of {choices}, got {self.block_connected!r}")
        if self.top_k < 1:
            raise OptionError(f"RankOptions.top_k must be at least 1, got {self.top_k}")
        if self.threads is not None and self.threads < 1:
            raise OptionError(f"RankOptions.threads must be at least 1, got {self.threads}")
        for name, factor in self.weights.items():
            if name not in list(RuleType) or not 0 <= factor <= 1:
                raise OptionError(
                    f"RankOptions.weights must give B, Uc, Ud or Z a factor from 0 to 1, got {name}={factor}"
                )

    def confidences(self, rules: RuleSet) -> NDArray[np.float64]:
        """Return what each rule counts for: its smoothed confidence times the factor of its type."""
        factors = np.ones(256)
        for name, factor in self.weights.items():
            factors[RuleType(name).code] = factor
        return rules.confidence(self.smoothing) * factors[rules.type]


def parse_aggregation(text: str) -> tuple[int, int]:
    """Return the kernel's code for an aggregation and the number of rules that count."""
    if text == "max":
        return MAXIMUM, 0
    if text == "noisy-or":
        return NOISY_OR, 0
    if text == "tuned":  # before it was tuned
        return NOISY_OR_TOP, 5
    if match := re.fullmatch(r"noisy-or-top:([1-9]\d*)", text):
        return NOISY_OR_TOP, int(match[1])
    raise OptionError(
        f"aggregation must be max, noisy-or, noisy-or-top:H with a whole number H, or tuned, got {text!r}"
    )
