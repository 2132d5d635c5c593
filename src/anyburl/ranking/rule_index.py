"""From a rule set to the index that queries walk."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.errors import RuleError
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.arrays import Ints as AnyInts
from anyburl.graph.lookup import find_segments
from anyburl.ranking.arrays import LongIndex, RelationEdges, RuleIndex, UnaryIndex, offsets_of
from anyburl.ranking.kernel_index import copy_steps, count_sort, count_steps, find_best_below, number_counts
from anyburl.ranking.trie import build_trie
from anyburl.rules.types import MAX_LENGTH, RuleType
from anyburl.ruleset.ruleset import RuleSet

FEW_CODES = 1 << 10  # room for an eighth of the different counts that are looked for first

Rows = NDArray[np.int64]
Ints = NDArray[np.int32]


def build_rule_index(graph: GraphArrays, rules: RuleSet) -> RuleIndex:
    """Index the rules, of the graph's vocabulary; they have no scores yet, see `with_scores`."""
    longest = longest_body(rules)
    if longest > MAX_LENGTH:
        raise RuleError(f"rules of at most {MAX_LENGTH} body atoms can be applied, got one with {longest}")
    rules = _read_self_forward(rules)
    codes, counts = _number_counts(rules)
    lengths = rules.lengths
    is_type = {kind: rules.type == kind.code for kind in RuleType}
    pairs = is_type[RuleType.UNARY_CONSTANT] & (lengths == 1)
    dangling = is_type[RuleType.UNARY_DANGLING] & (lengths == 1)
    binary = is_type[RuleType.BINARY]
    index = RuleIndex(
        _pairs(graph, rules, codes, np.flatnonzero(pairs)),
        _dangling(graph, rules, codes, np.flatnonzero(dangling)),
        _long(graph, rules, codes, np.flatnonzero(~(pairs | dangling | binary))),
        build_trie(rules, codes, np.flatnonzero(binary)),
        _edges(graph),
        counts,
        np.empty(0, np.int64),
        np.empty(0, np.int64),
    )
    freeze(index)
    return index


def with_scores(index: RuleIndex, scores: NDArray[np.int64]) -> RuleIndex:
    """Return the index with the score of each code of `index.counts`."""
    trie = index.trie
    best_below = np.empty(len(trie.codes), np.int64)
    scores = np.ascontiguousarray(scores, np.int64)
    freeze(scores)
    find_best_below(trie.first_children, trie.n_children, trie.codes, scores, best_below)
    freeze(best_below)
    return index._replace(scores=scores, best_below=best_below)


def with_edges(index: RuleIndex, graph: GraphArrays) -> RuleIndex:
    """Return the index with the edges of a graph, if it has those of another with the same segments."""
    own = int(graph.segment_offsets[graph.n_entities])  # from here on, those of `self`
    n_edges = int(graph.segment_starts[own]) - (len(graph.targets) - int(graph.segment_starts[own]))
    if len(index.edges.ends) == n_edges:
        return index
    edges = _edges(graph)
    freeze(edges)
    return index._replace(edges=edges)


def longest_body(rules: RuleSet) -> int:
    """Return the number of atoms of the longest body, at least 1."""
    return max(1, int((rules.bodies >= 0).sum(axis=1).max(initial=1)))


def freeze(part: Any) -> None:
    """Make arrays read-only, as memory maps and object stores hand them out: one compilation serves all."""
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


