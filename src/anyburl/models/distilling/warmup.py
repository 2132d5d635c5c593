"""Compile the kernels of distilling before the clock starts."""

from __future__ import annotations

import polars as pl

from anyburl.data.dataset import load_dataset
from anyburl.data.table import TripleTable
from anyburl.graph.build import build_graph, on_tiny_table
from anyburl.models.distilling.distil import distil_ranker
from anyburl.models.distilling.known import KnownFacts, Observer
from anyburl.models.distilling.options import DistilOptions
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.rules.files.labelled import encode_rules, label_rules
from anyburl.rules.rule import Atom, Rule, X, Y
from anyburl.rules.ruleset import RuleSet


def warm_up_distilling(n_relations: int) -> None:
    """Compile the kernels for data with `n_relations`, or load them."""
    on_tiny_table(_distil_tiny, n_relations)


def _distil_tiny(table: TripleTable) -> None:
    """Distil one rule, r(X,Y) <= r(Y,X)."""
    relation = table.vocabulary.relation_label(0)
    rule = Rule(Atom(relation, X, Y), (Atom(relation, Y, X),))
    columns = encode_rules(label_rules([rule]), predictions=pl.Series([2]), support=pl.Series([1]))
    rules = RuleSet.of(columns).with_vocabulary(table.vocabulary)
    dataset = load_dataset(table)
    ranker = make_ranker(build_graph(table), rules, RankOptions(threads=1), block_connected=False)
    if len(dataset.train) < 2:
        facts = KnownFacts(dataset, dataset.train.triples, dataset.train.triples, dataset.train.triples, True)
        observer, known = Observer(ranker, 0), facts.to_judge_by()
        observer.witnesses(known, 2, only_targets=True)
        observer.worth([known])
        observer.reciprocal_ranks(known)
        return
    distil_ranker(ranker, dataset, DistilOptions(rules=1))
