"""What is seen while a run goes on."""

from __future__ import annotations

import errno
import re
import time
from pathlib import Path
from typing import Any

import pytest

from anyburl.cli.notes import PlainConsole, Slow

TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "50"}


@pytest.mark.usefixtures("ticking_clock")
def test_without_a_terminal_there_is_a_line_for_each_span(run: Any, geo_run: Path, tmp_path: Path) -> None:
    shown = run("learn", "geo", "--seconds", 2, "--span", 0.2, "--max-cyclic", 5, "--out", tmp_path / "run").stderr
    title, heading, *lines = shown.splitlines()
    assert title.startswith("learning on geo: 8,")
    assert heading.split() == ["span", "elapsed", "paths/s", "rules", "new", "saturated", "cores", "by", "profile"]
    assert [line.split()[0] for line in lines] == [str(number + 1) for number in range(len(lines))]
    assert len(lines) >= 3
    assert re.search(r"(acyclic|cyclic) \d: \d", lines[0])


def test_on_a_terminal_the_picture_shows_rules_and_profiles(run: Any, geo_run: Path, tmp_path: Path) -> None:
    budget = ["--seconds", 600, "--max-cyclic", 2]  # complete long before that
    shown = run("learn", "geo", *budget, "--out", tmp_path / "run", env=TERMINAL).stderr
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    for part in (
        "of 600 s",
        "paths/s",
        "saturation",
        "length 2",
        "cyclic 2 (complete)",
        "acyclic 1 (complete)",
        "reward",
        "value",
    ):
        assert part in plain


def test_what_is_quick_is_not_talked_about(capsys: pytest.CaptureFixture[str]) -> None:
    with Slow(PlainConsole(stderr=True), "digging", "dug", after=60):
        pass
    assert capsys.readouterr().err == ""


def test_what_is_slow_is_announced_and_timed(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ""
    with Slow(PlainConsole(stderr=True), "digging", "dug", after=0.01):
        deadline = time.monotonic() + 60
        while not shown and time.monotonic() < deadline:
            time.sleep(0.01)
            shown = capsys.readouterr().err
    assert shown == "digging ...\n"
    assert re.fullmatch(r"dug in \d+\.\d s\n", capsys.readouterr().err)


def test_where_there_is_no_terminal_lines_tell_how_long_the_rest_takes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.cli.notes.SECONDS_BETWEEN_LINES", 0.0)
    with Slow(PlainConsole(stderr=True), "digging", "dug", after=0.0, total=2000) as slow:
        slow.advance(1)
        slow.advance(1499)
        slow.advance(500)
    first, too_early, line, last = capsys.readouterr().err.splitlines()
    assert (first, too_early) == ("digging ...", "digging: 1 of 2,000")
    assert re.fullmatch(r"digging: 1,500 of 2,000, about \d+ s left", line)
    assert last.startswith("dug in ")


def test_a_terminal_shows_the_detail_of_what_is_slow(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    console = PlainConsole(stderr=True)
    with Slow(console, "digging", "dug", after=0.0) as slow:
        slow.change("filling", "filled", "clay")
        assert slow._spinner is not None
        slow._spinner.refresh()
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", capsys.readouterr().err)
    assert "filling: clay ..." in shown
    assert "filled in " in shown


def test_the_first_run_says_that_it_compiles(
    run: Any, geo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.base.jit.is_compiled", lambda: False)
    shown = run("learn", "geo", "--paths", 5000, "--out", tmp_path / "run").stderr
    assert re.match(r"compiling kernels \(each once on this machine\) \.\.\.\ncompiled kernels in \d+\.\d s\n", shown)


def test_kernels_that_cannot_be_kept_are_told_with_what_helps(
    run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = OSError(errno.EROFS, "Read-only file system")
    monkeypatch.setattr("anyburl.base.jit._failures", [failure])
    shown = run("learn", "geo", "--paths", 10, "--out", tmp_path / "run").stderr
    assert "(Read-only file system): set ANYBURL_CACHE to a folder that can be written\n" in shown
