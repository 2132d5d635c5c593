"""A reasoner for one call, as `anyburl.predict` and its siblings make it; and for none, to compile its kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from anyburl.base.errors import OptionError
from anyburl.data.dataset import load_dataset
from anyburl.data.table import TripleTable
from anyburl.graph.build import build_graph, on_tiny_table
from anyburl.learning.options import DistilOptions
from anyburl.models.distilling.choosing import Evidence, order_by_gain
from anyburl.models.distilling.contests import drop_to, exchange
from anyburl.models.distilling.distil import Distilled
from anyburl.models.distilling.known import KnownFacts, Observer
from anyburl.ranking.options import RankKeywords, RankOptions
from anyburl.ranking.ranker import Progress, make_ranker
from anyburl.reasoning.completion.complete import complete_graph
from anyburl.reasoning.completion.judging import Judge, known_properties
from anyburl.reasoning.completion.options import CompleteOptions
from anyburl.reasoning.explanation.explain import Explanation, explain_triple
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.metrics import Metrics
from anyburl.reasoning.queries import Answers, QueryIds, answer_columns
from anyburl.reasoning.reasoner import Reasoner
from anyburl.rules.ruleset import RuleSet, one_rule


def predict(
    rules: RuleSet,
    data: Any,
    subject: str | None,
    relation: str,
    object: str | None,
    *,
    top: int = 10,
    include_known: bool = False,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Answers:
    """Return the best answers to one query; see `Reasoner.predict`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords)
    return chosen.predict(subject, relation, object, top=top, include_known=include_known)


def evaluate(
    rules: RuleSet,
    data: Any,
    *,
    split: str = "test",
    relations: Sequence[str] | None = None,
    sample: int | None = None,
    protocol: str = "all",
    progress: Progress | None = None,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    engine: str = "threads",
    address: str | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Metrics:
    """Rank a split and return the filtered metrics; see `Reasoner.evaluate`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords, engine, address)
    try:
        return chosen.evaluate(split, relations=relations, sample=sample, protocol=protocol, progress=progress)
    finally:
        if reasoner is None:
            chosen.close()


def explain(
    rules: RuleSet,
    data: Any,
    triple: Fact,
    *,
    top: int = 5,
    groundings: int = 3,
    options: RankOptions | None = None,
    reasoner: Reasoner | None = None,
    seed: int = 0,
    **keywords: Unpack[RankKeywords],
) -> Explanation:
    """Return the rules that predict a triple; see `Reasoner.explain`."""
    chosen = _reasoner(rules, data, options, reasoner, seed, keywords)
    return chosen.explain(triple, top=top, groundings=groundings)


def distil(
    rules: RuleSet,
    data: Any,
    options: DistilOptions | None = None,
    *,
    ranking: RankOptions | None = None,
    reasoner: Reasoner | None = None,
) -> Distilled:
    """Return the rules that rank held-out facts best, for the aggregation of `ranking`; see `Reasoner.distil`."""
    return _reasoner(rules, data, ranking, reasoner, 0, {}).distil(options)


def _reasoner(
    rules: RuleSet,
    data: Any,
    options: RankOptions | None,
    reasoner: Reasoner | None,
    seed: int,
    keywords: RankKeywords,
    engine: str = "threads",
    address: str | None = None,
) -> Reasoner:
    """Return the reasoner that was given, if it has these rules and data, or a new one."""
    if reasoner is None:
        return Reasoner(rules, data, options, engine=engine, address=address, seed=seed, **keywords)
    if not isinstance(reasoner, Reasoner):
        raise OptionError(f"expected a Reasoner, got {type(reasoner).__name__}")
    if options is not None or keywords or engine != "threads" or address is not None:
        raise OptionError("a reasoner has its own options and engine: pass either a reasoner or options, not both")
    if data is not reasoner.dataset:
        raise OptionError("the reasoner was made with other data")
    if rules is not reasoner.rules and rules is not reasoner.given_rules:
        raise OptionError("the reasoner was made with other rules")
    return reasoner


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
