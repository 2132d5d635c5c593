"""`anyburl demo`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from anyburl import Reasoner, RuleSet, RunDirectory, load_dataset
from anyburl.cli.demo import COMPILE_RANKING, pick_predictions, varied_best


def test_demo_tells_what_geo_is_and_shows_rules_of_each_type(run: Any, geo_run: Path) -> None:
    result = run("demo", "--seconds", 60)  # complete long before that
    assert result.stdout.startswith("geo: 8,")
    for part in ("capital(France, Paris)", "B rules:", "Uc rules:", "Ud rules:", " <= ", "anyburl learn geo"):
        assert part in result.stdout
    assert "learning on geo" in result.stderr


def test_demo_tests_the_rules_and_explains_predictions(run: Any, geo_run: Path) -> None:
    shown = run("demo", "--seconds", 60).stdout
    for part in ("1,117 facts that were not used for learning", "hits@10", "noisy-or-top:5", "Why?", "anyburl predict"):
        assert part in shown
    assert shown.count("known already: in test") == 3
    assert run("demo", "--seconds", 0.2, "--quiet").stdout == ""


def test_predictions_to_show_are_right_readable_and_always_the_same(geo_run: Path) -> None:
    dataset, rules = load_dataset("geo"), RunDirectory.open(geo_run).load_rules()
    reasoner = Reasoner(rules, dataset)
    chosen = pick_predictions(reasoner)
    assert chosen == pick_predictions(Reasoner(rules, dataset, threads=1))
    assert len({relation for _, relation, _ in chosen}) == 3
    for fact in chosen:
        explained = reasoner.explain(fact)
        assert (explained.known, explained.rank) == (("test",), 1.0)
        assert (explained.reasons[0].type, explained.reasons[0].rule.length) == ("B", 2)


def test_demo_keeps_its_run_on_request(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    told = run_json("demo", "--seconds", 60, "--out", tmp_path / "run")
    assert told["run"] == str(tmp_path / "run")
    assert told["rules"] == len(RunDirectory.open(tmp_path / "run").load_rules())
    assert {name: len(rules) for name, rules in told["best"].items()} == {"B": 5, "Uc": 5, "Ud": 5}
    assert list(told["metrics"]) == ["max", "noisy-or-top:5"]
    assert all(0.5 < metrics["hits@1"] < metrics["hits@10"] for metrics in told["metrics"].values())
    assert len(told["predictions"]) == 3
    assert "already contains a run" in run("demo", "--out", tmp_path / "run", code=2).stderr


def test_without_rules_there_is_no_prediction_to_show() -> None:
    dataset = load_dataset("geo")
    assert pick_predictions(Reasoner(RuleSet.empty(dataset.vocabulary), dataset)) == []


def test_the_best_rules_are_about_different_relations(geo_run: Path) -> None:
    best = varied_best(RunDirectory.open(geo_run).load_rules(), 8)
    relations = Counter(rule.head.relation for rule in best)
    assert len(best) == 8
    assert max(relations.values()) == 1


def test_the_process_beside_compiles_what_explained_answers_need(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[tuple[int, bool]] = []
    monkeypatch.setattr(
        "anyburl.reasoning.shortcuts.warm_up_reasoning", lambda n, *, explaining: compiled.append((n, explaining))
    )
    exec(COMPILE_RANKING.format(n_relations=7))
    assert compiled == [(7, True)]
