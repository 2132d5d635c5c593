"""The page of results is made from stored JSON: here from made-up cells, in a temporary folder."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks" / "paper"
MACHINE = {"date": "2020-01-01 00:00", "cores": 2, "processor": "test", "commit": "abc"}
METRICS = {"hits@1": 0.5, "hits@10": 0.7, "mrr": 0.57}
RUN = {"seconds": 100.0, "threads": 2, "rules": 12345, "exact": 0.9, "peak_memory_mb": 500.0, "stopped_by": "seconds"}


@pytest.fixture
def paper(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import modules of benchmarks/paper by their name, and forget them afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(FOLDER)):
            del sys.modules[name]


def store(results: Path, experiment: str, name: str, asked: dict[str, Any], figures: dict[str, Any]) -> None:
    """Write a cell as the experiments do."""
    versions = {"python": "3.11", "numba": "0.61", "numpy": "2.0", "polars": "2.0"}
    cell = {"command": "test", "anyburl": "0.1.0", "machine": {**MACHINE, **versions}, "scale": 0.01}
    file = results / experiment / f"{name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({**cell, "asked": asked, "results": figures}), "utf-8")


def evaluated(aggregation: str = "max", shift: float = 0.0, blocked: bool = False) -> dict[str, Any]:
    """Return the figures of one evaluation."""
    shifted = {name: value + shift for name, value in METRICS.items()}
    metrics = {**shifted, "interval": {name: [value - 0.01, value + 0.01] for name, value in shifted.items()}}
    protocol = {"rules": 12345, "aggregation": aggregation, "block_connected": blocked}
    rest = {"seconds": {"rank": 1.5}, "elapsed": 100.0, "sampled": None, "run": RUN}
    return {"metrics": metrics, "protocol": protocol, **rest}


def store_main_results(results: Path) -> None:
    for data in ("WN18", "WN18RR", "FB15k", "FB15k-237", "YAGO3-10-partial"):
        for aggregation, part, shift in (("max", "paper", 0.0), ("tuned", "best", 0.02)):
            asked = {"data": data, "at": 100.0, "part": part, "rank": {"aggregation": aggregation}}
            name = f"{data.removesuffix('-partial')}-100s-{aggregation}"
            store(results, "table4", name, asked, evaluated(aggregation, shift))


def store_searches(results: Path) -> None:
    for seed in (1, 2, 3):
        for place, policy in enumerate(("random-support-confidence", "greedy-support", "weighted-support")):
            points = [
                {"at": at, "elapsed": at + 0.1, "hits@10": 0.3 + 0.02 * at + 0.05 * place + 0.001 * seed}
                for at in (1, 2, 10, 20)
            ]
            figures = {"points": points, "sampled": 2000, "run": RUN}
            asked = {"data": "FB15k-237", "learn": {"span": 0.1}}
            store(results, "table3", f"FB15k-237-{policy}-{seed}", asked, figures)
            curve = policy.split("-")[0].replace("greedy", "saturation-0.99")
            asked = {"data": "YAGO3-10-partial", "learn": {"span": 0.1}}
            store(results, "figure3", f"literal-{curve}-{seed}", asked, figures)


def store_the_rest(results: Path) -> None:
    counts = {"entities": 40943, "relations": 18, "triples": 141442, "testset": 5000}
    more = {"entities_of_all_splits": 40943, "reflexive_triples": 0}
    store(results, "table1", "WN18", {"data": "WN18"}, {"data": "WN18", **counts, **more})
    figures = {
        "thresholds": {"support": 100, "confidence": 0.5},
        "off": {"rules": 1000, **evaluated()},
        "on": {**evaluated(shift=0.1), "rules": 100},
        "rescored_not_filtered": evaluated(),
        "median_confidence": {"off": 0.8, "on": 0.4},
    }
    store(results, "table2", "strict", {"data": "WN18"}, figures)
    for what in ("as in the paper", "budget 1e+04", "aggregation tuned"):
        asked = {"data": "WN18RR", "what": what}
        store(results, "beyond", f"ablation-WN18RR-{what}", asked, evaluated(shift=0.02 * what.count("tuned")))
    for fraction in (0.5, 1.0):
        learned = {**RUN, "triples": round(1000 * fraction), "seconds": fraction}
        ranked = {"seconds": {"rank": fraction}, "peak_memory_mb": 700.0}
        asked = {"data": "FB15k-237", "fraction": fraction, "queries": 2000}
        store(results, "beyond", f"growth-{fraction}", asked, {"learn": learned, "rank": ranked})


def test_the_page_shows_every_section_beside_the_published_figures(paper: Any, tmp_path: Path) -> None:
    results = tmp_path / "cells"
    store_main_results(results)
    store_searches(results)
    store_the_rest(results)
    page = paper("render").render(results, tmp_path / "docs").read_text("utf-8")
    for heading in ("Table 1", "Table 2", "Figure 3", "Table 3", "Table 4", "per core-second", "adds", "growth"):
        assert any(line.startswith("## ") and heading in line for line in page.splitlines()), heading
    assert "| the paper's AnyBURL 1000s |  | 45.69 | 57.67 | 0.492 |" in page
    assert "MRR +0.078, better" in page  # 0.57 on WN18RR against the paper's 0.492
    assert "Of 8 comparisons, 8 are significant" in page
    assert "10.0 % of the rules remain (the paper: 10.7 %)" in page
    assert "WN18 match the paper." in page
    pictures = {file.stem for file in (tmp_path / "docs" / "results").glob("*.svg")}
    assert pictures == {"table4", "table3", "figure3", "quality", "ablations", "growth"}
    assert all(f"(results/{name}.svg)" in page for name in pictures)


def test_an_empty_folder_gives_a_page_that_says_so(paper: Any, tmp_path: Path) -> None:
    page = paper("render").render(tmp_path / "cells", tmp_path / "docs").read_text("utf-8")
    assert "Nothing has been measured yet." in page


def test_ranks_are_those_of_the_paper_for_its_own_row_but_for_two(paper: Any) -> None:
    published = json.loads((FOLDER / "published.json").read_text("utf-8"))["table4"]
    table4 = paper("page.table4")
    last = next(row for row in published["anyburl"] if row["row"] == "AnyBURL 10000s")
    other = {}
    for name, printed in published["rank"]["figures"].items():
        for metric, rank in printed.items():
            ours = table4.rank_of(metric, name, table4.share_of(metric, last["figures"][name][metric]), published)
            if ours != rank:
                other[name, metric] = (ours, rank)
    # five models are printed with an MRR above 0.345, one with hits@10 above 57.24
    assert other == {("FB15k-237", "mrr"): (6, 5), ("WN18RR", "hits@10"): (2, 3)}


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [([1.0, 2.0, 3.0], [2.0, 3.0, 4.0], 0.28786), ([1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 9.0], 0.05192)],
)
def test_welch_gives_the_p_value_of_the_books(
    paper: Any, one: list[float], other: list[float], expected: float
) -> None:
    assert paper("page.stats").welch(one, other) == pytest.approx(expected, abs=1e-4)


def test_tables_say_where_a_sample_was_ranked_and_ablations_show_every_way(paper: Any, tmp_path: Path) -> None:
    tuned = paper("page.tuned")
    assert tuned.sample_note({"1": {"rules": 5}}) == []
    assert "2,500 test triples, drawn at random" in tuned.sample_note({"1": {"sample": 2500}})[0]
    stored = {"A": {"all of it": {"mrr": 0.5}}, "B": {"all of it": {"mrr": 0.4}, "less": {"mrr": 0.3}}}
    path = tmp_path / "ablation.json"
    path.write_text(json.dumps({"command": "bench", "machine": MACHINE, "results": stored}), "utf-8")
    page = tuned.ablation(path)
    assert "| less |  | 0.3000 |" in page


def test_claims_are_judged_by_the_cells(paper: Any, tmp_path: Path) -> None:
    results = tmp_path / "cells"
    store_main_results(results)
    store_searches(results)
    store_the_rest(results)
    published = json.loads((FOLDER / "published.json").read_text("utf-8"))
    page = paper("page.claims").section(results, published, tmp_path)
    verdicts = {line.split(" | ")[0].removeprefix("| "): line.split(" | ")[2:] for line in page.splitlines()}
    assert verdicts["With object identity, a tenth of the rules with high confidence remain above the thresholds."] == [
        "holds",
        "100 of 1000 rules remain (10.0 %) |",
    ]
    assert verdicts["Hits@1 rises from 73.9 to 93.8."][0] == "holds"  # 0.5 and 0.6, intervals of 0.01
    early = verdicts["After 50 to 200 s, random is better than saturation 0.99."]
    assert early[0] == "does not hold"  # saturation is stored 5 points higher in each run
    assert early[1].startswith("-5.0 after 2 s (p =")
    assert verdicts["In hits@1, AnyBURL is first or second on each data set."][0] == "does not hold"
    assert "Of 9 claims, 5 hold and 4 do not hold." in page
    assert not any("YAGO3-10, weighted with s x c" in claim for claim in verdicts)  # no cells of it


def test_claims_without_cells_are_left_out(paper: Any, tmp_path: Path) -> None:
    published = json.loads((FOLDER / "published.json").read_text("utf-8"))
    assert paper("page.claims").section(tmp_path, published, tmp_path) == ""


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        ([0.31, 0.32, 0.33], [0.11, 0.12, 0.13], "holds"),
        ([0.11, 0.12, 0.13], [0.31, 0.32, 0.33], "does not hold"),
        ([0.31, 0.12, 0.23], [0.21, 0.12, 0.33], "undecided"),
        ([0.31], [0.11], "undecided"),
    ],
)
def test_a_claim_is_undecided_within_the_spread(
    paper: Any, tmp_path: Path, one: list[float], other: list[float], verdict: str
) -> None:
    for policy, values in (("random", one), ("saturation-0.99", other)):
        for seed, value in enumerate(values):
            points = [{"at": at, "elapsed": at, "hits@10": value} for at in (1, 2, 5)]
            figures = {"points": points, "sampled": None, "run": RUN}
            store(tmp_path, "figure3", f"literal-{policy}-{seed}", {"data": "YAGO3-10"}, figures)
    claims = paper("page.claims")
    finding = claims.above("random", "saturation-0.99", 0, 3)(claims.Evidence(tmp_path, {}))
    assert finding[0] == verdict


def test_what_is_older_than_the_date_is_measured_again(
    paper: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = paper("lab")
    store(tmp_path, "table1", "geo", {"data": "geo"}, {})  # measured in 2020
    cell = lab.Cell("table1", "geo", {"data": "geo"})
    assert not cell.is_due(lab.Lab(tmp_path, tmp_path))
    assert cell.is_due(lab.Lab(tmp_path, tmp_path, since="2020-01-02"))
    assert not cell.is_due(lab.Lab(tmp_path, tmp_path, since="2019-12-31"))

    run_all, commands = paper("run_all"), []
    results = tmp_path / "results"
    results.mkdir()
    (results / "old.json").write_text(json.dumps({"machine": MACHINE}))
    monkeypatch.setattr(run_all, "HERE", tmp_path / "paper")
    monkeypatch.setattr(run_all, "BENCHMARKS", {"old": "bench_old.py", "new": "bench_new.py FAST"})

    class Done:
        returncode = 1

    def run(command: list[str], **how: Any) -> Done:
        commands.append(command[1:])
        return Done()

    monkeypatch.setattr(run_all.subprocess, "run", run)
    run_all.run_benchmarks(lab.Lab(tmp_path, tmp_path / "runs"))
    assert commands == [[str(tmp_path / "bench_new.py"), "FAST"]]
    run_all.run_benchmarks(lab.Lab(tmp_path, tmp_path / "runs", since="2020-01-02"))
    assert [Path(command[0]).name for command in commands[1:]] == ["bench_old.py", "bench_new.py"]
    (results / "old.json").write_text(json.dumps({"machine": {**MACHINE, "date": "2020-01-03 00:00"}}))
    Done.returncode = 0
    run_all.run_benchmarks(lab.Lab(tmp_path, tmp_path / "runs", since="2020-01-02"))
    assert len(commands) == 5, "what was begun and failed is run again"
    (results / "new.json").write_text(json.dumps({"machine": {**MACHINE, "date": "2020-01-03 00:00"}}))
    run_all.run_benchmarks(lab.Lab(tmp_path, tmp_path / "runs", since="2020-01-02"))
    assert len(commands) == 5, "what is new and ended is not"
