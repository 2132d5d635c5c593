"""Metrics that are kept beside a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl import Reasoner, learn
from anyburl.reasoning.metrics import METRICS, keep_metrics, read_metrics


@pytest.fixture(scope="module")
def reasoner() -> Reasoner:
    return Reasoner(learn("geo", paths=2000, seed=1), "geo")


def test_the_latest_figures_of_each_snapshot_count_and_all_rules_come_last(reasoner: Reasoner, tmp_path: Path) -> None:
    valid = reasoner.evaluate("valid")
    for at in (None, 50.0, 10.0, 50.0):
        keep_metrics(tmp_path, valid, at)
    found = read_metrics(tmp_path)
    assert [line["at"] for line in found] == [10.0, 50.0, None]
    assert found[0]["mrr"] == valid.metrics["mrr"]
    assert found[0]["rules"] == len(reasoner.rules)


def test_lines_that_are_not_whole_are_left_out(reasoner: Reasoner, tmp_path: Path) -> None:
    keep_metrics(tmp_path, reasoner.evaluate("valid"), None)
    with (tmp_path / METRICS).open("ab") as file:
        file.write(b'[1]\n{"at": "x"}\n\xff\xfe\n{"at": nu')
    assert len(read_metrics(tmp_path)) == 1


def test_figures_after_a_line_that_was_cut_short_are_read(reasoner: Reasoner, tmp_path: Path) -> None:
    (tmp_path / METRICS).write_bytes(b'{"at": nu')
    keep_metrics(tmp_path, reasoner.evaluate("valid"), None)
    assert len(read_metrics(tmp_path)) == 1


def test_without_a_file_there_are_none(tmp_path: Path) -> None:
    assert read_metrics(tmp_path) == []
