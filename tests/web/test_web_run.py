"""Charts of a run, whatever its folder holds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from anyburl.web.run import Series, inks, lines, short_number, stacked, stepped, view_run


@pytest.fixture
def folder(run_folder: Path, tmp_path: Path) -> Path:
    """Return a run folder without a trace."""
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "options.json").write_bytes((run_folder / "options.json").read_bytes())
    return tmp_path / "run"


def write_trace(folder: Path, *spans: Any) -> None:
    (folder / "trace.jsonl").write_text("".join(json.dumps(span) + "\n" for span in spans))


def span(elapsed: float, **more: Any) -> dict[str, Any]:
    profile = {"profile": "cyclic 2", "cores": 2, "new_rules": 5, "reward": 3.0, "new_by_type": {"B": 4, "Uc": 1}}
    return {
        "number": 1,
        "elapsed": elapsed,
        "seconds": 1.0,
        "rules": 5,
        "saturation": 0.5,
        "profiles": [profile],
        **more,
    }


def test_a_run_that_has_just_begun_has_no_charts(folder: Path, client: TestClient, explorer: Any) -> None:
    assert view_run(folder).charts == ()
    explorer.run = folder
    assert "No time span has ended yet" in client.get("/run").text


def test_rules_are_drawn_by_type_and_length(folder: Path) -> None:
    write_trace(folder, span(1.0), span(2.0), span(3.0))
    view = view_run(folder)
    assert view.charts[0].caption == "Rules by type and length"
    assert list(view.charts[0].inks) == ["B 2", "Uc 2"]
    assert [entry["rules"] for entry in view.profiles] == [15]


def test_a_trace_of_an_older_version_is_drawn_by_path_profile(folder: Path, client: TestClient, explorer: Any) -> None:
    old = {"number": 1, "elapsed": 1.0, "profiles": [{"profile": "cyclic 2", "cores": 1}]}
    write_trace(folder, old)
    assert view_run(folder).charts[0].caption == "Rules by path profile"
    explorer.run = folder
    assert client.get("/run").status_code == 200


def test_many_spans_are_thinned_out(folder: Path) -> None:
    write_trace(folder, *(span(float(second)) for second in range(1, 5000)))
    assert len(view_run(folder).charts[0].picture) < 20_000


@pytest.mark.parametrize("draw", [stacked, stepped, lines])
@pytest.mark.parametrize("values", [[], [0.0], [5.0], [0.0, 0.0], [1.0, None], [1e-9, 1e12]])
def test_any_values_can_be_drawn(draw: Any, values: list[float | None]) -> None:
    times = [float(place) for place in range(len(values))]
    picture = draw("<title>", times, [Series("a", "c1", values)])
    assert "nan" not in picture
    assert "inf" not in picture
    assert "&lt;title&gt;" in picture


def test_inks_tell_kinds_and_lengths_apart() -> None:
    assert inks(["cyclic 1", "cyclic 9", "acyclic 1", "odd"]) == {
        "cyclic 1": "c1",
        "cyclic 9": "c4",
        "acyclic 1": "a1",
        "odd": "c1",
    }


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (12, "12"), (1200, "1.2 k"), (14_333_162, "14.3 M"), (2e9, "2 G")]
)
def test_numbers_are_short(value: float, shown: str) -> None:
    assert short_number(value) == shown
