"""`Ranker`: rules on a graph, the order of candidates, and the backend that answers queries.

A `Backend` gets the graph, the rule index and how rules apply (`ReadyRules`); `LocalBackend` uses the threads of this
process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError, RuleError
from anyburl.base.machine import Spare, available_cores, stream_from_threads
from anyburl.data.dataset import Dataset
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import with_loops
from anyburl.graph.kernel import GraphArrays
from anyburl.ranking.arrays import (
    AnswerArrays,
    AnswerSettings,
    FiringArrays,
    QueryArrays,
    RuleIndex,
    Workspace,
    empty_answers,
    empty_candidates,
    empty_firings,
    empty_walk,
)
from anyburl.ranking.index import (
    build_rule_index,
    longest_body,
    to_scores,
    weighted_confidences,
    with_edges,
    with_scores,
)
from anyburl.ranking.kernel import answer
from anyburl.ranking.kernel_order import ALL_COUNT, n_columns
from anyburl.ranking.options import Aggregation, RankOptions, parse_aggregation
from anyburl.ranking.queries import single_query
from anyburl.rules.ruleset import RuleSet

Progress = Callable[[int], None]
"""Called with how many more queries were answered."""

NO_GROUPS = np.empty(0, np.uint8)
QUERIES_AT_A_TIME = 32


@dataclass(frozen=True)
class AnswerRequest:
    """What answers contain: ranks by `aggregation`, and the `top_k` best candidates of each query.

    With `keep_known`, answers that the graph states are not blocked where connected pairs are. With `only_best`, the
    candidates need not be counted, which is faster. If `groups` puts every rule into a group, the evidence for each of
    the best is returned as well.
    """

    aggregation: Aggregation
    top_k: int = 0
    keep_known: bool = False
    only_best: bool = False
    groups: NDArray[np.uint8] = field(default_factory=lambda: NO_GROUPS)


class Backend(Protocol):
    """Answers queries with rules that it was made with.

    As many calls of `answer` as `at_once` may be under way together: what callers do with some answers then goes on
    beside the work on others.
    """

    threads: int
    at_once: int

    def answer(self, queries: QueryArrays, request: AnswerRequest, progress: Progress | None = None) -> AnswerArrays:
        """Rank the targets of `queries` and keep the best candidates of each."""
        ...

    def fire(self, entity: int, relation: int, aggregation: Aggregation) -> FiringArrays:
        """Return every firing for the query (entity, directed relation, ?), known answers included, of the rules that
        `aggregation` looks at.
        """
        ...

    def map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        """Yield what `work` makes of each part, in their order; it may run in several places at once.

        Few parts are under way or waiting to be taken at any time.
        """
        ...

    def close(self) -> None:
        """End what was started."""
        ...


@dataclass(frozen=True)
class ReadyRules:
    """Arrays that threads, memory maps and object stores share; no labels, and no rules as such.

    `facts` is the graph to look facts up in; `graph` is what rules walk: the same under object identity, see
    `with_loops`.
    """

    facts: GraphArrays
    graph: GraphArrays
    index: RuleIndex
    longest: int
    object_identity: bool
    block_connected: bool

    def protocol(
        self,
        aggregation: Aggregation,
        top_k: int,
        *,
        keep_known: bool = False,
        only_fires: bool = False,
        only_best: bool = False,
    ) -> AnswerSettings:
        """Return the settings that kernels take; where rules only fire, nothing is blocked."""
        return AnswerSettings(
            n_counted=ALL_COUNT if aggregation.n_counted is None else min(aggregation.n_counted, ALL_COUNT),
            breaks_ties=aggregation.breaks_ties,
            object_identity=self.object_identity,
            block_connected=self.block_connected and not only_fires,
            keep_known=keep_known,
            only_fires=only_fires,
            only_best=only_best and top_k > 0,
            top_k=top_k,
            longest=self.longest,
            least_binary=int(to_scores(aggregation.least_binary)) if aggregation.least_binary else -1,
        )


ROOM = 1 << 18  # for the firings of one query; it grows where that is too little


class LocalBackend:
    """Answers queries on `threads` threads; buffers are made when they are first needed."""

    def __init__(self, ready: ReadyRules, threads: int | None = None) -> None:
        self.threads = threads or available_cores()
        self.at_once = min(2, self.threads)
        self._ready = ready
        self._spare = Spare(self._make_space, self.threads)

    def answer(self, queries: QueryArrays, request: AnswerRequest, progress: Progress | None = None) -> AnswerArrays:
        n_queries = len(queries.entities)
        groups = request.groups
        out = empty_answers(n_queries, len(queries.targets), request.top_k, n_columns(groups))
        only_best = request.only_best and len(groups) == 0
        protocol = self._ready.protocol(
            request.aggregation, request.top_k, keep_known=request.keep_known, only_best=only_best
        )
        batches = range(0, n_queries, QUERIES_AT_A_TIME)
        threads = self.threads if len(batches) > 1 else 1
        work = partial(self._run, queries, protocol, groups, out)
        with closing(stream_from_threads(work, batches, threads)) as done:
            for n_done in done:
                if progress:
                    progress(n_done)
        return out

    def fire(self, entity: int, relation: int, aggregation: Aggregation) -> FiringArrays:
        ready, space = self._ready, self._spare.take()
        query, out = single_query(entity, relation, np.empty(0, np.int32)), empty_answers(1, 0, 0)
        protocol = self._ready.protocol(aggregation, 0, only_fires=True)
        try:
            while True:
                n_answered, n = answer(ready.graph, ready.index, query, 0, 1, protocol, space, NO_GROUPS, out)
                if n_answered == 1:
                    columns = {name: column[:n].copy() for name, column in space.firings._asdict().items()}
                    return space.firings._replace(**columns)
                space = space._replace(firings=empty_firings(2 * n))
        finally:
            self._spare.put(space)

    def map(self, work: Callable[[Any], Any], parts: Iterable[Any]) -> Iterator[Any]:
        return stream_from_threads(work, parts, self.threads)

    def close(self) -> None:
        """Nothing was started."""

    def _make_space(self) -> Workspace:
        graph = self._ready.graph
        return Workspace(
            empty_walk(graph, self._ready.longest), empty_candidates(graph.n_entities), empty_firings(ROOM)
        )

    def _run(
        self, queries: QueryArrays, protocol: AnswerSettings, groups: NDArray[np.uint8], out: AnswerArrays, first: int
    ) -> int:
        """Answer one batch, with more room for firings where a query needs it; return how many queries there were."""
        ready, space = self._ready, self._spare.take()
        try:
            last = min(first + QUERIES_AT_A_TIME, len(queries.entities))
            next_query = first
            while next_query < last:
                next_query, needed = answer(
                    ready.graph, ready.index, queries, next_query, last, protocol, space, groups, out
                )
                if needed:
                    space = space._replace(firings=empty_firings(2 * needed))
            return last - first
        finally:
            self._spare.put(space)


class Reranker(Protocol):
    """Puts the best candidates of each query in a new order."""

    @property
    def aggregation(self) -> Aggregation:
        """What makes the lists that are put in order."""
        ...

    def answer(
        self, lister: Ranker, queries: QueryArrays, *, top_k: int, keep_known: bool, progress: Progress | None
    ) -> AnswerArrays:
        """Answer queries: `lister` lists the candidates."""
        ...


@dataclass(frozen=True)
class Ranker:
    """Answers queries with `rules`, of the graph's vocabulary, in the order of `aggregation` or of a re-ranker."""

    rules: RuleSet
    ready: ReadyRules
    options: RankOptions
    backend: Backend
    aggregation: Aggregation
    reranker: Reranker | None = None

    @property
    def graph(self) -> GraphArrays:
        """The facts that rules are applied to; `ready.graph` is what their bodies walk."""
        return self.ready.facts

    @property
    def index(self) -> RuleIndex:
        return self.ready.index

    @property
    def vocabulary(self) -> Vocabulary:
        return self.rules.vocabulary

    def check_data(self, dataset: Dataset) -> None:
        """Refuse data whose ids mean something else than those of the rules."""
        if not self.vocabulary.same_labels(dataset.vocabulary):
            raise DataError(f"the ranker was made with data other than {dataset.name}: their vocabularies differ")

    @property
    def block_connected(self) -> bool:
        return self.ready.block_connected

    def confidences(self, rows: NDArray[np.int64] | NDArray[np.int32]) -> NDArray[np.float64]:
        """Return what the rules at `rows` count for."""
        rules = self.rules
        return weighted_confidences(self.options, rules.type[rows], rules.support[rows], rules.predictions[rows])

    def answer(
        self,
        queries: QueryArrays,
        *,
        top_k: int = 0,
        keep_known: bool = False,
        only_best: bool = False,
        groups: NDArray[np.uint8] = NO_GROUPS,
        progress: Progress | None = None,
    ) -> AnswerArrays:
        """Rank the targets of `queries` and keep the `top_k` best candidates of each, see `AnswerRequest`."""
        if self.reranker is not None:
            return self.reranker.answer(self.lister(), queries, top_k=top_k, keep_known=keep_known, progress=progress)
        return self.backend.answer(
            queries, AnswerRequest(self.aggregation, top_k, keep_known, only_best, groups), progress
        )

    def fire(self, entity: int, relation: int) -> FiringArrays:
        """Return every firing for the query (entity, directed relation, ?), known answers included."""
        return self.backend.fire(entity, relation, self.lister().aggregation)

    def lister(self) -> Ranker:
        """Return the ranker that lists candidates: this one without its re-ranker."""
        if self.reranker is None:
            return self
        return replace(self, reranker=None, aggregation=self.reranker.aggregation)

    def with_aggregation(self, aggregation: str, *, least_binary: float = 0.0) -> Ranker:
        """Return a ranker on the same index that combines scores in another way, without a re-ranker."""
        options, chosen = replace(self.options, aggregation=aggregation), parse_aggregation(aggregation)
        return replace(self, options=options, aggregation=replace(chosen, least_binary=least_binary), reranker=None)


