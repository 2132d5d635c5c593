"""Benchmarks are scripts, not a package: their folder is on the path while a test runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a test import the harness of faults and fuzzing, anew."""
    monkeypatch.syspath_prepend(str(FOLDER))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("faults", "fuzz")]:
        monkeypatch.delitem(sys.modules, name)
