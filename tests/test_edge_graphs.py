"""Graphs at the edge of what there is: every verb gives a right answer, or an error of ours."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import Dataset, Reasoner, TripleTable, Vocabulary, load_dataset
from anyburl.base.errors import AnyburlError, DataError
from anyburl.graph.build import build_graph

Triple = tuple[str, str, str]

GRAPHS: dict[str, list[Triple]] = {
    "one triple": [("a", "r", "b")],
    "one entity": [("a", "r", "a")],
    "one entity, many relations": [("a", f"r{i}", "a") for i in range(20)],
    "one relation": [(f"e{i}", "r", f"e{(i * 7 + 3) % 30}") for i in range(30)],
    "only reflexive triples": [(f"e{i}", f"r{i % 2}", f"e{i}") for i in range(20)],
    "star": [("hub", "r", f"leaf{i}") for i in range(200)],
    "star inwards": [(f"leaf{i}", "r", "hub") for i in range(200)],
    "parallel relations": [(f"e{i}", f"r{j}", f"e{i + 1}") for i in range(10) for j in range(10)],
    "complete graph": [(f"e{i}", "r", f"e{j}") for i, j in product(range(15), repeat=2)],
    "complete graph, not reflexive": [(f"e{i}", "r", f"e{j}") for i, j in permutations(range(15), 2)],
    "both ways": [(s, r, o) for i in range(10) for s, r, o in ((f"e{i}", "r", f"f{i}"), (f"f{i}", "r", f"e{i}"))],
    "no two edges meet": [(f"s{i}", "r", f"o{i}") for i in range(50)],
    "labels like syntax": [("X", "me_myself_i", "me_myself_i"), ("X", "Y,Z", "?"), ("?", "h(X,Y)", "X")],
}


@pytest.mark.parametrize("triples", GRAPHS.values(), ids=GRAPHS.keys())
def test_every_verb_answers(triples: list[Triple]) -> None:
    data = Dataset.from_triples(triples, test=triples[:1])
    rules = anyburl.learn(data, paths=300, min_support=1, min_confidence=0.0, threads=1, seed=1)
    assert (rules.support <= rules.predictions).all()
    assert (rules.support >= 1).all()
    reasoner = Reasoner(rules, data, threads=1)
    subject, relation, object = triples[0]
    metrics = reasoner.evaluate("test")
    assert 0 <= metrics.mrr <= 1
    entities = {entity for triple in triples for entity in (triple[0], triple[2])}
    if subject != "?":
        answers = reasoner.predict(subject, relation, None, top=5, include_known=True)
        assert {answer.entity for answer in answers} <= entities
        assert all(0 < answer.score <= 1 for answer in answers)
    assert reasoner.explain((subject, relation, object)).triple == (subject, relation, object)
    known = set(triples)
    for facts in reasoner.complete(min_score=0.5, top=100):
        assert known.isdisjoint(facts.select("subject", "relation", "object").iter_rows())


@pytest.mark.parametrize("triples", GRAPHS.values(), ids=GRAPHS.keys())
def test_rules_are_counted_as_they_were_learned(triples: list[Triple]) -> None:
    data = Dataset.from_triples(triples)
    rules = anyburl.learn(data, paths=300, min_support=1, min_confidence=0.0, threads=1, seed=1)
    again = anyburl.rescore(rules, data.train, threads=1)
    exact = rules.exact
    assert again.support[exact].tolist() == rules.support[exact].tolist()
    assert again.predictions[exact].tolist() == rules.predictions[exact].tolist()


@pytest.mark.parametrize("nothing", [[], pl.DataFrame(schema=["subject", "relation", "object"]), np.empty((0, 3), str)])
def test_nothing_is_no_data_set(nothing: object) -> None:
    with pytest.raises(DataError, match="at least one triple"):
        load_dataset(nothing)


def test_a_split_may_be_empty() -> None:
    data = Dataset.from_triples([("a", "r", "b"), ("b", "r", "c")])
    rules = anyburl.learn(data, paths=50, min_support=1, threads=1)
    with pytest.raises(AnyburlError, match="test"):
        anyburl.evaluate(rules, data)


def test_ten_thousand_relations_are_learned_from() -> None:  # benchmarks/bench_edges.py has a hundred thousand
    n = 10_000
    numbers = np.arange(n, dtype=np.int32)
    words = Vocabulary.from_labels([f"e{i}" for i in range(n)], [f"r{i}" for i in range(n)])
    triples = TripleTable.from_ids(np.column_stack([numbers, numbers, (numbers + 1) % n]), words)
    data = load_dataset(triples)
    rules = anyburl.learn(data, paths=100, min_support=1, threads=1, seed=1, max_rules=1000)
    subject, relation, _ = data.train.to_polars().row(0)
    assert len(anyburl.predict(rules, data, subject, relation, None, top=3, include_known=True)) <= 3


@pytest.mark.parametrize("wrong", [2**31 - 1, 2**31, 2**32, 2**32 + 1, -1, -(2**31), 2**63 - 1])
@pytest.mark.parametrize("column", [0, 1, 2])
def test_ids_at_the_edge_of_32_bits_are_refused(wrong: int, column: int) -> None:
    words = Vocabulary.from_labels(["a", "b"], ["r"])
    ids = np.zeros((2, 3), np.int64)
    ids[1, column] = wrong
    with pytest.raises(DataError, match="expected ids"):
        TripleTable.from_ids(ids, words)


def test_more_entities_than_32_bits_number_are_refused() -> None:
    class Huge(Vocabulary):
        n_entities = 2**31 - 1

    huge = Huge.from_labels(["a"], ["r"])
    table = TripleTable.checked_before(huge, np.zeros((1, 3), np.int32))
    with pytest.raises(DataError, match="at most 2\\^31 - 2 entities"):
        build_graph(table)
