"""What has changed between the triples that a run was learned from and the current ones."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.bodies.arrays import ChangedFacts
from anyburl.graph.arrays import GraphArrays
from anyburl.ruleset.combine import join_vocabularies
from anyburl.triples.frames import COLUMNS
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary

Triples = NDArray[np.int32]


@dataclass(frozen=True)
class GraphChange:
    """Two tables over one vocabulary, which has the labels of both, and how they differ."""

    old: TripleTable
    new: TripleTable
    added: Triples
    removed: Triples

    @property
    def vocabulary(self) -> Vocabulary:
        return self.new.vocabulary


def change_between(old: TripleTable, new: TripleTable) -> GraphChange:
    """Compare two tables by their labels."""
    vocabulary = join_vocabularies([new.vocabulary, old.vocabulary])
    before, after = _moved(old, vocabulary), _moved(new, vocabulary)
    return GraphChange(before, after, _without(after, before), _without(before, after))


def _moved(table: TripleTable, vocabulary: Vocabulary) -> TripleTable:
    """Return the table with the ids of a vocabulary that has all its labels."""
    if table.vocabulary.same_labels(vocabulary):
        return table
    entities = vocabulary.encode_entities(table.vocabulary.entities)
    relations = vocabulary.encode_relations(table.vocabulary.relations)
    subjects, predicates, objects = table.triples.T
    return TripleTable.from_columns([entities[subjects], relations[predicates], entities[objects]], vocabulary)


def _without(table: TripleTable, other: TripleTable) -> Triples:
    """Return the triples of one table that the other lacks."""
    frames = [pl.DataFrame(part.triples, schema=list(COLUMNS)) for part in (table, other)]
    rest = frames[0].join(frames[1], on=list(COLUMNS), how="anti")
    return np.ascontiguousarray(rest.to_numpy(), dtype=np.int32).reshape(-1, 3)


def changed_facts(change: GraphChange, graph: GraphArrays, *, object_identity: bool) -> ChangedFacts:
    """Describe the change for the kernel that compares B bodies; under object identity no body uses reflexive triples,
    which are left out.
    """
    triples = np.concatenate([change.added, change.removed])
    added = np.arange(len(triples)) < len(change.added)
    if object_identity:
        proper = triples[:, 0] != triples[:, 2]
        triples, added = triples[proper], added[proper]
    subjects, predicates, objects = triples.T
    relations = np.concatenate([predicates, predicates + graph.n_relations])
    order = np.argsort(relations, kind="stable")
    sources, targets = np.concatenate([subjects, objects])[order], np.concatenate([objects, subjects])[order]
    return ChangedFacts(
        np.searchsorted(relations[order], np.arange(2 * graph.n_relations + 1)).astype(np.int64),
        relations[order].astype(np.int32),
        sources.astype(np.int32),
        targets.astype(np.int32),
        np.concatenate([added, added])[order],
        _relations_of(graph, sources),
        _relations_of(graph, targets),
    )


def _relations_of(graph: GraphArrays, entities: Triples) -> NDArray[np.bool_]:
    """Return for each directed relation which of the entities have it."""
    has: NDArray[np.bool_] = np.zeros((2 * graph.n_relations, len(entities)), np.bool_)
    for place, entity in enumerate(entities):
        has[graph.segment_relations[graph.segment_offsets[entity] : graph.segment_offsets[entity + 1]], place] = True
    return has
