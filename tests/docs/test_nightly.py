"""The nightly job of the documentation."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from anyburl import load_dataset
from docs.pages import ROOT, blocks_of
from docs.running import run_here


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script of the page, in a folder with a run and a program that exports the graph."""
    monkeypatch.chdir(tmp_path)
    facts = load_dataset("geo").train.to_polars()
    Path("graph").mkdir()
    facts[50:].write_csv("graph/train.txt", separator="\t", include_header=False)
    facts.write_csv("today.txt", separator="\t", include_header=False)
    run_here(["anyburl", "learn", "graph", "--out", "runs/graph", "--max-cyclic", "2", "--seconds", "60", "--quiet"])
    page = ROOT / "docs" / "howto" / "up-to-date.md"
    (block,) = [block for block in blocks_of(page) if block.code.startswith("cat > nightly.sh")]
    lines = block.code.splitlines()[1:-2]
    path = tmp_path / "nightly.sh"
    path.write_text("\n".join(lines) + "\n")
    for name, code in (("anyburl", f'exec "{sys.executable}" -m anyburl "$@"'), ("export-graph.sh", "cat today.txt")):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{code}\n")
        program.chmod(0o755)
    return path


def test_the_nightly_job_updates_the_run_and_reports(script: Path) -> None:
    environment = {**os.environ, "PATH": f"{script.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", str(script)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert "new rules, the most valuable" in done.stdout
    assert Path("report.txt").read_text().endswith(" unchanged\n")
    assert Path("missing.parquet").is_file()
