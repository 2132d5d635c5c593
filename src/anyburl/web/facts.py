"""Facts about an entity or relation, in pieces that fit a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.lookup import known_answers, split_names
from anyburl.reasoning.reasoner import Reasoner
from anyburl.triples.dataset import SPLITS

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Stated:
    """The other end of a fact, and the splits that state it."""

    entity: str
    splits: tuple[str, ...]


@dataclass(frozen=True)
class FactGroup:
    """The facts of an entity by one relation, in one direction; `facts` are some of `n_facts`."""

    relation: str
    backward: bool
    n_facts: int
    facts: tuple[Stated, ...]


class EntityFacts:
    """The facts of one entity in all splits."""

    def __init__(self, reasoner: Reasoner, entity: str) -> None:
        self._vocabulary, self._graph = reasoner.vocabulary, reasoner.ranker.graph
        self._entity = self._vocabulary.entity_id(entity)
        self._others = [self._held(reasoner.dataset.split(split).triples) for split in SPLITS[1:]]

    def _held(self, triples: Ints) -> Ints:
        """Return (directed relation, other end) of a split's facts about the entity."""
        forward, backward = triples[triples[:, 0] == self._entity], triples[triples[:, 2] == self._entity]
        shifted = np.column_stack([backward[:, 1] + self._vocabulary.n_relations, backward[:, 0]])
        return np.concatenate([forward[:, 1:], shifted])

    def groups(self, shown: int) -> list[FactGroup]:
        """Return all facts by relation and direction, those with most facts first, some of each."""
        found = [self.group(directed, 0, shown) for directed in self._directed_relations()]
        return sorted(found, key=lambda group: (group.backward, -group.n_facts, group.relation))

    def group(self, directed: int, first: int, top: int) -> FactGroup:
        """Return the facts by one directed relation, from place `first` on."""
        parts = [known_answers(self._graph, self._entity, directed)]
        parts += [held[held[:, 0] == directed, 1] for held in self._others]
        ends = np.unique(np.concatenate(parts)).astype(np.int64)
        bits = np.zeros(len(ends), np.int64)
        for place, part in enumerate(parts):
            bits[np.searchsorted(ends, part)] |= 1 << place
        page = zip(ends[first : first + top].tolist(), bits[first : first + top].tolist(), strict=True)
        stated = tuple(Stated(self._vocabulary.entity_label(end), split_names(held)) for end, held in page)
        relation, backward = directed % self._vocabulary.n_relations, directed >= self._vocabulary.n_relations
        return FactGroup(self._vocabulary.relation_label(relation), backward, len(ends), stated)

    def _directed_relations(self) -> list[int]:
        start, end = (int(self._graph.segment_offsets[self._entity + i]) for i in (0, 1))
        found = {int(directed) for directed in self._graph.segment_relations[start:end]}
        return sorted(found.union(*(held[:, 0].tolist() for held in self._others)))


@dataclass(frozen=True)
class RelationFacts:
    """How often a relation is stated, and some of its facts in train."""

    n_facts: dict[str, int]
    n_subjects: int
    n_objects: int
    examples: tuple[tuple[str, str], ...]


def relation_facts(reasoner: Reasoner, relation: str, *, first: int, top: int) -> RelationFacts:
    """Return what the data says about a relation."""
    vocabulary, graph = reasoner.vocabulary, reasoner.ranker.graph
    number = vocabulary.relation_id(relation)
    train = reasoner.dataset.train.triples
    rows = np.flatnonzero(train[:, 1] == number)
    shown = train[rows[first : first + top]][:, [0, 2]].tolist()
    domain = graph.domain_offsets
    return RelationFacts(
        {split: int((reasoner.dataset.split(split).triples[:, 1] == number).sum()) for split in SPLITS},
        int(domain[number + 1] - domain[number]),
        int(domain[number + vocabulary.n_relations + 1] - domain[number + vocabulary.n_relations]),
        tuple((vocabulary.entity_label(subject), vocabulary.entity_label(object)) for subject, object in shown),
    )
