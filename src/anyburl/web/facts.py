"""What the data says about an entity or a relation, in parts that fit a page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.lookup import known_answers
from anyburl.reasoning.reasoner import Reasoner
from anyburl.triples.dataset import SPLITS


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


def fact_groups(reasoner: Reasoner, entity: str, *, shown: int) -> list[FactGroup]:
    """Return the facts of an entity by relation and direction, those with most facts first."""
    number, n_relations = reasoner.vocabulary.entity_id(entity), reasoner.vocabulary.n_relations
    directed = _directed_relations(reasoner, number)
    groups = [fact_group(reasoner, entity, int(d % n_relations), d >= n_relations, 0, shown) for d in directed]
    return sorted(groups, key=lambda group: (group.backward, -group.n_facts, group.relation))


def fact_group(reasoner: Reasoner, entity: str, relation: int, backward: bool, first: int, top: int) -> FactGroup:
    """Return the facts of an entity by one relation, from place `first` on."""
    vocabulary = reasoner.vocabulary
    ends, bits = _ends(reasoner, vocabulary.entity_id(entity), relation, backward)
    labels = vocabulary.decode_entities(ends[first : first + top]).to_list()
    shown = zip(labels, bits[first : first + top].tolist(), strict=True)
    stated = tuple(Stated(label, tuple(s for i, s in enumerate(SPLITS) if held >> i & 1)) for label, held in shown)
    return FactGroup(vocabulary.relation_label(relation), bool(backward), len(ends), stated)


def _directed_relations(reasoner: Reasoner, entity: int) -> list[int]:
    graph, n_relations = reasoner.ranker.graph, reasoner.vocabulary.n_relations
    start, end = (int(graph.segment_offsets[entity + i]) for i in (0, 1))
    found = {int(d) for d in graph.segment_relations[start:end]}
    for split in SPLITS[1:]:
        triples = reasoner.dataset.split(split).triples
        found |= set(triples[triples[:, 0] == entity, 1].tolist())
        found |= set((triples[triples[:, 2] == entity, 1] + n_relations).tolist())
    return sorted(found)


def _ends(
    reasoner: Reasoner, entity: int, relation: int, backward: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return what the relation joins the entity with in any split, sorted, and which splits say so, as bits."""
    here, there = (2, 0) if backward else (0, 2)
    known = known_answers(
        reasoner.ranker.graph, entity, relation + (reasoner.vocabulary.n_relations if backward else 0)
    )
    parts = [known]
    for split in SPLITS[1:]:
        triples = reasoner.dataset.split(split).triples
        parts.append(triples[(triples[:, here] == entity) & (triples[:, 1] == relation), there])
    ends = np.unique(np.concatenate(parts)).astype(np.int64)
    bits = np.zeros(len(ends), np.int64)
    for place, part in enumerate(parts):
        bits[np.searchsorted(ends, part)] |= 1 << place
    return ends, bits


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
    subjects, objects = (
        vocabulary.decode_entities(train[rows[first : first + top], column]).to_list() for column in (0, 2)
    )
    domain = graph.domain_offsets
    return RelationFacts(
        {split: int((reasoner.dataset.split(split).triples[:, 1] == number).sum()) for split in SPLITS},
        int(domain[number + 1] - domain[number]),
        int(domain[number + vocabulary.n_relations + 1] - domain[number + vocabulary.n_relations]),
        tuple(zip(subjects, objects, strict=True)),
    )
