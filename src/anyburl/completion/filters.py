"""Filters facts that others contradict: a second object where there should be one, or a type that does not fit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.completion.facts import FactColumns
from anyburl.triples.dataset import SPLITS, Dataset
from anyburl.triples.types import all_types, stated_types

FUNCTIONAL = 0.98  # subjects for each fact, from which on a relation counts as functional
FEWEST_FACTS = 20  # to learn that from

Filter = Callable[[FactColumns], FactColumns]
Ints = NDArray[np.int64]


def functional_relations(dataset: Dataset) -> NDArray[np.int32]:
    """Return the relations that have one object for nearly every subject, as far as train shows."""
    n_relations = dataset.vocabulary.n_relations
    questions, relations = _questions(dataset.train.triples, n_relations), dataset.train.triples[:, 1]
    n_facts = np.bincount(relations, minlength=n_relations)
    n_subjects = np.bincount(np.unique(questions) % n_relations, minlength=n_relations)
    found = (n_facts >= FEWEST_FACTS) & (n_subjects >= FUNCTIONAL * n_facts)
    return np.flatnonzero(found).astype(np.int32)


def one_object_each(dataset: Dataset, relations: NDArray[np.int32]) -> Filter:
    """Return a filter: of each question of these relations that no split answers, the best fact stays.

    The facts of a question must come together.
    """
    n_relations = dataset.vocabulary.n_relations
    tables = [dataset.split(split).triples for split in SPLITS]
    answered = np.unique(
        np.concatenate([_questions(table[np.isin(table[:, 1], relations)], n_relations) for table in tables])
    )

    def keep(facts: FactColumns) -> FactColumns:
        concerned = np.isin(facts.triples[:, 1], relations)
        questions = _questions(facts.triples, n_relations)
        order = np.lexsort((facts.triples[:, 2], -facts.n_rules, -facts.scores, questions))
        firsts = np.ones(len(order), np.bool_)
        firsts[1:] = questions[order][1:] != questions[order][:-1]
        is_best = np.zeros(len(order), np.bool_)
        is_best[order] = firsts
        return facts.take(~concerned | (is_best & ~np.isin(questions, answered)))

    return keep


def fitting_types(dataset: Dataset, relation: int) -> Filter:
    """Return a filter: subject and object have a type, by `relation`, that train shows at their place.

    Where classes are ordered (see `all_types`), a class above the type of the entity will do.
    """
    types = _Types(dataset, relation)

    def keep(facts: FactColumns) -> FactColumns:
        subjects, relations, objects = facts.triples.T
        return facts.take(types.fit(0, relations, subjects) & types.fit(1, relations, objects))

    return keep


class _Types:
    """The types of entities, and those seen as subjects (place 0) and objects (place 1) of each relation."""

    def __init__(self, dataset: Dataset, relation: int) -> None:
        train, self._n_relations = dataset.train.triples, dataset.vocabulary.n_relations
        self._width = dataset.vocabulary.n_entities
        stated = _TypesOf(stated_types(dataset, relation), self._width)
        seen = [self._keys(stated, place, train[:, 1], train[:, 2 * place])[1] for place in (0, 1)]
        self._seen = np.unique(np.concatenate(seen))
        self._all = _TypesOf(all_types(dataset, relation), self._width)

    def _keys(
        self, types: _TypesOf, place: int, relations: NDArray[np.int32], entities: NDArray[np.int32]
    ) -> tuple[Ints, Ints]:
        """Return for each type of each entity its row, and a number for place, relation and type."""
        rows, found = types.of(entities)
        return rows, (place * self._n_relations + relations[rows].astype(np.int64)) * self._width + found

    def fit(self, place: int, relations: NDArray[np.int32], entities: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each entity has a type that was seen at this place of its relation."""
        rows, keys = self._keys(self._all, place, relations, entities)
        return np.bincount(rows[np.isin(keys, self._seen)], minlength=len(entities)) > 0


class _TypesOf:
    """The types of each entity, one after the other."""

    def __init__(self, pairs: pl.DataFrame, n_entities: int) -> None:
        ordered = pairs.sort("entity", maintain_order=True)
        self._types = ordered["type"].to_numpy().astype(np.int64)
        counts = np.bincount(ordered["entity"].to_numpy(), minlength=n_entities)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def of(self, entities: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return the types of many entities, and beside each the row of its entity."""
        sizes = self._starts[entities + 1] - self._starts[entities]
        rows = np.repeat(np.arange(len(entities)), sizes)
        offsets = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, self._types[self._starts[entities[rows]] + offsets]


def _questions(triples: NDArray[np.int32], n_relations: int) -> Ints:
    """Return a number for the question (subject, relation, ?) of each triple."""
    return triples[:, 0].astype(np.int64) * n_relations + triples[:, 1]
