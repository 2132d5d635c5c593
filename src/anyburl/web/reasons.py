"""Explanations as pages show them: why, and why not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from anyburl.explanation.explanation import Explanation
from anyburl.explanation.nearmiss import near_misses
from anyburl.explanation.record import Fact, NearMiss, Reason
from anyburl.explanation.rule_examples import RuleExamples, examine_rule
from anyburl.ranking.aggregation import parse_aggregation
from anyburl.reasoning.reasoner import Reasoner
from anyburl.web.questions import probability_of

LOW = 10
"""A candidate below this rank is asked why it is not higher."""

N_NEAR, N_COUNTER_EXAMPLES, SECONDS = 3, 4, 0.2


@dataclass(frozen=True)
class Step:
    """One rule's part of the score: its share, and the score of this rule and all before it."""

    reason: Reason
    total: float | None


@dataclass(frozen=True)
class Why:
    """The reasons for a triple, what they add up to, where the best rule was wrong, and which rules nearly fire."""

    explanation: Explanation
    score: float
    probability: float | None
    steps: tuple[Step, ...]
    examples: RuleExamples | None
    near_misses: tuple[NearMiss, ...]


def why(reasoner: Reasoner, triple: Fact, *, top: int, groundings: int) -> Why:
    """Explain a triple, and ask why it is not ranked higher if it is ranked low or not at all."""
    explanation = reasoner.explain(triple, top=top, groundings=groundings)
    score = explanation.score or explanation.score_subject
    best = explanation.reasons[0].row if explanation.reasons else None
    return Why(
        explanation,
        score,
        probability_of(reasoner, triple[1], score) if explanation.n_reasons else None,
        _steps(explanation.reasons, explanation.aggregation),
        None if best is None else _examples(reasoner, best),
        _near_misses(reasoner, explanation),
    )


def _examples(reasoner: Reasoner, row: int) -> RuleExamples:
    return examine_rule(reasoner.ranker, reasoner.dataset, row, top=N_COUNTER_EXAMPLES, seconds=SECONDS)


def _near_misses(reasoner: Reasoner, explanation: Explanation) -> tuple[NearMiss, ...]:
    ranks = [rank for rank in (explanation.rank, explanation.rank_subject) if rank is not None]
    if explanation.n_reasons and (explanation.blocked or any(rank <= LOW for rank in ranks)):
        return ()
    return near_misses(reasoner.ranker, explanation.triple, top=N_NEAR)


def _steps(reasons: Sequence[Reason], aggregation: str) -> tuple[Step, ...]:
    """Return what the score is after each rule; None where rules are not simply combined."""
    if aggregation == "tuned":
        return tuple(Step(reason, None) for reason in reasons)
    counted, left = parse_aggregation(aggregation).n_counted, 1.0
    steps = []
    for place, reason in enumerate(reasons):
        if counted is None or place < counted:
            left *= 1 - reason.confidence
        steps.append(Step(reason, 1 - left))
    return tuple(steps)
