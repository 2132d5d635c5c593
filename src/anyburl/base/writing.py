"""Atomic writing: unfinished files have another name and replace the old ones in one step.

If a process is killed, the next one that writes to the same place removes what it left, provided its lock is free and
it has not been touched for a minute.

Results kept in a run folder: small files of arrays that record what they were computed from.
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
from anyburl.base.locks import Lock
from anyburl.base.reading import check_utf8, open_regular

SECONDS_UNTIL_STALE = 60.0

_of_the_system = re.compile(r"([^:(]+) \(os error \d+\)")  # as Polars words it


@contextmanager
def replacing(path: Path, error: type[AnyburlError] = DataError) -> Iterator[Path]:
    """Give a temporary path beside `path`, which replaces it if all goes well and vanishes if not.

    It is on the disk before it takes its place. What the system refuses is raised as `error`.
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
    """Give an empty folder beside `path`, which replaces it if all goes well and vanishes if not.

    Whoever has files of the old folder open, or mapped, keeps them. Of a link, only the link itself is replaced.
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
def unfinished_folder(place: Path) -> Iterator[Path]:
    """Make an empty folder beside `place`; what is left of it at the end is removed, but not by a forked process."""
    _bring_back(place)
    remove_leftovers(place)
    unfinished = _beside(place)
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
    """Make an empty folder for temporary files, removed at the end, but not by a process that was forked meanwhile."""
    folder, process = Path(mkdtemp(prefix="anyburl-")), os.getpid()
    try:
        yield folder
    finally:
        if process == os.getpid():
            shutil.rmtree(folder, ignore_errors=True)


def replace_folder(place: Path, finished: Path) -> None:
    """Put a finished folder, beside `place`, in its place; its files are on the disk before.

    A folder or a link at `place` is removed, but never what a link leads to.
    """
    for folder, _, files in os.walk(finished):
        for name in files:
            _sync(Path(folder, name))
    if not place.is_dir() and not place.is_symlink():
        finished.rename(place)
    elif _exchange(place, finished):
        _remove(finished)
    else:
        old = place.with_name(f".{place.name}.old{secrets.token_hex(6)}")
        place.rename(old)
        finished.rename(place)
        _remove(old)
    _sync_folder(place.parent)


def make_inner_folder(folder: Path, error: type[AnyburlError] = DataError) -> None:
    """Make a folder inside one that anyburl writes, if it is not there; a link is refused, since it leads elsewhere."""
    if folder.is_symlink():
        raise error(f"{folder} is a symbolic link, and nothing is written through one: remove it")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as refusal:
        raise error(f"{folder}: the folder cannot be written ({refusal.strerror or refusal})") from refusal


def _remove(path: Path) -> None:
    """Remove a folder with what it holds, or a link without what it leads to."""
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


def _bring_back(place: Path) -> None:
    """Undo half a replacement: a process was killed when the old folder was gone and the new one not yet there."""
    left = sorted(place.parent.glob(f".{glob.escape(place.name)}.old*"))
    if left and not os.path.lexists(place):
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


def put_in_free_place(finished: Path, path: Path) -> bool:
    """Give a finished file its name, unless something else has that name already; tell whether it has it now."""
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
    """Append a line in one piece, so that those of two processes do not mix; one that was cut short is ended first.

    Raises OSError if the disk does not take all of it, and where the file is a link, which leads elsewhere, or a pipe.
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
    """Remove what processes that were killed have left unfinished beside `path`."""
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


@dataclass(frozen=True)
class KeptKey:
    """What a file depends on: the rules, the data, the options, and the `recipe` that made it."""

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
    """What a file holds: plain values and arrays."""

    about: dict[str, Any]
    arrays: dict[str, NDArray[Any]]


def save_kept(folder: Path, key: KeptKey, kept: StoredValues) -> Path:
    """Write a file into a folder of the run, which is made if need be; return the file."""
    path = folder / key.name
    make_inner_folder(folder, RunError)
    about = {"rules": key.rules, "data": key.data, "options": key.options, **kept.about}
    with replacing(path, RunError) as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, about=np.array(json.dumps(about)), **kept.arrays)
    return path


def load_kept(folder: Path, key: KeptKey) -> StoredValues | str:
    """Return what was kept, or why that cannot be used: "" if there is nothing."""
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
    """Report that a file cannot be understood, or not even read."""
    fault = "cannot be read" if isinstance(error, OSError) else "is damaged"
    return f"{path.name} {fault} ({' '.join(str(error).split())[:100]})"
