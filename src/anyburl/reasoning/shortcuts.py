"""The verbs of a `Reasoner` as functions, for a single call; to ask more than once, create a reasoner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from anyburl.base.errors import OptionError
from anyburl.models.distilling.distil import Distilled
from anyburl.models.options import DistilOptions
from anyburl.ranking.options import RankKeywords, RankOptions
from anyburl.ranking.ranker import Progress
from anyburl.reasoning.explanation.explain import Explanation
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.metrics import Metrics
from anyburl.reasoning.predicting import Answers
from anyburl.reasoning.reasoner import Reasoner
from anyburl.rules.ruleset import RuleSet


def predict(
    rules: RuleSet,
    data: Any,
    subject: str | None,
    relation: str,
    object: str | None,
    *,
    top: int = 10,
    include_known: bool = False,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Answers:
    """Return the best answers to one query; see `Reasoner.predict`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords)
    return chosen.predict(subject, relation, object, top=top, include_known=include_known)


def evaluate(
    rules: RuleSet,
    data: Any,
    *,
    split: str = "test",
    relations: Sequence[str] | None = None,
    sample: int | None = None,
    protocol: str = "all",
    progress: Progress | None = None,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    engine: str = "threads",
    address: str | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Metrics:
    """Rank a split and return the filtered metrics; see `Reasoner.evaluate`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords, engine, address)
    try:
        return chosen.evaluate(split, relations=relations, sample=sample, protocol=protocol, progress=progress)
    finally:
        if reasoner is None:
            chosen.close()


def explain(
    rules: RuleSet,
    data: Any,
    triple: Fact,
    *,
    top: int = 5,
    groundings: int = 3,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Explanation:
    """Return the rules that predict a triple; see `Reasoner.explain`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords)
    return chosen.explain(triple, top=top, groundings=groundings)


def distil(
    rules: RuleSet,
    data: Any,
    options: DistilOptions | None = None,
    *,
    ranking: RankOptions | None = None,
    reasoner: Reasoner | None = None,
) -> Distilled:
    """Return the rules that rank held-out facts best, for the aggregation of `ranking`; see `Reasoner.distil`."""
    return _reasoner(rules, data, ranking, reasoner, 0, {}).distil(options)


def _reasoner(
    rules: RuleSet,
    data: Any,
    options: RankOptions | None,
    reasoner: Reasoner | None,
    seed: int,
    keywords: RankKeywords,
    engine: str = "threads",
    address: str | None = None,
) -> Reasoner:
    """Return the reasoner that was given, if it has these rules and data, or a new one."""
    if reasoner is None:
        return Reasoner(rules, data, options, engine=engine, address=address, seed=seed, **keywords)
    if not isinstance(reasoner, Reasoner):
        raise OptionError(f"expected a Reasoner, got {type(reasoner).__name__}")
    if options is not None or keywords or engine != "threads" or address is not None:
        raise OptionError("a reasoner has its own options and engine: pass either a reasoner or options, not both")
    if data is not reasoner.dataset:
        raise OptionError("the reasoner was made with other data")
    if rules is not reasoner.rules and rules is not reasoner.given_rules:
        raise OptionError("the reasoner was made with other rules")
    return reasoner
