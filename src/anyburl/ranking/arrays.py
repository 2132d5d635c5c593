"""The rules as indexes that queries walk, and what a query writes to.

The score of a rule is its *doubt removed*, -log(1 - confidence), in whole units of 2^-44: ordered as confidences are,
and noisy-or is a sum that does not depend on the order of adding, so that ties are ties.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import MAX_LENGTH, LevelArrays, empty_levels

UNIT = float(1 << 44)  # of scores


class UnaryIndex(NamedTuple):
    """Unary rules of length 1, by body and by head.

    The body b(X, c') of a U_c rule is the segment of c' for b read backward, the body b(X, A) of a U_d rule is the
    directed relation b.
    """

    body_offsets: NDArray[np.int64]  # body -> its rules, sorted by head relation, then constant
    body_heads: NDArray[np.int32]
    body_constants: NDArray[np.int32]
    body_scores: NDArray[np.int64]
    body_rules: NDArray[np.int32]  # row of the rule set
    head_offsets: NDArray[np.int64]  # head -> its rules
    head_bodies: NDArray[np.int32]
    head_scores: NDArray[np.int64]
    head_rules: NDArray[np.int32]


class LongIndex(NamedTuple):
    """Unary rules with longer bodies, and rules without one: by head relation, and by head."""

    relation_offsets: NDArray[np.int64]  # directed head relation -> its rules, sorted by body, then body constant
    relation_rules: NDArray[np.int32]  # place in the columns below
    head_offsets: NDArray[np.int64]  # head -> its rules
    head_rules: NDArray[np.int32]  # place in the columns below
    heads: NDArray[np.int32]
    lengths: NDArray[np.int32]
    bodies: NDArray[np.int32]  # (n, longest), from the head's variable
    body_constants: NDArray[np.int32]  # -1 for U_d
    head_constants: NDArray[np.int32]
    scores: NDArray[np.int64]
    rules: NDArray[np.int32]


class TrieIndex(NamedTuple):
    """The bodies of B rules, directed both ways: one trie per directed head relation; children stand side by side."""

    roots: NDArray[np.int64]  # directed head relation -> its first child; the next relation's first child ends them
    relations: NDArray[np.int32]  # node -> the step that leads to it
    first_children: NDArray[np.int64]  # node -> its first child
    n_children: NDArray[np.int32]
    scores: NDArray[np.int64]  # of the rule that ends here, negative where none does
    rules: NDArray[np.int32]


class RelationEdges(NamedTuple):
    """A third view of the graph's edges: relation by relation, in the order of `domains`; without the token `self`."""

    starts: NDArray[np.int64]  # place in the graph's `domains` -> its first row in `ends`
    ends: NDArray[np.int32]  # row -> the entity reached


class RuleIndex(NamedTuple):
    """All rules, ready to answer queries.

    Unary heads d(X, c) are numbered: the segment of c for d read backward, or, where no triple makes one, one past the
    segments for each of `strange_heads`, which holds c and d packed into one number (see `find_head`), sorted.
    """

    pairs: UnaryIndex
    dangling: UnaryIndex
    long: LongIndex
    trie: TrieIndex
    edges: RelationEdges
    strange_heads: NDArray[np.int64]


class FiringArrays(NamedTuple):
    """What fires for one query: a rule and the candidate that it predicts."""

    candidates: NDArray[np.int32]
    scores: NDArray[np.int64]
    rules: NDArray[np.int32]
    following: NDArray[np.int32]  # the next firing of the same candidate, -1 at the end


class QueryArrays(NamedTuple):
    """Queries (entity, directed relation, ?): those with the same answers asked for once.

    `excluded` are entities that must not be ranked against the targets (known answers); `targets` are those to be
    ranked.
    """

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    excluded_offsets: NDArray[np.int64]
    excluded: NDArray[np.int32]


class CandidateArrays(NamedTuple):
    """Per entity, valid where `stamps` holds the number of the query under way."""

    clock: NDArray[np.int64]  # the number of the last query; every query gets a new one, so nothing is ever cleared
    stamps: NDArray[np.int64]
    excluded: NDArray[np.int64]  # stamp: not to be ranked
    firsts: NDArray[np.int32]  # the first firing
    keys: NDArray[np.int64]  # what candidates are ordered by
    listed: NDArray[np.int32]  # the candidates
    left: NDArray[np.int64]  # scratch: the scores of one candidate, sorted downward
    right: NDArray[np.int64]


class TrieWalk(NamedTuple):
    """Where a walk through the trie stands, and the levels it has opened."""

    clock: NDArray[np.int64]
    levels: LevelArrays
    clocks: NDArray[np.int64]  # depth -> the stamp of its level
    n_nodes: NDArray[np.int64]  # depth -> the entities reached
    next_child: NDArray[np.int64]
    end_child: NDArray[np.int64]
    body: NDArray[np.int32]  # the body being walked, reversed
    ends: NDArray[np.int64]  # stamp: entity is reached by the last step


def empty_walk(n_entities: int, longest: int) -> TrieWalk:
    """Return the buffers of one worker for bodies up to length `longest`."""
    columns = [np.zeros(longest + 1, np.int64) for _ in range(4)]
    levels = empty_levels(n_entities + 1, longest, sides=longest + 1)
    body, ends = np.zeros(MAX_LENGTH, np.int32), np.zeros(n_entities + 1, np.int64)
    return TrieWalk(np.zeros(1, np.int64), levels, columns[0], columns[1], columns[2], columns[3], body, ends)


def empty_firings(room: int) -> FiringArrays:
    """Return room for `room` firings."""
    return FiringArrays(
        candidates=np.empty(room, np.int32),
        scores=np.empty(room, np.int64),
        rules=np.empty(room, np.int32),
        following=np.empty(room, np.int32),
    )


def empty_candidates(n_entities: int, n_rules: int) -> CandidateArrays:
    """Return one worker's buffers; no candidate has more firings than there are rules."""
    entities = n_entities + 1
    return CandidateArrays(
        clock=np.zeros(1, np.int64),
        stamps=np.zeros(entities, np.int64),
        excluded=np.zeros(entities, np.int64),
        firsts=np.zeros(entities, np.int32),
        keys=np.zeros(entities, np.int64),
        listed=np.zeros(entities, np.int32),
        left=np.zeros(n_rules + 1, np.int64),
        right=np.zeros(n_rules + 1, np.int64),
    )


class Protocol(NamedTuple):
    """How queries are answered."""

    aggregation: int
    n_best: int  # rules that count in noisy-or-top
    object_identity: bool
    block_connected: bool
    top_k: int
    longest: int


class AnswerArrays(NamedTuple):
    """What comes of the queries: per target its rank among the candidates, per query the best candidates."""

    fired: NDArray[np.bool_]  # whether any rule predicts the target
    better: NDArray[np.int64]
    equal: NDArray[np.int64]
    best_rules: NDArray[np.int32]  # the rule with the highest score that predicts the target, or -1
    n_candidates: NDArray[np.int64]
    n_excluded: NDArray[np.int64]
    n_firings: NDArray[np.int64]
    best: NDArray[np.int32]  # (queries, top_k)
    best_keys: NDArray[np.int64]
    n_best: NDArray[np.int64]
    evidence: NDArray[
        np.float32
    ]  # (queries, top_k, figures): what speaks for the best candidates; no figures: not told


def empty_answers(n_queries: int, n_targets: int, top_k: int, n_figures: int = 0) -> AnswerArrays:
    """Return room for the answers, with `n_figures` about the evidence for each of the best candidates."""
    return AnswerArrays(
        fired=np.zeros(n_targets, np.bool_),
        better=np.zeros(n_targets, np.int64),
        equal=np.zeros(n_targets, np.int64),
        best_rules=np.full(n_targets, -1, np.int32),
        n_candidates=np.zeros(n_queries, np.int64),
        n_excluded=np.zeros(n_queries, np.int64),
        n_firings=np.zeros(n_queries, np.int64),
        best=np.full((n_queries, top_k), -1, np.int32),
        best_keys=np.zeros((n_queries, top_k), np.int64),
        n_best=np.zeros(n_queries, np.int64),
        evidence=np.zeros((n_queries, top_k, n_figures), np.float32),
    )
