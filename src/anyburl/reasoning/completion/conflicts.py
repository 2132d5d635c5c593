"""What the data shows about its relations, and the stated facts that contradict a proposed one.

A property counts as found where nearly all facts have it (`MOST`): data has errors, and a property with a few
exceptions still tells what is wrong in nearly all cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.data.table import find_keys, packed
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import range_rows

MOST = 0.94  # of the facts, or of the subjects, have a property that counts as found
FEWEST = 20  # facts to find a property in
REVERSED = 0.1  # of the facts that might be stated both ways round: no more are in an asymmetric relation
OBLIGATORY = 0.75  # of the subjects of some other relation have a value: the rest is missing
MOST_COMPARED = 1_000  # relations, the most frequent: only these can be obligatory
MOST_VALUES = 200  # of a relation, the most frequent: only these can be disjoint
EXPECTED_TOGETHER = 10.0  # subjects with both of two values, if one had nothing to do with the other
RARELY = 0.2  # of the expected ones: two values that fewer subjects have together are disjoint
NOTHING, ITSELF = -1, -2
"""In place of the row of a stated fact: there is no conflict; or the fact contradicts itself, being reflexive."""

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Triples = NDArray[np.int32]


@dataclass(frozen=True)
class Properties:
    """Properties of relations, an entry for each; `disjoint` holds sorted keys of (relation, value, other value)."""

    one_object: Bools
    one_subject: Bools
    asymmetric: Bools
    irreflexive: Bools
    obligatory: NDArray[np.float64]  # the share of the subjects of another relation that have a value; nan: not found
    disjoint: Ints

    def exempting(self, relations: Sequence[int]) -> Properties:
        """Return the properties without those of some relations, which nothing contradicts then."""
        columns = {}
        for name in ("one_object", "one_subject", "asymmetric", "irreflexive"):
            columns[name] = getattr(self, name).copy()
            columns[name][list(relations)] = False
        n_values = len(self.disjoint)
        kept = ~np.isin(self._relations_of_disjoint(), list(relations)) if n_values else np.empty(0, np.bool_)
        return replace(self, **columns, disjoint=self.disjoint[kept])

    def with_one_object(self, relations: Sequence[int] | None) -> Properties:
        """Return the properties with these relations, and no others, as those that have one object."""
        chosen = np.zeros(len(self.one_object), np.bool_)
        chosen[list(relations or ())] = True
        return replace(self, one_object=chosen)

    def differing(self, other: Properties) -> Ints:
        """Return the relations whose facts are contradicted by others than with `other` properties."""
        names = ("one_object", "one_subject", "asymmetric", "irreflexive")
        differ = np.any([getattr(self, name) != getattr(other, name) for name in names], axis=0)
        differ[np.setxor1d(self.disjoint, other.disjoint) % len(differ)] = True
        return np.flatnonzero(differ)

    def _relations_of_disjoint(self) -> Ints:
        return self.disjoint % len(self.one_object)

    def missing(self, stated: NDArray[np.float64]) -> float | None:
        """Return which share of the facts is missing, as far as obligatory relations with one object tell: all their
        subjects should have a value. None if there is no such relation; `stated` counts the facts of each relation.
        """
        chosen = self.one_object & ~np.isnan(self.obligatory)
        if not chosen.any():
            return None
        return float(1 - np.average(self.obligatory[chosen], weights=stated[chosen]))

    def to_frame(self, vocabulary: Vocabulary) -> pl.DataFrame:
        """Return a row for each relation that has a property."""
        n_disjoint = np.bincount(self._relations_of_disjoint(), minlength=len(self.one_object)) // 2
        return pl.DataFrame(
            {
                "relation": [vocabulary.relation_label(number) for number in range(len(self.one_object))],
                "one_object": self.one_object,
                "one_subject": self.one_subject,
                "asymmetric": self.asymmetric,
                "irreflexive": self.irreflexive,
                "obligatory": pl.Series(self.obligatory).fill_nan(None),
                "disjoint_values": n_disjoint,
            }
        ).filter(
            pl.any_horizontal("one_object", "one_subject", "asymmetric", "irreflexive")
            | pl.col("obligatory").is_not_null()
            | (pl.col("disjoint_values") > 0)
        )


def find_properties(triples: Triples, n_entities: int, n_relations: int) -> Properties:
    """Return the properties that facts show."""
    keys, first = np.unique(fact_keys(triples, n_entities, n_relations), return_index=True)
    triples = triples[first]
    subjects, relations, objects = triples.astype(np.int64).T
    n_facts = np.bincount(relations, minlength=n_relations)
    enough = n_facts >= FEWEST

    def count(mask: Bools) -> Ints:
        return np.bincount(relations[mask], minlength=n_relations).astype(np.int64)

    def askers(ends: Ints) -> Ints:
        return np.bincount(np.unique(ends * n_relations + relations) % n_relations, minlength=n_relations).astype(
            np.int64
        )

    n_both_ways = count(_both_ways(triples, n_relations))
    is_reversed = np.isin(fact_keys(triples[:, ::-1], n_entities, n_relations), keys) & (subjects != objects)
    can_be = n_both_ways >= FEWEST
    one_object = mostly_one(askers(subjects), n_facts)
    return Properties(
        one_object=one_object,
        one_subject=mostly_one(askers(objects), n_facts),
        asymmetric=can_be & (count(is_reversed) <= REVERSED * n_both_ways),
        irreflexive=can_be & (count(subjects == objects) <= (1 - MOST) * n_both_ways),
        obligatory=_obligatory(subjects, relations, n_relations),
        disjoint=_disjoint(subjects, relations, objects, enough & ~one_object, n_entities),
    )


def mostly_one(n_questions: Ints, n_facts: Ints) -> Bools:
    """Return which relations have one answer to nearly every question, given how many questions and facts each has."""
    return np.asarray((n_facts >= FEWEST) & (n_questions >= MOST * n_facts), np.bool_)


def _both_ways(triples: Triples, n_relations: int) -> Bools:
    """Return which facts join entities that are subjects as well as objects of their relation, so that they might be
    stated the other way round.
    """
    subjects, relations, objects = triples.astype(np.int64).T
    as_subject, as_object = np.unique(subjects * n_relations + relations), np.unique(objects * n_relations + relations)
    return np.asarray(
        np.isin(objects * n_relations + relations, as_subject) & np.isin(subjects * n_relations + relations, as_object)
    )


def _obligatory(subjects: Ints, relations: Ints, n_relations: int) -> NDArray[np.float64]:
    """Return, for each relation, the highest share of another relation's subjects that have a value of it."""
    pairs = np.unique(subjects * n_relations + relations)
    having, which = pairs // n_relations, pairs % n_relations
    common = np.argsort(-np.bincount(which, minlength=n_relations), kind="stable")[:MOST_COMPARED]
    positions = np.full(n_relations, -1)
    positions[common] = np.arange(len(common))
    kept = positions[which] >= 0
    having, which = having[kept], positions[which[kept]]
    n_subjects = np.bincount(which, minlength=len(common)).astype(np.float64)
    together = np.zeros((len(common), len(common)))
    first = np.searchsorted(having, having)
    for step in range(1, int((np.arange(len(having)) - first).max(initial=0)) + 1):
        rows = np.flatnonzero(having[step:] == having[:-step])
        np.add.at(together, (which[rows], which[rows + step]), 1)
    together += together.T
    enough = n_subjects >= FEWEST
    # A relation with few subjects that all have a value tells little of one with many.
    comparable = enough[None, :] & (n_subjects[None, :] >= 0.5 * n_subjects[:, None])
    shares = np.where(comparable, together / np.maximum(n_subjects, 1), 0.0).max(axis=1, initial=0.0)
    obligatory = np.full(n_relations, np.nan)
    obligatory[common] = np.where(enough & (shares >= OBLIGATORY), shares, np.nan)
    return obligatory


