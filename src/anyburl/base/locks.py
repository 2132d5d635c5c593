"""System locks for one process at a time; the system releases them when a process ends, for whatever reason."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any

from anyburl.base.reading import open_regular

FAR = 2**42 + 2**31 - 2
"""The byte that is locked on Windows, where nobody else may read or write a locked byte: no file that anyburl writes
reaches 4 TB."""
SECONDS_BETWEEN_TRIES = 0.02


def _lock_far_byte(descriptor: int, *, wait: bool) -> None:
    """Lock a file on Windows, where waiting for a lock gives up after ten seconds: so try again and again."""
    windows: Any = import_module("msvcrt")
    os.lseek(descriptor, FAR, os.SEEK_SET)
    try:
        while True:
            try:
                windows.locking(descriptor, windows.LK_NBLCK, 1)
                return
            except PermissionError as error:
                if not wait:
                    raise BlockingIOError(error.errno, error.strerror) from error
            time.sleep(SECONDS_BETWEEN_TRIES)
    finally:
        os.lseek(descriptor, 0, os.SEEK_SET)


def _lock_file(descriptor: int, *, wait: bool) -> None:
    """Lock a file or folder on other systems, where a lock keeps nobody from reading and writing."""
    system: Any = import_module("fcntl")
    system.flock(descriptor, system.LOCK_EX | (0 if wait else system.LOCK_NB))


def _unlock_file(descriptor: int) -> None:
    """Unlock before closing: a process that was forked meanwhile has the descriptor open, too."""
    system: Any = import_module("fcntl")
    with suppress(OSError):
        system.flock(descriptor, system.LOCK_UN)


class Lock:
    """The lock of a file, which is made if need be, or of a folder that is there; links are refused.

    `take` raises BlockingIOError if another process, or another lock of this one, has it, and OSError where there are
    no locks: on some file systems, and for folders on Windows. A forked process does not have the lock of its parent.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self._process = os.getpid()
        if path.is_symlink() or not path.is_dir():
            self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, follow_link=False)
        elif sys.platform != "win32":
            self._descriptor = os.open(path, os.O_RDONLY)

    def take(self, *, wait: bool = False) -> None:
        """Lock, at once or when nobody else has it any more."""
        if self._descriptor is None:
            raise OSError("nothing to lock")
        (_lock_far_byte if sys.platform == "win32" else _lock_file)(self._descriptor, wait=wait)

    def write(self, text: str) -> None:
        """Put a note into the file."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, text.encode())

    def release(self) -> None:
        """Let go; more than once does no harm."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            if sys.platform != "win32" and self._process == os.getpid():
                _unlock_file(descriptor)
            os.close(descriptor)

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *error: object) -> None:
        self.release()

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.release()


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process is in here with the same path. A file system without locks lets everybody in."""
    with Lock(path) as lock:
        with suppress(OSError):
            lock.take(wait=True)
        yield
