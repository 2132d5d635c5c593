"""Files that stand in the way: links that lead elsewhere, pipes, odd names, files of other people, too few descriptors.

Nothing is lost, and what cannot be done is told in one sentence.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from typing import Any

import pytest
from typer.testing import CliRunner

from anyburl import load_dataset
from anyburl.cli.app import app
from anyburl.data.files import write_triples

FOLDERS = ("calibration", "parts", "prepared", "tuned")
FILES = (
    ".lock",
    ".reviews.jsonl.lock",
    "embedding.checkpoint.safetensors",
    "embedding.safetensors",
    "metrics.jsonl",
    "options.json",
    "reviews.jsonl",
    "rules-1.parquet",
    "rules.parquet",
    "trace.jsonl",
    "train.parquet",
    "vocabulary.parquet",
)
QUERY = ("France", "official_language", "?", "--top", "1")


def contents(folder: Path) -> dict[str, bytes | None]:
    found = sorted(folder.rglob("*"))
    return {str(file.relative_to(folder)): file.read_bytes() if file.is_file() else None for file in found}


@pytest.fixture
def own_run(geo_run: Path, tmp_path: Path) -> Path:
    """A run of its own."""
    return Path(shutil.copytree(geo_run, tmp_path / "run", ignore=shutil.ignore_patterns("prepared", "tuned")))


def one_sentence(stderr: str) -> str:
    """Return the error, which is all that is said."""
    (line,) = stderr.splitlines()
    assert line.startswith("error: ")
    assert "bug" not in line
    return line


# Links in a run folder.


def link_to(outside: Path, inside: Path) -> None:
    """Move a file or folder out of a run, or make it out there, and put a link in its place."""
    outside.parent.mkdir(exist_ok=True)
    if inside.exists():
        shutil.move(inside, outside)
    elif inside.name in FOLDERS:
        outside.mkdir()
    else:
        outside.write_text("precious\n")
    if outside.is_dir():
        (outside / "000123.txt").write_text("precious\n")
    inside.symlink_to(outside)


@pytest.mark.parametrize("name", ["predict", "prepare"])
def test_what_a_linked_folder_holds_is_not_replaced(run: Any, own_run: Path, tmp_path: Path, name: str) -> None:
    outside = tmp_path / "important"
    link_to(outside, own_run / "prepared")
    before = contents(outside)
    run(name, own_run, *(QUERY if name == "predict" else ()))
    assert contents(outside) == before
    assert not (own_run / "prepared").is_symlink()
    assert (own_run / "prepared" / "card.json").is_file()
    assert not [file for file in own_run.iterdir() if file.name.startswith(".prepared")]


def test_a_prepared_folder_behind_a_link_is_used_and_not_touched(run: Any, own_run: Path, tmp_path: Path) -> None:
    run("prepare", own_run)
    link_to(tmp_path / "elsewhere", own_run / "prepared")
    for file in (tmp_path / "elsewhere").rglob("*.npy"):
        os.utime(file, (1, 1))
    before = contents(tmp_path / "elsewhere")
    assert "was already prepared" in run("prepare", own_run).stdout
    assert contents(tmp_path / "elsewhere") == before


def test_a_folder_with_something_else_is_not_replaced(run: Any, own_run: Path) -> None:
    (own_run / "prepared").mkdir()
    (own_run / "prepared" / "notes.txt").write_text("precious\n")
    assert "move it away" in run("predict", own_run, *QUERY).stderr
    assert "has no card.json, so it may hold something else: move it away" in run("prepare", own_run, code=2).stderr
    assert contents(own_run / "prepared") == {"notes.txt": b"precious\n"}


@pytest.mark.parametrize("name", ["calibration", "tuned", "parts", "trace.jsonl", ".lock"])
def test_what_would_be_written_through_a_link_is_refused(run: Any, own_run: Path, tmp_path: Path, name: str) -> None:
    link_to(tmp_path / "elsewhere", own_run / name)
    command = {"calibration": ("calibrate", own_run), "tuned": ("tune", own_run)}.get(
        name, ("learn", "--out", own_run, "--resume", "--paths", 40_000)
    )
    before = contents(tmp_path)
    told = run(*command, "--quiet", code=2).stderr
    assert "symbolic link" in one_sentence(told)
    assert contents(tmp_path / "elsewhere") == {
        name.removeprefix("elsewhere/"): held for name, held in before.items() if name.startswith("elsewhere/")
    }


def test_no_command_changes_anything_behind_a_link(run: Any, own_run: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    for name in (*FOLDERS, *FILES):
        link_to(outside / name, own_run / name)
    before = contents(outside)
    commands: list[tuple[object, ...]] = [
        ("predict", own_run, *QUERY),
        ("evaluate", own_run, "--quiet"),
        ("calibrate", own_run, "--quiet"),
        ("tune", own_run, "--quiet"),
        ("prepare", own_run),
        ("rules", own_run, "--top", 1),
        ("learn", "--out", own_run, "--resume", "--paths", 40_000, "--quiet"),
        ("learn", "geo", "--out", own_run, "--paths", 10, "--quiet"),
    ]
    for command in commands:
        ended = CliRunner().invoke(app, list(map(str, command)), prog_name="anyburl")
        assert ended.exit_code in (0, 2), (command, ended.stderr)
        assert contents(outside) == before, command


def test_data_is_not_replaced_by_a_run(run: Any, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_triples(load_dataset("geo").train, tmp_path / "data" / "train.parquet")
    before = contents(tmp_path)
    told = run("learn", tmp_path / "data", "--out", tmp_path / "data", "--paths", 10, code=2).stderr
    assert told.endswith("contains train.parquet, which a run would replace: choose another folder\n")
    assert contents(tmp_path) == before


# Names that are not UTF-8.


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "{}", *QUERY),
        ("rules", "{}"),
        ("prepare", "{}"),
        ("evaluate", "{}"),
        ("explain", "{}", "France", "official_language", "French"),
        ("complete", "{}", "--out", "facts.tsv"),
        ("serve", "{}", "--port", "0"),
        ("learn", "{}/train.txt", "--out", "new"),
        ("learn", "geo", "--out", "{}"),
        ("publish", "{}/facts.parquet", "sqlite:new.db#t"),
        ("publish", "facts.parquet", "sqlite:{}#t"),
        ("index", "geo", "--out={}"),
        ("convert", "{}", "rules.txt"),
    ],
    ids=lambda command: command[0],
)
def test_a_path_that_is_not_utf8_is_refused(run: Any, tmp_path: Path, command: tuple[str, ...]) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/b\xff")
    told = one_sentence(run(*(part.format(name) for part in command), code=2).stderr)
    assert "arguments must be UTF-8, got" in told
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform != "linux", reason="other systems allow only Unicode")
def test_folders_that_are_not_utf8_around_a_run_are_no_bug(spawn: Any, own_run: Path, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"b\xff")
    odd.mkdir()
    os.rename(own_run, odd / "run")
    facts = tmp_path / "facts.parquet"
    for command in (("rules", "run", "--top", 1), ("complete", "run", "--out", facts, "--min-score", 0.9)):
        first = f"import os; os.chdir({str(odd)!r}); os.environ['TMPDIR'] = {str(odd)!r}"
        process = spawn(*command, first=first)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    process = spawn("publish", facts, "duckdb:new.db#t", first=first)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 2
    assert "expected a path in UTF-8" in one_sentence(errors)


# Pipes.


@pytest.fixture
def pipe(tmp_path: Path) -> Iterator[Path]:
    """A named pipe, and two more with suffixes. What waits for one of them is let go after a minute, and then fails."""
    pipes = [tmp_path / f"pipe{end}" for end in ("", ".tsv", ".ttl")]
    for one in pipes:
        os.mkfifo(one)

    def let_go() -> None:
        for one in pipes:
            os.close(os.open(one, os.O_RDWR))

    timer = Timer(60, let_go)
    timer.start()
    yield pipes[0]
    timer.cancel()
    timer.join()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize(
    "command",
    [
        ("serve", "{run}", "--port", "0", "--reviews", "{pipe}"),
        ("predict", "{run}", "--queries", "{pipe}"),
        ("predict", "{run}", *QUERY, "--names", "{pipe}"),
        ("predict", "{run}", *QUERY, "--names", "{pipe}.ttl"),
        ("complete", "{run}", "--out", "m.tsv", "--subjects", "{pipe}"),
        ("publish", "{pipe}.tsv", "sqlite:new.db#t"),
        ("rules", "{pipe}"),
        ("learn", "{pipe}", "--out", "new"),
        ("publish", "{run}/facts.tsv", "sqlite:{pipe}#t"),
    ],
    ids=lambda command: f"{command[0]} {command[-2]}",
)
def test_a_pipe_in_place_of_a_file_is_refused(
    run: Any, own_run: Path, tmp_path: Path, pipe: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("anyburl.web.app.serve", lambda *given: pytest.fail("it is served"))
    (own_run / "facts.tsv").write_text("subject\trelation\tobject\tscore\na\tr\tb\t0.5\n")
    errors = run(*(part.format(run=own_run, pipe=pipe) for part in command), code=2).stderr
    last = errors.splitlines()[-1]
    assert "a device or a pipe" in last or "a folder or a device" in last or "not a regular file" in last, errors


# Other people's files, and few descriptors.


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
INTERPRETED = {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
"""Nobody cannot read our cache: kernels would be compiled for most of a minute."""


def called(*arguments: object, by: tuple[str, ...] = (), **given: Any) -> subprocess.CompletedProcess[str]:
    command = [*by, sys.executable, "-m", "anyburl", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, **given)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can become somebody else")
def test_a_run_of_somebody_else_can_be_read_and_is_not_changed(own_run: Path) -> None:
    environment = {**os.environ, **INTERPRETED}
    if shutil.which("setpriv") is None or called("--version", by=NOBODY).returncode:
        pytest.skip("nobody else can run this Python")
    with TemporaryDirectory() as folder:
        foreign = Path(shutil.copytree(own_run, Path(folder) / "run"))
        for path in (Path(folder), foreign):
            path.chmod(0o755)
        before = contents(foreign)
        shown = called("rules", foreign, "--top", 1, by=NOBODY, env=environment)
        assert shown.returncode == 0, shown.stderr
        for command in (("prepare", foreign), ("learn", "--out", foreign, "--resume", "--paths", 40_000)):
            refused = called(*command, "--quiet", by=NOBODY, env=environment)
            assert refused.returncode == 2, refused.stderr
            assert "cannot be written (Permission denied)" in one_sentence(refused.stderr)
        assert contents(foreign) == before


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit on the number of files")
@pytest.mark.parametrize("n_files", [6, 11])
def test_few_descriptors_are_told_in_one_sentence(own_run: Path, n_files: int) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))

    before = contents(own_run)
    for command in (("rules", own_run), ("learn", "--out", own_run, "--resume", "--paths", 40_000)):
        done = called(*command, preexec_fn=limit)
        assert done.returncode == 1
        assert (
            one_sentence(done.stderr)
            == f"error: this process may open {n_files} files: allow it at least 16 (ulimit -n)"
        )
    assert contents(own_run) == before
