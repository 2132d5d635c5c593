"""Learn comparisons of both ends of binary rules: h(X,Y) <= b(X,A), b(Y,A), from(X) < from(Y).

For each learned body and head, take the pairs whose two ends have a value of an attribute: are those that compare in
one way facts more often than all of them? That is judged over entities, since the pairs of one
entity, as first or as second, are a cluster: the variance is that of sums over everything an entity takes part in
(Fafchamps and Gubert, *The formation of risk sharing networks*, 2007). False discoveries are bounded over all
comparisons that were tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.conditions import are_stated, compares_as, count_conditional, pairs_along
from anyburl.bodies.thresholds import FEW_CLUSTERS, Thresholds, discoveries, learn_conditional
from anyburl.data.attributes import Attribute, AttributeKind, Attributes, attributes_of
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import build_graph
from anyburl.graph.kernel import GraphArrays
from anyburl.rules.columns import VALUE_KINDS
from anyburl.rules.combine import distinct_rows
from anyburl.rules.parts import COMPARED
from anyburl.rules.ruleset import RuleSet, one_rule
from anyburl.rules.types import KINDS, MAX_LENGTH

COMPARING = next(kind.code for kind in KINDS if kind.form.has_condition and not kind.form.has_head_constant)

MOST_BODIES = 2000  # those whose rules have the most support times confidence
MOST_STARTS, MOST_PAIRS = 5000, 1 << 16  # of a body, drawn from all
LEAST_SUPPORT = 10
MOST_PREDICTIONS = 5_000_000  # of a body: what is kept is counted over all of its pairs

Entities = NDArray[np.int32]


class Comparison(NamedTuple):
    """A comparison that may be kept."""

    row: int  # of the rule without it
    attribute: int
    order: int  # see `compares`
    log_chance: float  # that it is by chance


def learn_comparisons(
    graph: GraphArrays,
    vocabulary: Vocabulary,
    rules: RuleSet,
    thresholds: Thresholds,
    is_over: Callable[[], bool] = lambda: False,
) -> RuleSet:
    """Return B rules with a comparison that makes them better, counted exactly; `rules` are those without."""
    tried: list[Comparison] = []
    for rows in _bodies_in_order(rules):
        if is_over():
            break
        tried += _compared(graph, vocabulary, rules, rows, thresholds)
    kept = discoveries(np.array([one.log_chance for one in tried]), len(tried))
    return _counted(graph, rules, [tried[position] for position in kept.tolist()], thresholds)


def _bodies_in_order(rules: RuleSet) -> Iterator[NDArray[np.int64]]:
    """Yield the rows of the rules of each body, the bodies with the best rules first."""
    values = rules.support * rules.confidence()
    fits = (rules.lengths < MAX_LENGTH) & (rules.support >= LEAST_SUPPORT) & (rules.predictions <= MOST_PREDICTIONS)
    rows = np.flatnonzero(fits)
    steps = rules.bodies[rules.body[rows]]
    rows = rows[np.lexsort((*steps.T[::-1], rules.head[rows], -values[rows]))]
    bodies = rules.body[rows]
    _, firsts, sizes = np.unique(bodies, return_index=True, return_counts=True)
    of_bodies = np.split(rows[np.argsort(bodies, kind="stable")], np.cumsum(sizes)[:-1])
    for position in np.argsort(firsts)[:MOST_BODIES]:
        yield of_bodies[position]


def _compared(
    graph: GraphArrays, vocabulary: Vocabulary, rules: RuleSet, rows: NDArray[np.int64], thresholds: Thresholds
) -> Iterator[Comparison]:
    """Yield the comparisons that some of the pairs of a body satisfy, for each of the rules with this body."""
    path = rules.bodies[rules.body[rows[0]]]
    path = path[path >= 0]
    starts = graph.domains[slice(*graph.domain_offsets[path[0] : path[0] + 2])]
    starts = np.random.default_rng(0).permutation(starts)[:MOST_STARTS]
    parts = pairs_along(graph, path, object_identity=thresholds.object_identity, starts=starts, most=MOST_PAIRS)
    xs, ys = next(parts, (starts[:0], starts[:0]))
    first, second = np.unique(xs), np.unique(ys)
    for name, attribute in attributes_of(vocabulary).items():
        has_value = np.zeros(graph.n_entities + 1, np.bool_)
        has_value[attribute.entities] = True
        if np.count_nonzero(has_value[first]) + np.count_nonzero(has_value[second]) < FEW_CLUSTERS:
            continue  # most attributes: only then pairs are looked at
        both = has_value[xs] & has_value[ys]
        if np.count_nonzero(both) < LEAST_SUPPORT:
            continue
        some_xs, some_ys, relation = xs[both], ys[both], vocabulary.relation_id(name)
        stated = [are_stated(graph, int(rules.head[row]), some_xs, some_ys) for row in rows]
        for order, _ in COMPARED.values():
            if order and attribute.kind is AttributeKind.BOOLEAN:
                continue
            compares = compares_as(vocabulary, relation, int(order), some_xs, some_ys)
            for row, hits in zip(rows.tolist(), stated, strict=True):
                chance = log_chance_of_pairs(some_xs, some_ys, hits, compares)
                if chance is not None:
                    yield Comparison(row, relation, int(order), chance)


def log_chance_of_pairs(
    xs: Entities, ys: Entities, hits: NDArray[np.bool_], compares: NDArray[np.bool_]
) -> float | None:
    """Bound the log of the chance that pairs which compare are facts so much more often than all; None if they are few
    or all.
    """
    n_hits, n = np.count_nonzero(hits & compares), np.count_nonzero(compares)
    if n_hits < LEAST_SUPPORT or n == len(xs):
        return None
    residuals = (hits - np.count_nonzero(hits) / len(hits))[compares]
    excess = float(residuals.sum())
    if excess <= 0:
        return 0.0
    sums = np.bincount(np.concatenate([xs[compares], ys[compares]]), np.concatenate([residuals, residuals]))
    variance = float((sums**2).sum())
    if np.count_nonzero(sums) < FEW_CLUSTERS or variance <= 0:
        return 0.0
    return -(excess**2) / variance / 2  # of a normal variable beyond so many standard deviations, at most


def _counted(graph: GraphArrays, rules: RuleSet, comparisons: list[Comparison], thresholds: Thresholds) -> RuleSet:
    """Return the rules with their comparisons and exact counts, those that are surer than without."""
    if not comparisons:
        return RuleSet.empty(rules.vocabulary)
    n, plain = len(comparisons), rules.take([one.row for one in comparisons])
    steps = np.full((n, rules.bodies.shape[1] + 1), -1, np.int32)
    steps[:, :-1] = plain.bodies[plain.body]
    steps[np.arange(n), plain.lengths] = [one.attribute for one in comparisons]
    bodies, body = distinct_rows(steps)
    values, labels = attributes_of(rules.vocabulary), rules.vocabulary.relation_label
    orders = np.array([one.order for one in comparisons], np.float64)
    made = RuleSet(
        vocabulary=rules.vocabulary,
        bodies=bodies,
        type=np.full(n, COMPARING, np.uint8),
        head=plain.head,
        body=body,
        head_constant=plain.head_constant,
        body_constant=plain.body_constant,
        predictions=np.zeros(n, np.int64),
        support=np.zeros(n, np.int32),
        exact=np.ones(n, np.bool_),
        low=orders,
        high=orders + 1,
        value_kind=np.array([VALUE_KINDS.index(values[labels(one.attribute)].kind) for one in comparisons], np.uint8),
    )
    counts = count_conditional(graph, made, object_identity=thresholds.object_identity)
    made = made.replace(predictions=counts.predictions, support=counts.support)
    kept = (made.support >= thresholds.min_support) & (made.confidence() >= thresholds.min_confidence)
    return made.take(kept & (made.confidence() > plain.confidence()))


N_TINY = 60  # entities: those that conditions and comparisons are looked for with


def learn_from_tiny_values(table: TripleTable) -> None:
    """Learn a condition and count a comparison on a small graph with the relations of `table`: compiles the kernels.

    The later entities have the first relation to the first entity, and every two neighbours have it to each other.
    """
    numbers, relations = np.arange(N_TINY, dtype=np.int32), table.vocabulary.relations
    vocabulary = Vocabulary.from_labels([f"e{number:02}" for number in numbers], relations)
    pairs = [(one, 0) for one in range(N_TINY // 2, N_TINY)]
    pairs += [pair for one in range(1, N_TINY - 1) for pair in ((one, one + 1), (one + 1, one))]
    triples = np.array([(subject, 0, object) for subject, object in pairs], np.int32)
    values = Attributes.of([Attribute.of("value", AttributeKind.NUMBER, numbers, numbers.astype(np.float64))])
    valued = TripleTable.from_ids(triples, vocabulary).with_values(values)
    graph, vocabulary = build_graph(valued), valued.vocabulary
    thresholds = Thresholds(2, 0.0, True, np.ones(2 * graph.n_relations, np.bool_))
    learn_conditional(graph, vocabulary, thresholds)
    rules = one_rule(vocabulary)
    tried = list(_compared(graph, vocabulary, rules, np.zeros(1, np.int64), thresholds))
    _counted(graph, rules, tried[:1], thresholds)
