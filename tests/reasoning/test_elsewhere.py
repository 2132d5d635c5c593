"""Rules of one graph on another: what carries over, why the rest does not, and the model that comes along."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

import anyburl
from anyburl.data.dataset import Dataset
from anyburl.models.tuned.listing import held_out_questions, take_groups
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.reasoning.prepared import Carried, portable_rows, with_constants

Fact = tuple[str, str, str]


def families(name: str, n: int, seed: int) -> list[Fact]:
    """Couples that live in a town and speak its language, most of them."""
    rng, facts = random.Random(seed), []
    for i in range(n):
        town = f"{name}-town{rng.randrange(12)}"
        facts += [
            (f"{name}-a{i}", "married_to", f"{name}-b{i}"),
            (f"{name}-a{i}", "lives_in", town),
            (f"{name}-b{i}", "lives_in", town if rng.random() < 0.9 else f"{name}-town0"),
            (f"{name}-a{i}", "speaks", f"{name}-language{hash_of(town)}"),
            (f"{name}-b{i}", "speaks", f"{name}-language{hash_of(town)}"),
        ]
    return sorted(set(facts))


def hash_of(town: str) -> int:
    return sum(map(ord, town)) % 5


def split(facts: list[Fact], seed: int) -> Dataset:
    shuffled = facts.copy()
    random.Random(seed).shuffle(shuffled)
    n = len(shuffled)
    return Dataset.from_triples(shuffled[: n * 8 // 10], shuffled[n * 8 // 10 : n * 9 // 10], shuffled[n * 9 // 10 :])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on the first graph, which is in files."""
    folder = tmp_path_factory.mktemp("first")
    data = split(families("north", 300, 1), 2)
    for name in ("train", "valid", "test"):
        data.split(name).to_polars().write_csv(folder / f"{name}.txt", separator="\t", include_header=False)
    out = folder / "run"
    anyburl.learn(anyburl.load_dataset(folder), paths=20_000, seed=1, threads=2, out=out)
    return out


@pytest.fixture(scope="module")
def second() -> Dataset:
    return split(families("south", 120, 3), 4)


def test_rules_are_left_out_for_a_reason(run: Path, second: Dataset) -> None:
    rules = anyburl.RuleSet.load(run)
    carried = Carried.to(second.vocabulary, rules)
    assert carried.n_unknown_relations == 0
    assert carried.n_unknown_entities == int(with_constants(rules).sum()) > 0
    assert [str(carried.rules.rule(i)) for i in range(3)] == [str(rules.rule(int(row))) for row in carried.rows[:3]]
    with pytest.warns(UserWarning, match=r"rules carry over to .*; left out: .* with entities that it does not have"):
        anyburl.Reasoner(run, second)
    without_towns = Dataset.from_triples([fact for fact in families("north", 300, 1) if fact[1] != "lives_in"])
    carried = Carried.to(without_towns.vocabulary, rules)
    assert carried.n_unknown_relations > 0
    assert "relations that it does not have" in carried.note(without_towns)


def test_where_constants_are_known_all_rules_are_used(run: Path, second: Dataset) -> None:
    rules = anyburl.RuleSet.load(run)
    assert portable_rows(rules, rules.vocabulary) is None
    rows = portable_rows(rules, second.vocabulary)
    assert rows is not None
    assert not with_constants(rules.take(rows)).any()


@pytest.mark.filterwarnings("ignore:.*carry over")
def test_the_model_is_trained_on_the_first_graph_and_kept(run: Path, second: Dataset) -> None:
    without_valid = Dataset(second.name, second.train, second.test.from_frame([], second.vocabulary), second.test)
    reasoner = anyburl.Reasoner(run, without_valid, aggregation="tuned", threads=2)
    reranker = reasoner.ranker.reranker
    assert isinstance(reranker, TunedReranker)
    assert not reranker.tuning.stored
    assert len(list((run / "tuned").glob("*.npz"))) == 1
    again = anyburl.Reasoner(run, second, aggregation="tuned", threads=2).ranker.reranker
    assert isinstance(again, TunedReranker)
    assert again.tuning.stored
    assert again.tuning.validation == reranker.tuning.validation
    fixed = anyburl.Reasoner(run, second, threads=2).evaluate()
    assert anyburl.Reasoner(run, second, aggregation="tuned", threads=2).evaluate().mrr > fixed.mrr - 0.05
    facts = next(iter(reasoner.complete(min_score=0.0)))
    assert len(facts)
    subject, relation, object = second.test.to_polars().row(0)
    assert reasoner.explain((subject, relation, object)).rank is not None


def test_without_a_valid_split_facts_of_train_are_hidden(second: Dataset) -> None:
    train_only = Dataset.from_triples(families("west", 200, 5))
    rules = anyburl.learn(train_only, paths=10_000, seed=1, threads=2)
    ranker = anyburl.Reasoner(rules, train_only, threads=2).ranker
    groups = np.zeros(len(rules), np.uint8)
    held_out = held_out_questions(ranker, train_only, groups, most=500, seed=0)
    assert sum(len(part.queries.entities) for part in held_out) <= 500
    for part in held_out:
        assert part.ranker.graph.n_entities == ranker.graph.n_entities
        assert len(part.ranker.graph.targets) < len(ranker.graph.targets)
        assert part.ranker.rules.support.min() >= rules.support.min()
    metrics = anyburl.Reasoner(rules, train_only, aggregation="tuned", threads=2).evaluate("train")
    assert metrics.protocol["tuned"]["questions"] > 0


def test_groups_of_some_rules_are_as_many_as_before() -> None:
    groups = np.array([0, 3, 1, 2], np.uint8)
    assert take_groups(groups, np.array([0, 2])).tolist() == [0, 1, 3]
    assert take_groups(np.empty(0, np.uint8), np.empty(0, np.int64)).tolist() == []


def test_with_a_fallback_what_no_rule_predicts_has_an_order(second: Dataset) -> None:
    rules = anyburl.learn(second, paths=5_000, seed=1, threads=2).filter(relation="speaks")
    plain, filled = (anyburl.Reasoner(rules, second, fallback=fallback, threads=2) for fallback in (False, True))
    question = (second.train.to_polars().row(0)[0], "lives_in", None)
    assert not plain.predict(*question)
    answers = filled.predict(*question)
    assert len(answers) == 10
    assert {answer.rule for answer in answers} == {None}
    assert filled.evaluate().mrr > plain.evaluate().mrr
    assert any("town" in answer.entity for answer in answers[:3])
