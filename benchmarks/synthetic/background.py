"""Relations that no rule was planted in: who is related to whom follows power laws alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import OptionError
from synthetic.draws import Pairs, distinct, power_ranks, steepest
from synthetic.entities import EntityType

ZIPF = 0.9  # relation k has a share of about k ** -ZIPF
FULLEST = 0.2  # of the possible pairs of a relation
BUSIEST = 20  # triples per entity of the larger side, on average
TRIES = 30


@dataclass(frozen=True)
class Relation:
    """A relation that is to have `n_triples`."""

    name: str
    subject: EntityType
    object: EntityType
    n_triples: int = 0

    @property
    def room(self) -> int:
        """How many triples it may have."""
        return int(FULLEST * self.subject.size * self.object.size)

    def suits(self, n: int) -> bool:
        """Return whether n triples fit well."""
        return n <= min(self.room, BUSIEST * max(self.subject.size, self.object.size))


def plan_relations(types: list[EntityType], n: int, n_triples: int, rng: np.random.Generator) -> list[Relation]:
    """Choose the types and sizes of n relations, the largest first."""
    shares = np.arange(1, n + 1, dtype=np.float64) ** -ZIPF
    shares /= shares.sum()
    width = len(str(n - 1))
    relations = [_typed(f"relation{k:0{width}d}", types, int(share * n_triples), rng) for k, share in enumerate(shares)]
    rooms = np.array([relation.room for relation in relations], dtype=np.float64)
    if rooms.sum() < n_triples:
        raise OptionError(
            f"generate_graph: {n_triples} triples do not fit {sum(kind.size for kind in types)} entities and {n} "
            "relations: ask for more entities or relations"
        )
    sizes = _filled(shares, rooms, n_triples)
    return [
        Relation(relation.name, relation.subject, relation.object, int(size))
        for relation, size in zip(relations, sizes, strict=True)
    ]


def draw_relation(relation: Relation, n: int, rng: np.random.Generator) -> Pairs:
    """Draw about n distinct pairs, none of an entity with itself. Half of the relations have the same
    well-known entities as others of the type.
    """
    subject, object = relation.subject, relation.object
    subject_steepness = _steepness(rng.uniform(1, 2.5), n, object.size, subject.size)
    object_steepness = _steepness(rng.uniform(2, 6), n, subject.size, object.size)
    subject_shift, object_shift = (int(rng.integers(2) * rng.integers(kind.size)) for kind in (subject, object))

    def draw(n: int) -> Pairs:
        subjects = subject.at(power_ranks(rng, subject.size, n, subject_steepness) + subject_shift)
        objects = object.at(power_ranks(rng, object.size, n, object_steepness) + object_shift)
        pairs: Pairs = subjects * object.size + objects
        return pairs[subjects != objects] if subject == object else pairs

    return distinct(draw, n)


def _typed(name: str, types: list[EntityType], n: int, rng: np.random.Generator) -> Relation:
    """Choose types with room for n triples: subjects rather of large types, objects of any."""
    sizes = np.array([kind.size for kind in types], dtype=np.float64)
    weights = [weight / weight.sum() for weight in (sizes, sizes**0.3)]
    best: Relation | None = None
    for _ in range(TRIES):
        subject, object = (types[int(rng.choice(len(types), p=weight))] for weight in weights)
        tried = Relation(name, subject, object)
        if best is None or tried.room > best.room:
            best = tried
        if tried.suits(n):
            return tried
    assert best is not None
    return best


def _filled(shares: NDArray[np.float64], rooms: NDArray[np.float64], n: int) -> NDArray[np.int64]:
    """Divide n by shares; what does not fit into the room of one goes to the others."""
    sizes = np.minimum(shares * n, rooms)
    while n - sizes.sum() > len(sizes):
        open_shares = np.where(sizes < rooms, shares, 0.0)
        sizes = np.minimum(sizes + open_shares * ((n - sizes.sum()) / open_shares.sum()), rooms)
    return np.maximum(sizes.round(), 1).astype(np.int64)


def _steepness(wanted: float, n: int, n_others: int, size: int) -> float:
    return max(1.0, min(wanted, steepest(n, n_others, size)))
