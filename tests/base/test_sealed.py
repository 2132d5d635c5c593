"""Checksums in files, and Parquet files at which Polars ends the process."""

from __future__ import annotations

import sys
from pathlib import Path

import polars as pl
import pytest

from anyburl import RuleSet
from anyburl.base.errors import DataError, RuleError, RunError
from anyburl.base.sealed import N_SEAL, TAG, DamagedFileError, is_sealed, scan_parquet, seal
from anyburl.data.files import read_triples, write_triples
from anyburl.rules.run_folder import PARTS, part_files, read_part, write_part
from rules.samples import make_rules

FRAME = pl.DataFrame({"subject": ["ed", None, "lisa"], "number": [1, 2, 3], "labels": [["a"], [], None]})
TRIPLES = pl.DataFrame({"subject": ["ed", "lisa"], "relation": ["speaks", "lives"], "object": ["dutch", "nl"]})


@pytest.fixture
def sealed(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    FRAME.write_parquet(path)
    seal(path)
    return path


def test_a_seal_changes_nothing_for_other_readers(sealed: Path) -> None:
    pandas = pytest.importorskip("pandas")
    duckdb = pytest.importorskip("duckdb")
    assert is_sealed(sealed)
    assert scan_parquet(sealed).collect().equals(FRAME)
    assert pl.read_parquet(sealed).equals(FRAME)
    assert pandas.read_parquet(sealed)["number"].tolist() == [1, 2, 3]
    assert duckdb.sql(f"SELECT count(subject), sum(number) FROM '{sealed}'").fetchall() == [(2, 6)]


def test_every_changed_byte_of_a_sealed_file_is_noticed(sealed: Path) -> None:
    whole = sealed.read_bytes()
    tag = whole.index(TAG)
    for place in range(len(whole)):
        sealed.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        if tag <= place < tag + len(TAG) or place >= len(whole) - 8:  # no seal is found, and the contents are whole
            assert not is_sealed(sealed)
        else:
            with pytest.raises(DamagedFileError, match="do not match its checksum"):
                is_sealed(sealed)


def test_a_file_cut_short_has_no_seal_and_is_refused(sealed: Path) -> None:
    sealed.write_bytes(sealed.read_bytes()[:-20])
    assert not is_sealed(sealed)
    with pytest.raises(pl.exceptions.PolarsError):
        scan_parquet(sealed).collect()


@pytest.mark.parametrize("contents", [b"", b"x", b"PAR1", b"\xff\xff\xff\xffPAR1", b"PAR1\xff\xff\xff\x7fPAR1"])
def test_what_is_no_parquet_has_no_seal(tmp_path: Path, contents: bytes) -> None:
    path = tmp_path / "odd"
    path.write_bytes(contents)
    assert not is_sealed(path)
    seal(path)
    assert is_sealed(path)
    assert path.stat().st_size == len(contents) + N_SEAL


def test_a_file_of_the_name_of_polars_beside_the_user_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "polars.py").write_text("open('ran', 'w')")
    FRAME.write_parquet(tmp_path / "table.parquet")
    assert scan_parquet("table.parquet").collect().equals(FRAME)
    assert not (tmp_path / "ran").exists()


def test_a_file_that_ends_the_process_that_reads_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "train.parquet"
    TRIPLES.write_parquet(path)
    monkeypatch.setattr("anyburl.base.sealed.TRIAL", "import os; os.abort()")
    with pytest.raises(DataError, match=r"train.parquet: .*ends the process by SIGABRT: it is damaged, or memory"):
        read_triples(path)
    with pytest.raises(RuleError, match="SIGABRT"):
        RuleSet.load(path)
    write_triples(TRIPLES, path)  # with a seal: there is no need to try
    assert read_triples(path).equals(TRIPLES)


@pytest.mark.parametrize("program", [None, "", "/nowhere/python"])
def test_without_a_python_to_try_it_a_file_is_read_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str | None
) -> None:
    FRAME.write_parquet(tmp_path / "table.parquet")
    monkeypatch.setattr(sys, "executable", program)
    assert scan_parquet(tmp_path / "table.parquet").collect().equals(FRAME)


def test_a_part_of_a_run_that_has_changed_is_refused(tmp_path: Path) -> None:
    rules = make_rules([(f"h(X,c{n}) <= b(X,A)", (n + 2, n)) for n in range(10)])
    (tmp_path / PARTS).mkdir()
    write_part(tmp_path, rules)
    (file,) = part_files(tmp_path)
    assert read_part(file, rules.vocabulary).predictions.tolist() == rules.predictions.tolist()
    whole = file.read_bytes()
    for place in range(0, len(whole) - N_SEAL, 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(RunError, match=r"is damaged .*checksum"):
            read_part(file, rules.vocabulary)


def test_a_part_of_an_earlier_version_has_no_seal_and_is_read(tmp_path: Path) -> None:
    rules = make_rules([("h(X,Y) <= b(X,Y)", (5, 2))])
    (tmp_path / PARTS).mkdir()
    write_part(tmp_path, rules)
    (file,) = part_files(tmp_path)
    file.write_bytes(file.read_bytes()[:-N_SEAL])
    assert read_part(file, rules.vocabulary).predictions.tolist() == rules.predictions.tolist()


def test_rules_that_have_changed_on_the_disk_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rules.parquet"
    make_rules([("h(X,Y) <= b(X,Y)", (5, 2))]).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:40] + bytes([whole[40] ^ 255]) + whole[41:])
    with pytest.raises(RuleError, match=r"rules.parquet: .*its contents do not match its checksum"):
        RuleSet.load(path)
