"""From a rule set to the indexes that queries walk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.ranking.arrays import UNIT, LongIndex, RelationEdges, RuleIndex, TrieIndex, UnaryIndex
from anyburl.ranking.kernel_index import copy_steps, count_sort, count_steps, find_segments
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet

MOST_CERTAIN = 1.0 - 2.0**-40

Rows = NDArray[np.int64]


def to_scores(confidences: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return -log(1 - confidence) in whole units; a confidence of 1 is taken as just below."""
    return np.rint(-np.log1p(-np.minimum(confidences, MOST_CERTAIN)) * UNIT).astype(np.int64)


def to_confidences(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the confidence behind a score, or behind a sum of scores (noisy-or)."""
    return -np.expm1(-scores / UNIT)


def build_index(graph: GraphArrays, rules: RuleSet, confidences: NDArray[np.float64]) -> RuleIndex:
    """Index the rules (of the graph's vocabulary); `confidences` are what they count for."""
    scores, lengths = to_scores(confidences), rules.lengths
    rules = _read_self_forward(rules)
    is_type = {name: rules.type == name.code for name in RuleType}
    pairs = is_type[RuleType.UNARY_CONSTANT] & (lengths == 1)
    dangling = is_type[RuleType.UNARY_DANGLING] & (lengths == 1)
    binary = is_type[RuleType.BINARY]
    segments = _Segments(graph, rules)
    index = RuleIndex(
        _pairs(rules, scores, np.flatnonzero(pairs), segments),
        _dangling(rules, scores, np.flatnonzero(dangling), segments),
        _long(rules, scores, np.flatnonzero(~(pairs | dangling | binary)), segments),
        _trie(rules, scores, np.flatnonzero(binary)),
        _edges(graph),
        segments.strange_heads,
    )
    freeze(index)
    return index


def freeze(part: Any) -> None:
    """Make the arrays of an index read-only, as an object store hands them out: one compilation serves both."""
    if isinstance(part, np.ndarray):
        part.setflags(write=False)
    else:
        for field in part:
            freeze(field)


def _read_self_forward(rules: RuleSet) -> RuleSet:
    """Return the rules with heads h(self, Y), as other tools write them, turned into h(X, self): they say the same."""
    n_relations = rules.vocabulary.n_relations
    backward = (rules.head_constant == rules.vocabulary.self_id) & (rules.head >= n_relations)
    return rules.replace(head=np.where(backward, rules.head - n_relations, rules.head)) if backward.any() else rules


class _Segments:
    """Finds segments by entity and directed relation, -1 where there is none; and numbers the heads of unary rules."""

    def __init__(self, graph: GraphArrays, rules: RuleSet) -> None:
        self._graph = graph
        self.n_relations, self.n_segments = graph.n_relations, len(graph.segment_relations)
        self.n_entities = graph.n_entities
        unary = rules.head_constant >= 0
        constants, heads = rules.head_constant[unary], rules.head[unary]
        strange = self.find(constants, heads) < 0
        self.strange_heads = np.unique(self._pack(constants[strange], heads[strange]))
        self.n_heads = self.n_segments + len(self.strange_heads)

    def find(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the segment that leads back along each relation, that is of its entity for the relation inverted."""
        segments = np.empty(len(entities), np.int32)
        find_segments(self._graph, entities, relations, segments)
        return segments

    def find_heads(self, constants: NDArray[np.int32], heads: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of unary heads: segments, and past those the heads that no triple is an example of."""
        numbers = self.find(constants, heads)
        strange = np.flatnonzero(numbers < 0)
        keys = self._pack(constants[strange], heads[strange])
        numbers[strange] = self.n_segments + np.searchsorted(self.strange_heads, keys)
        return numbers

    def _pack(self, constants: NDArray[np.int32], heads: NDArray[np.int32]) -> NDArray[np.int64]:
        return constants.astype(np.int64) * (2 * self.n_relations) + heads


def _offsets(keys: NDArray[Any], n: int) -> NDArray[np.int64]:
    """Return where each of [0, n) starts in the sorted `keys`."""
    return np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=n)[:n])]).astype(np.int64)


def _order(*columns: tuple[NDArray[np.int32], int]) -> NDArray[np.int32]:
    """Return the order by columns of small whole numbers, each with their bound, the least important first."""
    order = np.arange(len(columns[0][0]), dtype=np.int32)
    for keys, bound in columns:
        sorted_rows = np.empty_like(order)
        count_sort(np.ascontiguousarray(keys, np.int32), order, np.zeros(bound + 1, np.int64), sorted_rows)
        order = sorted_rows
    return order


def _unary(
    rules: RuleSet, scores: NDArray[np.int64], rows: Rows, body: NDArray[np.int32], n_bodies: int, segments: _Segments
) -> UnaryIndex:
    """Index the rules at `rows`, whose bodies have the numbers `body`, by body and by head."""
    constants, heads = rules.head_constant[rows], rules.head[rows]
    order = _order((constants, segments.n_entities + 1), (heads, 2 * segments.n_relations), (body, n_bodies))
    head = segments.find_heads(constants, heads)
    by_body, by_head = rows[order], _order((head, segments.n_heads))
    return UnaryIndex(
        body_offsets=_offsets(body[order], n_bodies),
        body_heads=rules.head[by_body],
        body_constants=rules.head_constant[by_body],
        body_scores=scores[by_body],
        body_rules=by_body.astype(np.int32),
        head_offsets=_offsets(head[by_head], segments.n_heads),
        head_bodies=body[by_head],
        head_scores=scores[rows[by_head]],
        head_rules=rows[by_head].astype(np.int32),
    )


