"""`anyburl demo`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from anyburl import RunDirectory
from anyburl.cli.demo import varied_best


def test_demo_tells_what_geo_is_and_shows_rules_of_each_type(run: Any, geo_run: Path) -> None:
    result = run("demo", "--seconds", 1)
    assert result.stdout.startswith("geo: 8,")
    for part in ("capital(France, Paris)", "B rules:", "Uc rules:", "Ud rules:", " <= ", "anyburl learn geo"):
        assert part in result.stdout
    assert "learning on geo" in result.stderr


def test_demo_keeps_its_run_on_request(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    told = run_json("demo", "--seconds", 0.5, "--out", tmp_path / "run")
    assert told["run"] == str(tmp_path / "run")
    assert told["rules"] == len(RunDirectory.open(tmp_path / "run").load_rules())
    assert {name: len(rules) for name, rules in told["best"].items()} == {"B": 5, "Uc": 5, "Ud": 5}
    assert "already holds a run" in run("demo", "--out", tmp_path / "run", code=2).stderr


def test_the_best_rules_are_about_different_relations(geo_run: Path) -> None:
    best = varied_best(RunDirectory.open(geo_run).load_rules(), 8)
    relations = Counter(rule.head.relation for rule in best)
    assert len(best) == 8
    assert max(relations.values()) == 1
