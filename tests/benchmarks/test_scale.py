"""The fit and the page of growth, from made-up figures."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
VERSIONS = {"python": "3.11", "numba": "0.61", "numpy": "2.0", "polars": "2.0"}
MACHINE = {"date": "2020-01-01 00:00", "cores": 2, "processor": "test", "commit": "abc", **VERSIONS}
PLANTED = [
    {"rule": "inverse0(X,Y) <= first0(Y,X)", "truth": 0.9, "found": True, "exact": True, "difference": 0.0},
    {"rule": "three_steps0(X,Y) <= first0(X,A), second0(A,B), third0(B,Y)", "truth": 0.5, "found": False},
    {"rule": "dangling0(X,c) <= first0(X,A)", "truth": 0.3, "found": True, "exact": False, "difference": -0.02},
]


RECOUNTED = {
    "rules": 600,
    "inside": 0.985,
    "within_0.02": 0.99,
    "within_0.02_or_a_tenth": 0.995,
    "median_margin": 0.005,
}


@pytest.fixture
def scale(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import modules of benchmarks by their name, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before, path = set(sys.modules), list(sys.path)
    yield importlib.import_module
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def rates(per_second: float) -> dict[str, Any]:
    """Return what a core does a second."""
    harvested = {"bodies": 9, "bodies_per_second": per_second, "edges_per_second": 1e7, "longest_call": 0.25}
    sampled = {"attempts_per_second": per_second, "paths_per_second": per_second / 2}
    return {**sampled, "10000": harvested, "1000000": harvested}


def made_up(millions: int, rules: int, has_index: bool) -> dict[str, Any]:
    """Return the figures of a size: 100 bytes a triple and 50 a rule for learning, time per query as its root."""
    triples = millions * 1_000_000
    memory = (100 * triples + 50 * rules) / 1024**2 + 200
    step = {"peak_memory_mb": memory, "peak_private_mb": 300.0, "start_mb": 200.0}
    indexed = {"seconds": 2e-6 * triples, "peak_memory_mb": 40 * triples / 1024**2, "disk_mb": 30 * triples / 1e6}
    learned = {
        "seconds": 60.0,
        "threads": 2,
        **{"paths": 1_200_000, "bodies": 120_000, "rules": rules, "kept_rules": rules, "binary_rules": 4321},
        "per_core_second": {"paths": 10_000.0, "bodies": 1_000.0, "rules": rules / 120},
        "profiles": {"cyclic 1": {"core_seconds": 120, "attempts": 9, "paths": 8, "new_bodies": 7, "new_rules": 6}},
        "longest_span": 1.25,
        "planted": PLANTED,
    }
    ranked = {"seconds": 1e-3 * triples**0.5, "threads": 2, "queries": 1_000, "index_seconds": 1e-6 * rules}
    return {
        "asked": {"triples": triples, "seconds": 60.0, "queries": 1_000},
        "generate": {**step, "seconds": 5.0, "train": triples, "entities": triples // 10, "relations": 170},
        "index": indexed if has_index else {"seconds": None},
        "open": {**step, "seconds": 0.25},
        "rates": {"seconds": 1.0, "profiles": {"cyclic 1": rates(1e6 / millions)}},
        "learn": {**step, **learned},
        "recount": {
            "seconds": 9.0,
            "estimated": 700,
            "all": RECOUNTED if millions > 5 else {"rules": 0},
            "confident": {"rules": 0},
        },
        "rank": {**step, **ranked, "queries_per_second": 500.0, "mrr": 0.25, "hits@10": 0.3},
    }


def store(results: Path, has_index: bool = True) -> None:
    """Write three sizes as the benchmark does, and one that failed."""
    results.mkdir(parents=True)
    sizes = {1: 9_000_000, 10: 20_000_000, 100: 4_000_000}
    for millions, rules in sizes.items():
        cell = {"command": f"test {millions}", "machine": MACHINE, "results": made_up(millions, rules, has_index)}
        (results / f"scale-{millions}.json").write_text(json.dumps(cell), "utf-8")
    failed = {"generate": {"train": 1}, "rank": {"failed": "exit code -9"}}
    cell = {"command": "test", "machine": MACHINE, "results": failed}
    (results / "scale-300.json").write_text(json.dumps(cell), "utf-8")


def test_the_fit_finds_the_powers_and_shares_behind_the_figures(scale: Any, tmp_path: Path) -> None:
    store(tmp_path / "results")
    fit = scale("scale.fit")
    sizes = fit.load_sizes(tmp_path / "results")
    assert [size["asked"]["triples"] for size in sizes] == [1_000_000, 10_000_000, 100_000_000]
    projected = fit.project(sizes)
    powers = {name: fitted["exponent"] for name, fitted in projected["fits"].items()}
    assert powers["ranking, time per query"] == pytest.approx(0.5)
    assert powers["index, time per triple"] == pytest.approx(0, abs=1e-9)
    shares = projected["shares"]["learning, bytes"]
    assert (shares["per_triple"], shares["per_rule"]) == (pytest.approx(100), pytest.approx(50))
    freebase = projected["targets"]["Freebase"]
    assert freebase["memory_gb"]["learn"] == pytest.approx((100 * 338e6 + 50 * 20e6) / 1e9)
    assert freebase["memory_gb"]["index"] == pytest.approx(40 * 338e6 / 1e9)
    assert projected["peer"]["ratio"] == pytest.approx(900 / freebase["memory_gb"]["largest"])


def test_rules_that_grow_like_triples_cannot_be_told_from_them(scale: Any) -> None:
    shares = scale("scale.fit").fit_shares([1.0, 2.0, 4.0], [10.0, 20.0, 40.0], [100.0, 200.0, 400.0])
    assert (shares.per_triple, shares.per_rule) == (pytest.approx(100), 0)


@pytest.mark.parametrize("has_index", [True, False])
def test_the_page_tells_what_was_measured_and_what_follows(scale: Any, tmp_path: Path, has_index: bool) -> None:
    results = tmp_path / "results"
    store(results, has_index)
    fit = scale("scale.fit")
    projected = fit.project(fit.load_sizes(results))
    (results / "scale-fit.json").write_text(json.dumps({"results": projected}), "utf-8")
    page = scale("scale.page").render(results, tmp_path / "docs").read_text("utf-8")
    for heading in ("Measured", "Where the time went", "Planted rules", "Estimates, recounted", "Growth", "Projection"):
        assert f"## {heading}\n" in page
    assert "| 100 000 000 | 10 000 | 1 000 | 33 333 | 4 321 | 1.25 |" in page
    assert "| 1 000 000 | 1 of 1 | 0 of 0 | 0 of 1 | 0 of 0 | 1 of 1 | 1 | 0.0200 |" in page
    assert "| 100 000 000 | all | 600 | 98.5 % | 99.0 % | 99.5 % | 0.0050 |" in page
    assert "| 1 000 000 | all |" not in page
    dollars = projected["targets"]["Freebase"]["dollars"]
    assert dollars == pytest.approx(0.05 * 2 * sum(projected["targets"]["Freebase"]["hours"]["2"].values()))
    assert ("every step reads the text" in page) != has_index
    assert "AnyBURL-23 is reported to need about 900 GB for Freebase. That is" in page
    assert (tmp_path / "docs" / "results" / "scale.svg").is_file()
    widths = {
        line.count("|") for line in page.split("Peak memory of each step:")[1].split("![")[0].splitlines() if line
    }
    assert len(widths) == 1
