"""Queries, deduplicated across test triples, with their known answers.

The ranks of targets among the candidates.

Whether predictions between connected entities are blocked (paper, section 4.4).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.data.dataset import Dataset
from anyburl.graph.build import range_rows
from anyburl.ranking.arrays import AnswerArrays, QueryArrays

Triples = NDArray[np.int32]
ROWS = 1 << 22  # of a table, looked through at a time


def directed(triples: Triples, n_relations: int) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return both queries of every triple, (s, r, ?) of all and then (?, r, o) of all: entity, directed
    relation, answer.
    """
    subjects, relations, objects = (triples[:, i].astype(np.int64) for i in range(3))
    return (
        np.concatenate([subjects, objects]),
        np.concatenate([relations, relations + n_relations]),
        np.concatenate([objects, subjects]),
    )


def make_queries(triples: Triples, known: Sequence[Triples], n_relations: int) -> tuple[QueryArrays, NDArray[np.int64]]:
    """Group both queries of every triple by question; return them and where each (query of a) triple's target stands.

    Answers in `known` are excluded from the ranking, but for the targets themselves (the filtered setting).
    """
    entities, relations, answers = directed(triples, n_relations)
    width = 2 * n_relations
    order = np.lexsort((answers, entities * width + relations))
    keys = (entities * width + relations)[order]
    questions, firsts = np.unique(keys, return_index=True)
    positions = np.empty(len(order), np.int64)
    positions[order] = np.arange(len(order))
    excluded_keys, excluded = _known_answers(questions, known, n_relations, keys, answers[order])
    queries = QueryArrays(
        entities=(questions // width).astype(np.int32),
        relations=(questions % width).astype(np.int32),
        target_offsets=np.append(firsts, len(keys)).astype(np.int64),
        targets=answers[order].astype(np.int32),
        excluded_offsets=np.searchsorted(excluded_keys, np.append(questions, np.iinfo(np.int64).max)).astype(np.int64),
        excluded=excluded.astype(np.int32),
    )
    return queries, positions


def _known_answers(
    questions: NDArray[np.int64],
    known: Sequence[Triples],
    n_relations: int,
    target_keys: NDArray[np.int64],
    targets: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the known answers of the questions, sorted by question, without the targets."""
    width = 2 * n_relations
    query_entities = sorted_once(questions // width)
    pieces = [np.empty((0, 2), np.int64)]
    for table in known:
        for piece in rows_about(query_entities, table):
            entities, relations, answers = directed(piece, n_relations)
            keys = entities * width + relations
            ranks = np.searchsorted(questions, keys)
            is_question = questions[np.minimum(ranks, len(questions) - 1)] == keys
            pieces.append(np.column_stack([ranks[is_question], answers[is_question]]))
    ranks, answers = np.concatenate(pieces).T
    span = int(max(answers.max(initial=0), targets.max(initial=0))) + 1
    pairs = sorted_once(ranks * span + answers)
    own = np.searchsorted(questions, target_keys) * span + targets
    pairs = pairs[~np.isin(pairs, own)]
    return questions[pairs // span], pairs % span


def sorted_once(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return each value once, in order: np.unique looks for repeats in a hash table first, which takes ten times as
    long.
    """
    ordered = np.sort(values)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered


def rows_about(entities: NDArray[np.int64], triples: Triples) -> Iterator[Triples]:
    """Yield the triples with any of `entities` in them, from a piece of the table at a time."""
    for start in range(0, len(triples), ROWS):
        piece = triples[start : start + ROWS]
        yield piece[np.isin(piece[:, 0], entities) | np.isin(piece[:, 2], entities)]


def single_query(entity: int, relation: int, known: NDArray[np.int32]) -> QueryArrays:
    """Return one question without targets."""
    return QueryArrays(
        entities=np.array([entity], np.int32),
        relations=np.array([relation], np.int32),
        target_offsets=np.zeros(2, np.int64),
        targets=np.empty(0, np.int32),
        excluded_offsets=np.array([0, len(known)], np.int64),
        excluded=np.asarray(known, np.int32),
    )


def take_queries(queries: QueryArrays, rows: NDArray[np.int64]) -> QueryArrays:
    """Return some of the questions."""

    def cut(offsets: NDArray[np.int64], values: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        sizes = np.diff(offsets)[rows]
        new_offsets = np.concatenate([[0], np.cumsum(sizes)])
        return new_offsets, values[range_rows(offsets[rows], sizes)]

    targets = cut(queries.target_offsets, queries.targets)
    excluded = cut(queries.excluded_offsets, queries.excluded)
    return QueryArrays(queries.entities[rows], queries.relations[rows], *targets, *excluded)


@dataclass(frozen=True)
class Ranks:
    """The filtered rank of every target."""

    optimistic: NDArray[np.int64]
    pessimistic: NDArray[np.int64]

    @property
    def realistic(self) -> NDArray[np.float64]:
        """The mean of the optimistic and the pessimistic rank."""
        mean: NDArray[np.float64] = (self.optimistic + self.pessimistic) / 2
        return mean

    def of(self, ties: str) -> NDArray[np.float64]:
        """Return the ranks under one way to treat ties."""
        return np.asarray(getattr(self, ties), np.float64)

    def at(self, positions: NDArray[np.int64]) -> Ranks:
        """Return the ranks in another order."""
        return Ranks(self.optimistic[positions], self.pessimistic[positions])


def target_ranks(queries: QueryArrays, answers: AnswerArrays, n_entities: int) -> Ranks:
    """Return the ranks of the targets.

    A target that no rule predicts ties with every other entity that none predicts, after all candidates.
    """
    sizes = np.diff(queries.target_offsets)
    question = np.repeat(np.arange(len(sizes)), sizes)
    fired_targets = np.bincount(question, weights=answers.fired, minlength=len(sizes)).astype(np.int64)
    n_candidates = (answers.n_candidates - fired_targets)[question]
    n_others = (n_entities - answers.n_excluded - sizes)[question]
    optimistic = np.where(answers.fired, answers.better + 1, n_candidates + 1)
    pessimistic = np.where(answers.fired, answers.better + answers.equal + 1, np.maximum(n_others, n_candidates) + 1)
    return Ranks(optimistic, pessimistic)


FEWEST_VALID = 50  # triples: if one pair in ten were connected, seeing none among this many has a chance of 1 in 194


def connected_share(dataset: Dataset) -> float:
    """Return the share of validation triples whose two entities are connected in train by any relation, either way."""
    valid = dataset.valid.triples
    pairs = unordered_pair_keys(valid)
    is_known = np.zeros(len(pairs), np.bool_)
    for piece in rows_about(np.unique(valid[:, 0]), dataset.train.triples):
        is_known |= np.isin(pairs, unordered_pair_keys(piece))
    return float(is_known.mean()) if len(pairs) else 1.0


def blocks_connected(choice: str, dataset: Dataset) -> bool:
    """Return whether to block: `on`, `off`, or `auto`, which blocks if no validation triple joins connected
    entities, and there are enough of them for this not to be chance.
    """
    if choice == "auto":
        return len(dataset.valid) >= FEWEST_VALID and connected_share(dataset) == 0.0
    return choice == "on"


def joins_unconnected(triples: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Return which triples join entities that no other of them joins, either way."""
    _, numbers, counts = np.unique(unordered_pair_keys(triples), return_inverse=True, return_counts=True)
    alone: NDArray[np.bool_] = counts[numbers] == 1
    return alone


def unordered_pair_keys(triples: NDArray[np.int32]) -> NDArray[np.int64]:
    """Return each triple's two entities as one number, whichever comes first."""
    low, high = triples[:, [0, 2]].min(axis=1), triples[:, [0, 2]].max(axis=1)
    pairs: NDArray[np.int64] = low.astype(np.int64) << 32 | high
    return pairs
