"""How alike entities are, and what the like of a question say for a candidate: from the definition."""

from __future__ import annotations

from collections.abc import Iterable
from math import log, sqrt

from .graph import Triple

Fact = tuple[int, bool, int | None]  # relation, whether it is read backward, the entity at its other end or itself
Vector = dict[Fact, float]


class ReferenceLikeness:
    """Entities as vectors of facts; a fact that is told of more than `most` entities weighs nothing."""

    def __init__(self, triples: Iterable[Triple], n_entities: int, most: int, least: float) -> None:
        self.triples, self.n_entities, self.most = set(triples), n_entities, most
        facts: dict[int, set[Fact]] = {entity: set() for entity in range(n_entities)}
        for s, r, o in self.triples:
            facts[s].add((r, False, None if s == o else o))
            facts[o].add((r, True, None if s == o else s))
        told: dict[Fact, int] = {}
        for own in facts.values():
            for fact in own:
                told[fact] = told.get(fact, 0) + 1
        for s, r, o in self.triples:
            for fact in ((r, True, s), (r, False, s)):
                if s == o and fact in told:
                    told[fact] += 1  # s is among those that it is joined with
        weights = {fact: 0.0 if n > most else log((n_entities + 1) / n) for fact, n in told.items()}
        self.vectors: dict[int, Vector] = {}
        for entity, own in facts.items():
            length = max(least, sqrt(sum(weights[fact] ** 2 for fact in own)))
            self.vectors[entity] = {fact: weights[fact] / length for fact in own}

    def alike(self, first: int, second: int) -> float:
        """Return the cosine; nobody is like themselves."""
        return 0.0 if first == second else self._product(first, second)

    def columns(self, entity: int, relation: int, backward: bool, candidate: int) -> list[float]:
        """Return what is told of a candidate of the question (entity, relation, ?), or (?, relation, entity)."""
        likely = {answer: self._likely(entity, relation, backward, answer) for answer in range(self.n_entities)}
        answered = self._ends(candidate, relation, not backward)
        found = sorted((self.alike(entity, other) for other in answered), reverse=True)
        known = self._ends(entity, relation, backward)
        answers = [a for a in range(self.n_entities) if self._ends(a, relation, not backward)]
        return [
            sum(found),
            sum(found[:1]),
            sum(found[:3]),
            sum(found) / sqrt(max(1, len(found))),
            sum(self._product(candidate, other) for other in known) / max(1, len(known)),
            0.0
            if len(answers) > self.most
            else sum(likely[answer] * self._product(candidate, answer) for answer in answers),
            self.alike(entity, candidate),
        ]

    def _likely(self, entity: int, relation: int, backward: bool, answer: int) -> float:
        return sum(self.alike(entity, other) for other in self._ends(answer, relation, not backward))

    def _product(self, first: int, second: int) -> float:
        return sum(weight * self.vectors[second].get(fact, 0.0) for fact, weight in self.vectors[first].items())

    def _ends(self, entity: int, relation: int, backward: bool) -> list[int]:
        """Return what the relation leads to from an entity, itself left out."""
        if backward:
            return [s for s, r, o in self.triples if (r, o) == (relation, entity) and s != o]
        return [o for s, r, o in self.triples if (s, r) == (entity, relation) and s != o]
