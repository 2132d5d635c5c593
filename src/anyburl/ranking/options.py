"""`RankOptions`, and the aggregations: how the rules behind a candidate are combined into its score.

Imports no compiler, so that the command line can take defaults and choices from here.

A rule's score is -log(1 - confidence), a whole number. Kernels give each candidate a *key*, the sum of its `n_counted`
highest scores (None: of all), and order candidates by it; where keys are equal and `breaks_ties`, by their scores, the
highest first. To add an aggregation, write a class here and put it into `AGGREGATIONS`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, TypedDict

from anyburl.base import checking
from anyburl.base.checking import Options, option
from anyburl.base.errors import InvalidOptionError, OptionError
from anyburl.rules.types import SMOOTHING, RuleType

MOST_EVIDENCE = 1 << 62  # as in the kernels: a key never grows beyond
UNIT = 1 << 44  # of scores
FIGURES = ("hits@1", "hits@3", "hits@10", "mrr")
"""The metrics that tables show."""
DIRECTIONS = {"object": "(subject, relation, ?)", "subject": "(?, relation, object)"}
"""The directions of queries, and how tables write them."""


@dataclass(frozen=True)
class Aggregation:
    """One way to combine the rules behind a candidate."""

    pattern: ClassVar[str]
    """How it is written: a regular expression; its group, if there is one, is the number of rules that count."""
    written: ClassVar[str]
    """How it is written, for people."""
    help: ClassVar[str]
    example: ClassVar[str]
    needs_model: ClassVar[bool] = False
    needs_embedding: ClassVar[bool] = False

    name: str
    n_counted: int | None = None
    breaks_ties: bool = False
    least_binary: float = 0.0
    """B rules with a lower confidence do not fire."""

    def key(self, scores: Sequence[int]) -> int:
        """Return what a candidate is ordered by; `scores` of its rules, the highest first."""
        return min(sum(scores[: self.n_counted]), MOST_EVIDENCE)

    def score(self, summed: float, best: float) -> float:
        """Return a candidate's score for people, from 0 to 1: `summed` is the confidence behind its key, `best` that of
        its best rule.
        """
        return summed

    def contribution(self, scores: Sequence[int], position: int) -> float:
        """Return which share of a candidate's score the rule at `position` of its rules contributes."""
        is_counted = self.n_counted is None or position < self.n_counted
        total = self.key(scores)
        return scores[position] / total if is_counted and total else 0.0


@dataclass(frozen=True)
class Maximum(Aggregation):
    """The best rule decides, among equals the next best, and so on (paper, section 2.3)."""

    pattern = r"max"
    written = example = "max"
    help = "the best rule decides, the next best breaks ties"

    n_counted: int | None = 1
    breaks_ties: bool = True

    def score(self, summed: float, best: float) -> float:
        return best

    def contribution(self, scores: Sequence[int], position: int) -> float:
        return float(position == 0)


@dataclass(frozen=True)
class NoisyOr(Aggregation):
    """1 - (1 - confidence)(1 - confidence)..., as if rules were independent."""

    pattern = r"noisy-or"
    written = example = "noisy-or"
    help = "all rules, as if they were independent"


@dataclass(frozen=True)
class NoisyOrTop(Aggregation):
    """Noisy-or of the best rules only: many weak rules say less than they seem to."""

    pattern = r"noisy-or-top:([1-9]\d{0,8})"
    written = "noisy-or-top:H"
    example = "noisy-or-top:5"
    help = "the same for the H best rules"


@dataclass(frozen=True)
class Tuned(Aggregation):
    """A model puts the candidates in order that the best fixed aggregation lists; before it is trained, like top 5."""

    pattern = r"tuned"
    written = example = "tuned"
    help = "a model trained on held-out facts"
    needs_model = True

    n_counted: int | None = 5


@dataclass(frozen=True)
class Hybrid(Tuned):
    """Like tuned, by a model that also knows what an embedding says of all entities."""

    pattern = r"hybrid"
    written = example = "hybrid"
    help = "the same, with the run's embedding (see `anyburl embed`)"
    needs_embedding = True


