"""Inputs that fuzzing found, one file each: an error of ours or a right answer (`benchmarks/fuzz`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyoxigraph")
pytest.importorskip("safetensors")

BENCHMARKS = Path(__file__).resolve().parents[1] / "benchmarks"
INPUTS = sorted(path for path in (Path(__file__).parent / "corpus").glob("*/*") if path.is_file())


@pytest.fixture(scope="module")
def find_target() -> Iterator[Callable[[str], Any]]:
    """Return the targets of `benchmarks/fuzz`, and forget them afterwards."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from fuzz.all import find_target

        yield find_target
    for name in [name for name in sys.modules if name.partition(".")[0] == "fuzz"]:
        del sys.modules[name]


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_was_found_is_refused_or_read(
    find_target: Callable[[str], Any], tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANYBURL_DATA", str(tmp_path))  # which a target sets for good
    find_target(path.parent.name).check(tmp_path, path.read_bytes())


@pytest.mark.filterwarnings("ignore:.*is not a rule")
@pytest.mark.parametrize("name", ["lines", "rule", "rules", "queries", "run", "tuned", "scores", "embedding"])
def test_what_fuzzing_starts_from_is_read(find_target: Callable[[str], Any], tmp_path: Path, name: str) -> None:
    target = find_target(name)
    assert target.parse(tmp_path, target.seeds[0]) is None or name == "scores"
