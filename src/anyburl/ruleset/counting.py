"""Recounts what rules predict and support, on any graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl import checking
from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    GROUNDED,
    NO_LIMIT,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    Scratch,
    empty_harvest,
    empty_scratch,
    head_arrays,
    n_owners,
)
from anyburl.bodies.generalisation import canonical, with_keys
from anyburl.bodies.kernel import score
from anyburl.cores import available_cores
from anyburl.errors import DataError, OptionError, RuleError
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import find_segments, owners, with_loops
from anyburl.graph.stored import graph_of
from anyburl.rules.types import MAX_LENGTH
from anyburl.ruleset import heads
from anyburl.ruleset.measures import MEASURES, pca_confidence
from anyburl.ruleset.ruleset import RuleSet
from anyburl.ruleset.selection import best_rows
from anyburl.triples.table import TripleTable

Progress = Callable[[int], None]

SMOOTHING = 5  # of the confidence that the best rules are chosen by, as in `RuleSet.top`

_BODIES_AT_A_TIME = {1: 64, 2: 16}  # of longer ones 4: a body may take long, and threads should end together


class Counts(NamedTuple):
    """What was counted of rules, in columns."""

    predictions: NDArray[np.int64]
    support: NDArray[np.int32]
    exact: NDArray[np.bool_]
    margin: NDArray[np.float32]  # how far the confidence may be off, see `RuleColumns`
    pca_predictions: NDArray[np.int64]  # those that the partial completeness assumption can judge; zero if not asked


def rescore(
    rules: RuleSet,
    table: TripleTable,
    *,
    object_identity: bool = True,
    budget: int | None = None,
    measures: bool = False,
    best: int | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> RuleSet:
    """Return `rules` (with the table's vocabulary) with predictions and support counted on `table`.

    Counts are exact, with `object_identity` or without; with a `budget` of edges per body, those of large bodies are
    estimated. With `measures`, the rules also get `pca_confidence`, `head_coverage` and `lift`. With `best`, only that
    many rules with estimated counts are recounted, those with the highest confidence. `progress` is called with the
    number of rules done.
    """
    if best is not None:
        if measures:
            raise OptionError("measures covers all rules: drop best")
        return _recount(rules, best_estimated(rules, best), table, object_identity, budget, threads, progress)
    limits = counting_limits(object_identity, budget, pca=checking.flag("measures", measures))
    graph = graph_for(rules, table)
    counts = count_rules(rules, graph, limits, threads, progress)
    unmeasured = dict.fromkeys(MEASURES)
    margin = None if counts.exact.all() else counts.margin
    new = rules.replace(
        predictions=counts.predictions, support=counts.support, exact=counts.exact, margin=margin, **unmeasured
    )
    if not measures:
        return new
    return new.replace(
        pca_confidence=pca_confidence(counts.support, counts.pca_predictions),
        head_coverage=heads.head_coverage(graph, new),
        lift=heads.lift(graph, new),
    )


def best_estimated(rules: RuleSet, best: int) -> NDArray[np.int64]:
    """Return the rows of the `best` rules, by confidence, whose counts are estimates."""
    estimated = np.flatnonzero(~rules.exact)
    return estimated[best_rows(rules.take(estimated), best, "confidence", SMOOTHING)]


def _recount(
    rules: RuleSet,
    rows: NDArray[np.int64],
    table: TripleTable,
    object_identity: bool,
    budget: int | None,
    threads: int | None,
    progress: Progress | None,
) -> RuleSet:
    """Return `rules` with those at `rows` counted on `table`."""
    counted = rescore(
        rules.take(rows), table, object_identity=object_identity, budget=budget, threads=threads, progress=progress
    )
    new = {name: getattr(rules, name).copy() for name in ("predictions", "support", "exact")}
    new["margin"] = np.zeros(len(rules), np.float32) if rules.margin is None else rules.margin.copy()
    for name, column in new.items():
        found = getattr(counted, name)
        column[rows] = 0.0 if found is None else found
    return rules.replace(**new, **dict.fromkeys(MEASURES))


def graph_for(rules: RuleSet, table: TripleTable) -> GraphArrays:
    """Return the graph of `table`, to count `rules` on."""
    if not isinstance(rules, RuleSet):
        raise RuleError(f"expected a RuleSet, such as RuleSet.load(path), got {type(rules).__name__}")
    if not isinstance(table, TripleTable):
        raise DataError(f"expected a TripleTable, such as the train split of a data set, got {type(table).__name__}")
    if not rules.vocabulary.same_labels(table.vocabulary):
        raise RuleError("the rules and the triples have different vocabularies: use with_vocabulary first")
    longest = int(rules.lengths.max(initial=0))
    if longest > MAX_LENGTH:
        raise RuleError(f"rules of at most {MAX_LENGTH} body atoms can be counted, got one with {longest}")
    return graph_of(table)


def counting_limits(object_identity: bool, budget: int | None, *, pca: bool) -> Limits:
    """Return limits that keep every rule and stop at nothing but the `budget`."""
    most = NO_LIMIT if budget is None else checking.whole("budget", budget, 1)
    return Limits(0, 0.0, checking.flag("object_identity", object_identity), most, NO_LIMIT, NO_LIMIT, pca)


def count_rules(
    rules: RuleSet, graph: GraphArrays, limits: Limits, threads: int | None = None, progress: Progress | None = None
) -> Counts:
    """Count predictions and support of rules on a graph; `progress` is called with the number of rules done."""
    n_rules, n_threads = len(rules), checking.threads(threads) or available_cores()
    counts = Counts(
        np.zeros(n_rules, np.int64),
        np.zeros(n_rules, np.int32),
        np.ones(n_rules, np.bool_),
        np.zeros(n_rules, np.float32),
        np.zeros(n_rules, np.int64),
    )
    graph = graph if limits.object_identity else with_loops(graph)
    wanted = head_arrays(graph)
    _score_zero(graph, wanted, rules, limits.object_identity, counts)
    with ThreadPoolExecutor(n_threads) as pool:
        for length in np.unique(rules.lengths[rules.lengths > 0]):
            rows = np.flatnonzero(rules.lengths == length)
            batches = _batches(graph, rules.take(rows), int(length))
            scorer = _Scorer(graph, wanted, limits, int(length))
            for order, out in pool.map(scorer, batches):
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
    binary = rules.type == BINARY
    turned, flipped = canonical(graph, relations[binary])
    heads[binary] = np.where(flipped, inverses(heads[binary], graph.n_relations), heads[binary])
    relations[binary] = turned
    kinds = rules.type.copy()
    kinds[(rules.type == CONSTANT) & (rules.body_constant == rules.head_constant)] = GROUNDED
    keys = np.zeros(len(rules), np.uint64)
    relations = np.ascontiguousarray(relations)
    return BodyArrays(kinds, relations, rules.body_constant.copy(), heads, rules.head_constant.copy(), keys)


def _score_zero(graph: GraphArrays, wanted: HeadArrays, rules: RuleSet, object_identity: bool, counts: Counts) -> None:
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
    judged = np.where(wanted.functional[head] | (into >= 0), predictions, 0)
    for row in np.flatnonzero(~wanted.functional[head] & (constant == graph.n_entities)):
        judged[row] = len(np.intersect1d(owners(graph, int(head[row])), owners(graph, int(back[row]))))
    counts.pca_predictions[rows] = judged


def _batches(
    graph: GraphArrays, rules: RuleSet, length: int
) -> Iterator[tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]]:
    """Group rules by body: yield distinct bodies, the offsets of their rules, those rules' rows and heads."""
    wanted = rule_bodies(graph, rules, length)
    plain = wanted._replace(heads=np.full_like(wanted.heads, -1), head_constants=np.full_like(wanted.heads, -1))
    bodies = with_keys(graph, plain)
    order = np.argsort(bodies.keys, kind="stable")
    firsts = np.flatnonzero(np.diff(bodies.keys[order], prepend=bodies.keys[order[:1]] + np.uint64(1)))
    offsets = np.append(firsts, len(order))
    step = _BODIES_AT_A_TIME.get(length, 4)
    for start in range(0, len(firsts), step):
        bounds = offsets[start : start + step + 1]
        rows = order[bounds[0] : bounds[-1]]
        yield bodies.take(order[bounds[:-1]]), bounds - bounds[0], rows, wanted.take(rows)


class _Scorer:
    """Scores one batch; makes its own buffers on each thread's first batch and keeps them."""

    def __init__(self, graph: GraphArrays, wanted: HeadArrays, limits: Limits, length: int) -> None:
        self._graph, self._wanted, self._limits, self._length = graph, wanted, limits, length
        self._spare = [self._buffers()]

    def __call__(
        self, batch: tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]
    ) -> tuple[NDArray[np.int64], HarvestArrays]:
        bodies, offsets, rows, wanted = batch
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = self._buffers()
        room = empty_harvest(len(rows), pca=self._limits.pca)
        out = room._replace(heads=wanted.heads, head_constants=wanted.head_constants)
        score(self._graph, self._wanted, bodies, 0, offsets.astype(np.int64), self._limits, scratch, out)
        self._spare.append(scratch)
        return rows, out

    def _buffers(self) -> Scratch:
        return empty_scratch(self._graph, self._length, pca=self._limits.pca)
