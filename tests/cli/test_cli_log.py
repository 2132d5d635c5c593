"""--log-json: what a command does, as lines of JSON; and the warning before memory runs out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyburl.base import machine as memory
from anyburl.base.machine import has_huge_pages, memory_left
from anyburl.cli import events as watching
from anyburl.cli.events import MemoryWatch, resident_bytes


def events(text: str) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in text.splitlines()]
    assert all({"event", "time", "elapsed", "memory_mb"} <= line.keys() for line in found)
    return found


def test_learning_is_logged_from_start_to_end(run: Any, tmp_path: Path) -> None:
    log, options = tmp_path / "log.jsonl", ["--seconds", 0.5, "--snapshots", 0.2, "--threads", 1, "--quiet"]
    run("learn", "geo", "--out", tmp_path / "run", *options, "--log-json", log)
    found = events(log.read_text())
    assert (found[0]["event"], found[0]["command"]) == ("start", "learn")
    by_event = {line["event"]: line for line in found}
    assert {"progress", "snapshot", "saved"} <= by_event.keys()
    assert by_event["snapshot"]["name"] == "0.2"
    assert by_event["saved"]["rules"] > 0
    assert (found[-1]["event"], found[-1]["code"]) == ("end", 0)


def test_a_log_is_appended_to_and_tells_of_errors(run: Any, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    for _ in range(2):
        run("rescore", tmp_path / "nowhere", "--out", tmp_path / "x.parquet", "--log-json", log, code=2)
    found = events(log.read_text())
    assert [line["event"] for line in found] == ["start", "error", "end"] * 2
    assert found[-1]["code"] == 2
    assert "nowhere" in found[-2]["message"]


def test_a_log_on_standard_output_has_it_for_itself(run: Any, tmp_path: Path) -> None:
    made = "index", "geo"
    found = events(run(*made, "--out", tmp_path / "a", "--log-json", "-", "--quiet").stdout)
    assert [line["event"] for line in found if line["event"] != "progress"] == ["start", "end"]
    for flags in ([], ["--json"], ["--json", "--quiet"]):
        result = run(*made, "--out", tmp_path / "b", "--log-json", "-", *flags, code=2)
        assert "needs standard output for itself" in " ".join(result.stderr.split())
    result = run(*made, "--out", tmp_path / "b", "--log-json", tmp_path / "no" / "log", code=2)
    assert "the log cannot be written (No such file or directory)" in " ".join(result.stderr.split())


def test_memory_is_that_of_the_cgroup_where_it_has_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    monkeypatch.setattr(memory, "MEMORY", tmp_path / "meminfo")
    assert memory_left() is None
    (tmp_path / "meminfo").write_text("MemTotal: 8000 kB\nMemAvailable: 4000 kB\nHugePages_Total: 0\n")
    assert memory_left() == (4000 * 1024, 8000 * 1024)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("900000\n")
    assert memory_left() == (4000 * 1024, 8000 * 1024)
    (tmp_path / "memory.max").write_text("1000000\n")
    assert memory_left() == (100_000, 1_000_000)


def test_a_system_that_never_gives_huge_pages_has_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = tmp_path / "enabled"
    monkeypatch.setattr(memory, "HUGE_PAGES", told)
    assert not has_huge_pages()
    told.write_text("always madvise [never]\n")
    assert not has_huge_pages()
    told.write_text("always [madvise] never\n")
    assert has_huge_pages()
    assert resident_bytes()


def test_a_warning_comes_once_and_names_what_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    watch = MemoryWatch(said.append)
    for left in (5, 1, 0):
        monkeypatch.setattr(watching, "memory_left", lambda left=left: (left * 10**9, 20 * 10**9))
        watch.look(1234)
    assert len(said) == 1
    assert "1.0 of 20.0 GB left" in said[0]
    assert "--max-rules 1234" in said[0]