def _disjoint(subjects: Ints, relations: Ints, objects: Ints, chosen: Bools, n_entities: int) -> Ints:
    """Return keys, both ways round, of pairs of values that subjects have together far less often than by chance."""
    n_relations, keys = len(chosen), []
    order = np.argsort(relations, kind="stable")
    ends = np.searchsorted(relations[order], np.arange(n_relations + 1))
    for relation in np.flatnonzero(chosen):
        rows = order[ends[relation] : ends[relation + 1]]
        values, numbers, counts = np.unique(objects[rows], return_inverse=True, return_counts=True)
        common = np.argsort(-counts, kind="stable")[:MOST_VALUES]
        common = common[counts[common] >= FEWEST]
        if len(common) < 2:
            continue
        positions = np.full(len(values), -1)
        positions[common] = np.arange(len(common))
        of_subjects, own = np.unique(subjects[rows], return_inverse=True)
        kept = positions[numbers] >= 0
        has = np.zeros((len(of_subjects), len(common)), np.float32)
        has[own[kept], positions[numbers[kept]]] = 1
        together, sizes = has.T @ has, counts[common].astype(np.float64)
        by_chance = sizes[:, None] * sizes / len(of_subjects)
        rare = (by_chance >= EXPECTED_TOGETHER) & (together <= RARELY * by_chance)
        rare &= together <= (1 - MOST) * np.minimum(sizes[:, None], sizes)
        rare &= ~np.eye(len(common), dtype=np.bool_)
        if float(together[rare].sum()) > (1 - MOST) * len(rows):  # many rare exceptions are no exceptions
            continue
        one, other = np.nonzero(rare)
        keys.append((values[common[one]] * n_entities + values[common[other]]) * n_relations + relation)
    return np.sort(np.concatenate(keys)) if keys else np.empty(0, np.int64)


