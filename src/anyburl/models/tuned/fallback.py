"""What can be said of an answer without any rule: whether it fits, how common it is in that place, and how near.

An entity fits a place, such as the object of `speaks`, if its other relations are those of the entities that stand
there. All of it is counted on the graph that is asked about, so it carries over to any other.

Divides questions among threads.

How near candidates are to the question's entity.

Similarity of candidates and entities, by the facts they share.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.lookup import degrees
from anyburl.models.tuned import kernel_likeness
from anyburl.models.tuned.kernel_likeness import (
    N_COLUMNS,
    FactWeights,
    LikenessArrays,
    WalkArrays,
    fill_lengths,
    fill_likeness,
    fill_walks,
)

QUESTIONS_AT_A_TIME = 64

Space = TypeVar("Space")


def share_questions(
    n_questions: int, threads: int, make_space: Callable[[], Space], fill: Callable[[int, int, Space], None]
) -> None:
    """Call `fill(first, last, space)` until all questions are done; every thread has a space of its own."""
    starts = range(0, n_questions, QUESTIONS_AT_A_TIME)

    def fill_all(own: range) -> None:
        space = make_space()
        for first in own:
            fill(first, min(first + QUESTIONS_AT_A_TIME, n_questions), space)

    shares = [share for share in (starts[turn::threads] for turn in range(threads)) if share]
    if len(shares) == 1:
        fill_all(shares[0])
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill_all, shares))


STEPS = 3
LEAST_SHARE = 1e-4  # of walks that an edge must get to be followed

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]


@dataclass(frozen=True)
class Walks:
    """Takes a few steps at random, along any edge, on one graph."""

    graph: GraphArrays
    threads: int = 1

    def shares(self, entities: Ints, offsets: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return which share of walks from the entity is at each of its candidates after each step."""
        out = np.empty((len(candidates), STEPS), np.float32)
        asked = entities.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: WalkArrays) -> None:
            fill_walks(self.graph, *asked, first, last, LEAST_SHARE, space, out)

        share_questions(len(entities), self.threads, self._space, fill)
        return out

    def _space(self) -> WalkArrays:
        shape = (STEPS + 1, self.graph.n_entities)
        return WalkArrays(np.zeros(shape, np.float32), np.empty(shape, np.int32), np.zeros(STEPS + 1, np.int64))


MOST_TOLD = 20_000  # entities per fact, and answers per relation: with more, they say little
LEAST_LENGTH = 1e-3