AGGREGATIONS: tuple[type[Aggregation], ...] = (Maximum, NoisyOr, NoisyOrTop, Tuned, Hybrid)
FIXED_AGGREGATIONS = ", ".join(kind.written for kind in AGGREGATIONS if not kind.needs_model)
"""How those that need no model are written, for people."""


def parse_aggregation(text: str) -> Aggregation:
    """Return the aggregation that is written so; anything else is refused."""
    for kind in AGGREGATIONS if isinstance(text, str) else ():
        if match := re.fullmatch(kind.pattern, text):
            return kind(text, int(match[1])) if match.groups() else kind(text)
    raise InvalidOptionError("aggregation", f"one of {', '.join(kind.written for kind in AGGREGATIONS)}", text)


BLOCK_CHOICES = ("auto", "on", "off")
PROTOCOLS = ("all", "sampled", "estimated")
"""Against whom answers are ranked when they are evaluated."""
SCORES, MODEL = "scores", "model"
"""What is kept of an evaluation or calibration, and of tuning: options say on which of them they have no effect."""
PANEL = "How answers are ranked"


def _aggregation(option: str, text: Any) -> str:
    return parse_aggregation(text).name


def _weights(option: str, weights: Any) -> dict[str, float]:
    """Return the factors by rule type as plain values."""
    requirement = f"a factor from 0 to 1 for each of {', '.join(RuleType)}"
    if not isinstance(weights, Mapping):
        raise InvalidOptionError(option, requirement, weights)
    for name, factor in weights.items():
        if name not in list(RuleType) or not isinstance(factor, Real) or not 0 <= float(factor) <= 1:
            raise InvalidOptionError(option, requirement, f"{name}={factor}")
    return {str(name): float(factor) for name, factor in weights.items()}


def parse_weights(text: str) -> dict[str, float]:
    """Return the factors by rule type behind a text such as Ud=0.1,Z=0.01."""
    weights: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, sign, factor = part.partition("=")
        try:
            weights[name.strip()] = float(factor)
        except ValueError:
            sign = ""
        if not sign:
            raise OptionError(f"--weights takes factors such as Ud=0.1,Z=0.01, got {text!r}")
    return weights


@dataclass(frozen=True, kw_only=True)
class RankOptions(Options):
    """Options of ranking, checked on creation; `weights` are a mapping such as {"Ud": 0.1, "Z": 0.01}."""

    aggregation: str = option(
        "max",
        _aggregation,
        help="How the rules behind an answer are combined: "
        + "; ".join(f"{kind.written} ({kind.help})" for kind in AGGREGATIONS)
        + ".",
        choices=tuple(kind.example for kind in AGGREGATIONS),
        metavar="NAME",
        panel=PANEL,
        no_effect_on=(MODEL,),
    )
    smoothing: float = option(
        float(SMOOTHING), checking.real, 0, help="Count a rule as support / (predictions + SMOOTHING).", panel=PANEL
    )
    weights: Mapping[str, float] = option(
        {},
        _weights,
        help="Factors on confidences, by rule type. AnyBURL-23 and PyClause use Ud=0.1,Z=0.01.",
        parse=parse_weights,
        metavar="TYPE=FACTOR,...",
        panel=PANEL,
    )
    block_connected: str = option(
        "auto",
        checking.choice,
        BLOCK_CHOICES,
        help="Leave out answers that any fact connects with the query's entity. auto does so if no valid triple joins "
        "connected entities.",
        metavar="|".join(BLOCK_CHOICES),
        panel=PANEL,
    )
    object_identity: bool = option(True, checking.flag, help=checking.OBJECT_IDENTITY, panel=PANEL)
    fallback: bool = option(
        False,
        checking.flag,
        help="Also rank answers that no rule predicts, by how well they fit the question. tuned always does.",
        flag="--fallback",
        panel=PANEL,
        no_effect_on=(MODEL,),  # a model's answers always have it
    )
    top_k: int = option(
        100,
        checking.whole,
        1,
        checking.MOST_KEPT,
        help="Candidates per query in --rankings. The lower bound of the MRR ignores lower ranks.",
        flag=None,  # but for `evaluate`
        no_effect_on=(SCORES, MODEL),
    )
    threads: int | None = checking.threads_option(no_effect_on=(SCORES, MODEL))


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
