"""Learn rules with conditions on values: which cuts of an attribute tell who has a head, beyond chance.

A *feature* is an attribute of X, or of an entity one step from X along a directed relation. Its cuts are quantiles of
the values; every head is counted for all of them in one pass (`kernel_values`). Of a head, the cut with the likeliest
change of rate is kept in each direction, a finer one if it is better still, and an interval if it is better than either
half-line; all beyond chance, judged over the entities that have the values, and with a false discovery rate of
`FALSE_DISCOVERIES` over all heads and features. Cuts are rounded where the same entities satisfy them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import VALUE
from anyburl.bodies.conditions import NO_ENTITIES, Lookup, count_conditional, each_condition
from anyburl.bodies.kernel_values import (
    CHAIN,
    BinArrays,
    IntervalArrays,
    MemberArrays,
    fill_bins,
    find_conditions,
    surest_confidences,
    total_heads,
)
from anyburl.data.attributes import Attribute, AttributeKind, attributes_of, format_value, parse_value
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import find_segments, range_rows, segment_entities
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.rules.columns import VALUE_KINDS
from anyburl.rules.combine import distinct_rows
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import SMOOTHING

N_CUTS = 100
FEW_MEMBERS, FEW_CLUSTERS = 20, 10  # a feature of fewer tells nothing
LEAST_HITS = 3  # of a head, or it is not looked at
MOST_OF_A_HEAD = 5  # rules, those with the highest lower limit of confidence
FALSE_DISCOVERIES = 0.01
DECIDING = math.log(0.01)  # of the chance that a condition is no better, where it decides, than other rules
CLEARLY = math.log(1e-3)  # of the chance that a condition is no better than the relation of the head alone

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]


class Thresholds(NamedTuple):
    """Which rules are learned."""

    min_support: int
    min_confidence: float
    object_identity: bool
    selected: NDArray[np.bool_]  # directed relation -> whether it may be a head


class Feature(NamedTuple):
    """An attribute of X, or one step from it: for each member the value that decides, and the entity that has it."""

    attribute: Attribute
    path: int  # the directed relation from X, or -1
    entities: Ints
    values: Floats
    owners: Ints
    upward: bool  # whether conditions v >= low can be told by these values: the largest of each member,
    downward: bool  # and whether v < high can: the smallest


class Cuts(NamedTuple):
    """Where the values of a feature are cut: bin i begins with `firsts[i]`; the value before it is `befores[i]`."""

    firsts: Floats
    befores: Floats


class Candidates(NamedTuple):
    """Conditions that may be kept, in columns."""

    bodies: NDArray[np.int32]  # (n, 2): path and attribute, or attribute and -1
    kinds: NDArray[np.uint8]
    heads: Ints
    constants: Ints
    lows: Floats
    highs: Floats
    rates: Floats  # how many of the members of the feature have the head
    log_chances: Floats

    def take(self, rows: NDArray[np.int64]) -> Candidates:
        """Return the conditions at some rows."""
        columns: list[Any] = [column[rows] for column in self]
        return Candidates(*columns)


def learn_conditional(
    graph: GraphArrays,
    vocabulary: Vocabulary,
    thresholds: Thresholds,
    search_is_over: Callable[[], bool] = lambda: False,
    is_over: Callable[[], bool] = lambda: False,
) -> RuleSet:
    """Return rules with conditions, counted exactly. When `search_is_over`, no more features are looked at; when
    `is_over`, no more conditions are judged.
    """
    search = _Search(graph, vocabulary, thresholds)
    parts, n_tests = [_no_candidates()], 0
    for feature in features(graph, vocabulary):
        if search_is_over():
            break
        candidates, n_heads = search.conditions(feature)
        n_tests += n_heads
        parts.append(candidates)
    joint = Candidates(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return _counted(graph, vocabulary, joint.take(discoveries(joint.log_chances, n_tests)), thresholds, is_over)


def discoveries(log_chances: Floats, n_tests: int) -> NDArray[np.int64]:
    """Return the rows whose chances are so low that few of them are due to chance (Benjamini and Hochberg)."""
    order = np.argsort(log_chances, kind="stable")
    limits = math.log(FALSE_DISCOVERIES) + np.log(np.arange(1, len(order) + 1)) - math.log(max(n_tests, 1))
    passing = np.flatnonzero(log_chances[order] <= limits)
    return np.sort(order[: passing[-1] + 1]) if len(passing) else order[:0]


def features(graph: GraphArrays, vocabulary: Vocabulary) -> Iterator[Feature]:
    """Yield the features of all attributes: those of X itself, then those one step away, the most frequent first."""
    attributes = list(attributes_of(vocabulary).values())
    for attribute in attributes:
        entities, values = attribute.by_entity
        yield from _deciding(attribute, -1, entities, values, entities)
    for attribute in attributes:
        owners, values, targets, paths = _one_step(graph, attribute)
        order = np.argsort(paths, kind="stable")
        counts = np.bincount(paths, minlength=2 * graph.n_relations)
        ends = np.cumsum(counts)
        for path in np.argsort(-counts, kind="stable"):
            if counts[path] < FEW_MEMBERS:
                break
            rows = order[ends[path] - counts[path] : ends[path]]
            yield from _deciding(attribute, int(path), targets[rows], values[rows], owners[rows])


def _one_step(graph: GraphArrays, attribute: Attribute) -> tuple[Ints, Floats, Ints, Ints]:
    """Return each value of an attribute beside each entity that leads to its owner, and the relation that does."""
    owners, values = attribute.by_entity
    starts = graph.segment_starts[graph.segment_offsets[owners]].astype(np.int64)
    sizes = graph.segment_starts[graph.segment_offsets[owners + 1]].astype(np.int64) - starts
    rows = range_rows(starts, sizes)
    targets = graph.targets[rows]
    segments = np.searchsorted(graph.segment_starts, rows, side="right") - 1
    paths = inverses(graph.segment_relations[segments].astype(np.int32), graph.n_relations)
    kept = targets < graph.n_entities
    return np.repeat(owners, sizes)[kept], np.repeat(values, sizes)[kept], targets[kept], paths[kept]


def _deciding(attribute: Attribute, path: int, entities: Ints, values: Floats, owners: Ints) -> Iterator[Feature]:
    """Yield the feature of the largest value of each entity and that of the smallest, or one if these are the same."""
    order = np.lexsort((values, entities))
    entities, values, owners = entities[order], values[order], owners[order]
    changes = np.flatnonzero(np.diff(entities, prepend=-1))
    last = np.append(changes[1:], len(entities)) - 1
    if len(changes) < FEW_MEMBERS:
        return
    if (values[changes] == values[last]).all():
        yield Feature(attribute, path, entities[changes], values[changes], owners[changes], True, True)
        return
    yield Feature(attribute, path, entities[last], values[last], owners[last], True, False)
    yield Feature(attribute, path, entities[changes], values[changes], owners[changes], False, True)


def choose_cuts(values: Floats) -> Cuts:
    """Cut values at quantiles, before and after values that many have."""
    ordered = np.sort(values)
    ranks = np.unique(np.linspace(0, len(ordered), N_CUTS + 1).astype(np.int64)[1:-1])
    before, at = ordered[ranks - 1], ordered[ranks]
    beyond = ordered[np.minimum(np.searchsorted(ordered, at, side="right"), len(ordered) - 1)]
    firsts = np.unique(np.concatenate([at, beyond[before == at]]))
    firsts = firsts[firsts > ordered[0]]
    befores = ordered[np.searchsorted(ordered, firsts) - 1]
    return Cuts(np.append(-np.inf, firsts), np.append(-np.inf, befores))


def round_cut(before: float, at: float, kind: AttributeKind) -> float:
    """Return the roundest number between two neighbouring values, above the first and at most the second."""
    if kind is AttributeKind.BOOLEAN:
        return 1.0
    if before < 0 <= at and kind is AttributeKind.NUMBER:
        return 0.0
    if kind is AttributeKind.DATE:
        return _round_date(before, at)
    exact = Decimal(at)
    for exponent in range(exact.adjusted() + 1, exact.adjusted() - 17, -1):
        rounded = float(f"{math.floor(exact.scaleb(-exponent))}e{exponent}")
        if before < rounded <= at:
            return rounded
    return at


def _round_date(before: float, at: float) -> float:
    """Return the roundest date: the first day of a century, decade, year or month; else the day."""
    text = format_value(at, AttributeKind.DATE)
    year, month = int(text[:4]) if text[0] != "-" else 0, text[5:7]
    texts = [f"{year // span * span:04}-01-01" for span in (100, 10, 1)] + [f"{year:04}-{month}-01", text[:10]]
    for rounded in (parse_value(one, AttributeKind.DATE) for one in (texts if year else ())):
        if rounded is not None and before < rounded <= at:
            return rounded
    return float(math.floor(at)) if before < math.floor(at) else at


class _Search:
    """Looks for conditions on one feature after the other."""

    def __init__(self, graph: GraphArrays, vocabulary: Vocabulary, thresholds: Thresholds) -> None:
        n_segments = len(graph.segment_relations)
        self._graph, self._vocabulary, self._thresholds = graph, vocabulary, thresholds
        self._totals, self._touched = np.zeros(n_segments, np.int32), np.zeros(n_segments, np.int32)
        self._slots: Ints = np.full(n_segments, -1, np.int32)

    def conditions(self, feature: Feature) -> tuple[Candidates, int]:
        """Return conditions on a feature, and how many heads were looked at."""
        members = _binned(feature, cuts := choose_cuts(feature.values))
        n_clusters = len(np.unique(feature.owners))
        if n_clusters < FEW_CLUSTERS or len(cuts.firsts) < 2:
            return _no_candidates(), 0
        segments, rates = self._heads(members.entities)
        if not len(segments):
            return _no_candidates(), 0
        bins = _empty_bins(len(segments), len(cuts.firsts), 2 * self._graph.n_relations)
        self._slots[segments] = np.arange(len(segments), dtype=np.int32)
        fill_bins(self._graph, members, self._slots, rates, np.zeros(len(segments), np.int64), bins)
        self._slots[segments] = -1
        room = (2 * CHAIN + 1) * len(segments)
        slots, firsts, lasts = (np.empty(room, np.int32) for _ in range(3))
        intervals = IntervalArrays(slots, firsts, lasts, np.empty(room))
        n = find_conditions(bins, feature.upward, feature.downward, CLEARLY, intervals)
        cut: list[Any] = [column[:n] for column in intervals]
        return self._described(feature, cuts, segments, bins, IntervalArrays(*cut)), len(segments)

    def _heads(self, members: Ints) -> tuple[Ints, Floats]:
        """Return the heads, as segments, that some of the members have and others do not, and which share has them."""
        n_touched = total_heads(self._graph, members, self._totals, self._touched)
        touched = np.sort(self._touched[:n_touched])
        totals = self._totals[touched]
        self._totals[touched] = 0
        least = max(LEAST_HITS, self._thresholds.min_support)
        differs = (totals >= least) & (totals < len(members))
        touched, totals = touched[differs], totals[differs]
        heads, constants = self._named(touched)
        is_forward = (constants < self._graph.n_entities) | (heads < self._graph.n_relations)
        kept = self._thresholds.selected[heads] & is_forward
        return touched[kept], totals[kept] / len(members)

    def _named(self, segments: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return directed relation and constant of heads."""
        relations = self._graph.segment_relations[segments].astype(np.int32)
        return inverses(relations, self._graph.n_relations), segment_entities(self._graph, segments.astype(np.int64))

    def _described(
        self, feature: Feature, cuts: Cuts, segments: NDArray[np.int32], bins: BinArrays, intervals: IntervalArrays
    ) -> Candidates:
        """Return the candidates that intervals describe, without those that the relation of the head alone explains."""
        heads, constants = self._named(segments[intervals.slots])
        hits, having = (np.cumsum(column, axis=1, dtype=np.int64) for column in (bins.hits, bins.having))
        kept = _beats_relation(hits[intervals.slots], having[heads], intervals)
        first, last = intervals.firsts[kept], intervals.lasts[kept]
        kind = feature.attribute.kind
        rounded = [
            round_cut(*pair, kind) for pair in zip(cuts.befores[1:].tolist(), cuts.firsts[1:].tolist(), strict=True)
        ]
        edges = np.array([-np.inf, *rounded, np.inf])
        attribute = self._vocabulary.relation_id(feature.attribute.name)
        body = np.array([attribute, -1] if feature.path < 0 else [feature.path, attribute], np.int32)
        total = hits[intervals.slots[kept], -1]
        return Candidates(
            np.repeat(body[None, :], len(first), axis=0),
            np.full(len(first), VALUE_KINDS.index(kind), np.uint8),
            heads[kept],
            constants[kept],
            edges[first],
            edges[last + 1],
            total / len(feature.entities),
            intervals.log_chances[kept],
        )


