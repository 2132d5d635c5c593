"""Measures of rules in the most obvious way: on the triples as they are stated, reflexive ones as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .graph import Triple
from .scoring import RuleLike, predicted, score


class Measures(NamedTuple):
    """What AMIE's users know rules by."""

    pca_predictions: int
    pca_confidence: float
    head_coverage: float
    lift: float


def measures(
    triples: Sequence[Triple], n_entities: int, n_relations: int, rule: RuleLike, object_identity: bool = True
) -> Measures:
    """The measures of one rule."""
    predictions, support = score(triples, n_entities, n_relations, rule, object_identity)
    judged = sum(
        is_judged(triples, fact) for fact in predicted_facts(triples, n_entities, n_relations, rule, object_identity)
    )
    n_facts = sum(r == rule[1] % n_relations for _, r, _ in triples)
    expected = head_probability(triples, n_entities, n_relations, rule)
    return Measures(
        judged,
        support / judged if judged else 0.0,
        support / n_facts if n_facts else 0.0,
        support / predictions / expected if support else 0.0,
    )


def predicted_facts(
    triples: Sequence[Triple], n_entities: int, n_relations: int, rule: RuleLike, object_identity: bool
) -> set[Triple]:
    """The facts that a rule predicts, with the token `self` written out: h(x, self) is h(x, x)."""
    facts = set()
    for x, y in predicted(triples, n_entities, n_relations, rule, object_identity):
        end = x if y == n_entities else y
        subject, object_ = (x, end) if rule[1] < n_relations else (end, x)
        facts.add((subject, rule[1] % n_relations, object_))
    return facts


def is_judged(triples: Sequence[Triple], fact: Triple) -> bool:
    """Whether the more functional side of a fact is known to have some fact of its relation."""
    subjects = {s for s, r, _ in triples if r == fact[1]}
    objects = {o for _, r, o in triples if r == fact[1]}
    return fact[0] in subjects if len(subjects) >= len(objects) else fact[2] in objects


def head_probability(triples: Sequence[Triple], n_entities: int, n_relations: int, rule: RuleLike) -> float:
    """How likely the head holds for entities drawn at random from those that the triples name."""
    kind, head, constant, *_ = rule
    drawn = len({entity for s, _, o in triples for entity in (s, o)})
    facts = [(s, o) if head < n_relations else (o, s) for s, r, o in triples if r == head % n_relations]
    if kind == "B":
        return len(facts) / drawn**2 if drawn else 0.0
    ends = [x if constant == n_entities else constant for x, _ in facts]
    return sum(y == end for (_, y), end in zip(facts, ends, strict=True)) / drawn if drawn else 0.0
