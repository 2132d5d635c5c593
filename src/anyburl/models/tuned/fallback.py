"""Scores answers without any rule: by how well their relations fit the question, how common, near and similar they are.

An entity fits the object of `speaks`, say, if its other relations are those of the objects of `speaks`. All counts are
taken from the graph that is queried, so a model carries over to another graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import map_in_threads
from anyburl.data.table import Ids
from anyburl.graph.build import degrees
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.models.tuned.kernel import (
    N_COLUMNS,
    FactWeights,
    Nearness,
    SimilarityArrays,
    WalkArrays,
    add_nearness,
    fill_scales,
    fill_similarity,
    fill_walks,
)
from anyburl.models.tuned.observations import Floats

QUESTIONS_AT_A_TIME = 64

Space = TypeVar("Space")


def share_questions(
    n_questions: int, threads: int, make_space: Callable[[], Space], fill: Callable[[int, int, Space], None]
) -> None:
    """Call `fill(first, last, space)` for all questions in threads, each with its own `make_space()`."""
    starts = range(0, n_questions, QUESTIONS_AT_A_TIME)

    def fill_all(own: range) -> None:
        space = make_space()
        for first in own:
            fill(first, min(first + QUESTIONS_AT_A_TIME, n_questions), space)

    map_in_threads(fill_all, [share for share in (starts[turn::threads] for turn in range(threads)) if share], threads)


LEAST_WALKS = 1e-5  # added to the share of walks, whose logarithm is taken
FIT, CROWD, NEAR = 0.1, 0.6, 0.75  # weights of fit, degree (counts against) and nearness; that of popularity is 1
SECOND_STEP = 0.1  # weight of walks of two steps: two answers to one question are not answers to each other
STEPS = 3
NEARNESS = Nearness(NEAR, SECOND_STEP, LEAST_WALKS)
LEAST_SHARE = 1e-4  # of walks that an edge must get to be followed


@dataclass(frozen=True)
class Walks:
    """Takes a few steps at random, along any edge, on one graph."""

    graph: GraphArrays
    threads: int = 1

    def shares(self, entities: Ids, offsets: NDArray[np.int64], candidates: Ids) -> Floats:
        """Return the share of walks from the entity at each of its candidates after each step."""
        out = np.empty((len(candidates), STEPS), np.float32)
        queries = entities.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: WalkArrays) -> None:
            fill_walks(self.graph, *queries, first, last, LEAST_SHARE, space, out)

        share_questions(len(entities), self.threads, self._space, fill)
        return out

    def add_nearness(self, entities: Ids, scores: Floats) -> None:
        """Add to the scores of all entities how near they are to that of each question, see `nearness`."""
        queries = entities.astype(np.int32)

        def fill(first: int, last: int, space: WalkArrays) -> None:
            add_nearness(self.graph, queries, first, last, LEAST_SHARE, NEARNESS, space, scores)

        share_questions(len(entities), self.threads, self._space, fill)

    def _space(self) -> WalkArrays:
        shape = (STEPS + 1, self.graph.n_entities)
        return WalkArrays(np.zeros(shape, np.float32), np.empty(shape, np.int32), np.zeros(STEPS + 1, np.int64))


MOST_SHARED = 20_000  # entities per fact, and answers per relation: facts shared by more are left out
LEAST_LENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class Similarity:
    """Compares entities by the facts that they share. Nothing is learned: all counts are those of one graph."""

    graph: GraphArrays
    threads: int = 1

    @cached_property
    def facts(self) -> FactWeights:
        """The weights of facts: those shared by few entities weigh more."""
        graph = self.graph
        sizes = np.diff(graph.segment_starts)
        weights = np.log((graph.n_entities + 1) / np.maximum(sizes, 1)) ** 2
        weights[sizes > MOST_SHARED] = 0
        scales = np.empty(graph.n_entities + 1, np.float32)
        fill_scales(graph, weights, LEAST_LENGTH, scales)
        return FactWeights(weights.astype(np.float32), scales, segments_of_domains(graph))

    def columns(self, entities: Ids, relations: Ids, offsets: NDArray[np.int64], candidates: Ids) -> Floats:
        """Return the features of each candidate of the questions (entity, directed relation, ?)."""
        columns, facts = np.empty((len(candidates), N_COLUMNS), np.float32), self.facts
        queries = entities.astype(np.int32), relations.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: SimilarityArrays) -> None:
            fill_similarity(self.graph, facts, *queries, first, last, MOST_SHARED, space, columns)

        share_questions(len(entities), self.threads, self._space, fill)
        return columns

    def _space(self) -> SimilarityArrays:
        n_segments = len(self.graph.segment_relations)
        sizes = (self.graph.n_entities + 1, n_segments, n_segments)
        return SimilarityArrays(*(np.zeros(size, np.float32) for size in sizes))


def segments_of_domains(graph: GraphArrays) -> NDArray[np.int32]:
    """Return the segment of each entity in the graph's `domains`, for the directed relation that it is there for."""
    n_segments = int(graph.segment_offsets[graph.n_entities])  # those of the token self come last
    starts = graph.segment_starts[:n_segments]
    leads_on = np.flatnonzero(graph.targets[starts] != graph.n_entities)  # somewhere else than to the token self
    order = np.argsort(graph.segment_relations[leads_on], kind="stable")
    return leads_on[order].astype(np.int32)


