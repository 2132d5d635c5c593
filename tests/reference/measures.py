"""Measures of rules in the most obvious way: on the triples as they are stated, reflexive ones as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .graph import Triple, build
from .scoring import Rule, RuleLike, pairs_of


class Measures(NamedTuple):
    """What AMIE's users know rules by."""

    pca_predictions: int
    pca_confidence: float
    head_coverage: float
    lift: float


class Measurer:
    """Measures rules on some triples; what the rules of one body and one constant predict is looked up only once."""

    def __init__(
        self, triples: Sequence[Triple], n_entities: int, n_relations: int, object_identity: bool = True
    ) -> None:
        self.graph = build(triples, n_entities, n_relations, object_identity)
        self.object_identity = object_identity
        self.facts = [{(s, o) for s, r, o in triples if r == relation} for relation in range(n_relations)]
        self.n_named = len({entity for s, _, o in triples for entity in (s, o)})
        self.found: dict[RuleLike, set[tuple[int, int]]] = {}

    def measures(self, rule: RuleLike) -> Measures:
        """Return the measures of one rule."""
        predicted = self.predicted_facts(Rule(*rule))
        facts = self.facts[rule[1] % self.graph.n_relations]
        n_judged = len(judged(predicted, facts))
        support = self.support(Rule(*rule))
        return Measures(
            n_judged,
            support / n_judged if n_judged else 0.0,
            support / len(facts) if facts else 0.0,
            support / len(predicted) / self.head_probability(Rule(*rule)) if support else 0.0,
        )

    def pairs(self, rule: Rule) -> set[tuple[int, int]]:
        """The pairs (x, y) for which the rule says `x -head-> y`; y is the constant of a unary head."""
        key = rule if rule.type == "Z" else rule._replace(head=0)
        if key not in self.found:
            self.found[key] = pairs_of(self.graph, rule, self.object_identity)
        return self.found[key]

    def support(self, rule: Rule) -> int:
        """How many pairs the graph states. No variable stands for `self`, so that B rules have no reflexive facts."""
        return sum(y in self.graph.steps.get((x, rule.head), ()) for x, y in self.pairs(rule))

    def predicted_facts(self, rule: Rule) -> set[tuple[int, int]]:
        """The facts (subject, object) that a rule predicts, with `self` written out: h(x, self) is h(x, x)."""
        ends = {(x, x if y == self.graph.self_id else y) for x, y in self.pairs(rule)}
        return ends if rule.head < self.graph.n_relations else {(y, x) for x, y in ends}

    def head_probability(self, rule: Rule) -> float:
        """How likely the head holds for entities drawn at random from those that the triples name."""
        facts = self.facts[rule.head % self.graph.n_relations]
        if rule.type == "B":
            return len(facts) / self.n_named**2
        if rule.head_constant == self.graph.self_id:
            return sum(s == o for s, o in facts) / self.n_named
        column = 1 if rule.head < self.graph.n_relations else 0
        return sum(fact[column] == rule.head_constant for fact in facts) / self.n_named


def judged(predicted: set[tuple[int, int]], facts: set[tuple[int, int]]) -> set[tuple[int, int]]:
    """What is predicted of those, on the more functional side of the relation, that have some fact of it."""
    subjects, objects = {s for s, _ in facts}, {o for _, o in facts}
    if len(subjects) >= len(objects):
        return {(s, o) for s, o in predicted if s in subjects}
    return {(s, o) for s, o in predicted if o in objects}
