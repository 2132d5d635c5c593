"""--engine and --address on the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyburl.learning.run import RunDirectory
from anyburl.learning.threads import ThreadsEngine


def test_an_engine_that_there_is_not_is_refused(run: Any, geo_run: Path, tmp_path: Path) -> None:
    learned = run("learn", "geo", "--engine", "steam", "--out", tmp_path / "run", code=2)
    assert "--engine must be one of threads, ray, got 'steam'" in learned.stderr
    assert (
        "--engine must be one of threads, ray, got 'steam'"
        in run("evaluate", geo_run, "--engine", "steam", code=2).stderr
    )


def test_an_address_without_ray_is_refused(run: Any, geo_run: Path, tmp_path: Path) -> None:
    for arguments in (["learn", "geo", "--out", tmp_path / "run"], ["evaluate", geo_run]):
        refused = run(*arguments, "--address", "10.0.0.1:6379", code=2)
        assert refused.stderr.startswith("error: --address ")
        assert "ray" in refused.stderr


def test_without_ray_the_extra_is_named_before_any_work_is_done(
    run: Any, geo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.cli.notes.find_spec", lambda name: None)
    for arguments in (["learn", "geo", "--out", tmp_path / "run"], ["evaluate", geo_run]):
        refused = run(*arguments, "--engine", "ray", code=2)
        assert "--engine ray needs an extra: pip install 'anyburl[ray]'" in refused.stderr
    assert not (tmp_path / "run").exists()


def test_a_run_on_a_cluster_may_be_gone_on_with_by_threads(run: Any, run_json: Any, tmp_path: Path) -> None:
    run("learn", "geo", "--paths", 1, "--max-cyclic", 2, "--out", tmp_path / "run", "--quiet")
    options = tmp_path / "run" / "options.json"
    described = json.loads(options.read_text("utf-8"))
    described["options"] |= {"engine": "ray", "address": "10.0.0.1:6379"}
    options.write_text(json.dumps(described), "utf-8")
    resumed = run_json("learn", "--out", tmp_path / "run", "--resume", "--engine", "threads", "--seconds", 5)
    assert resumed["stopped_by"] == "complete"
    assert RunDirectory.open(tmp_path / "run").options().address is None


def test_a_run_from_before_there_were_addresses_is_opened(run: Any, tmp_path: Path) -> None:
    run("learn", "geo", "--paths", 1, "--max-cyclic", 1, "--out", tmp_path / "run", "--quiet")
    options = tmp_path / "run" / "options.json"
    described = json.loads(options.read_text("utf-8"))
    del described["options"]["address"]
    options.write_text(json.dumps(described), "utf-8")
    assert RunDirectory.open(tmp_path / "run").options().address is None


@pytest.mark.parametrize("environment", [None, {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "120"}])
def test_the_display_says_which_workers_were_lost(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str] | None
) -> None:
    monkeypatch.setattr(ThreadsEngine, "take_notes", lambda self: ["lost 1 Ray worker in span 1: 1 left"])
    shown = run("learn", "geo", "--paths", 1, "--max-cyclic", 1, "--out", tmp_path / "run", env=environment)
    assert "lost 1 Ray worker in span 1: 1 left" in shown.stderr
    first = next(RunDirectory.open(tmp_path / "run").trace())
    assert first["notes"] == ["lost 1 Ray worker in span 1: 1 left"]
