"""Writes files and folders completely or not at all: unfinished ones have another name and then replace the old ones.

What a killed process leaves unfinished is removed by the next writer, if its lock is free and it is a minute old.
"""

from __future__ import annotations

import ctypes
import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import AnyburlError, DataError, RunError
from anyburl.base.files import Lock, check_utf8, open_regular

SECONDS_UNTIL_STALE = 60.0

_of_the_system = re.compile(r"([^:(]+) \(os error \d+\)")  # as Polars words it


@contextmanager
def replacing(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Yield a temporary path beside `path`; at the end it is synced and replaces `path`, or is removed after an error.

    Failures of the system to write are raised as `error`.
    """
    unfinished = _beside(check_utf8(path, error))
    process = os.getpid()
    try:
        remove_leftovers(path)
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
        if process == os.getpid():
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)


@contextmanager
def replacing_folder(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Yield an empty folder beside `path`, which replaces it at the end or, after an exception, is removed.

    Processes that have files of the old folder open or mapped keep them. Of a link, only the link itself is replaced.
    """
    try:
        with unfinished_folder(check_utf8(path, error)) as unfinished:
            yield unfinished
            replace_folder(path, unfinished)
    except Exception as refusal:
        reason = _reason(refusal, path.parent)
        if reason is None:
            raise
        raise error(f"{path}: the folder cannot be written ({reason})") from refusal


@contextmanager
def unfinished_folder(path: Path) -> Iterator[Path]:
    """Yield an empty folder beside `path`, which is removed at the end, but not by a forked process."""
    _undo_half_replacement(path)
    remove_leftovers(path)
    unfinished = _beside(path)
    unfinished.mkdir(parents=True)
    process = os.getpid()
    try:
        with _locked(unfinished):
            yield unfinished
    finally:
        if process == os.getpid():
            shutil.rmtree(unfinished, ignore_errors=True)


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Yield an empty folder for temporary files, which is removed at the end, but not by a forked process."""
    folder, process = Path(mkdtemp(prefix="anyburl-")), os.getpid()
    try:
        yield folder
    finally:
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


def replace_folder(path: Path, finished: Path) -> None:
    """Sync the files of a finished folder beside `path` and rename it to `path`.

    A folder or a link at `path` is removed, but never the target of a link.
    """
    for folder, _, files in os.walk(finished):
        for name in files:
            _sync(Path(folder, name))
    if not path.is_dir() and not path.is_symlink():
        finished.rename(path)
    elif _exchange(path, finished):
        _remove(finished)
    else:
        old = path.with_name(f".{path.name}.old{secrets.token_hex(6)}")
        path.rename(old)
        finished.rename(path)
        _remove(old)
    _sync_folder(path.parent)


def make_inner_folder(folder: Path, error: type[AnyburlError] = DataError) -> None:
    """Create a folder inside one that anyburl writes, if it is missing; a link is refused, since it leads elsewhere."""
    if folder.is_symlink():
        raise error(f"{folder} is a symbolic link, and nothing is written through one: remove it")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as refusal:
        raise error(f"{folder}: the folder cannot be written ({refusal.strerror or refusal})") from refusal


def _remove(path: Path) -> None:
    """Remove a folder with its contents, or a link without its target."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _undo_half_replacement(path: Path) -> None:
    """Rename the old folder back if a process was killed before it put the new one there."""
    left = sorted(path.parent.glob(f".{glob.escape(path.name)}.old*"))
    if left and not os.path.lexists(path):
        left[-1].rename(path)


def replace_text(path: Path, text: str, error: type[AnyburlError] = DataError) -> None:
    """Write a small file of text."""
    with replacing(path, error) as unfinished:
        unfinished.write_text(text, "utf-8")


def put_in_place(finished: Path, path: Path) -> None:
    """Sync a finished file and rename it."""
    _sync(finished)
    os.replace(finished, path)
    _sync_folder(path.parent)


def put_in_free_place(finished: Path, path: Path) -> bool:
    """Sync a finished file and rename it, unless that name is taken; return whether it was renamed."""
    _sync(finished)
    try:
        os.link(finished, path)  # unlike a renamed file, a link replaces nothing
    except FileExistsError:
        return False
    except OSError:  # of a file system without links
        if os.path.lexists(path):
            return False
        finished.rename(path)
    _sync_folder(path.parent)
    return True


def append_line(path: Path, line: bytes, *, synced: bool = False) -> None:
    """Append a line in one write, so that lines of two processes do not mix; an incomplete last line is ended first.

    Raises OSError if the line does not fit on the disk, or if the file is a link, which leads elsewhere, or a pipe.
    """
    descriptor = open_regular(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, follow_link=False)
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


def remove_leftovers(path: Path) -> None:
    """Remove unfinished files and folders that killed processes left beside `path`."""
    name = re.compile(rf"\.{re.escape(path.name)}\.(part|old)(\d+|[0-9a-f]{{12}})")
    with suppress(OSError):
        for entry in os.scandir(path.parent):
            if not name.fullmatch(entry.name) or entry.is_symlink():
                continue
            if time.time() - entry.stat().st_mtime > SECONDS_UNTIL_STALE:
                _remove_if_free(Path(entry.path))


def _remove_if_free(leftover: Path) -> None:
    with suppress(OSError), Lock(leftover) as lock:
        lock.take()
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
            return
        if sys.platform == "win32":  # which removes no file that is open
            lock.release()
        leftover.unlink()


def _exchange(first: Path, second: Path) -> bool:
    """Exchange two folders in one step; return whether the system can (Linux)."""
    try:
        renameat2 = ctypes.CDLL(None).renameat2
    except (OSError, AttributeError, TypeError):
        return False
    here, exchange = -100, 2  # AT_FDCWD, RENAME_EXCHANGE
    return bool(renameat2(here, os.fsencode(first), here, os.fsencode(second), exchange) == 0)


@contextmanager
def _locked(unfinished: Path) -> Iterator[None]:
    """Hold the lock of a path, which creates the file; where there are no locks, do without."""
    with Lock(unfinished) as lock:
        with suppress(OSError):
            lock.take()
        yield


def _sync(path: Path) -> None:
    """Sync a file, since its contents must reach the disk before its new name."""
    descriptor = os.open(path, os.O_RDWR | getattr(os, "O_BINARY", 0))
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Sync the renames in a folder, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(refusal: Exception, folder: Path) -> str | None:
    """Return why the system could not write; None for other exceptions."""
    if isinstance(refusal, AnyburlError):
        return None
    if match := _of_the_system.search(str(refusal)):
        return match[1].strip()
    if not isinstance(refusal, OSError):
        return None
    return refusal.strerror or ("No space left on device" if _is_full(folder) else str(refusal))


def _is_full(folder: Path) -> bool:
    """Whether the disk is full: NumPy says how many bytes it wrote, but not why they are too few."""
    try:
        return shutil.disk_usage(folder).free < 1 << 20
    except OSError:
        return False


def _beside(path: Path) -> Path:
    return path.with_name(f".{path.name}.part{secrets.token_hex(6)}")


@dataclass(frozen=True)
class KeptKey:
    """The cache key of a result in a run folder: rules, data, options, and the `recipe` that made it."""

    rules: str
    data: str
    options: dict[str, Any]
    recipe: Any = None

    @property
    def name(self) -> str:
        """The name of the file: one for each choice of options."""
        options = json.dumps([self.recipe, self.options], sort_keys=True)
        return f"{hashlib.blake2b(options.encode(), digest_size=8).hexdigest()}.npz"


@dataclass(frozen=True)
class StoredValues:
    """A result: plain values and arrays."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_kept(folder: Path, key: KeptKey, kept: StoredValues) -> Path:
    """Write a result into a folder of the run, which is created if missing; return the file."""
    path = folder / key.name
    make_inner_folder(folder, RunError)
    about = {"rules": key.rules, "data": key.data, "options": key.options, **kept.about}
    with replacing(path, RunError) as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **kept.arrays)
    return path


def load_kept(folder: Path, key: KeptKey) -> StoredValues | str:
    """Return a result, or the reason why it cannot be used: "" if there is none."""
    path = folder / key.name
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            if about["rules"] != key.rules:
                return "the rules have changed"
            if about["data"] != key.data:
                return "the data has changed"
            arrays = {name: stored[name] for name in stored.files if name != "about"}
            if odd := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
                raise ValueError(f"{odd[0]} is not an array")
            return StoredValues(about, arrays)
    except Exception as error:  # archives and arrays have no one kind of error
        return damaged(path, error)


def damaged(path: Path, error: Exception) -> str:
    """Return the sentence that a file is damaged or cannot be read."""
    fault = "cannot be read" if isinstance(error, OSError) else "is damaged"
    return f"{path.name} {fault} ({' '.join(str(error).split())[:100]})"
