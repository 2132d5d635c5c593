"""Planted rules: relations that follow from others with a confidence that is known.

A family has five types of entities and a chain of three relations, first(P0, P1), second(P1, P2) and third(P2, P3), of
which the last two give every entity at most one object. Five head relations follow from the chain, one for each shape
of rule, and nothing else is in them but noise. As the types differ, object identity holds by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.rules.rule import Rule, parse_rule
from synthetic.background import FULLEST, Relation
from synthetic.draws import Pairs, distinct, n_common, power_ranks
from synthetic.entities import EntityType
from synthetic.writing import GraphWriter

SHARE = 0.06  # of the triples: the first relations of all families together
COVERED = 0.7  # of the entities that could be a subject of the first relation
HUB_SHARE = 0.15  # of the triples of the first relation: those of the constant in its Uc rule
DEFINED = 0.95  # of the entities have an object in the second and third relation
NOISE = 0.05  # triples of a head relation that are drawn at random, per prediction of its rule
CONFIDENCES = (0.95, 0.8, 0.65, 0.5, 0.3)


@dataclass(frozen=True)
class PlantedRule:
    """A rule and its true counts on the train split, under object identity; `wanted` is the confidence asked for."""

    rule: Rule
    predictions: int
    support: int
    wanted: float

    @property
    def confidence(self) -> float:
        return self.support / self.predictions if self.predictions else 0.0

    def to_json(self) -> dict[str, Any]:
        """Return the rule as text, and its counts."""
        return {
            "rule": str(self.rule),
            "type": str(self.rule.type),
            "length": self.rule.length,
            "predictions": self.predictions,
            "support": self.support,
            "confidence": self.confidence,
            "wanted": self.wanted,
        }


class _Chain(NamedTuple):
    """The train part of a family's chain: the pairs of the first relation, and what the others map to (-1: nothing)."""

    subjects: NDArray[np.int64]
    objects: NDArray[np.int64]
    second: NDArray[np.int64]
    third: NDArray[np.int64]