@dataclass(frozen=True, eq=False)
class Likeness:
    """Compares entities by the facts that they share. Nothing of it is learned: it counts on one graph."""

    graph: GraphArrays
    threads: int = 1

    @cached_property
    def facts(self) -> FactWeights:
        """What facts weigh: one told of few entities says more of them."""
        graph = self.graph
        sizes = np.diff(graph.segment_starts)
        weights = np.log((graph.n_entities + 1) / np.maximum(sizes, 1)) ** 2
        weights[sizes > MOST_TOLD] = 0
        lengths = np.empty(graph.n_entities + 1)
        fill_lengths(graph, weights, LEAST_LENGTH, lengths)
        return FactWeights(weights, lengths)

    def columns(self, entities: Ints, relations: Ints, offsets: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return the features of each candidate of the questions (entity, directed relation, ?)."""
        told, facts = np.empty((len(candidates), N_COLUMNS), np.float32), self.facts
        asked = entities.astype(np.int32), relations.astype(np.int32), offsets, candidates.astype(np.int32)

        def fill(first: int, last: int, space: LikenessArrays) -> None:
            fill_likeness(self.graph, facts, *asked, first, last, MOST_TOLD, space, told)

        share_questions(len(entities), self.threads, self._space, fill)
        return told

    def _space(self) -> LikenessArrays:
        n_segments = len(self.graph.segment_relations)
        return LikenessArrays(np.zeros(self.graph.n_entities + 1), np.zeros(n_segments), np.zeros(n_segments))


NOWHERE = 1e-5  # the share of walks that is taken to end anywhere
FIT, CROWD, NEAR = 0.1, 0.6, 0.75  # weights of fit, degree (counts against) and nearness; that of popularity is 1
SECOND_STEP = 0.1  # weight of walks of two steps: two answers to one question are not answers to each other
WALKS_AT_A_TIME = 1 << 23  # numbers of walks held in memory
MOST_PLACES = 1 << 26  # numbers of `Place`s held in memory
N_FALLBACK_COLUMNS = 3 + STEPS + kernel_likeness.N_COLUMNS  # the score, fit, share, each step, likeness


@dataclass(frozen=True)
class Place:
    """One end of a relation: of every entity, how well it fits there, and what that says together with other facts."""

    fit: Floats  # log-odds of standing here
    shares: Floats  # of the relation's facts that have the entity here
    score: Floats  # the highest is 0


@dataclass(frozen=True, eq=False)
class Fallback:
    """Scores all entities as answers, without rules. Nothing of it is learned: it counts on one graph."""

    graph: GraphArrays
    threads: int = 1
    _places: dict[int, Place] = field(default_factory=dict, repr=False)

    @cached_property
    def likeness(self) -> Likeness:
        """What compares entities."""
        return Likeness(self.graph, self.threads)

    @cached_property
    def walks(self) -> Walks:
        """What tells how near entities are."""
        return Walks(self.graph, self.threads)

    def scores(self, entities: Ints, relations: Ints) -> Floats:
        """Return a score for each query (entity, directed relation, ?) and entity; higher is better."""
        scores = np.stack([self.place(place).score for place in self._places_of(relations)])
        everything = np.arange(self.graph.n_entities, dtype=np.int32)
        for rows in self._parts(len(entities)):
            offsets = np.arange(len(rows) + 1) * len(everything)
            shares = self.walks.shares(entities[rows], offsets, np.tile(everything, len(rows)))
            scores[rows] += nearness(shares).reshape(len(rows), -1)
        return scores

    def columns(self, entities: Ints, relations: Ints, questions: NDArray[np.int64], candidates: Ints) -> Floats:
        """Return the features of each candidate of a question: the numbers behind its score, and its likeness
        to other answers.
        """
        offsets = np.searchsorted(questions, np.arange(len(entities) + 1)).astype(np.int64)
        shares = self.walks.shares(entities, offsets, candidates)
        told = np.empty((len(candidates), 3), np.float32)
        places = np.array(self._places_of(relations))[questions]
        for number in np.unique(places).tolist():
            rows, place = np.flatnonzero(places == number), self.place(number)
            told[rows] = np.column_stack(
                [figures[candidates[rows]] for figures in (place.score, place.fit, place.shares)]
            )
        told[:, 0] += nearness(shares)
        steps = np.log(shares + np.float32(NOWHERE))
        return np.column_stack([told, steps, self.likeness.columns(entities, relations, offsets, candidates)])

    def place(self, place: int) -> Place:
        """Return what is known of the entities at one end of a relation, by the directed relation they have there."""
        if place not in self._places:
            if len(self._places) * 3 * self.graph.n_entities > MOST_PLACES:
                self._places.clear()
            self._places[place] = make_place(self.graph, place)
        return self._places[place]

    def _places_of(self, relations: Ints) -> list[int]:
        places: list[int] = inverses(relations, self.graph.n_relations).tolist()
        return places

    def _parts(self, n_queries: int) -> list[NDArray[np.int64]]:
        """Return the queries whose walks are held in memory at a time."""
        size = max(1, WALKS_AT_A_TIME // (STEPS * max(1, self.graph.n_entities)))
        return [np.arange(start, min(start + size, n_queries)) for start in range(0, n_queries, size)]


def nearness(shares: Floats) -> Floats:
    """Return what walks say for an answer, from their shares after one, two and three steps."""
    first, second, third = shares.T
    near = first + np.float32(SECOND_STEP) * second + third
    return np.asarray(np.float32(NEAR) * np.log(near + np.float32(NOWHERE)), np.float32)


def make_place(graph: GraphArrays, place: int) -> Place:
    """Count what the entities have in common that have the directed relation `place`."""
    n_entities = graph.n_entities
    n_segments = int(graph.segment_offsets[n_entities])  # those of the token self come last
    owners = np.repeat(np.arange(n_entities), np.diff(graph.segment_offsets[: n_entities + 1]))
    relations, sizes = graph.segment_relations[:n_segments], np.diff(graph.segment_starts[: n_segments + 1])
    is_own = relations == place
    counts = np.zeros(n_entities, np.float32)
    counts[owners[is_own]] = sizes[is_own]
    present, base = relation_log_odds(relations, 2 * graph.n_relations, (counts > 0)[owners], n_entities)
    present[place] = 0
    fit = np.bincount(owners, weights=present[relations], minlength=n_entities) + base
    crowd = np.log1p(degrees(graph, np.arange(n_entities, dtype=np.int32)))
    score = np.log1p(counts) + FIT * fit - CROWD * crowd
    score -= score.max(initial=-np.inf)
    return Place(fit.astype(np.float32), counts / max(1.0, float(counts.sum())), score.astype(np.float32))


def relation_log_odds(
    relations: NDArray[np.integer], n_directed: int, of_member: NDArray[np.bool_], n_entities: int
) -> tuple[NDArray[np.float64], float]:
    """Return what each directed relation says of an entity that has it, and what is said of one that has none.

    Naive Bayes: `relations` are those that entities have, once each, `of_member` says which are had by a member. Counts
    are smoothed by one entity that is like all others.
    """
    of_all = np.bincount(relations, minlength=n_directed)
    of_members = np.bincount(relations[of_member], minlength=n_directed)
    n_members = int(of_members.max(initial=0))  # all members have the relation that makes them members
    shares = of_all / max(1, n_entities)
    inside = np.clip((of_members + shares) / (n_members + 1), 1e-6, 1 - 1e-6)
    outside = np.clip((of_all - of_members + shares) / (n_entities - n_members + 1), 1e-6, 1 - 1e-6)
    present, absent = np.log(inside / outside), np.log((1 - inside) / (1 - outside))
    return present - absent, float(absent.sum() + np.log((n_members + 0.5) / (n_entities - n_members + 0.5)))
