"""What became of one set of rules in another."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import InvalidOptionError, RuleSet

LINES = ["10\t5\t0.5\tr(X,Y) <= s(X,Y)", "4\t2\t0.5\tr(X,c) <= s(X,d)", "9\t3\t0.33\tr(X,Y) <= s(X,A), t(A,Y)"]
LATER = ["20\t5\t0.25\tr(X,Y) <= s(X,Y)", "4\t2\t0.5\tr(X,c) <= s(X,d)", "7\t7\t1.0\tu(e,Y) <= r(Y,A)"]


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """Two files whose vocabularies differ, so that ids do, too."""
    paths = tmp_path / "before.txt", tmp_path / "after.txt"
    for path, lines in zip(paths, (LINES, LATER), strict=True):
        path.write_text("\n".join(lines) + "\n")
    return paths


def test_rules_are_matched_by_their_labels(files: tuple[Path, Path]) -> None:
    difference = anyburl.diff(*files)
    assert difference.counts() == {"gone": 1, "new": 1, "changed": 1, "unchanged": 1}
    assert difference.gone.texts().to_list() == ["r(X,Y) <= s(X,A), t(A,Y)"]
    assert difference.new.texts().to_list() == ["u(e,Y) <= r(Y,A)"]
    before, after = difference.changed()
    assert before.texts().to_list() == after.texts().to_list() == ["r(X,Y) <= s(X,Y)"]
    assert (before.predictions.tolist(), after.predictions.tolist()) == ([10], [20])
    assert repr(difference) == "RuleDifference(1 gone, 1 new, 1 changed, 1 unchanged)"


def test_differences_are_a_frame_and_json(files: tuple[Path, Path]) -> None:
    difference = anyburl.diff(*map(RuleSet.load, files))
    rows = difference.to_polars()
    assert rows["change"].to_list() == ["gone", "new", "changed"]
    assert rows.row(2, named=True) == {
        "change": "changed",
        "rule": "r(X,Y) <= s(X,Y)",
        "confidence_before": 0.5,
        "confidence_after": 0.25,
        "support_before": 5,
        "support_after": 5,
        "predictions_before": 10,
        "predictions_after": 20,
    }
    assert rows.filter(pl.col("change") == "gone")["support_after"].to_list() == [None]
    shown = difference.to_json(top=0)
    assert (shown["gone"], shown["top"]) == (1, {"gone": [], "new": [], "changed": []})


def test_the_same_rules_in_another_order_do_not_differ() -> None:
    rules = anyburl.learn("geo", paths=20_000, seed=1)
    shuffled = rules.take(np.random.default_rng(0).permutation(len(rules)))
    assert anyburl.diff(rules, shuffled).counts() == {"gone": 0, "new": 0, "changed": 0, "unchanged": len(rules)}


def test_no_rules_at_all_can_be_compared(files: tuple[Path, Path]) -> None:
    rules = RuleSet.load(files[0])
    assert anyburl.diff(rules, RuleSet.empty(rules.vocabulary)).counts()["gone"] == 3
    assert anyburl.diff(RuleSet.empty(rules.vocabulary), rules).counts()["new"] == 3


def test_the_largest_changes_come_first(files: tuple[Path, Path]) -> None:
    rules = RuleSet.load(files[0])
    later = rules.replace(predictions=rules.predictions * np.array([2, 1, 8]))
    before, _ = anyburl.diff(rules, later).changed(top=1)
    assert before.texts().to_list() == ["r(X,Y) <= s(X,A), t(A,Y)"]
    with pytest.raises(InvalidOptionError, match="top must be at least 0"):
        anyburl.diff(rules, later).changed(top=-1)