MOST_NUMBERS = 1 << 26  # of `RelationEnd`s held in memory
N_FALLBACK_COLUMNS = 3 + STEPS + N_COLUMNS  # the score, fit, share, each step, similarity


@dataclass(frozen=True)
class RelationEnd:
    """The subjects or objects of a relation: figures of every entity as one of them."""

    fit: Floats  # log-odds of being one, by its other relations
    shares: Floats  # of the relation's facts that have the entity at this end
    score: Floats  # the highest is 0


@dataclass(frozen=True, eq=False)
class Fallback:
    """Scores all entities as answers, without rules. Nothing is learned: all counts are those of one graph."""

    graph: GraphArrays
    threads: int = 1
    _ends: dict[int, RelationEnd] = field(default_factory=dict, repr=False)

    @cached_property
    def similarity(self) -> Similarity:
        """Compares entities."""
        return Similarity(self.graph, self.threads)

    @cached_property
    def occurrences(self) -> Occurrences:
        """The relations that entities have."""
        return Occurrences(self.graph)

    @cached_property
    def walks(self) -> Walks:
        """Computes how near entities are."""
        return Walks(self.graph, self.threads)

    def scores(self, entities: Ids, relations: Ids) -> Floats:
        """Return a score for each query (entity, directed relation, ?) and entity; higher is better."""
        scores = np.empty((len(entities), self.graph.n_entities), np.float32)
        for row, relation in enumerate(self._end_relations(relations)):
            scores[row] = self.end(relation).score
        self.walks.add_nearness(entities, scores)
        return scores

    def columns(self, entities: Ids, relations: Ids, questions: NDArray[np.int64], candidates: Ids) -> Floats:
        """Return the features of each candidate of a question: the parts of its score, and its similarities."""
        offsets = np.searchsorted(questions, np.arange(len(entities) + 1)).astype(np.int64)
        shares = self.walks.shares(entities, offsets, candidates)
        figures = np.empty((len(candidates), 3), np.float32)
        of_candidates = np.array(self._end_relations(relations), np.int32)[questions]
        order = np.argsort(of_candidates, kind="stable")
        for rows in np.split(order, np.flatnonzero(np.diff(of_candidates[order])) + 1) if len(order) else ():
            end, own = self.end(int(of_candidates[rows[0]])), candidates[rows]
            figures[rows] = np.column_stack([column[own] for column in (end.score, end.fit, end.shares)])
        figures[:, 0] += nearness(shares)
        steps = np.log(shares + np.float32(LEAST_WALKS))
        return np.column_stack([figures, steps, self.similarity.columns(entities, relations, offsets, candidates)])

    def end(self, relation: int) -> RelationEnd:
        """Return the figures of the entities that have a directed relation."""
        end = self._ends.get(relation)
        if end is None:
            if len(self._ends) * 3 * self.graph.n_entities > MOST_NUMBERS:
                self._ends.clear()
            end = self._ends[relation] = make_relation_end(self.graph, relation, self.occurrences)
        return end

    def _end_relations(self, relations: Ids) -> list[int]:
        """Return the directed relations that answers have."""
        backward: list[int] = inverses(relations, self.graph.n_relations).tolist()
        return backward


