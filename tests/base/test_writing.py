"""Files that are written appear whole or not at all, also on a full disk, and leave nothing beside them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from anyburl.base import files, writing
from anyburl.base.errors import DataError, RuleError, RunError
from anyburl.base.files import Lock, open_to_read
from anyburl.base.polars_unstable import sink_frames
from anyburl.base.writing import (
    append_line,
    put_in_free_place,
    put_in_place,
    remove_leftovers,
    replacing,
    replacing_folder,
)
from rules.samples import make_rules

FULL = {
    "Python": OSError(errno.ENOSPC, "No space left on device"),
    "NumPy": OSError("747159 requested and 695242 written"),
    "Polars": pl.exceptions.ComputeError("parquet: underlying IO error: No space left on device (os error 28)"),
}

LIMITED = """
import resource, sys
import anyburl
from rules.samples import make_rules

resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
rules = make_rules([(f"h(X,c{n}) <= b(X,A)", (n + 2, n)) for n in range(3000)])
try:
    rules.save(sys.argv[1])
except anyburl.AnyburlError as error:
    print(f"{type(error).__name__}: {error}")
"""


def half_write(path: Path, error: Exception) -> None:
    path.write_text("half of")
    raise error


def age(path: Path, seconds: float = 120) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_file_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "file.txt"
    target.write_text("old")
    with replacing(target) as unfinished:
        unfinished.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("tool", FULL)
def test_a_full_disk_is_told_with_path_and_reason(tmp_path: Path, tool: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "_is_full", lambda folder: True)
    target = tmp_path / "file.txt"
    target.write_text("old")
    with (
        pytest.raises(RuleError, match=r"file\.txt: the file cannot be written \(No space left on device\)"),
        replacing(target, RuleError) as unfinished,
    ):
        half_write(unfinished, FULL[tool])
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]
    with (
        pytest.raises(DataError, match=r"folder: the folder cannot be written \(No space left on device\)"),
        replacing_folder(tmp_path / "folder") as folder,
    ):
        half_write(folder / "half", FULL[tool])
    assert list(tmp_path.iterdir()) == [target]


def test_what_the_system_has_not_refused_is_raised_as_it_is(tmp_path: Path) -> None:
    for error in (ZeroDivisionError(), RuleError("no rule"), KeyboardInterrupt()):
        with pytest.raises(type(error)), replacing(tmp_path / "file.txt"):
            raise error
        with pytest.raises(type(error)), replacing_folder(tmp_path / "folder"):
            raise error
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="the system has no limit on the size of files")
@pytest.mark.parametrize("name", ["rules.parquet", "rules.txt", "rules.txt.gz"])
def test_rules_that_do_not_fit_leave_nothing_behind(tmp_path: Path, name: str) -> None:
    path = os.pathsep.join(sys.path)
    program = [sys.executable, "-c", LIMITED, str(tmp_path / name)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, env={**os.environ, "PYTHONPATH": path})
    assert done.stdout == f"RuleError: {tmp_path / name}: the file cannot be written (File too large)\n", done.stderr
    assert list(tmp_path.iterdir()) == []


# What killed processes leave behind.


def test_the_next_writer_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    target = tmp_path / "rules.txt"
    left = [tmp_path / f".rules.txt.part{end}" for end in ("123", "0123456789ab")]
    for path in left:
        path.write_text("half of")
        age(path)
    folder = tmp_path / ".rules.txt.old0123456789ab"
    (folder / "inner").mkdir(parents=True)
    age(folder)
    with replacing(target) as unfinished:
        unfinished.write_text("new")
    assert list(tmp_path.iterdir()) == [target]


def test_a_finished_file_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done, fsync, replace = list[str](), os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda descriptor: (done.append("sync"), fsync(descriptor)))
    monkeypatch.setattr(os, "replace", lambda *names: (done.append("replace"), replace(*names)))
    (tmp_path / "new").write_text("whole", "utf-8")
    put_in_place(tmp_path / "new", tmp_path / "named")
    assert done[:2] == ["sync", "replace"]
    assert (tmp_path / "named").read_text("utf-8") == "whole"


def test_a_line_is_appended_after_the_end_of_one_that_was_cut_short(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for line in (b"one", b"two"):
        append_line(log, line)
    log.write_bytes(log.read_bytes()[:-2])
    append_line(log, b"three", synced=True)
    assert log.read_bytes() == b"one\ntw\nthree\n"


def test_a_line_that_the_disk_takes_only_in_part_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "write", lambda descriptor, content: len(content) - 1)
    with pytest.raises(OSError, match=r"No space left on device: '.*log'"):
        append_line(tmp_path / "log", b"one")


def test_others_are_left_alone(tmp_path: Path) -> None:
    """Files of others, files just made, and files that somebody is writing."""
    others = [".rules.txt.partial", ".rules.txt.old", "rules.txt.part123", ".rules.tsv.part123", ".rules.txt.part"]
    for name in others:
        (tmp_path / name).write_text("not ours")
        age(tmp_path / name)
    fresh, busy = tmp_path / ".rules.txt.part1", tmp_path / ".rules.txt.part2"
    fresh.write_text("just made")
    busy.write_text("being written")
    age(busy)
    with Lock(busy) as lock:
        lock.take()
        remove_leftovers(tmp_path / "rules.txt")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*others, fresh.name, busy.name])
    remove_leftovers(tmp_path / "rules.txt")
    assert not busy.exists()


def test_a_folder_being_written_is_not_swept(tmp_path: Path) -> None:
    target = tmp_path / "index"
    with replacing_folder(target) as unfinished:
        (unfinished / "file").write_text("x")
        age(unfinished)
        with replacing_folder(target) as second:
            (second / "file").write_text("y")
        assert unfinished.exists()
    assert (target / "file").read_text() == "x"
    assert list(tmp_path.iterdir()) == [target]


# Interrupts.


@pytest.mark.skipif(sys.platform == "win32", reason="the test sends itself a signal")
def test_an_interrupt_while_writing_is_an_interrupt(tmp_path: Path) -> None:
    """Polars calls for the next part; an exception that is raised there would be Polars' own."""
    n_parts = 0

    def frames() -> Iterator[pl.DataFrame]:
        nonlocal n_parts
        for n_parts in range(1, 1000):
            if n_parts == 3:
                os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.02 * (n_parts >= 3))  # the thread that waits looks for interrupts ten times a second
            yield pl.DataFrame({"line": ["text"] * 1000})

    def write(lines: pl.LazyFrame) -> Any:
        return lines.sink_csv(unfinished)

    with pytest.raises(KeyboardInterrupt), replacing(tmp_path / "file.csv") as unfinished:
        sink_frames(pl.Schema({"line": pl.String}), frames, write)
    assert n_parts < 500
    assert list(tmp_path.iterdir()) == []


