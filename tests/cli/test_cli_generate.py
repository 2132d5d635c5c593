"""`anyburl generate`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def test_a_graph_is_written_and_summed_up(run: Any, tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    said = run("generate", "--triples", 2_000, "--out", folder, "--seed", 3).stdout
    stored = json.loads((folder / "planted.json").read_text("utf-8"))
    assert f"train {stored['train']:,}, valid {stored['valid']}, test {stored['test']}" in said
    assert f"{len(stored['rules'])} planted rules" in said
    assert sorted(file.name for file in folder.iterdir()) == ["planted.json", "test.tsv", "train.tsv", "valid.tsv"]


def test_json_is_what_planted_json_holds(run_json: Any, tmp_path: Path) -> None:
    folder = tmp_path / "graph"
    said = run_json("generate", "--triples", 2_000, "--out", folder, "--relations", 20, "--entities", 500)
    assert said.pop("out") == str(folder)
    assert said == json.loads((folder / "planted.json").read_text("utf-8"))
    assert said["asked"] == {"triples": 2_000, "entities": 500, "relations": 20, "seed": 0}


def test_a_folder_with_a_graph_is_refused(run: Any, tmp_path: Path) -> None:
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    assert "already contains a graph" in run("generate", "--triples", 1_000, "--out", tmp_path, code=2).stderr
