"""Build the index of a rule set that queries walk: tries of the bodies of B rules, lists of unary rules by body and by
head. Turns confidences into scores and back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import RuleError
from anyburl.data.attributes import attributes_of
from anyburl.graph.build import lookup_segments
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.graph.kernel import Ints as AnyInts
from anyburl.ranking.arrays import (
    AttributeArrays,
    LongIndex,
    RelationEdges,
    RuleIndex,
    ShortIndex,
    TrieIndex,
    offsets_of,
)
from anyburl.ranking.kernel_trie import copy_steps, count_sort, count_steps, find_best_below, number_counts
from anyburl.ranking.options import UNIT, RankOptions
from anyburl.rules.columns import condition_attributes, confidence
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS, MAX_LENGTH, RuleType

Rows = NDArray[np.int64]
Ints = NDArray[np.int32]


def build_trie(rules: RuleSet, codes: Ints, rows: Rows) -> TrieIndex:
    """Build the tries of the B rules at `rows`; a rule stands in the tries of both its readings."""
    heads, bodies, read = readings(rules, rows)
    keys = np.column_stack([heads, bodies])
    order = np.lexsort(keys.T[::-1])
    return cut_levels(keys[order], read[order], codes, 2 * rules.vocabulary.n_relations)


def readings(rules: RuleSet, rows: Rows) -> tuple[Ints, Ints, Rows]:
    """Return directed heads, bodies and rows of the B rules at `rows`, read forward, then all read backward.

    A comparison is a last step of its own, see `TrieIndex`.
    """
    n_relations = rules.vocabulary.n_relations
    lengths = rules.lengths[rows]
    width = max(int(lengths.max(initial=1)), 1)
    bodies = rules.bodies[rules.body[rows]][:, :width] if len(rows) else np.empty((0, width), np.int32)
    compared = np.flatnonzero(rules.has_condition[rows])
    n_steps = lengths.copy()
    n_steps[compared] -= 1
    places = n_steps[:, None] - 1 - np.arange(width)[None, :]
    reversed_bodies = np.take_along_axis(bodies, np.maximum(places, 0), axis=1)
    backward = np.where(places >= 0, inverses(reversed_bodies, n_relations), -1)
    if len(compared):
        assert rules.low is not None
        ends, orders = n_steps[compared], rules.low[rows[compared]].astype(np.int32)
        attributes = bodies[compared, ends]
        for read, order in ((bodies, orders), (backward, -orders)):
            read[compared, ends] = 2 * n_relations + 3 * attributes + 1 + order
    heads = np.concatenate([rules.head[rows], rules.head[rows] + n_relations])
    return heads, np.vstack([bodies, backward]), np.concatenate([rows, rows])


def cut_levels(keys: Ints, rows: Rows, codes: Ints, n_heads: int) -> TrieIndex:
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
        ending_codes, ending_rows = np.full((2, len(firsts)), -1, np.int32)
        ending_codes[nodes[ending]] = codes[rows[ending]]
        ending_rows[nodes[ending]] = rows[ending]
        levels.append((keys[firsts, step], above[firsts], ending_codes, ending_rows))
        above = nodes + n_nodes
        n_nodes += len(firsts)
    relations, parents, node_codes, node_rows = (np.concatenate(column) for column in zip(*levels, strict=True))
    n_first = len(levels[0][0])
    return TrieIndex(
        roots=offsets_of(parents[:n_first], n_heads),
        relations=relations,
        first_children=offsets_of(parents[n_first:], n_nodes)[:-1] + n_first,
        n_children=np.bincount(parents[n_first:], minlength=n_nodes).astype(np.int32),
        codes=node_codes,
        rows=node_rows,
    )


FEW_CODES = 1 << 10  # room for an eighth of the different counts that are looked for first


def build_rule_index(graph: GraphArrays, rules: RuleSet, *, tries: bool = True) -> RuleIndex:
    """Index the rules, of the graph's vocabulary; they have no scores yet, see `with_scores`.

    Without `tries`, B rules have codes only, for those who index them in another way.
    """
    longest = longest_body(rules)
    if longest > MAX_LENGTH:
        raise RuleError(f"rules of at most {MAX_LENGTH} body atoms can be applied, got one with {longest}")
    rules = _read_self_forward(rules)
    codes, counts = number_counts_of(rules)
    binary, by_body = rules.is_binary, np.array([kind.form.is_indexed_by_body for kind in KINDS])
    is_short = (rules.lengths == 1) & by_body[rules.type]
    index = RuleIndex(
        _short(graph, rules, codes, is_short),
        _long(graph, rules, codes, np.flatnonzero(~binary & ~is_short)),
        build_trie(rules, codes, np.flatnonzero(binary & tries)),
        _edges(graph),
        _values(rules),
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


def number_counts_of(rules: RuleSet) -> tuple[Ints, NDArray[np.int64]]:
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


def _short(graph: GraphArrays, rules: RuleSet, codes: Ints, mask: NDArray[np.bool_]) -> ShortIndex:
    """Index the unary rules that `mask` marks, of length 1, by body and by head; U_c rules stand before U_d rules."""
    n_heads = 2 * graph.n_relations
    rows, body = _numbered_bodies(graph, rules, mask)
    heads, constants = rules.head[rows], rules.head_constant[rows]
    codes, narrow = codes[rows], rows.astype(np.int32)
    by_constant = _sort(np.arange(len(rows), dtype=np.int32), constants, graph.n_entities + 1)
    by_body = _sort(_sort(by_constant, body, n_heads + len(graph.segment_relations)), heads, n_heads)
    by_head = _sort(by_constant, heads, n_heads)
    body_offsets, bodies, rule_offsets = _runs(heads[by_body], body[by_body], n_heads)
    head_offsets, head_constants, head_rule_offsets = _runs(heads[by_head], constants[by_head], n_heads)
    return ShortIndex(
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


def _numbered_bodies(graph: GraphArrays, rules: RuleSet, mask: NDArray[np.bool_]) -> tuple[Rows, AnyInts]:
    """Return those of the rules whose body something satisfies, U_c rules first, and the numbers of the bodies."""
    has_constant = rules.body_constant >= 0
    constant, dangling = np.flatnonzero(mask & has_constant), np.flatnonzero(mask & ~has_constant)
    relations, n_relations = rules.bodies[:, 0], graph.n_relations
    back = inverses(relations[rules.body[constant]], n_relations)
    segments = lookup_segments(graph, rules.body_constant[constant], back)
    is_known = segments >= 0
    largest = np.min_scalar_type(-(2 * n_relations + len(graph.segment_relations)))
    number = np.promote_types(segments.dtype, largest)
    numbers = segments[is_known].astype(number, copy=False)
    numbers += 2 * n_relations
    return np.append(constant[is_known], dangling), np.append(numbers, relations[rules.body[dangling]].astype(number))


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
        types=rules.type[rows],
        lengths=rules.lengths[rows].astype(np.int32),
        bodies=bodies,
        body_constants=rules.body_constant[rows],
        lows=np.full(len(rows), np.nan) if rules.low is None else rules.low[rows],
        highs=np.full(len(rows), np.nan) if rules.high is None else rules.high[rows],
        head_codes=codes[rows],
        head_rows=rows.astype(np.int32),
    )


def _values(rules: RuleSet) -> AttributeArrays:
    """Return the values of the attributes that rules have conditions on."""
    n_relations, attributes = rules.vocabulary.n_relations, attributes_of(rules.vocabulary)
    parts: dict[int, tuple[Ints, NDArray[np.float64]]] = {}
    for relation in np.unique(condition_attributes(rules)[rules.has_condition]):
        attribute = attributes.get(rules.vocabulary.relation_label(int(relation)))
        if attribute is not None:
            parts[int(relation)] = attribute.by_entity
    sizes = np.bincount(list(parts), [len(part[0]) for part in parts.values()], minlength=n_relations)
    return AttributeArrays(
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *(part[0] for part in parts.values())]),
        np.concatenate([np.empty(0, np.float64), *(part[1] for part in parts.values())]),
    )


def _edges(graph: GraphArrays) -> RelationEdges:
    """Return the edges of each directed relation side by side."""
    starts: NDArray[np.int64] = np.zeros(len(graph.domains) + 1, np.int64)
    count_steps(graph, starts[1:])
    np.cumsum(starts, out=starts)
    ends: NDArray[np.int32] = np.empty(int(starts[-1]), np.int32)
    copy_steps(graph, starts, ends)
    return RelationEdges(starts, ends)


MOST_CERTAIN = 1.0 - 2.0**-40
DIGITS = 12
"""Decimals of a score that people see: what lies beyond is rounding."""


def to_scores(confidences: NDArray[np.float64] | float) -> NDArray[np.int64]:
    """Return -log(1 - confidence) in whole units; a confidence of 1 is taken as just below."""
    scores: NDArray[np.int64] = np.rint(-np.log1p(-np.minimum(confidences, MOST_CERTAIN)) * UNIT).astype(np.int64)
    return scores


def to_confidences(scores: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the confidence behind a score, or behind a sum of scores (noisy-or)."""
    return -np.expm1(-scores / UNIT)


def shown_scores(keys: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the scores, from 0 to 1, that people see of candidates with these keys."""
    return to_confidences(keys).round(DIGITS) + 0.0  # 0, not -0, for a key of 0


def weighted_confidences(
    options: RankOptions, types: NDArray[np.uint8], support: NDArray[np.int32], predictions: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the smoothed confidence of rules with these counts, times the factor of their type."""
    factors = np.ones(256)
    for name, factor in options.weights.items():
        factors[RuleType(name).code] = factor
    return confidence(support, predictions, options.smoothing) * factors[types]