def _first_relations(rules: RuleSet, rows: Rows) -> NDArray[np.int32]:
    """Return the first relation of each rule's body."""
    first = rules.bodies[:, 0] if rules.bodies.shape[1] else np.empty(len(rules.bodies), np.int32)
    return first[rules.body[rows]]


def _pairs(rules: RuleSet, scores: NDArray[np.int64], rows: Rows, segments: _Segments) -> UnaryIndex:
    body = segments.find(rules.body_constant[rows], _first_relations(rules, rows))
    rows, body = rows[body >= 0], body[body >= 0]  # a body that nothing satisfies predicts nothing
    return _unary(rules, scores, rows, body, segments.n_segments, segments)


def _dangling(rules: RuleSet, scores: NDArray[np.int64], rows: Rows, segments: _Segments) -> UnaryIndex:
    return _unary(rules, scores, rows, _first_relations(rules, rows), 2 * segments.n_relations, segments)


def _long(rules: RuleSet, scores: NDArray[np.int64], rows: Rows, segments: _Segments) -> LongIndex:
    by_relation = np.argsort(rules.head[rows], kind="stable")
    head = segments.find_heads(rules.head_constant[rows], rules.head[rows])
    by_head = _order((head, segments.n_heads))
    width = max(rules.bodies.shape[1], 1)
    bodies = np.full((len(rows), width), -1, np.int32)
    bodies[:, : rules.bodies.shape[1]] = rules.bodies[rules.body[rows]]
    return LongIndex(
        relation_offsets=_offsets(rules.head[rows][by_relation], 2 * segments.n_relations),
        relation_rules=by_relation.astype(np.int32),
        head_offsets=_offsets(head[by_head], segments.n_heads),
        head_rules=by_head.astype(np.int32),
        heads=rules.head[rows],
        lengths=rules.lengths[rows].astype(np.int32),
        bodies=bodies,
        body_constants=rules.body_constant[rows],
        head_constants=rules.head_constant[rows],
        scores=scores[rows],
        rules=rows.astype(np.int32),
    )


def _edges(graph: GraphArrays) -> RelationEdges:
    """Return the edges of each directed relation side by side."""
    starts: NDArray[np.int64] = np.zeros(len(graph.domains) + 1, np.int64)
    count_steps(graph, starts[1:])
    np.cumsum(starts, out=starts)
    ends: NDArray[np.int32] = np.empty(int(starts[-1]), np.int32)
    copy_steps(graph, starts, ends)
    return RelationEdges(starts, ends)


def _trie(rules: RuleSet, scores: NDArray[np.int64], rows: Rows) -> TrieIndex:
    """Build one trie per directed head relation, level by level; a rule stands in the tries of both its readings."""
    n_relations = rules.vocabulary.n_relations
    lengths = rules.lengths[rows]
    width = max(int(lengths.max(initial=1)), 1)
    bodies = rules.bodies[rules.body[rows]][:, :width] if len(rows) else np.empty((0, width), np.int32)
    places = lengths[:, None] - 1 - np.arange(width)[None, :]
    backward = np.where(
        places >= 0, inverses(np.take_along_axis(bodies, np.maximum(places, 0), axis=1), n_relations), -1
    )
    keys = np.vstack(
        [np.column_stack([rules.head[rows], bodies]), np.column_stack([rules.head[rows] + n_relations, backward])]
    )
    doubled = np.concatenate([rows, rows])
    order = np.lexsort(keys.T[::-1])
    return _levels(keys[order], doubled[order], scores, 2 * n_relations)


def _levels(keys: NDArray[np.int32], rows: Rows, scores: NDArray[np.int64], n_heads: int) -> TrieIndex:
    """Cut sorted keys (head, step, step, ...) into nodes, level by level: a node is a run with the same beginning."""
    n, width = keys.shape
    changed = np.ones((n, width), np.bool_)
    changed[1:] = np.logical_or.accumulate(keys[1:] != keys[:-1], axis=1)
    above = keys[:, 0].astype(np.int64)
    n_nodes = 0
    levels: list[tuple[NDArray[Any], ...]] = []
    for step in range(1, width):
        here = keys[:, step] >= 0
        starts = here & changed[:, step]
        nodes = np.cumsum(starts) - 1
        firsts = np.flatnonzero(starts)
        ending = np.flatnonzero(here & (keys[:, step + 1] < 0 if step + 1 < width else True))
        ending_scores, ending_rules = np.full(len(firsts), -1, np.int64), np.full(len(firsts), -1, np.int32)
        ending_scores[nodes[ending]] = scores[rows[ending]]
        ending_rules[nodes[ending]] = rows[ending]
        levels.append((keys[firsts, step], above[firsts], ending_scores, ending_rules))
        above = nodes + n_nodes
        n_nodes += len(firsts)
    relations, parents, node_scores, node_rules = (np.concatenate(column) for column in zip(*levels, strict=True))
    n_first = len(levels[0][0])
    return TrieIndex(
        roots=_offsets(parents[:n_first], n_heads),
        relations=relations,
        first_children=_offsets(parents[n_first:], n_nodes)[:-1] + n_first,
        n_children=np.bincount(parents[n_first:], minlength=n_nodes).astype(np.int32),
        scores=node_scores,
        rules=node_rules,
    )
