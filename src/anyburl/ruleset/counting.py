"""Count again what rules predict and support, on any graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    GROUNDED,
    NO_LIMIT,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    empty_harvest,
    empty_scratch,
    head_arrays,
)
from anyburl.bodies.generalisation import canonical, with_keys
from anyburl.bodies.kernel import score
from anyburl.cores import available_cores
from anyburl.errors import RuleError
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import segment_entities
from anyburl.graph.stored import graph_of
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.table import TripleTable

_BODIES_AT_A_TIME = {1: 64, 2: 16}  # of longer ones 4: a body may take long, and threads should end together


def rescore(
    rules: RuleSet,
    table: TripleTable,
    *,
    object_identity: bool = True,
    budget: int | None = None,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> RuleSet:
    """Return `rules` (of the table's vocabulary) with predictions and support counted on `table`.

    Exact, with `object_identity` or without; a `budget` of edges per body makes large bodies estimates instead.
    `progress` is told how many rules were done.
    """
    if not rules.vocabulary.same_labels(table.vocabulary):
        raise RuleError("the rules and the triples have different vocabularies: use with_vocabulary first")
    graph = graph_of(table)
    heads = head_arrays(graph)
    predictions, support = np.zeros(len(rules), np.int64), np.zeros(len(rules), np.int32)
    exact = np.ones(len(rules), np.bool_)
    _score_zero(graph, rules, object_identity, predictions, support)
    limits = Limits(0, 0.0, object_identity, budget or NO_LIMIT, NO_LIMIT, NO_LIMIT)
    with ThreadPoolExecutor(threads or available_cores()) as pool:
        for length in np.unique(rules.lengths[rules.lengths > 0]):
            rows = np.flatnonzero(rules.lengths == length)
            batches = _batches(graph, rules.take(rows), int(length))
            scorer = _Scorer(graph, heads, limits, int(length))
            for order, out in pool.map(scorer, batches):
                chosen = rows[order]
                predictions[chosen], support[chosen] = out.predictions, out.supports
                exact[chosen] = out.exact
                if progress:
                    progress(len(chosen))
    return rules.replace(predictions=predictions, support=support, exact=exact)


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


def _score_zero(
    graph: GraphArrays,
    rules: RuleSet,
    object_identity: bool,
    predictions: NDArray[np.int64],
    support: NDArray[np.int32],
) -> None:
    """Count rules without a body: h(X, c) predicts every entity that has h, but c itself."""
    rows = np.flatnonzero(rules.lengths == 0)
    if not len(rows):
        return
    entities = segment_entities(graph, np.arange(len(graph.segment_relations)))
    segments = graph.segment_relations.astype(np.int64) * (graph.n_entities + 1) + entities
    order = np.argsort(segments)
    back = inverses(rules.head[rows], graph.n_relations).astype(np.int64)

    def find(relations: NDArray[np.int64]) -> NDArray[np.int64]:
        """The segment of the head's constant for each relation, or -1."""
        wanted = relations * (graph.n_entities + 1) + rules.head_constant[rows]
        places = np.append(order, -1)[np.searchsorted(segments, wanted, sorter=order)]
        return np.where(np.append(segments, -1)[places] == wanted, places, -1)

    owners = np.bincount(graph.segment_relations[entities < graph.n_entities], minlength=2 * graph.n_relations)
    own, into = find(rules.head[rows].astype(np.int64)), find(back)
    is_owner = (own >= 0) & (rules.head_constant[rows] < graph.n_entities)
    predictions[rows] = owners[rules.head[rows]] - is_owner * object_identity
    # `self` comes last in a segment; no variable stands for it.
    reached = np.diff(graph.segment_starts) - (graph.targets[graph.segment_starts[1:] - 1] == graph.n_entities)
    support[rows] = np.append(reached, 0)[into]


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

    def __init__(self, graph: GraphArrays, heads: HeadArrays, limits: Limits, length: int) -> None:
        self._graph, self._heads, self._limits, self._length = graph, heads, limits, length
        self._spare = [empty_scratch(graph, length)]

    def __call__(
        self, batch: tuple[BodyArrays, NDArray[np.int64], NDArray[np.int64], BodyArrays]
    ) -> tuple[NDArray[np.int64], HarvestArrays]:
        bodies, offsets, rows, wanted = batch
        try:
            scratch = self._spare.pop()
        except IndexError:
            scratch = empty_scratch(self._graph, self._length)
        out = empty_harvest(len(rows))._replace(heads=wanted.heads, head_constants=wanted.head_constants)
        score(self._graph, self._heads, bodies, 0, offsets.astype(np.int64), self._limits, scratch, out)
        self._spare.append(scratch)
        return rows, out
