"""Compile the kernels that questions need before anyone waits for an answer."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from anyburl.data.dataset import load_dataset
from anyburl.data.table import TripleTable
from anyburl.graph.build import build_graph, on_tiny_table
from anyburl.models.distilling.choosing import Evidence, order_by_gain
from anyburl.models.distilling.contests import drop_to, exchange
from anyburl.models.distilling.known import KnownFacts, Observer
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.completion.complete import complete_graph
from anyburl.reasoning.completion.judging import Judge, known_properties
from anyburl.reasoning.completion.options import CompleteOptions
from anyburl.reasoning.explanation.explain import explain_triple
from anyburl.reasoning.predicting import answer_columns
from anyburl.reasoning.queries import QueryIds
from anyburl.rules.ruleset import one_rule


def warm_up_reasoning(n_relations: int, *, explaining: bool = False, completing: bool = False) -> None:
    """Compile the kernels of answering, `explaining` and `completing`, for data with `n_relations`, or load them."""
    on_tiny_table(TinyQuestion(explaining, completing), n_relations)


@dataclass(frozen=True)
class TinyQuestion:
    """One question, answered by one rule."""

    explaining: bool
    completing: bool

    def __call__(self, table: TripleTable) -> None:
        dataset, rules = load_dataset(table), one_rule(table.vocabulary)
        ranker = make_ranker(build_graph(table), rules, RankOptions(threads=1), block_connected=False)
        list(answer_columns(ranker, dataset, QueryIds.one(0, 0), top=1, include_known=False))
        if self.explaining:
            relation = table.vocabulary.relation_label(0)
            for subject, object in (("b", "a"), ("a", "b")):  # the rule predicts one, and lacks a fact for the other
                explain_triple(ranker, dataset, (subject, relation, object))
        if self.completing:
            judge = Judge.of(ranker, dataset, known_properties(dataset))
            list(complete_graph(judge, CompleteOptions(min_score=0, reasons=self.explaining)))


def warm_up_distilling(n_relations: int) -> None:
    """Compile the kernels of distilling for data with `n_relations`, or load them."""
    on_tiny_table(_observe_tiny, n_relations)


def _observe_tiny(table: TripleTable) -> None:
    """Look at the rule of all facts of a tiny table."""
    dataset, triples = load_dataset(table), table.triples
    options = RankOptions(threads=1)
    ranker = make_ranker(build_graph(table), one_rule(table.vocabulary), options, block_connected=False)
    observer = Observer(ranker, 0)
    known = KnownFacts(dataset, triples[:0], triples[:0], triples, judged_from_train=True).to_judge_by()
    rules = observer.best_rules(known, 1).rules
    order_by_gain(Evidence(rules, np.ones(rules.shape, np.float32)), 1, np.ones(1, np.float32))
    observer.worth([known])
    one, no_room = np.ones(1, np.bool_), np.zeros(1, np.int64)
    exchange(observer.contests([known], 1, 8), one)
    drop_to(observer.contests([known], 1, 8), one, no_room, np.zeros(1, np.int32))
