"""What pictures show: their data, and that they can be drawn."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anyburl
from anyburl import Dataset, RuleSet, RunDirectory
from anyburl.base.errors import DataError, MissingExtraError, OptionError
from anyburl.tools.plotting import (
    AnytimePoint,
    anytime_points,
    calibration_table,
    plot_anytime,
    plot_calibration,
    plot_cores,
    plot_rewards,
    plot_rules,
    save,
    short,
    trace_table,
)

pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install 'anyburl[plot]'")

PEOPLE = [(f"p{i}", relation, f"c{i % 5}") for i in range(40) for relation in ("born", "lives", "works")]


def line(elapsed: float, *profiles: tuple[str, int, float]) -> dict[str, Any]:
    """A line of a trace, with spans of half a second."""
    names = ("profile", "cores", "reward")
    return {"elapsed": elapsed, "seconds": 0.5, "profiles": [dict(zip(names, one, strict=True)) for one in profiles]}


TRACE = [
    line(0.5, ("acyclic 1", 1, 40.0), ("cyclic 1", 1, 8.0), ("cyclic 2", 0, 0.0)),
    line(1.0, ("cyclic 2", 2, 3.0)),
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    return Dataset.from_triples(PEOPLE[20:], PEOPLE[10:20], PEOPLE[:10], name="people")


@pytest.fixture(scope="module")
def rules(data: Dataset) -> RuleSet:
    return anyburl.learn(data, seconds=None, paths=500, threads=1, seed=1)


def labels(axes: Any) -> list[str]:
    return [text.get_text() for text in axes.get_legend().get_texts()]


def test_rules_are_drawn_by_type(rules: RuleSet) -> None:
    axes = plot_rules(rules)
    assert f"{len(rules):,} rules" in axes.get_title(loc="left")
    counts = {name: n for name, n in rules.counts_by_type().items() if n}
    assert labels(axes) == [f"{name}: {n:,}" for name, n in counts.items()]


def test_the_trace_as_a_table_has_a_row_for_each_span_and_profile() -> None:
    table = trace_table(TRACE)
    assert table.rows()[0][:5] == (0.5, 0.5, "acyclic 1", 1, 40.0)
    assert len(table) == 4
    assert trace_table([]).columns == table.columns


def test_rewards_are_drawn_by_second_and_profile() -> None:
    axes = plot_rewards(TRACE)
    assert labels(axes) == ["cyclic 1", "cyclic 2", "acyclic 1"]
    by_label = {drawn.get_label(): drawn.get_xydata().tolist() for drawn in axes.get_lines()}
    assert by_label == {"cyclic 1": [[0.5, 16.0]], "cyclic 2": [[1.0, 6.0]], "acyclic 1": [[0.5, 80.0]]}


def test_cores_are_stacked_span_by_span() -> None:
    axes = plot_cores(TRACE)
    bars = [(bar.get_x(), bar.get_y(), bar.get_height()) for bar in axes.patches if bar.get_height()]
    assert sorted(bars) == [(0.0, 0.0, 1.0), (0.0, 1.0, 1.0), (0.5, 0.0, 2.0)]


def test_a_run_is_evaluated_at_its_snapshots_and_its_end(data: Dataset, rules: RuleSet, tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "run", data, anyburl.LearnOptions(paths=1, seconds=None))
    run.finish(rules, {"2": rules.top(5), "10": rules})
    counts = {"number": 1, "rules": 36, "dropped": 0, "paths": 1, "bodies": 1}
    (run.path / "trace.jsonl").write_text(json.dumps({"elapsed": 12.5, "profiles": [], **counts}) + "\n")
    seen: list[float] = []
    points = anytime_points(run, data, progress=seen.append)
    assert seen == [point.seconds for point in points] == [2.0, 10.0, 12.5]
    assert points[0].metrics.protocol["rules"] == 5
    assert points[1].metrics.metrics == points[2].metrics.metrics == anyburl.evaluate(rules, data).metrics
    axes = plot_anytime({"weighted": points, "random": points[1:]}, metric="hits@1")
    assert labels(axes) == ["weighted", "random"]
    assert axes.get_lines()[1].get_xydata().tolist() == [[point.seconds, point.metrics.hits(1)] for point in points[1:]]


def test_a_run_without_points_is_left_out(data: Dataset, rules: RuleSet) -> None:
    points = [AnytimePoint(1.0, anyburl.evaluate(rules, data))]
    axes = plot_anytime({"killed": [], "whole": points})
    assert [line.get_xydata().tolist() for line in axes.get_lines()] == [[[1.0, points[0].metrics.mrr]]]
    assert labels(axes) == ["whole"]
    assert labels(plot_anytime({"first": points, "killed": [], "whole": points})) == ["first", "whole"]


def test_an_unknown_metric_is_refused(data: Dataset, rules: RuleSet) -> None:
    with pytest.raises(OptionError, match="metric must be one of mrr, hits@1, hits@3, hits@10, got 'auc'"):
        plot_anytime({"one": [AnytimePoint(1.0, anyburl.evaluate(rules, data))]}, metric="auc")


def test_calibration_counts_new_predictions_and_which_of_them_are_true() -> None:
    data = Dataset.from_triples(
        [("a", "r", "b"), ("c", "r", "d"), ("b", "q", "a"), ("d", "q", "c"), ("f", "q", "e"), ("h", "q", "g")],
        test=[("e", "r", "f")],
    )
    rule = anyburl.parse_rule("r(X,Y) <= q(Y,X)")
    everything = anyburl.learn(data, seconds=None, paths=200, threads=1, seed=1)
    chosen = everything.take([row for row in range(len(everything)) if everything.rule(row) == rule])
    reasoner = anyburl.Reasoner(chosen, data, smoothing=0, block_connected="off")
    table = calibration_table(reasoner)
    assert len(chosen) == 1
    assert table.select("predictions", "confidence", "share_true").rows() == [(2, pytest.approx(0.5), 1.0)]
    assert plot_calibration(table).get_ylabel() == "share stated by test"
    with pytest.raises(DataError, match="has no triples in its valid split"):
        calibration_table(reasoner, split="valid")


def test_where_there_is_nothing_to_draw_the_picture_says_so(rules: RuleSet) -> None:
    nothing = pl.DataFrame(schema={"confidence": pl.Float64, "share_true": pl.Float64, "predictions": pl.UInt32})
    drawn = [
        plot_rules(rules.take([])),
        plot_rewards([]),
        plot_cores([]),
        plot_anytime({"one": []}),
        plot_calibration(nothing),
    ]
    assert all(len(axes.texts) == 1 for axes in drawn)


@pytest.mark.parametrize(("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")])
def test_pictures_are_written_as_their_suffix_says(tmp_path: Path, rules: RuleSet, suffix: str, start: bytes) -> None:
    target = tmp_path / f"rules{suffix}"
    save(plot_rules(rules).figure, target)
    assert target.read_bytes().startswith(start)


def test_another_suffix_is_refused(tmp_path: Path, rules: RuleSet) -> None:
    with pytest.raises(DataError, match=r"expected a file that ends in one of \.png, \.svg, \.pdf"):
        save(plot_rules(rules).figure, tmp_path / "rules.txt")


def test_counts_are_shortened() -> None:
    assert [short(n) for n in (0, 999, 1000, 16_400, 2_310_000)] == ["0", "999", "1.0k", "16k", "2.3M"]


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, rules: RuleSet) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"plotting needs an extra: pip install 'anyburl\[plot\]'"):
        plot_rules(rules)
