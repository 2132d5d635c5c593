"""Standard output and standard error that are closed, or on a full disk."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anyburl import RuleSet

FULL = Path("/dev/full")
HEAD = [sys.executable, "-m", "anyburl"]
needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")


@needs_full
@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["datasets"], ["datasets", "--json"]])
def test_output_that_cannot_be_written_is_one_sentence(arguments: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run([*HEAD, *arguments], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (2, "error: standard output: No space left on device\n")


@needs_full
def test_remarks_that_cannot_be_written_end_no_command(geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with FULL.open("w") as full:
        done = subprocess.run([*HEAD, "learn", "geo", "--paths", "2000", "--out", out], stderr=full, timeout=300)
        wrong = subprocess.run([*HEAD, "lern"], stderr=full, timeout=120)
    assert (done.returncode, wrong.returncode) == (0, 2)
    assert len(RuleSet.load(out)) > 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error_and_no_place_for_files(geo_run: Path, tmp_path: Path, closed: str) -> None:
    out, expected = tmp_path / "rules.txt", tmp_path / "expected.txt"
    RuleSet.load(geo_run).save(expected)
    line = f'exec "$0" -m anyburl convert "$1" "$2" {closed}'
    done = subprocess.run(["sh", "-c", line, sys.executable, geo_run, out], timeout=120)
    assert done.returncode == 0
    assert out.read_bytes() == expected.read_bytes()


@needs_full
def test_an_interrupt_ends_the_process_even_if_it_cannot_say_so() -> None:
    program = "import signal; from anyburl.cli.start import handle_signals, leave; handle_signals(leave); "
    raising = f"signal.raise_signal({int(signal.SIGINT)})"
    with FULL.open("w") as full:
        done = subprocess.run([sys.executable, "-c", program + raising], stderr=full, timeout=120)
    assert done.returncode == 130
