"""What the tests of learning share: run a learner to its end, and read its rules as reference rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from anyburl import Learner, LearnOptions, RuleSet, RuleType, TripleTable
from anyburl.learning.learner import Span
from kernels import table_of
from reference.scoring import Counts, Rule
from strategies import SmallGraph

ENOUGH = 10**12
"""As a path budget, more than it takes to complete any profile; as a work budget, enough for exact counts."""

TYPES = {name.code: str(name) for name in RuleType}


def make_learner(data: SmallGraph | TripleTable, known: RuleSet | None = None, **options: Any) -> Learner:
    """A learner that keeps every rule and runs until all are found, unless told otherwise."""
    table = data if isinstance(data, TripleTable) else table_of(data)
    defaults: dict[str, Any] = {
        "max_cyclic": 2,
        "max_acyclic": 2,
        "min_support": 1,
        "min_confidence": 0.0,
        "threads": 1,
    }
    if "seconds" not in options:
        defaults["paths"] = ENOUGH
    return Learner(table, LearnOptions(**{**defaults, **options}), known=known)


def run(learner: Learner) -> list[Span]:
    """All spans."""
    return list(learner.spans())


def learned(data: SmallGraph | TripleTable, **options: Any) -> Learner:
    """A learner that has run."""
    learner = make_learner(data, **options)
    run(learner)
    return learner


def counted(rules: RuleSet) -> dict[Rule, Counts]:
    """The rules with predictions and support; no rule may be there twice."""
    found = dict(_pairs(rules))
    assert len(found) == len(rules)
    return found


def _pairs(rules: RuleSet) -> Iterator[tuple[Rule, Counts]]:
    bodies = [tuple(d for d in body if d >= 0) for body in rules.bodies.tolist()]
    names = ("type", "head", "head_constant", "body", "body_constant", "predictions", "support")
    for kind, head, head_constant, body, body_constant, predictions, support in zip(
        *(getattr(rules, name).tolist() for name in names), strict=True
    ):
        rule = Rule(
            TYPES[kind],
            head,
            None if head_constant < 0 else head_constant,
            bodies[body],
            None if body_constant < 0 else body_constant,
        )
        yield rule, (predictions, support)
