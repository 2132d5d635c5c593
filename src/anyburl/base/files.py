"""Opens regular files, reads their start or their lines, or says why not; system locks, released when we end."""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

from anyburl.base.errors import AnyburlError, OptionError

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # of UTF-16: JSON can escape one, UTF-8 holds none


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value from a file of JSON is text that a column of labels can hold."""
    return isinstance(value, str) and (value.isascii() or not HALF_CHARACTER.search(value))


def at_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded; it stays if there is no such user."""
    if not isinstance(path, str | os.PathLike) or not isinstance(os.fspath(path), str):
        raise OptionError(f"expected a path, got {type(path).__name__}")
    given = os.fspath(path)
    if not given or "\0" in given:
        raise OptionError(f"expected a path, got {'an empty one' if not given else repr(given)}")
    return check_utf8(Path(os.path.expanduser(given)))


def check_utf8(path: Path, error: type[AnyburlError] = OptionError) -> Path:
    """Return a path; refuse one that is not UTF-8, which Python can open but Polars, DuckDB and others cannot."""
    if not is_text(str(path)):
        raise error(f"expected a path in UTF-8, got {str(path)!r}")
    return path


def open_regular(path: Path, flags: int = os.O_RDONLY, *, follow_link: bool = True) -> int:
    """Open a regular file, which is created if the `flags` say so, and return its descriptor.

    Raises OSError for anything else, since opening a pipe blocks until its other end opens; without `follow_link`, also
    for a link.
    """
    if not follow_link and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    non_blocking = getattr(os, "O_NONBLOCK", 0) | (0 if follow_link else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, flags | non_blocking | getattr(os, "O_BINARY", 0), 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise OSError for a pipe, whose opening would block."""
    return os.fdopen(open_regular(path), "rb")


def first_bytes(path: Path, content: str, error: type[AnyburlError]) -> bytes:
    """Return the first four bytes of a file of `content`; raise an `error` that says why it cannot be read."""
    check_regular(path, content, error)
    try:
        with open_to_read(path) as stream:
            return stream.read(4)
    except OSError as refused:
        raise error(f"{path}: the file cannot be read ({refused.strerror})") from refused


def check_regular(path: Path, content: str, error: type[AnyburlError]) -> None:
    """Raise an `error` if there is no regular file of `content` at a path."""
    if path.is_dir():
        raise error(f"{path}: expected a file of {content}, got a folder")
    if not path.exists():
        raise error(f"{path}: no such file")
    if not path.is_file():
        raise error(f"{path}: expected a regular file of {content}, got a device or a pipe")


def lines_of(path: Path, content: str, error: type[AnyburlError]) -> dict[int, str]:
    """Return the lines of a file of `content` that are not blank, by number; raise an `error` if it cannot be read."""
    check_regular(path, content, error)
    try:
        with open_to_read(path) as stream:
            lines = stream.read().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as refused:
        raise error(f"{path}: expected UTF-8 text") from refused
    except OSError as refused:
        raise error(f"{path}: the file cannot be read ({refused.strerror})") from refused
    return {number: line.strip("\r") for number, line in enumerate(lines, 1) if line.strip()}


FAR = 2**42 + 2**31 - 2
"""The byte that is locked on Windows, where a locked byte cannot be read: no file that anyburl writes reaches 4 TB."""
SECONDS_BETWEEN_TRIES = 0.02


def _lock_far_byte(descriptor: int, *, wait: bool) -> None:
    """Lock a file on Windows, where the system waits for ten seconds only: so poll."""
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
    """Lock a file or folder on other systems, where a lock does not prevent reading and writing."""
    system: Any = import_module("fcntl")
    system.flock(descriptor, system.LOCK_EX | (0 if wait else system.LOCK_NB))


def _unlock_file(descriptor: int) -> None:
    """Unlock before closing, since a forked process may have the descriptor open as well."""
    system: Any = import_module("fcntl")
    with suppress(OSError):
        system.flock(descriptor, system.LOCK_UN)


class Lock:
    """The lock of a file, which is created if missing, or of an existing folder; links are refused.

    `take` raises BlockingIOError if another process or another `Lock` holds it, and OSError where there are no locks:
    on some file systems, and for folders on Windows. A forked process does not hold the lock of its parent.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor: int | None = None
        self._process = os.getpid()
        if path.is_symlink() or not path.is_dir():
            self._descriptor = open_regular(path, os.O_RDWR | os.O_CREAT, follow_link=False)
        elif sys.platform != "win32":
            self._descriptor = os.open(path, os.O_RDONLY)

    def take(self, *, wait: bool = False) -> None:
        """Acquire the lock, at once or after waiting for it."""
        if self._descriptor is None:
            raise OSError("nothing to lock")
        (_lock_far_byte if sys.platform == "win32" else _lock_file)(self._descriptor, wait=wait)

    def write(self, text: str) -> None:
        """Write text to the file."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.write(self._descriptor, text.encode())

    def release(self) -> None:
        """Release the lock, if it is held."""
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
    """Hold the lock of a path, after waiting for it; on a file system without locks, do without."""
    with Lock(path) as lock:
        with suppress(OSError):
            lock.take(wait=True)
        yield
