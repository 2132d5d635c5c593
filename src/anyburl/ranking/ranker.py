"""`Ranker`: rules on a graph, the backend that answers queries, and the order of candidates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError, RuleError
from anyburl.data.dataset import Dataset
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import with_loops
from anyburl.ranking.arrays import AnswerArrays, FiringArrays, QueryArrays, RuleIndex
from anyburl.ranking.backend import NO_GROUPS, AnswerRequest, Backend, LocalBackend, Progress, ReadyRules
from anyburl.ranking.index import build_rule_index, count_confidences, longest_body, to_scores, with_edges, with_scores
from anyburl.ranking.options import Aggregation, RankOptions, parse_aggregation
from anyburl.rules.ruleset import RuleSet


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
        return count_confidences(self.options, rules.type[rows], rules.support[rows], rules.predictions[rows])

    def answer(
        self,
        queries: QueryArrays,
        *,
        top_k: int = 0,
        keep_known: bool = False,
        groups: NDArray[np.uint8] = NO_GROUPS,
        progress: Progress | None = None,
    ) -> AnswerArrays:
        """Rank the targets of `queries` and keep the `top_k` best candidates of each, see `AnswerRequest`."""
        if self.reranker is not None:
            return self.reranker.answer(self.lister(), queries, top_k=top_k, keep_known=keep_known, progress=progress)
        return self.backend.answer(queries, AnswerRequest(self.aggregation, top_k, keep_known, groups), progress)

    def fire(self, entity: int, relation: int) -> FiringArrays:
        """Return every firing for the query (entity, directed relation, ?), known answers included."""
        return self.backend.fire(entity, relation, self.lister().aggregation)

    def lister(self) -> Ranker:
        """Return what lists candidates: this ranker without its re-ranker."""
        if self.reranker is None:
            return self
        return replace(self, reranker=None, aggregation=self.reranker.aggregation)

    def with_aggregation(self, aggregation: str, *, least_binary: float = 0.0) -> Ranker:
        """Return a ranker on the same index that combines scores in another way, without a re-ranker."""
        options, chosen = replace(self.options, aggregation=aggregation), parse_aggregation(aggregation)
        return replace(self, options=options, aggregation=replace(chosen, least_binary=least_binary), reranker=None)


def make_ready(
    graph: GraphArrays, rules: RuleSet, options: RankOptions, *, block_connected: bool, index: RuleIndex | None = None
) -> ReadyRules:
    """Index the rules, of the graph's vocabulary, unless there is an `index` already, and give them scores."""
    known = rules.vocabulary
    if (known.n_entities, known.n_relations) != (graph.n_entities, graph.n_relations):
        raise RuleError("the rules and the graph have different vocabularies: use with_vocabulary first")
    walked = graph if options.object_identity else with_loops(graph)
    index = build_rule_index(walked, rules) if index is None else with_edges(index, walked)
    types, support, predictions = index.counts.T
    confidences = count_confidences(options, types.astype(np.uint8), support.astype(np.int32), predictions)
    scored = with_scores(index, to_scores(confidences))
    return ReadyRules(graph, walked, scored, longest_body(rules), options.object_identity, block_connected)


def make_ranker(
    graph: GraphArrays, rules: RuleSet, options: RankOptions, *, block_connected: bool, index: RuleIndex | None = None
) -> Ranker:
    """Return a ranker on the threads of this process."""
    ready = make_ready(graph, rules, options, block_connected=block_connected, index=index)
    backend = LocalBackend(ready, options.threads)
    return Ranker(rules, ready, options, backend, parse_aggregation(options.aggregation))