class Family:
    """Plants the rules of one family."""

    def __init__(
        self, number: int, types: list[EntityType], n_first: int, writer: GraphWriter, rng: np.random.Generator
    ) -> None:
        self._number, self._types, self._n_first, self._writer, self._rng = number, types, n_first, writer, rng

    def plant(self) -> list[PlantedRule]:
        """Write the relations of the family; return its rules."""
        chain = self._write_chain()
        wanted = [CONFIDENCES[(shape + 2 * self._number) % len(CONFIDENCES)] for shape in range(5)]
        return [
            self._plant_one_step(chain, wanted[0]),
            self._plant_two_steps(chain, wanted[1]),
            self._plant_three_steps(chain, wanted[2]),
            self._plant_constant(chain, wanted[3]),
            self._plant_dangling(chain, wanted[4]),
        ]

    def _write_chain(self) -> _Chain:
        subject, object = self._types[:2]
        n_covered = max(1, int(COVERED * subject.size))

        def draw(n: int) -> Pairs:
            subjects = subject.at(power_ranks(self._rng, n_covered, n, 1.5))
            ranks = power_ranks(self._rng, object.size, n, 2.5)
            ranks[self._rng.random(n) < HUB_SHARE] = 0
            pairs: Pairs = subjects * object.size + object.at(ranks)
            return pairs

        n = min(self._n_first, int(FULLEST * n_covered * object.size))
        train = self._writer.add(self._relation("first", 0, 1), distinct(draw, n))
        subjects, objects = np.divmod(train, object.size)
        return _Chain(subjects, objects, self._write_step("second", 1), self._write_step("third", 2))

    def _write_step(self, name: str, place: int) -> NDArray[np.int64]:
        """Write a relation that gives most entities one object; return the object of each in train, or -1."""
        subject, object = self._types[place : place + 2]
        subjects = np.flatnonzero(self._rng.random(subject.size) < DEFINED)
        objects = object.at(power_ranks(self._rng, object.size, len(subjects), 2.0))
        train = self._writer.add(self._relation(name, place, place + 1), subjects * object.size + objects)
        mapped = np.full(subject.size, -1, np.int64)
        mapped[train // object.size] = train % object.size
        return mapped

    def _plant_one_step(self, chain: _Chain, wanted: float) -> PlantedRule:
        """h(X,Y) <= first(Y,X), or in every other family first(X,Y)."""
        first = f"first{self._number}"
        if self._number % 2:
            pairs = np.sort(chain.subjects * self._types[1].size + chain.objects)
            return self._plant(self._relation("equal", 0, 1), pairs, wanted, f"(X,Y) <= {first}(X,Y)")
        pairs = np.sort(chain.objects * self._types[0].size + chain.subjects)
        return self._plant(self._relation("inverse", 1, 0), pairs, wanted, f"(X,Y) <= {first}(Y,X)")

    def _plant_two_steps(self, chain: _Chain, wanted: float) -> PlantedRule:
        pairs = _pairs(chain.subjects, chain.second[chain.objects], self._types[2].size)
        body = f"(X,Y) <= first{self._number}(X,A), second{self._number}(A,Y)"
        return self._plant(self._relation("two_steps", 0, 2), pairs, wanted, body)

    def _plant_three_steps(self, chain: _Chain, wanted: float) -> PlantedRule:
        middle = chain.second[chain.objects]
        ends = np.where(middle >= 0, chain.third[middle], -1)
        pairs = _pairs(chain.subjects, ends, self._types[3].size)
        body = f"(X,Y) <= first{self._number}(X,A), second{self._number}(A,B), third{self._number}(B,Y)"
        return self._plant(self._relation("three_steps", 0, 3), pairs, wanted, body)

    def _plant_constant(self, chain: _Chain, wanted: float) -> PlantedRule:
        """h(X,c) <= first(X,d), where d is the entity with the most subjects."""
        hub, constant = (int(kind.at(np.zeros(1, np.int64))[0]) for kind in (self._types[1], self._types[4]))
        pairs = np.unique(chain.subjects[chain.objects == hub]) * self._types[4].size + constant
        atoms = f"(X,{self._types[4].label(constant)}) <= first{self._number}(X,{self._types[1].label(hub)})"
        return self._plant(self._relation("constant", 0, 4), pairs, wanted, atoms, noise=1.0)

    def _plant_dangling(self, chain: _Chain, wanted: float) -> PlantedRule:
        """h(X,c) <= first(X,A)."""
        constant = int(self._types[4].at(np.ones(1, np.int64))[0])
        pairs = np.unique(chain.subjects) * self._types[4].size + constant
        atoms = f"(X,{self._types[4].label(constant)}) <= first{self._number}(X,A)"
        return self._plant(self._relation("dangling", 0, 4), pairs, wanted, atoms, noise=0.5)

    def _plant(self, relation: Relation, pairs: Pairs, wanted: float, atoms: str, noise: float = NOISE) -> PlantedRule:
        """Write a share of the predicted pairs and some noise as a relation; count what is in train."""
        subject, object = relation.subject, relation.object
        n_noise = int(noise * len(pairs))
        subjects = subject.at(power_ranks(self._rng, subject.size, n_noise, 1.0))
        objects = object.at(power_ranks(self._rng, object.size, n_noise, 1.5))
        true = pairs[self._rng.random(len(pairs)) < wanted]
        stated = self._writer.add(relation, np.union1d(true, subjects * object.size + objects))
        return PlantedRule(parse_rule(relation.name + atoms), len(pairs), n_common(pairs, stated), wanted)

    def _relation(self, name: str, subject: int, object: int) -> Relation:
        return Relation(f"{name}{self._number}", self._types[subject], self._types[object])


def plant_families(
    types: list[EntityType], n_families: int, n_triples: int, writer: GraphWriter, seed: int
) -> list[PlantedRule]:
    """Plant the rules of all families, the large types at the beginning of their chains and small ones at the end."""
    n_first = int(SHARE * n_triples / n_families)
    middle, end = len(types) // 2, len(types)
    rules = []
    for number in range(n_families):
        places = [0, n_families, middle, end - 2 * n_families, end - n_families]
        chosen = [types[place + number] for place in places]
        rng = np.random.default_rng([seed, 1, number])
        rules += Family(number, chosen, n_first, writer, rng).plant()
    return rules


def _pairs(subjects: NDArray[np.int64], objects: NDArray[np.int64], size: int) -> Pairs:
    """Return the distinct pairs in order, without those that have no object."""
    there = objects >= 0
    return np.unique(subjects[there] * size + objects[there])
