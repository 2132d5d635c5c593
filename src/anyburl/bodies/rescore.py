"""`rescore` and `measure`: counts and measures of rules on any data, matched by label; counted with all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import DataError, InvalidOptionError, OptionError, RuleError
from anyburl.base.machine import Spare, available_cores, stream_from_threads
from anyburl.bodies.arrays import (
    NO_LIMIT,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    Scratch,
    empty_harvest,
    empty_scratch,
    head_arrays,
    kinds_of,
    n_owners,
)
from anyburl.bodies.conditions import count_conditional
from anyburl.bodies.kernel import score
from anyburl.bodies.paths import canonical, with_keys
from anyburl.data.dataset import Dataset
from anyburl.data.table import TripleTable
from anyburl.graph.build import find_segments, owners, with_loops
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.graph.stored import graph_of
from anyburl.rules import columns as formulas
from anyburl.rules.columns import MEASURES, RuleColumns
from anyburl.rules.combine import match_triples
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.selection import best_rows
from anyburl.rules.types import MAX_LENGTH, SMOOTHING

Progress = Callable[[int], None]

_BODIES_AT_A_TIME = {1: 64, 2: 16}  # of longer ones 4: a body may take long, and threads should end together


class RuleCounts(NamedTuple):
    """What was counted of rules, in columns."""

    predictions: NDArray[np.int64]
    support: NDArray[np.int32]
    exact: NDArray[np.bool_]
    margin: NDArray[np.float32]  # how far the confidence may be off, see `RuleColumns`
    pca_predictions: NDArray[
        np.int64
    ]  # those that the partial completeness assumption can judge; zero unless `Limits.pca`


def counting_limits(object_identity: bool, budget: int | None, *, pca: bool) -> Limits:
    """Return limits that keep every rule and stop at nothing but the `budget`."""
    most = NO_LIMIT if budget is None else checking.whole("budget", budget, 1)
    return Limits(0, 0.0, checking.flag("object_identity", object_identity), most, NO_LIMIT, NO_LIMIT, pca)


def count_rules(
    rules: RuleSet, graph: GraphArrays, limits: Limits, threads: int | None = None, progress: Progress | None = None
) -> RuleCounts:
    """Count predictions and support of rules on a graph; `progress` is called with the number of rules done."""
    n_rules, n_threads = len(rules), checking.threads(threads) or available_cores()
    counts = RuleCounts(
        np.zeros(n_rules, np.int64),
        np.zeros(n_rules, np.int32),
        np.ones(n_rules, np.bool_),
        np.zeros(n_rules, np.float32),
        np.zeros(n_rules, np.int64),
    )
    graph = graph if limits.object_identity else with_loops(graph)
    head_facts = head_arrays(graph)
    _score_zero(graph, head_facts, rules, limits.object_identity, counts)
    conditional = rules.has_condition
    _score_conditional(graph, head_facts, rules, limits.object_identity, counts)
    for length in map(int, np.unique(rules.lengths[(rules.lengths > 0) & ~conditional])):
        rows = np.flatnonzero((rules.lengths == length) & ~conditional)
        spare = Spare(partial(empty_scratch, graph, length, pca=limits.pca), n_threads)
        score_batch = partial(_score_batch, graph, head_facts, limits, spare)
        batches = _batches(graph, rules.take(rows), length)
        with closing(stream_from_threads(score_batch, batches, n_threads)) as results:
            for order, out in results:
                chosen = rows[order]
                counts.predictions[chosen], counts.support[chosen] = out.predictions, out.supports
                counts.exact[chosen], counts.margin[chosen] = out.exact, out.margins
                if limits.pca:
                    counts.pca_predictions[chosen] = out.pca_predictions
                if progress:
                    progress(len(chosen))
    return counts


def rule_bodies(graph: GraphArrays, rules: RuleSet, length: int) -> BodyArrays:
    """Return the body of each rule (all of one length), B bodies in canonical direction with their head read
    likewise.
    """
    relations = rules.bodies[rules.body][:, :length]
    heads = rules.head.copy()
    binary = rules.is_binary
    turned, flipped = canonical(graph, relations[binary])
    heads[binary] = np.where(flipped, inverses(heads[binary], graph.n_relations), heads[binary])
    relations[binary] = turned
    kinds = kinds_of(rules.type, rules.head_constant, rules.body_constant)
    keys = np.zeros(len(rules), np.uint64)
    relations = np.ascontiguousarray(relations)
    return BodyArrays(kinds, relations, rules.body_constant.copy(), heads, rules.head_constant.copy(), keys)


def _score_zero(
    graph: GraphArrays, head_facts: HeadArrays, rules: RuleSet, object_identity: bool, counts: RuleCounts
) -> None:
    """Count rules without a body: h(X, c) predicts every entity that has h, but c itself."""
    rows = np.flatnonzero(rules.lengths == 0)
    if not len(rows):
        return
    head, constant = rules.head[rows], rules.head_constant[rows]
    back = inverses(head, graph.n_relations)
    own, into = find_segments(graph, constant, head), find_segments(graph, constant, back)
    is_owner = (own >= 0) & (constant < graph.n_entities)
    predictions = n_owners(graph)[head] - is_owner * object_identity
    # `self` comes last in a segment; no variable stands for it.
    reached = np.diff(graph.segment_starts) - (graph.targets[graph.segment_starts[1:] - 1] == graph.n_entities)
    counts.predictions[rows], counts.support[rows] = predictions, np.append(reached, 0)[into]
    # Every X has h. Where the object decides, that is c; or X, which h(X, self) has as its object, too.
    judged = np.where(head_facts.functional[head] | (into >= 0), predictions, 0)
    for row in np.flatnonzero(~head_facts.functional[head] & (constant == graph.n_entities)):
        judged[row] = len(np.intersect1d(owners(graph, int(head[row])), owners(graph, int(back[row]))))
    counts.pca_predictions[rows] = judged


def _score_conditional(
    graph: GraphArrays, head_facts: HeadArrays, rules: RuleSet, object_identity: bool, counts: RuleCounts
) -> None:
    """Count the rules with a condition on a value."""
    rows = np.flatnonzero(rules.has_condition)
    if not len(rows):
        return
    counted = count_conditional(graph, rules.take(rows), object_identity=object_identity)
    counts.predictions[rows], counts.support[rows] = counted.predictions, counted.support
    counts.pca_predictions[rows] = np.where(head_facts.functional[rules.head[rows]], counted.having, counted.receiving)


Batch = tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]


def _batches(graph: GraphArrays, rules: RuleSet, length: int) -> Iterator[Batch]:
    """Group rules by body: yield distinct bodies, the offsets of their rules, those rules' rows and heads."""
    with_heads = rule_bodies(graph, rules, length)
    no_heads = np.full_like(with_heads.heads, -1)
    plain = with_heads._replace(heads=no_heads, head_constants=no_heads)
    bodies = with_keys(graph, plain)
    order = np.argsort(bodies.keys, kind="stable")
    firsts = np.flatnonzero(np.diff(bodies.keys[order], prepend=bodies.keys[order[:1]] + np.uint64(1)))
    offsets = np.append(firsts, len(order))
    step = _BODIES_AT_A_TIME.get(length, 4)
    for start in range(0, len(firsts), step):
        bounds = offsets[start : start + step + 1]
        rows = order[bounds[0] : bounds[-1]]
        yield bodies.take(order[bounds[:-1]]), bounds - bounds[0], rows, with_heads.take(rows)


