"""Rules with a condition on a number, a date or a boolean: counting them exactly.

A condition is low <= v < high for one of the values v of X, or of an entity one step from X. Under object identity that
entity is neither X nor the constant of the head. A binary rule compares a value of X with one of Y. Conditions are few
beside other bodies, so whole columns of entities, or of pairs, are looked at for each.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import RuleError
from anyburl.bodies.arrays import empty_levels
from anyburl.bodies.kernel_values import compare_pairs, find_stated, list_pairs
from anyburl.data.attributes import Attributes, attributes_of
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import find_segments, owners, range_rows, segment_entities
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.rules.columns import RuleColumns, condition_attributes

Entities = NDArray[np.int32]
Mask = NDArray[np.bool_]

NO_ENTITIES: Entities = np.empty(0, np.int32)
NO_MASK: Mask = np.empty(0, np.bool_)


class ConditionalCounts(NamedTuple):
    """What was counted of rules with conditions, in columns."""

    predictions: NDArray[np.int64]
    support: NDArray[np.int32]
    having: NDArray[np.int64]  # of the predictions, those about subjects that have a fact of the head's relation
    receiving: NDArray[np.int64]  # those about objects that have one


def known_attributes(vocabulary: Vocabulary, rules: RuleColumns) -> Attributes:
    """Return the attributes of a vocabulary; refuse rules that have conditions on others."""
    attributes, conditional = attributes_of(vocabulary), rules.has_condition
    for relation in np.unique(condition_attributes(rules)[conditional]):
        label = rules.vocabulary.relation_label(int(relation))
        if label not in attributes:
            there = ", ".join(list(attributes)[:5]) if attributes else "none"
            raise RuleError(f"a rule has a condition on {label}, but the data has no such attribute; it has {there}")
    return attributes


def satisfying(vocabulary: Vocabulary, attribute: int, low: float, high: float) -> Mask:
    """Mark the entities that have a value v of an attribute with low <= v < high; nothing for the token `self`."""
    marked = np.zeros(vocabulary.n_entities + 1, np.bool_)
    values = attributes_of(vocabulary).get(vocabulary.relation_label(attribute))
    if values is not None:
        first, last = np.searchsorted(values.values, [low, high])
        marked[values.entities[first:last]] = True
    return marked


def edges_along(graph: GraphArrays, relation: int) -> tuple[Entities, Entities]:
    """Return the two ends of all edges along a directed relation, without the token `self`."""
    segments = np.flatnonzero(graph.segment_relations == relation)
    starts, ends = graph.segment_starts[segments], graph.segment_starts[segments + 1]
    sizes = (ends - starts).astype(np.int64)
    rows = range_rows(starts, sizes)
    near = np.repeat(segment_entities(graph, segments), sizes)
    far = graph.targets[rows]
    kept = (near < graph.n_entities) & (far < graph.n_entities)
    return near[kept], far[kept]


class Lookup:
    """The edges along directed relations and who has facts of them, found once each: conditions are many."""

    def __init__(self, graph: GraphArrays) -> None:
        self.edges = cache(partial(edges_along, graph))
        self.owners = cache(partial(owners, graph))


class Members:
    """Who satisfies the body of a rule with a condition: for each entity, by how many of its neighbours."""

    def __init__(
        self,
        lookup: Lookup,
        vocabulary: Vocabulary,
        body: NDArray[np.int32],
        low: float,
        high: float,
        identity: bool,
    ) -> None:
        self._far: Entities | None = None
        steps = body[body >= 0]
        has_value = satisfying(vocabulary, int(steps[-1]), low, high)
        if len(steps) == 1:
            self.ways = has_value.astype(np.int64)
            return
        near, far = lookup.edges(int(steps[0]))
        kept = has_value[far] & ((near != far) | (not identity))
        self._near, self._far = near[kept], far[kept]
        self.ways = np.bincount(self._near, minlength=len(has_value))

    def without(self, constant: int) -> Entities:
        """Return the members that remain if they, or the entity a step away, must not be `constant`."""
        own = np.array([constant] if self.ways[constant] else [], np.int32)
        if self._far is None:
            return own
        through = self._near[self._far == constant]
        return np.union1d(own, through[self.ways[through] == 1])

    def listed(self, without: Entities) -> Entities:
        """Return the members but for some, ascending."""
        is_member = self.ways > 0
        is_member[without] = False
        return np.flatnonzero(is_member).astype(np.int32)


def each_condition(
    lookup: Lookup, rules: RuleColumns, rows: NDArray[np.int64], object_identity: bool
) -> Iterator[tuple[Members, NDArray[np.int64]]]:
    """Yield the members of each condition on values among the unary rules at `rows`, and the rules that have it."""
    assert rules.low is not None
    assert rules.high is not None
    keys = np.column_stack([rules.body, rules.low, rules.high])[rows]
    _, firsts, numbers = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(numbers.ravel(), kind="stable")
    ends = np.cumsum(np.bincount(numbers.ravel(), minlength=len(firsts)))
    for first, own in zip(rows[firsts], np.split(rows[order], ends[:-1]), strict=True):
        body, low, high = rules.bodies[rules.body[first]], float(rules.low[first]), float(rules.high[first])
        yield Members(lookup, rules.vocabulary, body, low, high, object_identity), own


def members_of(graph: GraphArrays, rules: RuleColumns, row: int, *, object_identity: bool) -> Entities:
    """Return the entities that satisfy the body of a rule with a condition, ascending."""
    members, _ = next(each_condition(Lookup(graph), rules, np.array([row]), object_identity))
    return members.listed(members.without(int(rules.head_constant[row])) if object_identity else NO_ENTITIES)


def compares_as(vocabulary: Vocabulary, attribute: int, order: int, xs: Entities, ys: Entities) -> Mask:
    """Mark the pairs of entities of which the second has a value that is larger than one of the first (`order` 1), the
    same (0) or smaller (-1).
    """
    holds = np.zeros(len(xs), np.bool_)
    values = attributes_of(vocabulary).get(vocabulary.relation_label(attribute))
    if values is not None:
        compare_pairs(*values.by_entity, np.array(xs, np.int32), np.array(ys, np.int32), order, holds)
    return holds


def are_stated(graph: GraphArrays, relation: int, xs: Entities, ys: Entities) -> Mask:
    """Mark the pairs of entities between which a directed relation holds."""
    stated = np.zeros(len(xs), np.bool_)
    find_stated(graph, relation, xs, ys, stated)
    return stated


def pairs_along(
    graph: GraphArrays,
    path: NDArray[np.int32],
    *,
    object_identity: bool,
    starts: Entities | None = None,
    most: int = 1 << 20,
) -> Iterator[tuple[Entities, Entities]]:
    """Yield the pairs of entities that a path joins, at most `most` at a time, or all of one start: those of `starts`,
    or all.
    """
    path = np.ascontiguousarray(path)
    if starts is None:
        starts = graph.domains[slice(*graph.domain_offsets[path[0] : path[0] + 2])]
    levels, clock = empty_levels(graph.n_entities + 1, len(path)), np.zeros(1, np.int64)
    xs, ys = (np.empty(max(most, graph.n_entities + 1), np.int32) for _ in range(2))
    while len(starts):
        n, done = list_pairs(graph, path, starts, object_identity, levels, clock, xs, ys)
        yield xs[:n].copy(), ys[:n].copy()
        starts = starts[done:]


def is_conditional(rules: RuleColumns, row: int) -> bool:
    """Whether a rule has a condition; for one of millions, `has_condition` would look at all."""
    return rules.low is not None and not np.isnan(rules.low[row])


def split_body(rules: RuleColumns, row: int) -> tuple[NDArray[np.int32], int]:
    """Return the steps of a rule with a condition, and its attribute."""
    body = rules.bodies[rules.body[row]]
    steps = body[body >= 0]
    return steps[:-1], int(steps[-1])


def walk_of(rules: RuleColumns, row: int, start: int) -> tuple[NDArray[np.int32], Mask]:
    """Return the steps of a rule's body without its condition, and which entities at their end satisfy the condition
    if they begin at `start`: an empty mask if the rule has none.
    """
    if not is_conditional(rules, row):
        body = rules.bodies[rules.body[row]]
        return body[body >= 0], NO_MASK
    assert rules.low is not None
    assert rules.high is not None
    path, attribute = split_body(rules, row)
    if rules.head_constant[row] < 0:
        return path, comparing_with(rules.vocabulary, attribute, int(rules.low[row]), start)
    return path, satisfying(rules.vocabulary, attribute, float(rules.low[row]), float(rules.high[row]))


def comparing_with(vocabulary: Vocabulary, attribute: int, order: int, entity: int) -> Mask:
    """Mark the entities that `compares_as` pairs with `entity`: a comparison with it is a condition on the other."""
    marked = np.zeros(vocabulary.n_entities + 1, np.bool_)
    values = attributes_of(vocabulary).get(vocabulary.relation_label(attribute))
    if values is None or not len(own := values.values_of(entity)):
        return marked
    firsts, lasts = (np.searchsorted(values.values, own, side) for side in ("left", "right"))
    ranges = {-1: [(0, firsts.max())], 0: zip(firsts, lasts, strict=True), 1: [(lasts.min(), len(values.values))]}
    for first, last in ranges[order]:
        marked[values.entities[first:last]] = True
    return marked


def condition_holds(
    graph: GraphArrays, rules: RuleColumns, row: int, starts: Entities, ends: Entities, *, object_identity: bool
) -> Mask:
    """Mark the starts, or the pairs of start and end, that satisfy the condition of a rule; all if it has none."""
    if not is_conditional(rules, row):
        return np.ones(len(starts), np.bool_)
    if rules.head_constant[row] < 0:
        return comparison_holds(rules, row, starts, ends)
    return np.isin(starts, members_of(graph, rules, row, object_identity=object_identity))


def comparison_holds(rules: RuleColumns, row: int, xs: Entities, ys: Entities) -> Mask:
    """Mark the pairs of entities that compare as a binary rule says."""
    assert rules.low is not None
    return compares_as(rules.vocabulary, split_body(rules, row)[1], int(rules.low[row]), xs, ys)


def count_conditional(
    graph: GraphArrays, rules: RuleColumns, *, object_identity: bool, lookup: Lookup | None = None
) -> ConditionalCounts:
    """Count predictions and support of rules that all have conditions; they have the ids of the graph."""
    known_attributes(rules.vocabulary, rules)
    n, lookup = len(rules), lookup or Lookup(graph)
    counts = ConditionalCounts(
        np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(n, np.int64), np.zeros(n, np.int64)
    )
    _count_bounded(graph, lookup, rules, np.flatnonzero(~rules.is_binary), object_identity, counts)
    for body in np.unique(rules.body[rules.is_binary]):
        rows = np.flatnonzero(rules.is_binary & (rules.body == body))
        _count_compared(graph, lookup, rules, rows, object_identity, counts)
    return counts


def _count_compared(
    graph: GraphArrays,
    lookup: Lookup,
    rules: RuleColumns,
    rows: NDArray[np.int64],
    object_identity: bool,
    counts: ConditionalCounts,
) -> None:
    """Count the binary rules at `rows`, which have one body."""
    assert rules.low is not None
    path, attribute = split_body(rules, int(rows[0]))
    for xs, ys in pairs_along(graph, path, object_identity=object_identity):
        for order in np.unique(rules.low[rows]):
            kept = compares_as(rules.vocabulary, attribute, int(order), xs, ys)
            some_xs, some_ys = xs[kept], ys[kept]
            for row in rows[rules.low[rows] == order]:
                head = int(rules.head[row])
                counts.predictions[row] += len(some_xs)
                counts.support[row] += np.count_nonzero(are_stated(graph, head, some_xs, some_ys))
                back = int(inverses(rules.head[[row]], graph.n_relations)[0])
                counts.having[row] += np.count_nonzero(np.isin(some_xs, lookup.owners(head)))
                counts.receiving[row] += np.count_nonzero(np.isin(some_ys, lookup.owners(back)))


def _count_bounded(
    graph: GraphArrays,
    lookup: Lookup,
    rules: RuleColumns,
    bounded: NDArray[np.int64],
    object_identity: bool,
    counts: ConditionalCounts,
) -> None:
    """Count the unary rules at the rows `bounded`."""
    if not len(bounded):
        return
    segments = find_segments(graph, rules.head_constant, inverses(rules.head, graph.n_relations))
    for members, rows in each_condition(lookup, rules, bounded, object_identity):
        n_members = int(np.count_nonzero(members.ways))
        for head in np.unique(rules.head[rows]):
            of_head = lookup.owners(int(head))
            n_having = int(np.count_nonzero(members.ways[of_head]))
            has_head = np.zeros(graph.n_entities + 1, np.bool_)
            has_head[of_head] = True
            for row in rows[rules.head[rows] == head]:
                constant, segment = int(rules.head_constant[row]), int(segments[row])
                left_out = members.without(constant) if object_identity else NO_ENTITIES
                stated = (
                    graph.targets[slice(*graph.segment_starts[segment : segment + 2])] if segment >= 0 else left_out[:0]
                )
                stated = stated[stated < graph.n_entities]
                stated = stated[members.ways[stated] > 0]
                counts.predictions[row] = n_members - len(left_out)
                counts.support[row] = len(stated) - np.count_nonzero(np.isin(stated, left_out))
                counts.having[row] = n_having - int(np.count_nonzero(has_head[left_out]))
                counts.receiving[row] = counts.predictions[row] if counts.support[row] else 0