def _binned(feature: Feature, cuts: Cuts) -> MemberArrays:
    order = np.argsort(feature.owners, kind="stable")
    bins = np.searchsorted(cuts.firsts[1:], feature.values[order], side="right").astype(np.int32)
    return MemberArrays(feature.entities[order], bins, feature.owners[order])


def _empty_bins(n_slots: int, n_bins: int, n_directed: int) -> BinArrays:
    return BinArrays(
        np.zeros(n_bins, np.int64),
        np.zeros(n_bins, np.int64),
        np.zeros((n_slots, n_bins), np.int32),
        np.zeros((n_slots, n_bins), np.int32),
        np.zeros((n_directed, n_bins), np.int32),
    )


def _within(sums: NDArray[np.int64], intervals: IntervalArrays) -> Floats:
    """Return the counts between the bins of each condition, of sums along the bins."""
    rows = np.arange(len(sums))
    before = np.where(intervals.firsts > 0, sums[rows, intervals.firsts - 1], 0)
    return (sums[rows, intervals.lasts] - before).astype(np.float64)


def _beats_relation(hits: NDArray[np.int64], having: NDArray[np.int64], intervals: IntervalArrays) -> NDArray[np.int64]:
    """Return the conditions under which a head is more frequent also among those that have its relation, clearly; if
    they all have the same head, that cannot be.
    """
    k, n, all_k, all_n = _within(hits, intervals), _within(having, intervals), hits[:, -1], having[:, -1]
    outside, of_outside = all_n - n, all_k - k
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = all_k / all_n
        chance = -np.maximum(n * _divergence(k / n, rate), outside * _divergence(of_outside / outside, rate))
    clear = (np.nan_to_num(chance) <= CLEARLY) & (k > rate * n)
    return np.flatnonzero(clear | (all_k == all_n))


