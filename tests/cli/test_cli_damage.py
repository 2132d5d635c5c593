"""Run folders that are damaged, on the command line: a sentence that names the file, and no traceback."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anyburl import RuleSet
from anyburl.rules.run_folder import write_part


@pytest.fixture
def killed(geo_run: Path, tmp_path: Path) -> Path:
    """A run that ended before its rules were joined: its file, and parts."""
    folder = tmp_path / "run"
    shutil.copytree(geo_run, folder)
    vocabulary = RuleSet.load(folder).vocabulary
    rules = RuleSet.load(folder)
    assert rules.vocabulary == vocabulary
    for start in (0, 10, 20):
        write_part(folder, rules.slice(start, start + 10))
    (folder / "rules.parquet").unlink()
    return folder


def spoil_options(folder: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    described = json.loads((folder / "options.json").read_text())
    change(described)
    (folder / "options.json").write_text(json.dumps(described))


FATAL: dict[str, Callable[[Path], object]] = {
    "vocabulary.parquet is missing": lambda folder: (folder / "vocabulary.parquet").unlink(),
    "vocabulary.parquet is damaged": lambda folder: (folder / "vocabulary.parquet").write_bytes(b"PAR1"),
    "options.json cannot be read as JSON": lambda folder: (folder / "options.json").write_bytes(b"\xff"),
    "options.json does not describe a run: the source of its data cannot be 7": lambda folder: spoil_options(
        folder, lambda described: described["data"].update(source=7)
    ),
}


@pytest.mark.parametrize("expected", FATAL)
def test_what_is_missing_or_damaged_is_named(run: Any, killed: Path, expected: str) -> None:
    FATAL[expected](killed)
    for command in (("predict", killed, "France", "official_language", "?"), ("learn", "--out", killed, "--resume")):
        assert expected in " ".join(run(*command, code=2).stderr.split())


def test_commands_go_on_with_what_is_whole(run: Any, killed: Path) -> None:
    (killed / "parts" / "000002.columns").write_bytes(b"junk")
    (killed / "parts" / "notes.columns").write_bytes(b"not ours")
    with (killed / "trace.jsonl").open("ab") as file:
        file.write(b'\xff\xfe\n[1]\n{"number": "x"}\n')
    shown = run("rules", killed, "--json")
    assert json.loads(shown.stdout)["matching"] == 20
    said = " ".join(shown.stderr.split())
    assert "000002.columns is damaged" in said
    assert "its rules are left out" in said
    refused = run("learn", "--out", killed, "--resume", code=2)
    assert "move that file away" in " ".join(refused.stderr.split())


def test_options_of_the_wrong_type_are_named_on_resuming(run: Any, killed: Path) -> None:
    spoil_options(killed, lambda described: described["options"].update(snapshots=5))
    refused = " ".join(run("learn", "--out", killed, "--resume", code=2).stderr.split())
    assert "options.json does not describe a run: snapshots must be seconds above 0, got 5" in refused
