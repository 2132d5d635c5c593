"""Ensures that a run folder has one writer: two would overwrite each other's parts."""

from __future__ import annotations

from contextlib import suppress
from os import getpid
from pathlib import Path

from anyburl.errors import RunError
from anyburl.locks import Lock
from anyburl.reading import open_to_read

LOCK = ".lock"
"""The file that the writer of a run folder has locked; it stays there, and means nothing by itself."""


def claim_run(folder: Path) -> Lock:
    """Become the writer of a run folder, until the lock is released or the process ends; refuse if there is one.

    A file system without locks lets everybody in.
    """
    path = folder / LOCK
    try:
        lock = Lock(path)
    except OSError as refusal:
        raise RunError(f"{path}: the file cannot be written ({refusal.strerror or refusal})") from refusal
    try:
        lock.take()
    except BlockingIOError:
        lock.release()
        raise RunError(
            f"{folder} is being written by {_writer(path)}: wait until it ends, or choose another folder"
        ) from None
    except OSError:
        return lock
    with suppress(OSError):
        lock.write(f"{getpid()}\n")
    return lock


def _writer(path: Path) -> str:
    with suppress(OSError, ValueError), open_to_read(path) as file:
        return f"process {int(file.read())}"
    return "another process"