def fact_keys(triples: NDArray[np.int32] | Ints, n_entities: int, n_relations: int) -> Ints:
    """Return one number for each fact."""
    return packed(tuple(triples.T), n_entities, n_relations)


@dataclass(frozen=True)
class Conflicts:
    """Finds the stated facts that contradict others."""

    properties: Properties
    stated: Triples  # sorted by subject, relation and object
    _keys: Ints
    _backward: Ints  # rows of `stated` by object, relation and subject
    _backward_keys: Ints
    _n_entities: int

    @classmethod
    def of(cls, stated: Triples, properties: Properties, n_entities: int) -> Conflicts:
        """Return what finds conflicts with stated facts."""
        n_relations = len(properties.one_object)
        keys, first = np.unique(fact_keys(stated, n_entities, n_relations), return_index=True)
        stated = stated[first]
        backward_keys = fact_keys(stated[:, ::-1], n_entities, n_relations)
        backward = np.argsort(backward_keys, kind="stable")
        return cls(properties, stated, keys, backward, backward_keys[backward], n_entities)

    @property
    def _n_relations(self) -> int:
        return len(self.properties.one_object)

    def fact(self, row: int, triple: Sequence[int]) -> tuple[int, int, int]:
        """Return the stated fact at a row that `find` gave for a triple; a triple may contradict itself."""
        subject, relation, object = triple if row == ITSELF else self.stated[row].tolist()
        return subject, relation, object

    def find(self, triples: Triples) -> Ints:
        """Return a row of `stated` that contradicts each triple, `NOTHING` or `ITSELF`; no fact contradicts itself."""
        known, relations = self.properties, triples[:, 1]
        conflicts = np.full(len(triples), NOTHING, np.int64)
        self._several(triples, conflicts)
        rows = np.flatnonzero(known.one_subject[relations])
        self._another(self._backward_keys, triples[rows][:, ::-1], rows, conflicts, self._backward)
        rows = np.flatnonzero(known.one_object[relations])
        self._another(self._keys, triples[rows], rows, conflicts, np.arange(len(self._keys)))
        rows = np.flatnonzero(known.asymmetric[relations] & (triples[:, 0] != triples[:, 2]))
        at = self._rows_of(triples[rows][:, ::-1])
        conflicts[rows[at >= 0]] = at[at >= 0]
        conflicts[known.irreflexive[relations] & (triples[:, 0] == triples[:, 2])] = ITSELF
        return conflicts

    def _rows_of(self, triples: Triples) -> Ints:
        """Return the rows in which triples are stated, -1 where they are not."""
        return find_keys(fact_keys(triples, self._n_entities, self._n_relations), self._keys)

    def _of_question(self, keys: Ints, triples: Triples) -> tuple[Ints, Ints]:
        """Return where the facts of each question (first end, relation, ?) begin and end in sorted keys."""
        first = (triples[:, 0].astype(np.int64) * self._n_relations + triples[:, 1]) * self._n_entities
        return np.searchsorted(keys, first), np.searchsorted(keys, first + self._n_entities)

    def _another(self, keys: Ints, triples: Triples, rows: Ints, conflicts: Ints, stated: Ints) -> None:
        """Note, for each triple, the first stated fact with the same question and another answer."""
        first, last = self._of_question(keys, triples)
        own = find_keys(fact_keys(triples, self._n_entities, self._n_relations), keys)
        another = first + (own == first)
        exists = another < last
        conflicts[rows[exists]] = stated[another[exists]]

    def _several(self, triples: Triples, conflicts: Ints) -> None:
        """Note, for each triple whose object is disjoint with another one of its subject, the fact that states that."""
        disjoint, n_relations = self.properties.disjoint, self._n_relations
        if not len(disjoint):
            return
        concerned = np.flatnonzero(np.isin(triples[:, 1], np.unique(disjoint % n_relations)))
        first, last = self._of_question(self._keys, triples[concerned])
        rows, stated = np.repeat(concerned, last - first), range_rows(first, last - first)
        values, others = triples[rows, 2].astype(np.int64), self.stated[stated, 2]
        keys = (values * self._n_entities + others) * n_relations + triples[rows, 1]
        contradicts = find_keys(keys, disjoint) >= 0
        conflicts[rows[contradicts]] = stated[contradicts]
