"""Rules that AnyBURL learned: all are read, and written back letter by letter."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from anyburl.rules.ruleset import RuleSet

EXPECTED = {
    "WN18RR": {"B": 783, "Uc": 27839, "Ud": 7869, "Z": 30},
    "FB15k-237": {"B": 9795, "Uc": 113147, "Ud": 77821, "Z": 328},
}


def read_fields(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in gzip.decompress(path.read_bytes()).decode().strip("\n").split("\n")]


@pytest.mark.parametrize("name", EXPECTED)
def test_the_rules_of_anyburl_survive_text_and_parquet(shared_peers: Path, tmp_path: Path, name: str) -> None:
    source = shared_peers / f"{name}-anyburl23-100s.txt.gz"
    lines = read_fields(source)
    rules, report = RuleSet.read(source)
    assert (report.n_rules, report.rejected) == (len(lines), [])
    assert rules.counts_by_type() == EXPECTED[name]
    assert rules.texts().to_list() == [line[3] for line in lines]
    for suffix in (".txt.zst", ".parquet"):
        rules.save(tmp_path / f"rules{suffix}")
        again = RuleSet.load(tmp_path / f"rules{suffix}")
        assert again.texts().to_list() == [line[3] for line in lines]
        assert again.predictions.tolist() == [int(line[0]) for line in lines]
        assert again.support.tolist() == [int(line[1]) for line in lines]


@pytest.mark.parametrize("name", EXPECTED)
def test_confidences_are_those_of_pyclause(shared_peers: Path, name: str) -> None:
    source = shared_peers / f"{name}-exact.txt.gz"
    written = [float(line[2]) for line in read_fields(source)]
    assert RuleSet.load(source).confidence().tolist() == pytest.approx(written)
