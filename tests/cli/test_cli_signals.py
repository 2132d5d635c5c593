"""Runs that are stopped or killed."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from anyburl import RunDirectory, load_dataset

PARTS_AT_ONCE = "from anyburl.learning import recorder; recorder.SECONDS_BETWEEN_PARTS = 0.1"
LONG_RUN = ["geo", "--seconds", 100, "--max-cyclic", 6, "--span", 0.2, "--quiet", "--json"]


def wait_for(what: Any, process: Any, seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "the run did not get going"
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_stopped_run_saves_its_rules_and_gives_130(
    spawn: Any, run_json: Any, geo_run: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out = tmp_path / "run"
    with spawn("learn", *LONG_RUN, "--out", out) as process:
        wait_for((out / "trace.jsonl").exists, process)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stderr) == (130, "")
    told = json.loads(stdout)
    assert told["stopped_by"] == "interrupt"
    assert told["rules"] == len(RunDirectory.open(out).load_rules()) > 0
    assert (out / "rules.parquet").is_file()
    assert run_json("rules", out)["total"] == told["rules"]


def test_a_run_stays_as_it_was_if_learning_it_anew_is_stopped(spawn: Any, geo_run: Path, tmp_path: Path) -> None:
    out, changed = tmp_path / "run", tmp_path / "changed.tsv"
    shutil.copytree(geo_run, out)
    files = [file for file in out.rglob("*") if file.is_file() and file.name != ".lock"]
    before = [file.read_bytes() for file in files]
    load_dataset("geo").train.to_polars()[20:].write_csv(changed, separator="\t", include_header=False)
    with spawn("learn", changed, "--out", out, "--resume", *LONG_RUN[1:]) as process:
        wait_for(lambda: list(tmp_path.glob("*/run/trace.jsonl")), process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "error: interrupted\n")
    assert [file.read_bytes() for file in files] == before
    assert {entry.name for entry in tmp_path.iterdir()} == {"run", "changed.tsv"}


def test_a_killed_run_opens_and_goes_on(spawn: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with spawn("learn", *LONG_RUN, "--out", out, first=PARTS_AT_ONCE) as process:
        wait_for(lambda: list((out / "parts").glob("*.columns")), process)
        process.kill()
        process.communicate(timeout=60)
    assert not (out / "rules.parquet").exists()
    rules = RunDirectory.open(out).load_rules()
    assert len(rules) > 1000
    assert run_json("rules", out)["total"] == len(rules)
    n_paths = list(RunDirectory.open(out).trace())[-1]["paths"]
    more = run_json("learn", "--out", out, "--resume", "--paths", n_paths + 1, "--max-cyclic", 3)
    assert more["rules"] > len(rules)


def test_compiling_does_not_hold_up_an_interrupt(spawn: Any, tmp_path: Path) -> None:
    """The interrupt comes when the compiler is at work, and ends the process before the compiler is done."""
    out, cache = tmp_path / "run", tmp_path / "cache"
    with spawn("learn", "geo", "--out", out, ANYBURL_CACHE=str(cache)) as process:
        assert process.stderr.readline() == "compiling kernels (each once on this machine) ...\n"
        wait_for(lambda: any(cache.rglob("*.nbi")), process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=120)
    assert (process.returncode, stdout, stderr) == (130, "", "error: interrupted\n")
    assert not list(cache.rglob("kernel.harvest*.nbi"))
    assert not (out / "options.json").exists()


SLOW_SAVE = """
import time
from pathlib import Path
from anyburl.rules.parquet import FrameWriter
slices = FrameWriter.slices
def slowly(self):
    for frame in slices(self):
        Path({saving!r}).touch()
        while not Path({go_on!r}).exists():
            time.sleep(0.02)
        yield frame
FrameWriter.slices = slowly
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_during_the_last_save_loses_no_rule(
    spawn: Any, geo_run: Path, tmp_path: Path, number: signal.Signals
) -> None:
    out, saving, go_on = (tmp_path / name for name in ("run", "saving", "go on"))
    slowly = SLOW_SAVE.format(saving=str(saving), go_on=str(go_on))
    with spawn("learn", "geo", "--paths", 2000, "--out", out, first=slowly) as process:
        wait_for(saving.exists, process)
        process.send_signal(number)
        go_on.touch()
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted while saving" in stderr
    assert "Traceback" not in stderr
    assert not (out / "rules.parquet").exists()
    assert len(RunDirectory.open(out).load_rules()) > 1000
    assert not list(out.glob(".rules*"))


@pytest.mark.parametrize("seconds", [0.1, 0.2, 0.4])
def test_an_interrupt_at_the_start_is_no_traceback(seconds: float) -> None:
    """However far Python has come: an interrupt before our first line may end the process without a word."""
    program = [sys.executable, "-m", "anyburl", "rules", "nowhere"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(seconds)
        process.send_signal(signal.SIGTERM)
        _, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr
    assert process.returncode in (130, 2, -signal.SIGTERM)


def test_an_interrupt_inside_of_exec_leaves_the_exit_code_as_it_is(tmp_path: Path) -> None:
    """Python would end itself by SIGINT, though the interrupt was caught."""
    (tmp_path / "interrupted.py").write_text(
        """
from anyburl.cli.app import app, main
@app.command()
def interrupted() -> None:
    exec("raise KeyboardInterrupt")
main()
"""
    )
    program = [sys.executable, "-m", "interrupted", "interrupted"]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


def test_an_interrupt_while_modules_are_imported_is_a_sentence() -> None:
    code = """
import os, signal, sys
from anyburl.cli.start import main
class Interrupted:
    main = property(lambda self: os.kill(os.getpid(), signal.SIGINT))
sys.modules["anyburl.cli.app"] = Interrupted()
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "error: interrupted\n")


def test_next_to_nothing_is_imported_before_an_interrupt_is_taken_care_of() -> None:
    """Until then, Python answers it with a traceback."""
    code = "import sys; before = set(sys.modules); import anyburl.cli.start; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    imported = set(done.stdout.split())
    assert "anyburl.cli.start" in imported
    assert not imported & {"dataclasses", "enum", "re", "signal", "threading", "typing"}


def test_an_interrupt_that_python_drops_is_raised_again() -> None:
    code = """
import os, signal, sys, time
from anyburl.cli.notes import raise_again
sys.unraisablehook = raise_again
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
try:
    Finalised()
    for _ in range(200):
        time.sleep(0.1)
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("interrupted\n", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_command_is_done_changes_nothing(number: signal.Signals) -> None:
    """While Python shuts down, it ends by a signal that nobody ignores."""
    code = (
        f"import atexit, os, sys; atexit.register(os.kill, os.getpid(), {number:d}); "
        "sys.argv = ['anyburl', '--version']; from anyburl.cli.start import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()
