"""What AnyBURL, PyClause and SAFRAN do wrong on inputs that people have, and this does right: one test for each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import anyburl
from anyburl import Dataset, Reasoner, RuleError, RuleSet
from anyburl.cli.app import app
from kernels import random_graph, table_of
from rules.samples import make_rules
from strategies import SmallGraph

TINY = {"min_support": 2, "max_cyclic": 2, "threads": 1, "seed": 1, "paths": 2_000}
ODD_NAMES = ["New York, (NY)", "X", "Y", "A", "a <= b", "one two", "50%"]


@pytest.fixture(scope="module")
def graph() -> SmallGraph:
    return random_graph(3, 10, 3, 45)


def hub(n_members: int, idol: str = "hub") -> Dataset:
    """Everybody follows the hub; half of them are fans of the idol, too."""
    members = [f"m{number:05d}" for number in range(n_members)]
    follows = [(member, "follows", "hub") for member in members]
    return Dataset.from_triples([*follows, *((member, "fan_of", idol) for member in members[: n_members // 2])])


def one_rule(data: Dataset, text: str) -> RuleSet:
    return anyburl.rescore(make_rules([(text, (1, 1))]).with_vocabulary(data.vocabulary), data.train)


def invoke(*arguments: object) -> int:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], prog_name="anyburl").exit_code


def test_anyburl_adds_sampled_counts_twice_and_ours_are_those_of_the_graph(graph: SmallGraph) -> None:
    """Its confidences of binary rules are too high (1.66 times in the median for length 3 on FB15k-237)."""
    data = Dataset.from_triples(table_of(graph))
    rules = anyburl.learn(data, **TINY)
    counted = anyburl.rescore(rules, data.train, budget=None)
    assert len(rules) > 100
    assert np.array_equal(rules.predictions, counted.predictions)
    assert np.array_equal(rules.support, counted.support)


def test_anyburl_keeps_rules_of_support_1_as_2_and_ours_does_not(graph: SmallGraph) -> None:
    data = Dataset.from_triples(table_of(graph))
    exact = anyburl.rescore(anyburl.learn(data, **TINY), data.train, budget=None)
    assert int(exact.support.min()) >= 2


def test_anyburl_ends_with_1_after_success_and_ours_with_0(tmp_path: Path) -> None:
    assert invoke("learn", "geo", "--paths", 500, "--threads", 1, "--out", tmp_path / "run", "--quiet") == 0


def test_anyburl_writes_an_empty_file_for_noisy_or_and_ours_the_ranking(tmp_path: Path) -> None:
    data = hub(20)
    triples = ["\t".join(triple) for triple in data.train.to_polars().rows()]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.txt").write_text("\n".join(triples[:-3]) + "\n")
    (tmp_path / "data" / "test.txt").write_text("\n".join(triples[-3:]) + "\n")
    run, rankings = tmp_path / "run", tmp_path / "rankings.txt"
    assert invoke("learn", tmp_path / "data", "--paths", 500, "--threads", 1, "--out", run, "--quiet") == 0
    assert invoke("evaluate", run, "--aggregation", "noisy-or", "--rankings", rankings, "--quiet") == 0
    assert "m000" in rankings.read_text()


def test_odd_names_break_files_of_anyburl_and_pyclause_and_not_ours(tmp_path: Path) -> None:
    """Spaces, commas, parentheses, and names of one letter, which look like variables: text refuses or escapes them."""
    triples = [(name, relation, "Y") for name in ODD_NAMES for relation in ("is in, or (near)", "B")]
    data = Dataset.from_triples(triples)
    rules = anyburl.learn(data, **{**TINY, "min_support": 1})
    assert len(rules) > 10
    with pytest.raises(RuleError, match="the text format cannot represent 5 labels"):
        rules.save(tmp_path / "rules.txt")
    rules.save(tmp_path / "rules.txt", escaped=True)
    rules.save(tmp_path / "rules.parquet")
    for found in (RuleSet.load(tmp_path / "rules.parquet"), RuleSet.load(tmp_path / "rules.txt", escaped=True)):
        assert set(found) == set(rules)


def test_pyclause_crashes_on_the_self_token_and_ours_reads_it(tmp_path: Path) -> None:
    file = tmp_path / "rules.txt"
    file.write_text("10\t5\t0.5\tknows(me_myself_i,Y) <= likes(Y,A)\n")
    assert len(RuleSet.load(file)) == 1


def test_peers_break_ties_by_hash_or_frequency_and_ours_tells_of_them(graph: SmallGraph) -> None:
    """The order of triples and the seed of hashes change nothing, and both ends of a tie are told."""
    triples = [(f"e{s}", f"r{r}", f"e{o}") for s, r, o in graph[2]]
    found = []
    for order in (triples, triples[::-1]):
        data = Dataset.from_triples(order, test=sorted(triples)[:8])
        metrics = anyburl.evaluate(anyburl.learn(data, **TINY), data).to_json()["metrics"]
        assert metrics["pessimistic"]["mrr"] <= metrics["mrr"] <= metrics["optimistic"]["mrr"]
        found.append(metrics)
    assert found[0] == found[1]


def test_peers_drop_rules_with_10000_answers_and_ours_gives_them_all() -> None:
    data = hub(20_004, idol="star")
    reasoner = Reasoner(one_rule(data, "fan_of(X,star) <= follows(X,A)"), data, top_k=20_004)
    answers = reasoner.predict(None, "fan_of", "star", top=20_004)
    assert len(answers) == 10_002


def test_peers_drop_entities_with_1000_neighbours_and_ours_walks_through_them() -> None:
    data = hub(2_400)
    rules = one_rule(data, "fan_of(X,Y) <= follows(X,Y)")
    assert (int(rules.predictions[0]), int(rules.support[0])) == (2_400, 1_200)
    assert Reasoner(rules, data).predict("m02399", "fan_of", None)[0].entity == "hub"


def test_peers_have_no_seed_and_ours_gives_the_same_rules_again(graph: SmallGraph) -> None:
    data = Dataset.from_triples(table_of(graph))
    first, again, other = (
        anyburl.learn(data, **{**TINY, "paths": 300, "seed": seed}).texts().to_list() for seed in (1, 1, 2)
    )
    assert first == again
    assert first != other or len(first) == len(anyburl.learn(data, **{**TINY, "paths": 10**9}))