def _number_counts(rules: RuleSet) -> tuple[Ints, NDArray[np.int64]]:
    """Return a code for each rule, and for each code the type, support and predictions that its rules have."""
    codes, room, n_codes = np.empty(len(rules), np.int32), FEW_CODES, -1
    while n_codes < 0:
        room *= 8
        table, firsts = np.full(room, -1, np.int32), np.empty(room // 2 + 1, np.int32)
        n_codes = number_counts(rules.type, rules.support, rules.predictions, table, firsts, codes)
    chosen = firsts[:n_codes]
    counts = np.column_stack([rules.type[chosen], rules.support[chosen], rules.predictions[chosen]])
    return codes, np.ascontiguousarray(counts, np.int64)


def _sort(order: Ints, keys: AnyInts, bound: int) -> Ints:
    """Return `order` sorted by `keys[order]`, whole numbers below `bound`; equals keep their order."""
    sorted_rows = np.empty_like(order)
    count_sort(np.ascontiguousarray(keys), order, np.zeros(bound + 1, np.int64), sorted_rows)
    return sorted_rows


def _runs(heads: Ints, keys: AnyInts, n_heads: int) -> tuple[NDArray[np.int64], AnyInts, NDArray[np.int64]]:
    """Cut columns sorted by head relation, then key, into runs of the same: return where the runs of each head relation
    start, the key of each run, and where it starts.
    """
    changes = np.ones(len(keys), np.bool_)
    changes[1:] = (keys[1:] != keys[:-1]) | (heads[1:] != heads[:-1])
    firsts = np.flatnonzero(changes)
    return offsets_of(heads[firsts], n_heads), keys[firsts], np.append(firsts, len(keys)).astype(np.int64)


def _unary(graph: GraphArrays, rules: RuleSet, codes: Ints, rows: Rows, body: AnyInts, n_bodies: int) -> UnaryIndex:
    """Index the rules at `rows`, whose bodies have the numbers `body`, by body and by head."""
    n_heads = 2 * graph.n_relations
    heads, constants = rules.head[rows], rules.head_constant[rows]
    codes, narrow = codes[rows], rows.astype(np.int32)
    by_constant = _sort(np.arange(len(rows), dtype=np.int32), constants, graph.n_entities + 1)
    by_body = _sort(_sort(by_constant, body, n_bodies), heads, n_heads)
    by_head = _sort(by_constant, heads, n_heads)
    body_offsets, bodies, rule_offsets = _runs(heads[by_body], body[by_body], n_heads)
    head_offsets, head_constants, head_rule_offsets = _runs(heads[by_head], constants[by_head], n_heads)
    return UnaryIndex(
        body_offsets=body_offsets,
        bodies=bodies,
        rule_offsets=rule_offsets,
        constants=constants[by_body],
        codes=codes[by_body],
        rows=narrow[by_body],
        head_offsets=head_offsets,
        head_constants=head_constants,
        head_rule_offsets=head_rule_offsets,
        head_bodies=body[by_head],
        head_codes=codes[by_head],
        head_rows=narrow[by_head],
    )


def _first_relations(rules: RuleSet, rows: Rows) -> Ints:
    """Return the first relation of each rule's body."""
    first = rules.bodies[:, 0] if rules.bodies.shape[1] else np.empty(len(rules.bodies), np.int32)
    return first[rules.body[rows]]


def _pairs(graph: GraphArrays, rules: RuleSet, codes: Ints, rows: Rows) -> UnaryIndex:
    body = find_segments(graph, rules.body_constant[rows], inverses(_first_relations(rules, rows), graph.n_relations))
    rows, body = rows[body >= 0], body[body >= 0]  # a body that nothing satisfies predicts nothing
    return _unary(graph, rules, codes, rows, body, len(graph.segment_relations))


def _dangling(graph: GraphArrays, rules: RuleSet, codes: Ints, rows: Rows) -> UnaryIndex:
    return _unary(graph, rules, codes, rows, _first_relations(rules, rows), 2 * graph.n_relations)


def _long(graph: GraphArrays, rules: RuleSet, codes: Ints, rows: Rows) -> LongIndex:
    rows = rows[np.lexsort((rows, rules.head_constant[rows], rules.head[rows]))]
    head_offsets, head_constants, head_rule_offsets = _runs(
        rules.head[rows], rules.head_constant[rows], 2 * graph.n_relations
    )
    bodies = np.full((len(rows), max(rules.bodies.shape[1], 1)), -1, np.int32)
    bodies[:, : rules.bodies.shape[1]] = rules.bodies[rules.body[rows]]
    return LongIndex(
        head_offsets=head_offsets,
        head_constants=head_constants,
        head_rule_offsets=head_rule_offsets,
        lengths=rules.lengths[rows].astype(np.int32),
        bodies=bodies,
        body_constants=rules.body_constant[rows],
        codes=codes[rows],
        rows=rows.astype(np.int32),
    )


def _edges(graph: GraphArrays) -> RelationEdges:
    """Return the edges of each directed relation side by side."""
    starts: NDArray[np.int64] = np.zeros(len(graph.domains) + 1, np.int64)
    count_steps(graph, starts[1:])
    np.cumsum(starts, out=starts)
    ends: NDArray[np.int32] = np.empty(int(starts[-1]), np.int32)
    copy_steps(graph, starts, ends)
    return RelationEdges(starts, ends)