def nearness(shares: Floats) -> Floats:
    """Return the part of a score that walks contribute, from their shares after one, two and three steps."""
    first, second, third = shares.T
    near = first + np.float32(SECOND_STEP) * second + third
    return np.asarray(np.float32(NEAR) * np.log(near + np.float32(LEAST_WALKS)), np.float32)


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The relations that entities have, once each, on one graph: what all ends of relations are counted from."""

    graph: GraphArrays

    @cached_property
    def relations(self) -> NDArray[np.integer]:
        """The directed relation of each segment; those of the token self come last and are left out."""
        return self.graph.segment_relations[: int(self.graph.segment_offsets[self.graph.n_entities])]

    @cached_property
    def owners(self) -> NDArray[np.int64]:
        """The entity of each segment."""
        return np.repeat(
            np.arange(self.graph.n_entities), np.diff(self.graph.segment_offsets[: self.graph.n_entities + 1])
        )

    @cached_property
    def crowd(self) -> NDArray[np.float64]:
        """The logarithm of 1 + the number of edges of each entity."""
        return np.log1p(degrees(self.graph, np.arange(self.graph.n_entities, dtype=np.int32)))


def make_relation_end(graph: GraphArrays, relation: int, occurrences: Occurrences | None = None) -> RelationEnd:
    """Count what the entities with a directed relation have in common."""
    n_entities, own = graph.n_entities, Occurrences(graph) if occurrences is None else occurrences
    owners, relations = own.owners, own.relations
    segments = np.flatnonzero(relations == relation)
    counts = np.zeros(n_entities, np.float32)
    counts[owners[segments]] = graph.segment_starts[segments + 1] - graph.segment_starts[segments]
    present, base = relation_log_odds(relations, 2 * graph.n_relations, (counts > 0)[owners], n_entities)
    present[relation] = 0
    fit = np.bincount(owners, weights=present[relations], minlength=n_entities) + base
    score = np.log1p(counts) + FIT * fit - CROWD * own.crowd
    score -= score.max(initial=-np.inf)
    return RelationEnd(fit.astype(np.float32), counts / max(1.0, float(counts.sum())), score.astype(np.float32))


def relation_log_odds(
    relations: NDArray[np.integer], n_directed: int, of_member: NDArray[np.bool_], n_entities: int
) -> tuple[NDArray[np.float64], float]:
    """Return the log-odds of membership that each directed relation adds, and those of an entity without any.

    Naive Bayes: `relations` are those that entities have, once each, `of_member` marks those of members. Counts are
    smoothed by one average entity.
    """
    of_all = np.bincount(relations, minlength=n_directed)
    of_members = np.bincount(relations[of_member], minlength=n_directed)
    n_members = int(of_members.max(initial=0))  # all members have the relation that makes them members
    shares = of_all / max(1, n_entities)
    inside = np.clip((of_members + shares) / (n_members + 1), 1e-6, 1 - 1e-6)
    outside = np.clip((of_all - of_members + shares) / (n_entities - n_members + 1), 1e-6, 1 - 1e-6)
    present, absent = np.log(inside / outside), np.log((1 - inside) / (1 - outside))
    return present - absent, float(absent.sum() + np.log((n_members + 0.5) / (n_entities - n_members + 0.5)))