def make_ready(
    graph: GraphArrays,
    rules: RuleSet,
    options: RankOptions,
    *,
    block_connected: bool,
    index: RuleIndex | None = None,
    tries: bool = True,
) -> ReadyRules:
    """Index the rules, of the graph's vocabulary, unless there is an `index` already, and give them scores.

    Without `tries`, B rules are not indexed.
    """
    known = rules.vocabulary
    if (known.n_entities, known.n_relations) != (graph.n_entities, graph.n_relations):
        raise RuleError("the rules and the graph have different vocabularies: use with_vocabulary first")
    walked = graph if options.object_identity else with_loops(graph)
    index = build_rule_index(walked, rules, tries=tries) if index is None else with_edges(index, walked)
    types, support, predictions = index.counts.T
    confidences = weighted_confidences(options, types.astype(np.uint8), support.astype(np.int32), predictions)
    scored = with_scores(index, to_scores(confidences))
    return ReadyRules(graph, walked, scored, longest_body(rules), options.object_identity, block_connected)


def make_ranker(
    graph: GraphArrays, rules: RuleSet, options: RankOptions, *, block_connected: bool, index: RuleIndex | None = None
) -> Ranker:
    """Return a ranker on the threads of this process."""
    ready = make_ready(graph, rules, options, block_connected=block_connected, index=index)
    backend = LocalBackend(ready, options.threads)
    return Ranker(rules, ready, options, backend, parse_aggregation(options.aggregation))