def _score_batch(
    graph: GraphArrays, head_facts: HeadArrays, limits: Limits, spare: Spare[Scratch], batch: Batch
) -> tuple[NDArray[np.int64], HarvestArrays]:
    """Return the rows of the batch's rules and what was counted for them."""
    bodies, offsets, rows, with_heads = batch
    room = empty_harvest(len(rows), pca=limits.pca)
    out = room._replace(heads=with_heads.heads, head_constants=with_heads.head_constants)
    scratch = spare.take()
    try:
        score(graph, head_facts, bodies, 0, offsets.astype(np.int64), limits, scratch, out)
    finally:
        spare.put(scratch)
    return rows, out


MOST_MEASURED = 20_000  # at once, when the most surprising are sought

Measured = NDArray[np.float64] | NDArray[np.float32]


def rescore(
    rules: RuleSet,
    table: TripleTable | Dataset,
    *,
    object_identity: bool = True,
    budget: int | None = None,
    measures: bool = False,
    best: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RuleSet:
    """Return `rules` with predictions and support counted on `table`, or on the train split of a data set.

    Rules and triples are matched by label. All rules are kept, in their order: those with labels that the triples do
    not have get a support of 0. Counts are exact, with `object_identity` or without; with a `budget` of edges per body,
    those of large bodies are estimated. With `measures`, the rules also get `pca_confidence`, `head_coverages` and
    `lifts`. With `best`, only that many rules with estimated counts are recounted, those with the highest confidence.
    `progress` is called with the number of rules done.
    """
    if best is not None and measures:
        raise OptionError("measures covers all rules: drop best")
    limits = counting_limits(object_identity, budget, pca=checking.flag("measures", measures))
    matched, graph = _matched(rules, table)
    rows = None if best is None else best_estimated(matched, best)
    counts = count_rules(matched if rows is None else matched.take(rows), graph, limits, threads, progress)
    scores: dict[str, Any] = counts._asdict()
    pca_predictions = scores.pop("pca_predictions")
    if rows is not None:
        scores = {name: _with_values(matched, name, rows, column) for name, column in scores.items()}
    elif counts.exact.all():
        scores["margin"] = None
    new = matched.replace(**dict.fromkeys(MEASURES), **scores)
    if not measures:
        return new
    pca_confidence = formulas.pca_confidence(counts.support, pca_predictions)
    return new.replace(
        pca_confidence=pca_confidence,
        **{name: FROM_COUNTS[name](graph, new) for name in FROM_COUNTS.keys() & set(BY_DEFAULT)},
    )


def best_estimated(rules: RuleSet, best: int) -> NDArray[np.int64]:
    """Return the rows of the `best` rules, by confidence, whose counts are estimates."""
    estimated = np.flatnonzero(~rules.exact)
    return estimated[best_rows(rules.take(estimated), best, "confidence", SMOOTHING)]


def head_coverages(graph: GraphArrays, rules: RuleColumns) -> Measured:
    """Return for each rule which part of the facts of its head's relation it predicts."""
    facts = _facts_by_relation(graph)[rules.head % max(1, graph.n_relations)]
    return formulas.head_coverage(rules.support, facts)


def lifts(graph: GraphArrays, rules: RuleColumns) -> Measured:
    """Return for each rule how many times likelier its head is where its body holds than anywhere."""
    return formulas.lift(rules.support, rules.predictions, _head_probability(graph, rules))


def surprises(graph: GraphArrays, rules: RuleColumns) -> Measured:
    """Return for each rule how far its confidence is above the base rate of its head."""
    return formulas.surprise(rules.support, rules.predictions, base_rates(graph, rules))


def base_rates(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.float64]:
    """Return how likely each head is for entities that have a fact of its relation.

    For h(X, c), which share of the subjects of h have the object c; for h(X, Y), which share of all pairs of a subject
    and an object of h are facts.
    """
    sizes, n_relations = np.maximum(np.diff(graph.domain_offsets), 1), graph.n_relations
    binary, heads = rules.is_binary, rules.head
    rates = np.empty(len(rules), np.float64)
    facts = _facts_by_relation(graph) / (sizes[:n_relations] * sizes[n_relations:])
    rates[binary] = facts[heads[binary]]
    rates[~binary] = _facts_of_constants(graph, rules.take(~binary)) / sizes[heads[~binary]]
    return rates


FROM_COUNTS: dict[str, Callable[[GraphArrays, RuleColumns], Measured]] = {
    "head_coverage": head_coverages,
    "lift": lifts,
    "surprise": surprises,
}
"""The measures that follow from the graph and the counts of rules."""

COMPUTED = ("pca_confidence", *FROM_COUNTS)
BY_DEFAULT = ("pca_confidence", "head_coverage", "lift")
"""AMIE's measures."""


def measure(
    rules: RuleSet,
    table: TripleTable | Dataset,
    *,
    only: Iterable[str] = BY_DEFAULT,
    object_identity: bool = True,
    budget: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RuleSet:
    """Return `rules` with `pca_confidence`, `head_coverage` and `lift`, or with `only` some of them or `surprise`.

    `table` (or the train split of a data set) is what the rules were learned from, matched by label: head coverage,
    lift and surprise follow from their support and predictions. PCA confidence is counted; a `budget` of edges per body
    makes it an estimate for rules whose counts are already estimates (`exact` is False). `progress` is called with the
    number of rules counted.
    """
    choices = f"some of {', '.join(COMPUTED)}"
    names = checking.texts("only", only, choices)
    if unknown := set(names) - set(COMPUTED):
        raise InvalidOptionError("only", choices, min(unknown))
    counting_limits(object_identity, budget, pca=True)
    checking.threads(threads)
    matched, graph = _matched(rules, table)
    columns = {name: compute(graph, matched) for name, compute in FROM_COUNTS.items() if name in names}
    if "pca_confidence" in names:
        columns["pca_confidence"] = _pca_confidence(matched, graph, object_identity, budget, threads, progress)
    return matched.replace(**columns)


def most_surprising(rules: RuleSet, table: TripleTable, k: int) -> RuleSet:
    """Return the k rules that are most surprising, best first, with that measure."""
    if rules.surprise is not None:
        return rules.top(k, "surprise")
    matched, graph = _matched(rules, table)
    best = matched.take(surprising_rows(matched, graph, k))
    return best.replace(surprise=surprises(graph, best))


def surprising_rows(rules: RuleSet, graph: GraphArrays, k: int) -> NDArray[np.int64]:
    """Return the rows of the k rules that are most surprising, best first; they have the ids of the graph.

    Of many rules, only the surest are measured: none is more surprising than it is sure.
    """
    sureness, n_first = rules.confidence(SMOOTHING), max(MOST_MEASURED, k)
    least = 0.0
    if len(rules) > n_first:
        least = float(np.partition(sureness, len(rules) - n_first)[len(rules) - n_first])
    while True:
        rows = np.flatnonzero(sureness >= least)
        part = rules.take(rows)
        measured = part.replace(surprise=surprises(graph, part))
        best = best_rows(measured, k, "surprise", SMOOTHING)
        last = float(surprises(graph, part.take(best[-1:]))[0]) if len(best) == k and k else 0.0
        if last >= least:
            return rows[best]
        least = last


def _matched(rules: RuleSet, table: TripleTable | Dataset) -> tuple[RuleSet, GraphArrays]:
    """Return the rules with the ids of the triples, and the graph of the triples, to count the rules on."""
    if not isinstance(rules, RuleSet):
        raise RuleError(f"expected a RuleSet, such as RuleSet.load(path), got {type(rules).__name__}")
    triples = table.train if isinstance(table, Dataset) else table
    if not isinstance(triples, TripleTable):
        raise DataError(f"expected a Dataset, or a TripleTable such as its train split, got {type(table).__name__}")
    longest = int(rules.lengths.max(initial=0))
    if longest > MAX_LENGTH:
        raise RuleError(f"rules of at most {MAX_LENGTH} body atoms can be counted, got one with {longest}")
    matched = match_triples(rules, triples)
    return matched.rules, graph_of(matched.table)


def _with_values(rules: RuleSet, name: str, rows: NDArray[np.int64], values: NDArray[Any]) -> NDArray[Any]:
    """Return a column of rules (zeros if they lack it) with other values at some rows."""
    column = getattr(rules, name)
    changed = np.zeros(len(rules), values.dtype) if column is None else column.copy()
    changed[rows] = values
    return changed


def _pca_confidence(
    rules: RuleSet,
    graph: GraphArrays,
    object_identity: bool,
    budget: int | None,
    threads: int | None,
    progress: Progress | None,
) -> Measured:
    """Count exactly what is exact, and the rest within the budget; the support is counted on the same sample."""
    confidences = np.zeros(len(rules))
    for is_exact, most in ((True, None), (False, budget)):
        rows = np.flatnonzero(rules.exact == is_exact)
        if len(rows):
            limits = counting_limits(object_identity, most, pca=True)
            counts = count_rules(rules.take(rows), graph, limits, threads, progress)
            confidences[rows] = formulas.pca_confidence(counts.support, counts.pca_predictions)
    return confidences


def _head_probability(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.float64]:
    """Return how likely each head is for entities drawn at random from those that have a fact.

    Two are drawn for a binary head h(X, Y), one for a unary head h(X, c); with `self` as the constant that is h(X, X).
    """
    n_entities = max(1, int(np.count_nonzero(np.diff(graph.segment_offsets[: graph.n_entities + 1]))))
    binary = rules.is_binary
    probabilities = np.empty(len(rules), np.float64)
    probabilities[binary] = _facts_by_relation(graph)[rules.head[binary]] / n_entities**2
    probabilities[~binary] = _facts_of_constants(graph, rules.take(~binary)) / n_entities
    return probabilities


def _facts_of_constants(graph: GraphArrays, rules: RuleColumns) -> NDArray[np.int64]:
    """Return for each unary rule how many facts have its head's constant in the place where the head has it."""
    segments = find_segments(graph, rules.head_constant, inverses(rules.head, graph.n_relations))
    return np.append(np.diff(graph.segment_starts), 0)[segments]


def _facts_by_relation(graph: GraphArrays) -> NDArray[np.int64]:
    """Return how many facts each relation has. A reflexive one is two edges along it: to `self`, and back."""
    edges = head_arrays(graph).edge_counts[: graph.n_relations].copy()
    own = slice(graph.segment_offsets[graph.n_entities], graph.segment_offsets[graph.n_entities + 1])
    relations = graph.segment_relations[own]
    sizes = np.diff(graph.segment_starts[own.start : own.stop + 1])
    forward = relations < graph.n_relations
    edges[relations[forward]] -= sizes[forward]
    return edges
