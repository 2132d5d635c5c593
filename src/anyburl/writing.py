"""Atomic writing: unfinished files have another name and replace the old ones in one step.

If a process is killed, the next one that writes to the same place removes what it left, provided its lock is free and
it has not been touched for a minute.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from anyburl.errors import AnyburlError, DataError
from anyburl.locks import Lock

SECONDS_UNTIL_STALE = 60.0

_of_the_system = re.compile(r"([^:(]+) \(os error \d+\)")  # as Polars words it


@contextmanager
def replacing(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Give a temporary path beside `path`, which replaces it if all goes well and vanishes if not.

    It is on the disk before it takes its place. What the system refuses is raised as `error`.
    """
    unfinished = _beside(path)
    try:
        sweep(path)
        with _locked(unfinished):
            yield unfinished
            _sync(unfinished)
        os.replace(unfinished, path)
        _sync_folder(path.parent)
    except Exception as refusal:
        reason = _reason(refusal, path.parent)
        if reason is None:
            raise
        raise error(f"{path}: the file cannot be written ({reason})") from refusal
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Give an empty folder beside `path`, which replaces it if all goes well and vanishes if not.

    Whoever has files of the old folder open, or mapped, keeps them.
    """
    place = path.resolve()
    try:
        with unfinished_folder(place) as unfinished:
            yield unfinished
            replace_folder(place, unfinished)
    except Exception as refusal:
        reason = _reason(refusal, place.parent)
        if reason is None:
            raise
        raise error(f"{path}: the folder cannot be written ({reason})") from refusal


@contextmanager
def unfinished_folder(place: Path) -> Iterator[Path]:
    """Make an empty folder beside `place`; what is left of it at the end is removed."""
    _bring_back(place)
    sweep(place)
    unfinished = _beside(place)
    unfinished.mkdir(parents=True)
    try:
        with _locked(unfinished):
            yield unfinished
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def replace_folder(place: Path, finished: Path) -> None:
    """Put a finished folder, beside `place`, in its place; its files are on the disk before."""
    for folder, _, files in os.walk(finished):
        for name in files:
            _sync(Path(folder, name))
    if not place.is_dir():
        finished.rename(place)
    elif _exchange(place, finished):
        shutil.rmtree(finished, ignore_errors=True)
    else:
        old = place.with_name(f".{place.name}.old{secrets.token_hex(6)}")
        place.rename(old)
        finished.rename(place)
        shutil.rmtree(old, ignore_errors=True)
    _sync_folder(place.parent)


def _bring_back(place: Path) -> None:
    """Undo half a replacement: a process was killed when the old folder was gone and the new one not yet there."""
    left = sorted(place.parent.glob(f".{glob.escape(place.name)}.old*"))
    if left and not place.exists():
        left[-1].rename(place)


def replace_text(path: Path, text: str, error: type[AnyburlError] = DataError) -> None:
    """Write a small file of text."""
    with replacing(path, error) as unfinished:
        unfinished.write_text(text, "utf-8")


def put_in_place(finished: Path, path: Path) -> None:
    """Give a finished file its name; its contents are on the disk before."""
    _sync(finished)
    os.replace(finished, path)
    _sync_folder(path.parent)


def append_line(path: Path, line: bytes, *, synced: bool = False) -> None:
    """Append a line in one piece, so that those of two processes do not mix; one that was cut short is ended first.

    Raises OSError if the disk does not take all of it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    try:
        end = os.lseek(descriptor, 0, os.SEEK_END)
        os.lseek(descriptor, max(end - 1, 0), os.SEEK_SET)
        whole = (b"" if os.read(descriptor, 1) in (b"", b"\n") else b"\n") + line + b"\n"
        if os.write(descriptor, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        if synced:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sweep(path: Path) -> None:
    """Remove what processes that were killed have left unfinished beside `path`."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(part|old)(\d+|[0-9a-f]{{12}})")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if name.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > SECONDS_UNTIL_STALE:
                _remove_if_free(Path(entry.path))


def _remove_if_free(leftover: Path) -> None:
    with suppress(OSError), Lock(leftover) as lock:
        lock.take()
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink()


def _exchange(first: Path, second: Path) -> bool:
    """Let two folders change places in one step; tell whether the system can (Linux)."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)


@contextmanager
def _locked(unfinished: Path) -> Iterator[None]:
    """Tell others that somebody is at work; a file is made by that. Where there are no locks, do without."""
    with Lock(unfinished) as lock:
        with suppress(OSError):
            lock.take()
        yield


def _sync(path: Path) -> None:
    """Wait until a file is on the disk: a rename must not come before its contents."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Wait until renames in a folder are on the disk, where the system can tell."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(refusal: Exception, folder: Path) -> str | None:
    """Return why the system refused to write; None if it was something else."""
    if isinstance(refusal, AnyburlError):
        return None
    if found := _of_the_system.search(str(refusal)):
        return found[1].strip()
    if not isinstance(refusal, OSError):
        return None
    return refusal.strerror or ("No space left on device" if _is_full(folder) else str(refusal))


def _is_full(folder: Path) -> bool:
    """Return whether there is next to no room: NumPy says how many bytes it wrote, but not why they are too few."""
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part{secrets.token_hex(6)}")
