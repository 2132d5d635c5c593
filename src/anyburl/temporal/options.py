"""Options of learning and applying temporal rules."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.base.checking import Options, above_zero, choice, flag, option, real, share, threads_option, whole

MODELS = ("none", "logit", "forest")
STEPS = ("single", "multi")
FILTERS = ("time", "static", "raw")
TIES = ("realistic", "optimistic", "pessimistic")
FORMS = ("pair", "constant", "hops", "popular")
"""The forms of temporal rules, by their codes."""
AGGREGATIONS = ("model", "sum", "max", "noisy-or")
"""How the candidates of a question are ordered: by the model, by the mixture of all rules, or by pair rules alone."""


@dataclass(frozen=True, kw_only=True)
class TemporalOptions(Options):
    """How temporal rules are learned."""

    rounds: int = option(3, whole, 0, 100, help="Rounds of sharing the credit for an answer among rules.")
    constants: bool = option(True, flag, help="Learn rules with constants.")
    hops: bool = option(True, flag, help="Learn rules of two hops.")
    three_hops: int = option(
        0, whole, 0, 100, help="Learn rules of three hops as well, over so many last facts of each entity on the way."
    )
    n_last: int = option(30, whole, 1, 1000, help="Facts of an entity that rules with constants look back on.")
    oldest: int = option(30, whole, 1, help="Steps of the clock that rules with constants look back.")
    n_first: int = option(10, whole, 1, 1000, help="Facts of an entity that rules of two hops start with.")
    n_second: int = option(20, whole, 1, 1000, help="Facts of the entity in the middle that they go on with.")
    min_support: int = option(2, whole, 1, help="Right cases that a rule with constants or hops needs.")
    min_confidence: float = option(0.01, share, help="Confidence that a rule with constants needs.")
    smoothing: float = option(20.0, real, 0, help="Cases added to the denominator of rules with constants or hops.")
    model: str = option("forest", choice, MODELS, help="What orders the best candidates, fitted on the valid split")
    fit_for: str = option("single", choice, STEPS, help="The steps for which weights and model are fitted")
    candidates: int = option(100, whole, 1, 10_000, help="Candidates of a question that the model orders.")
    recount: bool = option(True, flag, help="Count rules again with the valid split, after all else was fitted on it.")
    seconds: float | None = option(
        None, above_zero, help="Stop after so many seconds, with what was finished; pairs are always counted."
    )
    seed: int = option(0, whole, 0, help="Random seed of the model.")
    threads: int | None = threads_option()
