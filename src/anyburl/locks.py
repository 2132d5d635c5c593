"""System locks for one process at a time; the system releases them when a process ends, for whatever reason."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int, *, wait: bool) -> None:
        try:
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(error.errno, error.strerror) from error
else:
    import fcntl

    def _lock(descriptor: int, *, wait: bool) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))


class Lock:
    """The lock of a file, which is made if need be, or of a folder that is there.

    `take` raises BlockingIOError if another process, or another lock of this one, has it, and OSError where there are
    no locks: on some file systems, and for folders on Windows.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        if not path.is_dir():
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        elif sys.platform != "win32":
            self._descriptor = os.open(path, os.O_RDONLY)

    def take(self, *, wait: bool = False) -> None:
        """Lock, at once or when nobody else has it any more."""
        if self._descriptor is None:
            raise OSError("nothing to lock")
        _lock(self._descriptor, wait=wait)

    def write(self, text: str) -> None:
        """Put a note into the file."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, text.encode())

    def release(self) -> None:
        """Let go; more than once does no harm."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
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
