"""Compile the kernels that questions need before anyone waits for an answer."""

from __future__ import annotations

import numpy as np

from anyburl.explanation.explain import explain_triple
from anyburl.graph.index import build_graph
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.predicting import answer_columns
from anyburl.reasoning.queries import Questions
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.triples.table import TripleTable
from anyburl.triples.vocabulary import Vocabulary


def warm_up(n_relations: int, *, explaining: bool = False) -> None:
    """Answer a query with one rule on two triples; kernels depend on `n_relations`, that of the data to come."""
    relations = [f"r{number:08d}" for number in range(n_relations)]
    vocabulary = Vocabulary.from_labels(["a", "b", "c"], relations)
    table = TripleTable.from_ids(np.array([[0, 0, 1], [0, 0, 2]], np.int32), vocabulary)
    nothing = TripleTable.from_ids(np.empty((0, 3), np.int32), vocabulary)
    dataset = Dataset("warm-up", table, nothing, nothing)
    graph = build_graph(table)
    ranker = make_ranker(graph, _one_rule(vocabulary), RankOptions(threads=1), block_connected=False)
    list(answer_columns(ranker, dataset, Questions.one(0, 0), top=1, include_known=False))
    if explaining:
        for object in ("a", "c"):  # the rule predicts b r a, and lacks a fact for b r c
            explain_triple(ranker, dataset, ("b", relations[0], object))


def _one_rule(vocabulary: Vocabulary) -> RuleSet:
    """Return r(X,Y) <= r(Y,X)."""
    one = np.ones(1, np.int32)
    return RuleSet(
        vocabulary=vocabulary,
        bodies=np.full((1, 1), vocabulary.n_relations, np.int32),
        type=np.full(1, RuleType.BINARY.code, np.uint8),
        head=0 * one,
        body=0 * one,
        head_constant=-one,
        body_constant=-one,
        predictions=np.full(1, 2, np.int64),
        support=one,
        exact=np.ones(1, np.bool_),
    )
