"""How well entities fit the places of relations, judged by the relations that they have.

The directed relations of an entity are its *kinds*: subject of this relation, object of that one. Those of the entities
at a place (the subjects of r, the objects of r) are compared with those of all entities, as naive Bayes does, and so is
how many other facts put an entity at this place. A fact does not speak for itself.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.doctor.facts import Triples
from anyburl.ranking.arrays import offsets_of

FEWEST_ENTITIES = 20  # at a place, from which on their kinds say something
LEVELS = 9  # of how many facts put an entity at a place: 0, 1, 2 to 3, 4 to 7 and so on

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
        self._n_known = int(np.count_nonzero(np.diff(self._offsets)))
        self._overall = (np.diff(self._kind_offsets) + 0.5) / (self._n_known + 1)

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
        different, places = np.unique(entities, return_inverse=True)
        numbers, rows = self._rows_of(different)
        weights, base = self._weights(place, members)
        sums = base + np.bincount(numbers, weights=weights[self._kinds[rows]], minlength=len(different))
        here, n_facts = self._kinds[rows] == place, np.zeros(len(different), np.int64)
        n_facts[numbers[here]] = self._counts[rows[here]] - stated
        sums += self._level_weights(members)[_levels(n_facts)]
        return np.asarray(sums[places], np.float64)

    def _weights(self, place: int, members: Ints) -> tuple[Floats, float]:
        """Return what having each other kind says about an entity at this place, and what having none would say."""
        _, rows = self._rows_of(self._entities[members])
        counts = np.bincount(self._kinds[rows], minlength=self.width)
        here, overall = (counts + 0.5) / (len(members) + 1), self._overall
        absent = np.log1p(-here) - np.log1p(-overall)
        weights = np.log(here) - np.log(overall) - absent
        weights[place] = absent[place] = 0.0
        return weights, float(absent.sum())

    def _level_weights(self, members: Ints) -> Floats:
        """Return the log-odds from how many other facts put an entity in this place."""
        counts = self._counts[members]
        of_facts = np.bincount(_levels(counts - 1), weights=counts, minlength=LEVELS) + 0.5
        of_all = np.bincount(_levels(counts), minlength=LEVELS) + 0.5
        of_all[0] += self._n_known - len(members)
        return np.asarray(np.log(of_facts / of_facts.sum()) - np.log(of_all / of_all.sum()), np.float64)

    def _rows_of(self, entities: NDArray[np.int32] | Ints) -> tuple[Ints, Ints]:
        """Return the rows of the kinds of each entity, and beside each row the entity's place in the list."""
        sizes = self._offsets[entities + 1] - self._offsets[entities]
        numbers = np.repeat(np.arange(len(entities)), sizes)
        firsts = np.cumsum(sizes) - sizes
        return numbers, np.arange(len(numbers)) + np.repeat(self._offsets[entities] - firsts, sizes)


def _levels(counts: Ints) -> Ints:
    return np.minimum(np.ceil(np.log2(counts + 1)).astype(np.int64), LEVELS - 1)
