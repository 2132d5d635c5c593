"""Counts what rules predict and support on a graph, with all threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.machine import available_cores
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
from anyburl.bodies.kernel import score
from anyburl.bodies.paths import canonical, with_keys
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import find_segments, owners, with_loops
from anyburl.rules.ruleset import RuleSet

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
    with ThreadPoolExecutor(n_threads) as pool:
        for length in np.unique(rules.lengths[rules.lengths > 0]):
            rows = np.flatnonzero(rules.lengths == length)
            batches = _batches(graph, rules.take(rows), int(length))
            scorer = _Scorer(graph, head_facts, limits, int(length))
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


def _batches(
    graph: GraphArrays, rules: RuleSet, length: int
) -> Iterator[tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]]:
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


class _Scorer:
    """Scores one batch; makes its own buffers on each thread's first batch and keeps them."""

    def __init__(self, graph: GraphArrays, head_facts: HeadArrays, limits: Limits, length: int) -> None:
        self._graph, self._head_facts, self._limits, self._length = graph, head_facts, limits, length
        self._spare = [self._buffers()]

    def __call__(
        self, batch: tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]
    ) -> tuple[NDArray[np.int64], HarvestArrays]:
        bodies, offsets, rows, with_heads = batch
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = self._buffers()
        room = empty_harvest(len(rows), pca=self._limits.pca)
        out = room._replace(heads=with_heads.heads, head_constants=with_heads.head_constants)
        score(self._graph, self._head_facts, bodies, 0, offsets.astype(np.int64), self._limits, scratch, out)
        self._spare.append(scratch)
        return rows, out

    def _buffers(self) -> Scratch:
        return empty_scratch(self._graph, self._length, pca=self._limits.pca)