def test_rules_are_written_where_nobody_interrupts(tmp_path: Path) -> None:
    rules = make_rules([("h(X,c) <= b(X,A)", (3, 2))])
    for name in ("rules.parquet", "rules.txt"):
        rules.save(tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rules.parquet", "rules.txt"]


def make_folder(path: Path, text: str) -> None:
    path.mkdir()
    (path / "file").write_text(text)


@pytest.mark.parametrize("at_once", [True, False])
def test_a_folder_takes_the_place_of_another(tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one step where the system can do that."""
    if not at_once:
        monkeypatch.setattr(writing, "_exchange", lambda first, second: False)
    target = tmp_path / "index"
    make_folder(target, "old")
    with replacing_folder(target) as unfinished:
        (unfinished / "file").write_text("new")
    assert (target / "file").read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lets two folders change places")
def test_a_folder_is_there_at_every_moment_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, seen = tmp_path / "index", list[bool]()
    make_folder(target, "old")
    monkeypatch.setattr(Path, "rename", lambda self, to: seen.append(False))  # would leave a moment without a folder
    with replacing_folder(target) as unfinished:
        (unfinished / "file").write_text("new")
    assert (target / "file").read_text() == "new"
    assert not seen


def test_a_folder_that_a_kill_left_half_replaced_comes_back(tmp_path: Path) -> None:
    make_folder(tmp_path / ".index.old0123456789ab", "old")
    with pytest.raises(ZeroDivisionError), replacing_folder(tmp_path / "index"):
        raise ZeroDivisionError
    assert (tmp_path / "index" / "file").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 1


# Links and pipes.


@pytest.mark.parametrize("at_once", [True, False])
def test_of_a_linked_folder_only_the_link_is_replaced(
    tmp_path: Path, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not at_once:
        monkeypatch.setattr(writing, "_exchange", lambda first, second: False)
    make_folder(tmp_path / "important", "precious")
    make_folder(tmp_path / "run", "run")
    target = tmp_path / "run" / "prepared"
    for leads_to in (tmp_path / "important", tmp_path / "nothing"):
        target.symlink_to(leads_to)
        with replacing_folder(target) as unfinished:
            (unfinished / "file").write_text("new")
        assert not target.is_symlink()
        assert (target / "file").read_text() == "new"
        assert sorted(path.name for path in (tmp_path / "run").iterdir()) == ["file", "prepared"]
        writing.shutil.rmtree(target)
    assert (tmp_path / "important" / "file").read_text() == "precious"


def test_a_file_where_a_folder_should_be_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "prepared").write_text("precious")
    with (
        pytest.raises(DataError, match="prepared: the folder cannot be written"),
        replacing_folder(tmp_path / "prepared") as unfinished,
    ):
        (unfinished / "file").write_text("new")
    assert (tmp_path / "prepared").read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 1


def test_nothing_is_appended_or_locked_through_a_link(tmp_path: Path) -> None:
    important, link = tmp_path / "important", tmp_path / "link"
    important.write_text("precious\n")
    for leads_to in (important, tmp_path / "nothing"):
        link.symlink_to(leads_to)
        with pytest.raises(OSError, match="it is a symbolic link"):
            append_line(link, b"line")
        with pytest.raises(OSError, match="it is a symbolic link"):
            Lock(link)
        link.unlink()
    assert important.read_text() == "precious\n"
    assert list(tmp_path.iterdir()) == [important]


def test_a_leftover_that_is_a_link_is_left_alone(tmp_path: Path) -> None:
    make_folder(tmp_path / "important", "precious")
    age(tmp_path / "important")
    (tmp_path / ".rules.txt.part0123456789ab").symlink_to(tmp_path / "important")
    remove_leftovers(tmp_path / "rules.txt")
    assert (tmp_path / "important" / "file").read_text() == "precious"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for use in (open_to_read, Lock, lambda path: append_line(path, b"line")):
        with pytest.raises(OSError, match="it is not a regular file"):
            use(pipe)


def test_a_path_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    for use in (replacing, replacing_folder):
        with (
            pytest.raises(RunError, match=r"expected a path in UTF-8, got '.*udcff'"),
            use(tmp_path / "b\udcff", RunError),
        ):
            pass
    assert list(tmp_path.iterdir()) == []


# Several processes.


def test_a_finished_file_takes_no_place_that_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finished = tmp_path / "finished"
    for has_links in (True, False):
        if not has_links:
            monkeypatch.setattr(os, "link", lambda *names: half_write(finished, OSError(errno.EPERM, "no links")))
        finished.write_text("half of")
        place = tmp_path / f"place{has_links}"
        assert put_in_free_place(finished, place)
        finished.write_text("second") if not finished.exists() else None
        place.write_text("first")
        assert not put_in_free_place(finished, place)
        assert place.read_text() == "first"


class Windows(SimpleNamespace):
    """Stands for `msvcrt`: knows which bytes are locked, and by which descriptor."""

    LK_NBLCK = 2

    def locking(self, descriptor: int, mode: int, n_bytes: int) -> None:
        place = os.fstat(descriptor).st_ino, os.lseek(descriptor, 0, os.SEEK_CUR)
        if self.locked.setdefault(place, descriptor) != descriptor:
            self.tries -= 1
            if not self.tries:
                del self.locked[place]
            raise PermissionError(errno.EACCES, "Permission denied")


def test_on_windows_a_byte_is_locked_that_nobody_reads_or_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = Windows(locked={}, tries=20)
    monkeypatch.setitem(sys.modules, "msvcrt", windows)
    monkeypatch.setattr(files, "_lock_file", files._lock_far_byte)
    monkeypatch.setattr(files, "SECONDS_BETWEEN_TRIES", 0.0)
    with Lock(tmp_path / "lock") as lock, Lock(tmp_path / "lock") as other:
        lock.take()
        [(_, place)] = windows.locked
        assert place > 2**40, "beyond the end of every file"
        lock.write("4711")
        assert (tmp_path / "lock").read_text() == "4711"
        with pytest.raises(BlockingIOError):
            other.take()
        other.take(wait=True)  # longer than the ten tries after which Windows would give up
        assert windows.tries == 0


FORKED = """
import os, sys, time
from pathlib import Path
from anyburl.base.files import Lock
from anyburl.base.writing import replacing, temporary_folder, unfinished_folder

place = Path(sys.argv[1])
with unfinished_folder(place) as folder, temporary_folder() as other, Lock(place) as lock:
    lock.take()
    with replacing(folder / "file") as unfinished:
        unfinished.write_text("whole")
        child = os.fork()
        if not child:
            sys.exit()
        os.waitpid(child, 0)
    print((folder / "file").read_text(), other.is_dir())
    try:
        Lock(place).take()
    except BlockingIOError:
        print("locked")
    child = os.fork()
    if not child:
        sys.stdin.read()
        os._exit(0)
    lock.release()
    Lock(place).take()
    print("free")
print(sorted(path.name for path in place.parent.iterdir()), other.exists())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_forked_process_removes_and_unlocks_nothing(tmp_path: Path) -> None:
    program = [sys.executable, "-c", FORKED, str(tmp_path / "place")]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120, input="")
    assert done.stdout.split("\n")[:4] == ["whole True", "locked", "free", "['place'] False"], done.stderr