def _divergence(p: Floats, q: Floats) -> Floats:
    """Return the Kullback-Leibler divergence of coins p from coins q, 0 where there is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(a > 0, a * np.log(a / b), 0.0) for a, b in ((p, q), (1 - p, 1 - q))]
    return np.asarray(np.nan_to_num(terms[0] + terms[1], nan=0.0, posinf=0.0))


def _no_candidates() -> Candidates:
    floats, ints = np.empty(0), np.empty(0, np.int32)
    return Candidates(np.empty((0, 2), np.int32), np.empty(0, np.uint8), ints, ints, floats, floats, floats, floats)


def _counted(
    graph: GraphArrays,
    vocabulary: Vocabulary,
    candidates: Candidates,
    thresholds: Thresholds,
    is_over: Callable[[], bool],
) -> RuleSet:
    """Return the rules with exact counts that are still worth keeping."""
    n = len(candidates.heads)
    bodies, body = distinct_rows(candidates.bodies)
    rules = RuleSet(
        vocabulary=vocabulary,
        bodies=bodies if n else np.empty((0, 1), np.int32),
        type=np.full(n, VALUE, np.uint8),
        head=candidates.heads,
        body=body,
        head_constant=candidates.constants,
        body_constant=np.full(n, -1, np.int32),
        predictions=np.zeros(n, np.int64),
        support=np.zeros(n, np.int32),
        exact=np.ones(n, np.bool_),
        low=candidates.lows,
        high=candidates.highs,
        value_kind=candidates.kinds,
    )
    if not n:
        return rules.replace(low=None, high=None, value_kind=None)
    lookup = Lookup(graph)
    counts = count_conditional(graph, rules, object_identity=thresholds.object_identity, lookup=lookup)
    rules = rules.replace(predictions=counts.predictions, support=counts.support)
    confidence = rules.confidence()
    # The head's constant may have been the entity whose value decides: then little is left under object identity.
    chance = rules.predictions * _divergence(confidence, np.minimum(candidates.rates, 1 - 1e-12))
    kept = (rules.support >= thresholds.min_support) & (confidence >= thresholds.min_confidence)
    kept &= (confidence > candidates.rates) & (chance >= -CLEARLY)
    rows = _right_where_they_decide(graph, lookup, rules, np.flatnonzero(kept), thresholds.object_identity, is_over)
    return rules.take(_best_of_each_head(rules, rows))


def _right_where_they_decide(
    graph: GraphArrays,
    lookup: Lookup,
    rules: RuleSet,
    rows: NDArray[np.int64],
    object_identity: bool,
    is_over: Callable[[], bool],
) -> NDArray[np.int64]:
    """Return the rules at `rows` that are right often enough about the entities for which no surer rule speaks.

    A condition decides about the entities that no rule h(X,c) <= b(X,c') or h(X,c) <= b(X,A) is surer about. If it is
    not right there more often than those rules say, beyond chance, it only repeats them, and speaks for whoever else
    happens to satisfy it. Rules that are not looked at before it `is_over` are left out.
    """
    segments = find_segments(graph, rules.head_constant, inverses(rules.head, graph.n_relations))
    totals, touched = (np.zeros(len(graph.segment_relations), np.int32) for _ in range(2))
    right, confidences = np.zeros(len(rules), np.bool_), rules.confidence(SMOOTHING)
    has_head = np.zeros(graph.n_entities + 1, np.bool_)
    for condition, own in each_condition(lookup, rules, rows, object_identity):
        if is_over():
            break
        for row in own:
            segment = int(segments[row])
            stated = graph.targets[slice(*graph.segment_starts[segment : segment + 2])]
            stated = stated[stated < graph.n_entities]
            n_touched = total_heads(graph, stated, totals, touched)
            offsets = graph.segment_offsets[stated].astype(np.int64)
            relations = graph.segment_relations[range_rows(offsets, graph.segment_offsets[stated + 1] - offsets)]
            having = np.bincount(relations, minlength=2 * graph.n_relations)
            left_out = condition.without(int(rules.head_constant[row])) if object_identity else NO_ENTITIES
            members = condition.listed(left_out)
            others = np.empty(len(members))
            surest_confidences(graph, members, segment, totals, having, confidences[row], others)
            totals[touched[:n_touched]] = 0
            decides = others < confidences[row]
            if decides.any():
                has_head[stated] = True
                rate, expected = has_head[members[decides]].mean(), others[decides].mean()
                has_head[stated] = False
                chance = -np.count_nonzero(decides) * _divergence(np.array([rate]), np.array([expected]))[0]
                right[row] = rate > expected and chance <= DECIDING
    return rows[right[rows]]


def _best_of_each_head(rules: RuleSet, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    n, p, z2 = np.maximum(rules.predictions[rows], 1), rules.confidence()[rows], 1.96**2
    limits = (p + z2 / (2 * n) - 1.96 * np.sqrt((p * (1 - p) + z2 / (4 * n)) / n)) / (1 + z2 / n)
    order = np.lexsort((rows, -limits, rules.head_constant[rows], rules.head[rows]))
    heads = np.column_stack([rules.head[rows[order]], rules.head_constant[rows[order]]])
    starts = np.flatnonzero(np.append(True, (heads[1:] != heads[:-1]).any(axis=1))) if len(rows) else rows
    positions = np.arange(len(rows)) - np.repeat(starts, np.diff(np.append(starts, len(rows))))
    return np.sort(rows[order[positions < MOST_OF_A_HEAD]])
