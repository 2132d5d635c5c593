"""`Ranker`: rules made ready on a graph, to answer any number of queries."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import MAX_LENGTH
from anyburl.cores import available_cores
from anyburl.errors import RuleError
from anyburl.graph.arrays import inverses
from anyburl.graph.stored import graph_of
from anyburl.ranking.arrays import (
    AnswerArrays,
    FiringArrays,
    Protocol,
    QueryArrays,
    empty_answers,
    empty_candidates,
    empty_firings,
    empty_walk,
)
from anyburl.ranking.blocking import blocks_connected
from anyburl.ranking.index import build_index
from anyburl.ranking.kernel import answer, fire_all
from anyburl.ranking.kernel_evidence import n_figures
from anyburl.ranking.kernel_index import find_segments
from anyburl.ranking.options import RankOptions, parse_aggregation
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.triples.table import TripleTable

QUERIES_AT_A_TIME = 32
NO_GROUPS = np.empty(0, np.uint8)


class _Buffers:
    """What one worker writes to while it answers queries."""

    def __init__(self, n_entities: int, n_rules: int, longest: int) -> None:
        self.walk = empty_walk(n_entities, longest)
        self.candidates = empty_candidates(n_entities, n_rules)
        self.firings = empty_firings(1 << 20)
        self.is_target = np.zeros(n_entities + 1, np.int64)

    def next_query(self) -> int:
        """Return a number that no query had before (kernels count for themselves)."""
        self.candidates.clock[0] += 1
        return int(self.candidates.clock[0])


class Ranker:
    """Answers queries with `rules` (of the table's vocabulary) on the triples of `table`."""

    def __init__(self, rules: RuleSet, table: TripleTable, options: RankOptions, *, block_connected: bool) -> None:
        started = time.perf_counter()
        self.rules, self.options, self.block_connected = rules, options, block_connected
        self.vocabulary = table.vocabulary
        self.graph = graph_of(table)
        self.confidences = options.confidences(rules)
        self.index = build_index(self.graph, rules, self.confidences)
        self.longest = int(rules.lengths.max(initial=1)) or 1
        if self.longest > MAX_LENGTH:
            raise RuleError(f"rules of at most {MAX_LENGTH} body atoms can be applied, got one with {self.longest}")
        self.threads = options.threads or available_cores()
        self._buffers: SimpleQueue[_Buffers] = SimpleQueue()
        for _ in range(self.threads):
            self._buffers.put(_Buffers(self.graph.n_entities, len(rules), self.longest))
        self.seconds_indexing = time.perf_counter() - started

    def answer(
        self,
        queries: QueryArrays,
        *,
        top_k: int = 0,
        progress: Callable[[int], None] | None = None,
        groups: NDArray[np.uint8] = NO_GROUPS,
    ) -> AnswerArrays:
        """Rank the targets of `queries` and keep the `top_k` best candidates of each.

        If `groups` puts every rule into a group, the evidence for each of the best is told as well.
        """
        n_queries = len(queries.entities)
        out = empty_answers(n_queries, len(queries.targets), top_k, n_figures(groups))
        protocol = self._protocol(top_k)
        batches = range(0, n_queries, QUERIES_AT_A_TIME)
        if len(batches) <= 1 or self.threads == 1:
            for first in batches:
                self._run(queries, first, protocol, groups, out)
                if progress:
                    progress(min(QUERIES_AT_A_TIME, n_queries - first))
        else:
            with ThreadPoolExecutor(self.threads) as pool:
                try:
                    for done in pool.map(lambda first: self._run(queries, first, protocol, groups, out), batches):
                        if progress:
                            progress(done)
                except BaseException:  # Ctrl-C: what is under way ends, what is waiting is dropped
                    pool.shutdown(cancel_futures=True)
                    raise
        return out

    def fire(self, entity: int, relation: int) -> FiringArrays:
        """Return every firing for the query (entity, directed relation, ?), known answers included."""
        buffers = self._buffers.get()
        try:
            while True:
                n = fire_all(
                    self.graph,
                    self.index,
                    entity,
                    relation,
                    self._protocol(0),
                    buffers.next_query(),
                    buffers.walk,
                    buffers.candidates,
                    buffers.firings,
                )
                if n <= len(buffers.firings.candidates):
                    found = buffers.firings
                    return FiringArrays(
                        found.candidates[:n].copy(),
                        found.scores[:n].copy(),
                        found.rules[:n].copy(),
                        found.following[:n].copy(),
                    )
                buffers.firings = empty_firings(2 * n)
        finally:
            self._buffers.put(buffers)

    @property
    def fixed_aggregation(self) -> str:
        """The aggregation that orders candidates, before any model does."""
        return self.options.aggregation

    def with_aggregation(self, aggregation: str) -> Ranker:
        """Return a ranker on the same index that combines scores in another way."""
        other = copy(self)
        other.options = replace(self.options, aggregation=aggregation)
        return other

    def answer_counts(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return how often each entity is the answer of a query with its directed relation, in the graph."""
        segments = np.empty(len(entities), np.int32)
        find_segments(self.graph, entities, relations, segments)
        sizes = np.diff(self.graph.segment_starts)
        return np.where(segments >= 0, sizes[np.maximum(segments, 0)], 0)

    def known_counts(self, queries: QueryArrays) -> NDArray[np.int64]:
        """Return how many answers of each query the graph holds."""
        return self.answer_counts(queries.entities, inverses(queries.relations, self.graph.n_relations))

    def degrees(self) -> NDArray[np.int64]:
        """Return how many edges each entity has."""
        return np.diff(self.graph.segment_starts[self.graph.segment_offsets])[: self.graph.n_entities]

    def relation_counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return for each directed relation its edges, the entities that it leads to, and those that it starts from."""
        starts = self.index.edges.starts[self.graph.domain_offsets]
        n_starts = np.diff(self.graph.domain_offsets)
        n_ends = n_starts[inverses(np.arange(len(n_starts), dtype=np.int32), self.graph.n_relations)]
        return np.diff(starts), n_ends, n_starts

    def _protocol(self, top_k: int) -> Protocol:
        aggregation, n_best = parse_aggregation(self.fixed_aggregation)
        return Protocol(aggregation, n_best, self.options.object_identity, self.block_connected, top_k, self.longest)

    def _run(
        self, queries: QueryArrays, first: int, protocol: Protocol, groups: NDArray[np.uint8], out: AnswerArrays
    ) -> int:
        """Answer one batch, with more room for firings where a query needs it; return how many queries there were."""
        buffers = self._buffers.get()
        try:
            last = min(first + QUERIES_AT_A_TIME, len(queries.entities))
            place = first
            while place < last:
                place, needed = answer(
                    self.graph,
                    self.index,
                    queries,
                    place,
                    last,
                    protocol,
                    buffers.walk,
                    buffers.candidates,
                    buffers.firings,
                    buffers.is_target,
                    groups,
                    out,
                )
                if needed:
                    buffers.firings = empty_firings(2 * needed)
            return last - first
        finally:
            self._buffers.put(buffers)


def fixed_ranker(rules: RuleSet, dataset: Dataset, options: RankOptions) -> Ranker:
    """Make rules of any vocabulary ready on the train split of `dataset`, not tuned; those with unknown labels are
    left out.
    """
    known = rules if rules.vocabulary is dataset.vocabulary else rules.with_vocabulary(dataset.vocabulary)[0]
    block = blocks_connected(options.block_connected, dataset)
    return Ranker(known, dataset.train, options, block_connected=block)
