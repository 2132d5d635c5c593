"""The rules as an index that queries walk, and what a query writes to.

The score of a rule is its *doubt removed*, -log(1 - confidence), in whole units of 2^-44: ordered as confidences are,
and noisy-or is a sum that does not depend on the order of adding, so that ties are ties. Rules with the same counts
have the same score: the index holds a *code* for each rule, and `RuleIndex.scores` turns codes into scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import LevelArrays, empty_levels
from anyburl.graph.kernel import GraphArrays, Ints
from anyburl.rules.types import MAX_LENGTH


class ShortIndex(NamedTuple):
    """Unary rules of length 1, twice; both times the rules of one directed head relation stand side by side.

    Bodies are numbered: b(X, A), of a U_d rule, is the directed relation b; after all relations, b(X, c'), of a U_c
    rule, is the segment of c' for b read backward.
    """

    body_offsets: NDArray[np.int64]  # directed head relation -> its bodies
    bodies: Ints  # sorted, of the type that numbers segments
    rule_offsets: NDArray[np.int64]  # body -> its rules
    constants: NDArray[np.int32]  # of the head, sorted
    codes: NDArray[np.int32]
    rows: NDArray[np.int32]  # of the rule set
    head_offsets: NDArray[np.int64]  # directed head relation -> its heads
    head_constants: NDArray[np.int32]  # sorted
    head_rule_offsets: NDArray[np.int64]  # head -> its rules
    head_bodies: Ints
    head_codes: NDArray[np.int32]
    head_rows: NDArray[np.int32]  # sorted


class LongIndex(NamedTuple):
    """All other unary rules, of any body: sorted by directed head relation, then constant."""

    head_offsets: NDArray[np.int64]  # directed head relation -> its heads
    head_constants: NDArray[np.int32]  # sorted
    head_rule_offsets: NDArray[np.int64]  # head -> its rules
    types: NDArray[np.uint8]  # codes of `RuleType`: how a body is satisfied
    lengths: NDArray[np.int32]
    bodies: NDArray[np.int32]  # (n, longest), from the head's variable
    body_constants: NDArray[np.int32]  # -1 where there is none
    lows: NDArray[np.float64]  # of conditions on the attribute that the body ends in, NaN where there is none
    highs: NDArray[np.float64]
    head_codes: NDArray[np.int32]
    head_rows: NDArray[np.int32]  # sorted


class TrieIndex(NamedTuple):
    """The bodies of B rules, directed both ways: one trie per directed head relation; children stand side by side."""

    roots: NDArray[np.int64]  # directed head relation -> its first child; the next relation's first child ends them
    # Node -> the step that leads to it; after all relations, 3 * attribute + 1 + order is a comparison of the entity
    # that the walk started from with where it is, see `compares`.
    relations: NDArray[np.int32]
    first_children: NDArray[np.int64]  # node -> its first child
    n_children: NDArray[np.int32]
    codes: NDArray[np.int32]  # of the rule that ends here, -1 where none does
    rows: NDArray[np.int32]


class AttributeArrays(NamedTuple):
    """The values of attributes: those of one attribute, and of them those of one entity, stand side by side."""

    offsets: NDArray[np.int64]  # relation -> its first row, if it is an attribute that conditions are on
    entities: NDArray[np.int32]
    values: NDArray[np.float64]


class RelationEdges(NamedTuple):
    """A third view of the graph's edges: relation by relation, in the order of `domains`; without the token `self`."""

    starts: NDArray[np.int64]  # position in the graph's `domains` -> its first row in `ends`
    ends: NDArray[np.int32]  # row -> the entity reached


class RuleIndex(NamedTuple):
    """All rules, ready to answer queries.

    `scores` and `best_below` depend on how confidences are smoothed and weighted, the rest on rules and graph only.
    """

    short: ShortIndex
    long: LongIndex
    trie: TrieIndex
    edges: RelationEdges
    values: AttributeArrays
    counts: NDArray[np.int64]  # code -> type, support and predictions: (codes, 3)
    scores: NDArray[np.int64]  # code -> score
    best_below: NDArray[np.int64]  # node of the trie -> the highest score of the rules that end at it or below


class FiringArrays(NamedTuple):
    """What fires for one query: a rule and the candidate that it predicts."""

    candidates: NDArray[np.int32]
    scores: NDArray[np.int64]
    rules: NDArray[np.int32]
    following: NDArray[np.int32]  # the next firing of the same candidate, -1 at the end
    lists: NDArray[np.int64]  # scratch: scores of candidates that had to be compared, each list sorted downward


class QueryArrays(NamedTuple):
    """Queries (entity, directed relation, ?): those with the same answers occur once.

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
    targets: NDArray[np.int64]  # stamp: to be ranked
    reached: NDArray[np.int64]  # of a target: the highest score that predicts it so far, -1 before
    n_ahead: NDArray[np.int64]  # how many candidates are known to rank before all targets; these are excluded as well
    tied: NDArray[np.int64]  # stamp: among `undecided`
    undecided: NDArray[np.int32]  # candidates that tie as far as is known
    ordered: NDArray[np.int32]  # targets, the best first, one of those that tie
    standings: NDArray[np.int32]  # target -> its position among `ordered`, or that of the one that it ties with
    n_before: NDArray[np.int64]  # position -> rivals that rank between this target and the one before
    n_beside: NDArray[np.int64]  # position -> rivals that tie with this target
    n_rivals: NDArray[np.int64]  # position -> rivals that may tie with this target
    firsts: NDArray[np.int32]  # the first firing
    keys: NDArray[np.int64]  # what candidates are ordered by
    listed: NDArray[np.int32]  # the candidates
    list_starts: NDArray[np.int64]  # where the sorted scores of a candidate are in `FiringArrays.lists`, -1: nowhere
    list_sizes: NDArray[np.int64]
    list_end: NDArray[np.int64]  # where the next list goes


class LinkArrays(NamedTuple):
    """The segments of some entities by directed relation, in lists of links."""

    mark: NDArray[np.int64]  # stamp of the relations that there are links for
    n_links: NDArray[np.int64]
    stamps: NDArray[np.int64]  # per directed relation
    sizes: NDArray[np.int64]  # relation -> how many links
    firsts: NDArray[np.int64]  # relation -> the first link
    entities: NDArray[np.int32]
    segments: NDArray[np.int64]
    following: NDArray[np.int32]  # the next link of the same relation, -1 at the end


class MatchedBodies(NamedTuple):
    """The bodies of length 1 that the entity of a query satisfies, if there are rules with them that answer it."""

    query: NDArray[np.int64]  # the number of the query that all are listed for
    relation: NDArray[np.int64]  # and its relation: where many are asked for one entity, they may share a number
    n: NDArray[np.int64]
    first_rules: NDArray[np.int64]  # in the order of `ShortIndex.constants`
    last_rules: NDArray[np.int64]
    only: NDArray[np.int32]  # the only entity that the relation of a U_d body leads to, negative: there are several


class KeptLevels(NamedTuple):
    """Levels 1 of walks from one entity, which the next walk from it need not find again."""

    entity: NDArray[np.int64]  # that these walks start from
    n: NDArray[np.int64]  # nodes that are kept
    keys: NDArray[np.int64]  # hash of two steps -> those, where the level that they lead to is kept; -1: none is
    starts: NDArray[np.int64]  # its first node
    sizes: NDArray[np.int64]
    nodes: NDArray[np.int32]
    ways: NDArray[np.int32]  # the inner entity of the only way to the node, -1 if there are several


class TrieWalk(NamedTuple):
    """Where a walk through the trie stands, and the levels it has opened."""

    clock: NDArray[np.int64]
    levels: LevelArrays
    clocks: NDArray[np.int64]  # depth -> the stamp of its level
    n_nodes: NDArray[np.int64]  # depth -> the entities reached, -1 where that is not known yet
    next_child: NDArray[np.int64]
    end_child: NDArray[np.int64]
    steps: NDArray[np.int64]  # depth -> the relation that leads to its level
    n_linked: NDArray[np.int64]  # firings, from which on the best candidates are looked for again
    body: NDArray[np.int32]  # the body being walked, reversed
    ends: NDArray[np.int64]  # stamp: entity is reached by the last step
    bodies: MatchedBodies
    kept: KeptLevels
    undecided: LinkArrays  # of the undecided candidates
    first_level: LinkArrays  # of the entities of level 0
    n_opened: NDArray[np.int64]  # how often level 1 was entered from the same level 0


class Workspace(NamedTuple):
    """What one worker writes to while it answers queries."""

    walk: TrieWalk
    candidates: CandidateArrays
    firings: FiringArrays


class QueryState(NamedTuple):
    """The query (s, d, ?) under way, and how bodies are walked for it."""

    q: int  # its row in `QueryArrays`
    s: int
    d: int
    query: int  # the number that it has in `CandidateArrays`
    object_identity: bool
    longest: int  # the most steps that a body has
    least: int  # B rules with lower scores do not fire
    below: int  # B rules with this score, or a higher one, do not fire
    tied: int  # B rules fire only for candidates that `CandidateArrays.tied` holds this stamp for; -1: for all
    top: int  # whatever rules with higher scores predict ranks before all targets, and is only counted, see `fire`


ANY_SCORE = 1 << 62
"""More than any score."""


class Leaf(NamedTuple):
    """The end of a body in the trie: its last step, from the entities of a level, and the rule that ends there."""

    relation: int
    side: int  # the level
    score: int
    rule: int


MOST_LINKS = 1 << 11
MOST_BODIES = 1 << 12
MOST_KEPT = 1 << 10  # levels
ROOM_KEPT = 1 << 17  # for their nodes


def empty_links(n_directed: int) -> LinkArrays:
    """Return room for the links of so many directed relations."""
    return LinkArrays(
        mark=np.zeros(1, np.int64),
        n_links=np.zeros(1, np.int64),
        stamps=np.zeros(n_directed, np.int64),
        sizes=np.zeros(n_directed, np.int64),
        firsts=np.zeros(n_directed, np.int64),
        entities=np.zeros(MOST_LINKS, np.int32),
        segments=np.zeros(MOST_LINKS, np.int64),
        following=np.zeros(MOST_LINKS, np.int32),
    )


def empty_walk(graph: GraphArrays, longest: int) -> TrieWalk:
    """Return the buffers of one worker for bodies up to length `longest`."""
    n_entities = graph.n_entities
    columns = [np.zeros(longest + 1, np.int64) for _ in range(5)]
    return TrieWalk(
        clock=np.zeros(1, np.int64),
        levels=empty_levels(n_entities + 1, longest, sides=longest + 1),
        clocks=columns[0],
        n_nodes=columns[1],
        next_child=columns[2],
        end_child=columns[3],
        steps=columns[4],
        n_linked=np.zeros(1, np.int64),
        body=np.zeros(MAX_LENGTH, np.int32),
        ends=np.zeros(n_entities + 1, np.int64),
        bodies=MatchedBodies(
            query=np.full(1, -1, np.int64),
            relation=np.full(1, -1, np.int64),
            n=np.zeros(1, np.int64),
            first_rules=np.zeros(MOST_BODIES, np.int64),
            last_rules=np.zeros(MOST_BODIES, np.int64),
            only=np.zeros(MOST_BODIES, np.int32),
        ),
        kept=KeptLevels(
            entity=np.full(1, -1, np.int64),
            n=np.zeros(1, np.int64),
            keys=np.full(MOST_KEPT, -1, np.int64),
            starts=np.zeros(MOST_KEPT, np.int64),
            sizes=np.zeros(MOST_KEPT, np.int64),
            nodes=np.zeros(ROOM_KEPT, np.int32),
            ways=np.zeros(ROOM_KEPT, np.int32),
        ),
        undecided=empty_links(2 * graph.n_relations),
        first_level=empty_links(2 * graph.n_relations),
        n_opened=np.zeros(1, np.int64),
    )


def empty_firings(room: int) -> FiringArrays:
    """Return room for `room` firings."""
    return FiringArrays(
        candidates=np.empty(room, np.int32),
        scores=np.empty(room, np.int64),
        rules=np.empty(room, np.int32),
        following=np.empty(room, np.int32),
        lists=np.empty(2 * room, np.int64),  # and room for a heap of keys
    )


def empty_candidates(n_entities: int) -> CandidateArrays:
    """Return one worker's buffers."""
    wide = [np.zeros(n_entities + 1, np.int64) for _ in range(11)]
    narrow = [np.zeros(n_entities + 1, np.int32) for _ in range(5)]
    return CandidateArrays(
        clock=np.zeros(1, np.int64),
        stamps=wide[0],
        excluded=wide[1],
        targets=wide[2],
        reached=wide[3],
        n_ahead=np.zeros(1, np.int64),
        tied=wide[4],
        undecided=narrow[0],
        ordered=narrow[3],
        standings=narrow[4],
        n_before=wide[8],
        n_beside=wide[9],
        n_rivals=wide[10],
        firsts=narrow[1],
        keys=wide[5],
        listed=narrow[2],
        list_starts=wide[6],
        list_sizes=wide[7],
        list_end=np.zeros(1, np.int64),
    )


class AnswerSettings(NamedTuple):
    """How queries are answered.

    The key of a candidate is the sum of its `n_counted` highest scores; where keys are equal and `breaks_ties`, the
    candidates' scores are compared one by one, the highest first.
    """

    n_counted: int
    breaks_ties: bool
    object_identity: bool
    block_connected: bool
    keep_known: bool  # known answers are not blocked
    only_fires: bool  # nothing is ranked
    only_best: bool  # candidates that are not among the best need not be found
    top_k: int
    longest: int
    least_binary: int  # B rules with lower scores do not fire; -1: all fire


class AnswerArrays(NamedTuple):
    """What comes of the queries: per target its rank among the candidates, per query the best candidates.

    `n_candidates` and `n_firings` are -1 where ranks were found without looking at all candidates.
    """

    fired: NDArray[np.bool_]  # whether any rule predicts the target
    better: NDArray[np.int64]
    equal: NDArray[np.int64]
    target_rules: NDArray[np.int32]  # the rule with the highest score that predicts the target, or -1
    n_candidates: NDArray[np.int64]
    n_excluded: NDArray[np.int64]
    n_firings: NDArray[np.int64]
    best: NDArray[np.int32]  # (queries, top_k)
    best_keys: NDArray[np.int64]
    best_rules: NDArray[np.int32]  # the rule with the highest score that predicts each of the best
    best_counts: NDArray[np.int32]  # how many rules predict it
    n_best: NDArray[np.int64]
    evidence: NDArray[
        np.float32
    ]  # (queries, top_k, columns): what speaks for the best; without columns if it is not requested


def empty_answers(n_queries: int, n_targets: int, top_k: int, n_columns: int = 0) -> AnswerArrays:
    """Return room for the answers, with `n_columns` of evidence for each of the best candidates."""
    return AnswerArrays(
        fired=np.zeros(n_targets, np.bool_),
        better=np.zeros(n_targets, np.int64),
        equal=np.zeros(n_targets, np.int64),
        target_rules=np.full(n_targets, -1, np.int32),
        n_candidates=np.zeros(n_queries, np.int64),
        n_excluded=np.zeros(n_queries, np.int64),
        n_firings=np.zeros(n_queries, np.int64),
        best=np.full((n_queries, top_k), -1, np.int32),
        best_keys=np.zeros((n_queries, top_k), np.int64),
        best_rules=np.full((n_queries, top_k), -1, np.int32),
        best_counts=np.zeros((n_queries, top_k), np.int32),
        n_best=np.zeros(n_queries, np.int64),
        evidence=np.zeros((n_queries, top_k, n_columns), np.float32),
    )


def offsets_of(keys: NDArray[Any], n: int) -> NDArray[np.int64]:
    """Return where each of [0, n) starts in the sorted `keys`, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n)[:n])]).astype(np.int64)
