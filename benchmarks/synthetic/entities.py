"""Types of entities: how many, how large, and what their entities are called."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GOLDEN = 0.6180339887498949
LARGEST_SHARE = 0.2  # of the entities, before the sizes are made to add up
NAMES = (  # the types with the most entities first
    "person",
    "paper",
    "gene",
    "song",
    "film",
    "book",
    "protein",
    "company",
    "village",
    "event",
    "star",
    "building",
    "plant",
    "molecule",
    "photo",
    "match",
    "insect",
    "river",
    "road",
    "school",
    "team",
    "ship",
    "game",
    "law",
    "vehicle",
    "award",
    "town",
    "drug",
    "disease",
    "festival",
    "mountain",
    "device",
    "sport",
    "party",
    "region",
    "style",
    "genre",
    "language",
    "country",
    "currency",
)


@dataclass(frozen=True)
class EntityType:
    """Entities of one kind: the numbers from 0 to below `size`."""

    name: str
    size: int

    @property
    def n_digits(self) -> int:
        return len(str(self.size - 1))

    def label(self, entity: int) -> str:
        """Return what an entity is called: all labels of a type have the same length."""
        return f"{self.name}{entity:0{self.n_digits}d}"

    def at(self, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the entities at some ranks of popularity: well-known ones are not next to each other."""
        return ranks * self._stride % self.size

    @property
    def _stride(self) -> int:
        """The number nearest above the golden section that has no factor in common with the size."""
        stride = max(1, int(self.size * GOLDEN))
        while math.gcd(stride, self.size) > 1:
            stride += 1
        return stride


def make_types(n_entities: int, n_types: int) -> list[EntityType]:
    """Divide the entities into types, the largest first: from a fifth of them down to about their square root."""
    sizes = np.geomspace(LARGEST_SHARE * n_entities, math.sqrt(n_entities), n_types)
    sizes = np.maximum(sizes * (n_entities / sizes.sum()), 4).astype(np.int64)
    return [EntityType(name, int(size)) for name, size in zip(NAMES, sizes, strict=False)]
