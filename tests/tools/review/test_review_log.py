"""The log of verdicts: nothing is lost, whatever happens to those who write."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import AnyburlError, DataError, InvalidOptionError, RunError
from anyburl.data.files import read_triples
from anyburl.tools.review import Review, ReviewLog

A, B = ("a", "r", "b"), ("b", "r", "c")
STATEMENT = "<urn:anyburl:a> <urn:anyburl:r> <urn:anyburl:b> .\n"


@pytest.fixture
def log(tmp_path: Path) -> ReviewLog:
    return ReviewLog(tmp_path / "reviews.jsonl")


def test_the_last_verdict_on_a_fact_counts(log: ReviewLog) -> None:
    assert (log.latest(), log.precision(), log.n_skipped) == ({}, None, 0)
    log.record(A, "accepted", "looks right", "ann")
    log.record(B, "rejected")
    last = log.record(A, "rejected", reader="bob")
    assert log.latest() == {B: log.latest()[B], A: last}
    assert list(log.latest()) == [B, A]
    assert (log.counts(), log.precision()) == ({"accepted": 0, "rejected": 2}, 0.0)
    log.record(A, "withdrawn")
    assert log.latest()[A].verdict == "withdrawn"
    assert (list(log.standing()), log.counts("other")) == ([B], {"accepted": 0, "rejected": 0})


def test_two_logs_on_a_file_see_what_the_other_wrote(log: ReviewLog) -> None:
    other = ReviewLog(log.path)
    first = log.record(A, "accepted")
    assert other.latest() == {A: first}
    second = other.record(B, "accepted")
    assert log.latest() == {A: first, B: second}
    assert log.precision() == 1.0


texts = st.text(min_size=1, max_size=8)


@given(st.lists(st.tuples(texts, texts, texts, st.text(max_size=9)), max_size=4))
def test_any_label_and_note_comes_back_as_it_was(drawn: list[tuple[str, str, str, str]]) -> None:
    with TemporaryDirectory() as folder:
        log = ReviewLog(Path(folder) / "log")
        last = {(s, r, o): log.record((s, r, o), "accepted", note) for s, r, o, note in drawn}
        assert ReviewLog(log.path).latest() == last


def _write(path: Path, writer: int, n: int) -> None:
    log = ReviewLog(path)
    for i in range(n):
        log.record((f"s{writer}", "r", f"o{i}"), "accepted", "note " * 200)


def test_processes_that_write_at_once_lose_nothing(log: ReviewLog) -> None:
    processes = [multiprocessing.get_context("spawn").Process(target=_write, args=(log.path, i, 40)) for i in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert log.counts() == {"accepted": 80, "rejected": 0}
    assert log.n_skipped == 0


@pytest.mark.skipif(sys.platform == "win32", reason="ends a process by a signal")
def test_a_killed_writer_leaves_whole_lines_and_no_lock(log: ReviewLog) -> None:
    process = multiprocessing.get_context("spawn").Process(target=_write, args=(log.path, 0, 100_000))
    process.start()
    deadline = time.monotonic() + 30
    while len(log.latest()) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join(10)
    before = len(log.latest())
    log.record(A, "rejected")
    assert before >= 5
    assert len(log.latest()) == before + 1
    assert log.n_skipped <= 1


def test_a_line_cut_short_is_skipped_and_the_next_starts_on_its_own(log: ReviewLog) -> None:
    log.record(A, "accepted")
    whole = log.path.read_bytes()
    log.path.write_bytes(whole + whole[:40])
    assert log.latest().keys() == {A}
    assert log.n_skipped == 0  # it may still be being written
    log.record(B, "accepted")
    assert log.latest().keys() == {A, B}
    assert log.n_skipped == 1
    assert ReviewLog(log.path).latest().keys() == {A, B}


def test_a_whole_line_without_its_end_counts_once_another_follows(log: ReviewLog) -> None:
    log.record(A, "accepted")
    log.path.write_bytes(log.path.read_bytes()[:-1])
    log.record(B, "rejected")
    assert log.counts() == {"accepted": 1, "rejected": 1}


def test_lines_that_are_no_reviews_are_counted(log: ReviewLog) -> None:
    good = json.dumps(Review(A, "accepted").to_json())
    bad = ["{}", "[1]", "null", "\xff", good.replace("accepted", "maybe"), good.replace('"r"', "3"), "[" * 100_000]
    bad.append(good.replace('"r"', '"\\ud800"'))  # half a character, which no file of facts can hold
    log.path.write_text("\n".join(["", good, *bad]) + "\n", "latin-1")
    assert list(log.latest()) == [A]
    assert log.n_skipped == len(bad)


def test_a_file_that_was_replaced_is_read_anew(log: ReviewLog) -> None:
    log.record(A, "accepted")
    log.record(B, "accepted")
    assert len(log.latest()) == 2
    log.path.write_text(json.dumps(Review(B, "rejected").to_json()) + "\n")
    assert log.counts() == {"accepted": 0, "rejected": 1}
    log.path.unlink()
    assert log.latest() == {}


@pytest.mark.parametrize(("name", "line"), [("x.tsv", "a\tr\tb\n"), ("x.nt", STATEMENT)])
def test_accepted_facts_are_exported_by_suffix(log: ReviewLog, tmp_path: Path, name: str, line: str) -> None:
    log.record(A, "accepted")
    log.record(B, "rejected")
    assert log.export_triples(tmp_path / name) == 1
    assert (tmp_path / name).read_text() == line
    assert log.export_triples(tmp_path / f"{name}.gz") == 1
    if name == "x.tsv":
        assert read_triples(tmp_path / "x.tsv.gz").rows() == [A]


def test_a_table_of_accepted_facts_has_notes_and_moments(log: ReviewLog, tmp_path: Path) -> None:
    log.record(A, "accepted", note="seen, twice", reader="Ada")
    log.record(B, "rejected")
    assert log.export_triples(tmp_path / "x.csv") == 1
    (row,) = pl.read_csv(tmp_path / "x.csv").drop("judged").rows(named=True)
    assert row == {"subject": "a", "relation": "r", "object": "b", "note": "seen, twice", "reader": "Ada"}
    log.record((*A, "2023"), "accepted")
    assert log.export_triples(tmp_path / "x.csv") == 2
    assert pl.read_csv(tmp_path / "x.csv")["time"].to_list() == [None, 2023]


@pytest.mark.parametrize(
    ("triple", "verdict", "note", "error"),
    [
        (A, "perhaps", "", InvalidOptionError),
        (A, "accepted", "n" * 10_001, InvalidOptionError),
        (("a", "r"), "accepted", "", DataError),
        (("a", "", "b"), "accepted", "", DataError),
        (("a", 3, "b"), "accepted", "", DataError),
    ],
)
def test_what_is_no_review_is_refused(
    log: ReviewLog, triple: tuple[str, str, str], verdict: str, note: str, error: type[AnyburlError]
) -> None:
    with pytest.raises(error):
        log.record(triple, verdict, note)
    assert not log.path.exists()


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"reviews.jsonl: cannot write the review"):
        ReviewLog(tmp_path / "nowhere" / "reviews.jsonl").record(A, "accepted")
    with pytest.raises(RunError, match="cannot read the reviews"):
        ReviewLog(tmp_path).latest()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_or_a_link_in_place_of_the_log_is_refused(log: ReviewLog, tmp_path: Path) -> None:
    os.mkfifo(log.path)
    for use in (log.latest, lambda: log.record(A, "accepted")):
        with pytest.raises(RunError, match=r"reviews\.jsonl: cannot (read|write) the reviews? \(it is not a regular"):
            use()
    log.path.unlink()
    (tmp_path / "diary").write_text("precious")
    log.path.symlink_to(tmp_path / "diary")
    with pytest.raises(RunError, match=r"cannot write the review \(it is a symbolic link"):
        log.record(A, "accepted")
    assert (tmp_path / "diary").read_text() == "precious"
