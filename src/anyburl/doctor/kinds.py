"""How well entities fit the places of relations, judged by the relations that they have.

The directed relations of an entity are its *kinds*: subject of this relation, object of that one. Those of the entities
at a place (the subjects of r, the objects of r) are compared with those of all entities, as naive Bayes does. A fact
does not speak for itself: that an entity stands at a place counts only if another fact puts it there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.doctor.facts import Triples
from anyburl.ranking.arrays import offsets_of

FEWEST_ENTITIES = 20  # at a place, from which on their kinds say something

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Kinds:
    """The kinds of every entity, as far as `triples` show, and how many facts say so."""

    def __init__(self, triples: Triples, n_entities: int, n_relations: int) -> None:
        self.n_relations, self.width = n_relations, 2 * n_relations
        ends = [(triples[:, 2 * end].astype(np.int64), triples[:, 1] + end * n_relations) for end in (0, 1)]
        keys, self._counts = np.unique(
            np.concatenate([entities * self.width + kinds for entities, kinds in ends]), return_counts=True
        )
        self._entities, self._kinds = np.divmod(keys, self.width)
        self._offsets = offsets_of(self._entities, n_entities)
        self._by_kind = np.argsort(self._kinds, kind="stable")
        self._kind_offsets = offsets_of(self._kinds[self._by_kind], self.width)
        sizes = np.diff(self._kind_offsets)
        self._overall = (sizes + 0.5) / (np.count_nonzero(np.diff(self._offsets)) + 1)

    def fits(self, triples: Triples, *, stated: bool) -> Floats:
        """Return how well the subject and the object of each triple fit: (triples, 2).

        A fit is the logarithm of how much likelier such an entity is at this place than anywhere; 0 where a place has
        too few entities to tell. Where the triples are `stated`, each is left out of what speaks for it.
        """
        found = np.zeros((len(triples), 2))
        order = np.argsort(triples[:, 1], kind="stable")
        starts = offsets_of(triples[order, 1], self.n_relations)
        for end in (0, 1):
            for relation in np.flatnonzero(np.diff(starts)):
                rows = order[starts[relation] : starts[relation + 1]]
                place = int(relation) + end * self.n_relations
                found[rows, end] = self._fit(place, triples[rows, 2 * end], stated=stated)
        return found

    def _fit(self, place: int, entities: NDArray[np.int32], *, stated: bool) -> Floats:
        members = self._by_kind[self._kind_offsets[place] : self._kind_offsets[place + 1]]
        if len(members) < FEWEST_ENTITIES:
            return np.zeros(len(entities))
        weights, base = self._weights(place, members)
        different, places = np.unique(entities, return_inverse=True)
        numbers, rows = self._rows_of(different)
        added = weights[self._kinds[rows]]
        if stated:
            added[(self._kinds[rows] == place) & (self._counts[rows] == 1)] = 0.0
        sums = np.bincount(numbers, weights=added, minlength=len(different))
        return np.asarray(base + sums[places], np.float64)

    def _weights(self, place: int, members: Ints) -> tuple[Floats, float]:
        """Return what having each kind says about an entity at this place, and what having none of them would say."""
        _, rows = self._rows_of(self._entities[members])
        counts = np.bincount(self._kinds[rows], minlength=self.width)
        counts[place] = np.count_nonzero(self._counts[members] > 1)
        here, overall = (counts + 0.5) / (len(members) + 1), self._overall
        absent = np.log1p(-here) - np.log1p(-overall)
        return np.log(here) - np.log(overall) - absent, float(absent.sum())

    def _rows_of(self, entities: NDArray[np.int32] | Ints) -> tuple[Ints, Ints]:
        """Return the rows of the kinds of each entity, and beside each row the entity's place in the list."""
        sizes = self._offsets[entities + 1] - self._offsets[entities]
        numbers = np.repeat(np.arange(len(entities)), sizes)
        firsts = np.cumsum(sizes) - sizes
        return numbers, np.arange(len(numbers)) + np.repeat(self._offsets[entities] - firsts, sizes)
