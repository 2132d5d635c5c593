"""The command line as a whole: help, versions, exit codes."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from polars.exceptions import PanicException

import anyburl
from anyburl.base.errors import DataError
from anyburl.cli.app import app

COMMANDS = [str(command.name) for command in app.registered_commands]


def test_version_is_printed(run: Any) -> None:
    assert run("--version").stdout == f"anyburl {anyburl.__version__}\n"


def test_without_a_command_help_is_shown(run: Any) -> None:
    assert all(name in run().stdout for name in COMMANDS)


def test_the_commands_of_the_interface_are_there() -> None:
    promised = {"demo", "learn", "rules", "rescore", "convert", "evaluate", "predict", "explain", "datasets"}
    assert promised <= {*COMMANDS}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_every_command_ends_with_an_example(run: Any, command: str) -> None:
    assert f"Example:  anyburl {command} " in run(command, "--help").stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_takes_the_common_options(run: Any, command: str) -> None:
    wrong = run(command, "--seed", "1", "--threads", "1", "--quiet", "--json", "--no-such-option", code=2)
    assert "No such option: --no-such-option" in wrong.stderr


def test_help_loads_no_compiler_and_no_data_frames() -> None:
    program = (
        "import sys; from anyburl.cli.app import app; "
        "app(['learn', '--help'], standalone_mode=False); "
        "sys.exit(sorted({'numba', 'polars', 'numpy'} & sys.modules.keys()) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")


def test_an_unknown_command_is_answered_with_one_like_it(run: Any) -> None:
    assert run("lern", code=2).stderr == "error: No such command 'lern'. Did you mean 'learn'? See `anyburl --help`.\n"


def test_wrong_usage_is_one_sentence(run: Any) -> None:
    wrong = run("learn", "geo", code=2)
    assert wrong.stderr == "error: Missing option '--out'. See `anyburl learn --help`.\n"
    assert wrong.stdout == ""


def test_a_bug_shows_its_traceback_and_gives_code_1(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def broken(*given: object) -> None:
        raise RuntimeError("out of tune")

    monkeypatch.setattr("anyburl.data.dataset.load_dataset", broken)
    result = run("learn", "geo", "--out", tmp_path / "run", code=1)
    assert "RuntimeError: out of tune" in result.stderr
    assert result.stderr.endswith("error: this is a bug in anyburl: please report it with the traceback above\n")


def test_a_panic_of_polars_is_a_sentence(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is no Exception."""

    def panic(*given: object) -> None:
        raise PanicException("index out of\n bounds")

    monkeypatch.setattr("anyburl.data.dataset.load_dataset", panic)
    result = run("learn", "geo", "--out", tmp_path / "run", code=1)
    assert result.stderr == "error: Polars failed: index out of bounds\n"


@pytest.mark.parametrize(
    "error",
    [
        PanicException("Os { code: 24,\n kind: TooManyOpenFiles }"),
        OSError(errno.EMFILE, os.strerror(errno.EMFILE), "train.txt"),
        OSError(errno.ENFILE, os.strerror(errno.ENFILE)),
        ImportError("libgomp.so: cannot open shared object file: Too many open files"),
        DataError("rules.parquet: the file cannot be read as Parquet (Too many open files (os error 24))"),
    ],
)
def test_a_lack_of_file_descriptors_is_said_as_such(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException
) -> None:
    """Files that cannot be opened for that reason are not called damaged."""

    def refuse(*given: object) -> None:
        raise error

    log = tmp_path / "log.jsonl"
    monkeypatch.setattr("anyburl.data.dataset.load_dataset", refuse)
    result = run("learn", "geo", "--out", tmp_path / "run", "--log-json", log, code=1)
    assert result.stderr == "error: too many open files: allow this process more of them (ulimit -n)\n"
    assert json.loads(log.read_text("utf-8").splitlines()[-1])["code"] == 1


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("can't start new thread"),
        ImportError("libpolars.so: failed to map segment from shared object"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
        PanicException("failed to spawn cleaner thread: Os { code: 11, kind: WouldBlock }"),
        PanicException("could not spawn threads: ThreadPoolBuildError"),
        OSError("Could not find/load shared object file 'libllvmlite.so': cannot allocate memory"),
    ],
)
def test_a_lack_of_memory_is_no_bug_however_it_is_worded(
    run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: BaseException
) -> None:
    def refuse(*given: object) -> None:
        raise error

    monkeypatch.setattr("anyburl.data.dataset.load_dataset", refuse)
    result = run("learn", "geo", "--out", tmp_path / "run", code=1)
    assert result.stderr == "error: not enough memory (or the system allows no more threads)\n"


def test_a_keyboard_interrupt_gives_code_130(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def interrupted(*given: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anyburl.data.dataset.load_dataset", interrupted)
    assert run("learn", "geo", "--out", tmp_path / "run", code=130).stderr == "error: interrupted\n"


def test_a_reader_that_leaves_early_is_no_error(geo_run: Path, spawn: Any) -> None:
    with spawn("rules", geo_run, "--top", 5000) as process:
        process.stdout.read(100)
        process.stdout.close()
        process.wait(timeout=60)
        assert (process.returncode, process.stderr.read()) == (0, "")


@pytest.mark.parametrize("out", [["--out", ""], ["--out="]])
def test_an_output_without_a_name_is_refused(run: Any, out: list[str], tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    result = run("learn", "geo", *out, "--paths", 10, code=2)
    assert result.stderr == "error: --out must be a path, got an empty one: is a variable of the shell not set?\n"
    assert not list(tmp_path.iterdir())
