"""Running the command line in tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from anyburl.cli.app import app

NEVER = 3600.0  # seconds
PROGRAM = """
from anyburl.cli import app, datasets, notes
notes.SECONDS_UNTIL_SAID = datasets.SECONDS_UNTIL_SAID = {never}
{first}
app.main()
"""

Run = Callable[..., Any]
Spawn = Callable[..., "subprocess.Popen[str]"]


def invoke(*arguments: object, code: int = 0, env: dict[str, str] | None = None) -> Any:
    """Run a command in this process and check its exit code."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], env=env, prog_name="anyburl")
    assert result.exit_code == code, f"exit code {result.exit_code}\n{result.stdout}\n{result.stderr}"
    return result


@pytest.fixture
def run() -> Run:
    """Return the function that runs a command: result.stdout, result.stderr."""
    return invoke


@pytest.fixture
def run_json() -> Run:
    """Return the function that runs a command with --json and returns the object."""

    def call(*arguments: object, code: int = 0) -> Any:
        return json.loads(invoke(*arguments, "--json", code=code).stdout)

    return call


@pytest.fixture(scope="session")
def geo_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a short run on geo; kernels are compiled after that."""
    folder = tmp_path_factory.mktemp("cli") / "geo"
    invoke("learn", "geo", "--paths", 20_000, "--out", folder, "--quiet")
    return folder


@pytest.fixture(scope="session")
def distilled_run(geo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the 100 rules of that run that matter most, with what the command printed and a plot."""
    folder = tmp_path_factory.mktemp("distilled") / "small"
    size = ("--rules", 100, "--facts", 2_000)
    told = invoke("distil", geo_run, "--out", folder, *size, "--plot", folder.with_suffix(".png"), "--json")
    (folder / "told.json").write_text(told.stdout)
    return folder


@pytest.fixture(autouse=True)
def nothing_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave remarks on what is slow to the tests of them: a busy machine makes anything slow."""
    for module in ("notes", "datasets"):
        monkeypatch.setattr(f"anyburl.cli.{module}.SECONDS_UNTIL_SAID", NEVER)


@pytest.fixture(autouse=True)
def quick_tuning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Train on a few questions: how good a model is, is for the tests of tuning."""
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 600)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 600)


@pytest.fixture(scope="session")
def spawn() -> Spawn:
    """Return the function that starts a command as a process of its own, which runs the code `first` before."""

    def start(*arguments: object, first: str = "", **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM.format(first=first, never=NEVER), *map(str, arguments)]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", **variables}
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, encoding="utf-8", env=environment
        )

    return start
