"""The options of a generated graph."""

from __future__ import annotations

import math
from dataclasses import dataclass

from anyburl.base import checking

LEAST_TRIPLES = 1_000
LEAST_ENTITIES = 200
RELATIONS_PER_FAMILY = 8
MOST_FAMILIES = 3
TRIPLES_PER_FAMILY = 2_500
LEAST_RELATIONS = RELATIONS_PER_FAMILY + 2
MOST_HELD_OUT = 1_000  # in valid, and in test


@dataclass(frozen=True, kw_only=True)
class GraphOptions:
    """How many triples, entities and relations; what is left out is derived from the triples, as in real graphs."""

    triples: int
    entities: int | None = None
    relations: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("triples", LEAST_TRIPLES),
            ("entities", LEAST_ENTITIES),
            ("relations", LEAST_RELATIONS),
            ("seed", 0),
        ):
            value = getattr(self, name)
            if value is not None or name in ("triples", "seed"):
                checking.whole(name, value, least)

    @property
    def n_entities(self) -> int:
        """About one for every 10 triples."""
        return self.entities or max(LEAST_ENTITIES, self.triples // 10)

    @property
    def n_relations(self) -> int:
        """30 relations for a thousand triples, about 170 for a million, about 530 for 100 million."""
        return self.relations or round(30 * math.pow(self.triples / 1_000, 0.25))

    @property
    def n_families(self) -> int:
        """Families of planted rules: 1 in a small graph, 3 in others, if there are enough relations."""
        wanted = min(max(self.triples // TRIPLES_PER_FAMILY, 1), MOST_FAMILIES)
        return min(wanted, (self.n_relations - 2) // RELATIONS_PER_FAMILY)

    @property
    def n_types(self) -> int:
        """Types of entities: at least as many as the families of planted rules need."""
        return max(6 * self.n_families, min(round(math.pow(self.triples, 0.25)), 40))

    @property
    def n_held_out(self) -> int:
        """The number of triples of valid, and of test."""
        return min(MOST_HELD_OUT, self.triples // 100)
