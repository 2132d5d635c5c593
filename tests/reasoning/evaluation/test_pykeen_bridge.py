"""PyKEEN's data in, our scores into its evaluator, and both in one table."""

from __future__ import annotations

import sys
from typing import Any

import polars as pl
import pytest

import anyburl
from anyburl import Dataset, RuleSet
from anyburl.base.errors import DataError, MissingExtraError, OptionError
from anyburl.tools.pykeen import compare, dataset_from_pykeen, evaluate_with_pykeen, triples_factories
from ranked import AGGREGATIONS

# What PyKEEN's own pipeline brings about: it warns itself, and is warned by torch where there is no GPU.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Training instances are always shuffled:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator:UserWarning"),
]

TRIPLES = [(f"p{i}", relation, f"c{i % 7}") for i in range(40) for relation in ("born", "lives")]


@pytest.fixture
def pykeen() -> Any:
    pytest.importorskip("torch", reason="torch is not installed: pip install 'anyburl[pykeen]'")
    return pytest.importorskip("pykeen.triples", reason="PyKEEN is not installed: pip install 'anyburl[pykeen]'")


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_triples(TRIPLES[12:], TRIPLES[6:12], [*TRIPLES[:6], ("new", "born", "c1")], name="people")


@pytest.fixture(scope="module")
def rules(data: Dataset) -> RuleSet:
    return anyburl.learn(data, seconds=None, paths=500, threads=1, seed=1)


def test_triples_factories_become_a_data_set_and_back(pykeen: Any, data: Dataset) -> None:
    factories = triples_factories(data)
    assert [factory.num_triples for factory in factories] == [len(data.train), len(data.valid), len(data.test)]
    assert factories[0].entity_to_id["c1"] == data.vocabulary.entity_id("c1")
    again = dataset_from_pykeen(*factories, name="again")
    assert (again.name, again.fingerprint) == ("again", data.fingerprint)


def test_inverse_triples_of_a_factory_are_not_taken_for_facts(pykeen: Any) -> None:
    labels = pl.DataFrame(TRIPLES, orient="row").to_numpy().astype(str)
    factory = pykeen.TriplesFactory.from_labeled_triples(labels, create_inverse_triples=True)
    data = dataset_from_pykeen(factory)
    assert (len(data.train), len(data.valid), len(data.test)) == (len(TRIPLES), 0, 0)
    assert data.vocabulary.relations.to_list() == ["born", "lives"]


def test_a_factory_without_labels_is_refused(pykeen: Any, data: Dataset) -> None:
    with pytest.raises(DataError, match="train: expected a TriplesFactory, which knows its labels, got a Core"):
        dataset_from_pykeen(triples_factories(data)[0].to_core_triples_factory())


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("block", ["on", "off"])
def test_pykeens_evaluator_finds_what_evaluate_does(
    pykeen: Any, data: Dataset, rules: RuleSet, aggregation: str, block: str
) -> None:
    chosen: dict[str, Any] = {"aggregation": aggregation, "block_connected": block, "threads": 1}
    ours = anyburl.evaluate(rules, data, split="test", **chosen)
    theirs = evaluate_with_pykeen(rules, data, split="test", **chosen)
    for ties in ("realistic", "optimistic", "pessimistic"):
        figures = ours.metrics if ties == "realistic" else ours.metrics[ties]
        for name, key in (("hits@1", "hits_at_1"), ("hits@10", "hits_at_10"), ("mrr", "inverse_harmonic_mean_rank")):
            assert figures[name] == pytest.approx(theirs.get_metric(f"both.{ties}.{key}"), abs=1e-6)


def test_ranks_need_not_be_filtered(pykeen: Any, data: Dataset, rules: RuleSet) -> None:
    from pykeen.evaluation import RankBasedEvaluator

    chosen: dict[str, Any] = {"block_connected": "off", "threads": 1}
    raw = evaluate_with_pykeen(rules, data, evaluator=RankBasedEvaluator(filtered=False), **chosen)
    filtered = evaluate_with_pykeen(rules, data, **chosen)
    key = "both.optimistic.arithmetic_mean_rank"
    assert raw.get_metric(key) > filtered.get_metric(key)


def test_what_cannot_be_evaluated_is_refused(pykeen: Any, data: Dataset, rules: RuleSet) -> None:
    from pykeen.evaluation import ClassificationEvaluator

    with pytest.raises(OptionError, match="got aggregation tuned"):
        evaluate_with_pykeen(rules, data, aggregation="tuned")
    with pytest.raises(OptionError, match="expected a rank-based evaluator, got ClassificationEvaluator"):
        evaluate_with_pykeen(rules, data, evaluator=ClassificationEvaluator())
    with pytest.raises(DataError, match="has no triples in its test split"):
        evaluate_with_pykeen(rules, Dataset.from_triples(TRIPLES))


def test_rules_and_models_stand_in_one_table(pykeen: Any, data: Dataset, rules: RuleSet) -> None:
    from pykeen.models import DistMult

    ready = DistMult(triples_factory=triples_factories(data)[0], random_seed=1, embedding_dim=8)
    table = compare(rules, data, ["TransE", ready], epochs=2, seed=1, model_kwargs={"embedding_dim": 8})
    assert table["model"].to_list() == ["anyburl max", "TransE", "DistMult"]
    ours = anyburl.evaluate(rules, data, block_connected="off")
    assert table.row(0, named=True)["mrr"] == ours.mrr
    assert table["mrr"].is_between(0, 1).all()
    assert table["connected_blocked"].to_list() == [False] * 3
    assert [seconds is None for seconds in table["seconds_training"]] == [True, False, True]


def test_a_model_of_other_data_is_refused(pykeen: Any, data: Dataset, rules: RuleSet) -> None:
    from pykeen.models import DistMult

    other = triples_factories(Dataset.from_triples(TRIPLES[:9]))[0]
    with pytest.raises(DataError, match=r"as in people, got \d+ and 2: train it on triples_factories"):
        compare(rules, data, DistMult(triples_factory=other, random_seed=1, embedding_dim=8))


@pytest.mark.parametrize("call", [compare, evaluate_with_pykeen])
def test_without_pykeen_the_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, data: Dataset, rules: RuleSet, call: Any
) -> None:
    for name in ("pykeen", "pykeen.triples", "pykeen.pipeline", "pykeen.evaluation"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'anyburl\[pykeen\]'"):
        call(rules, data)
    with pytest.raises(MissingExtraError, match=r"pip install 'anyburl\[pykeen\]'"):
        triples_factories(data)
