"""Finds and opens a file, reads its start or its lines, or says why it cannot be read."""

from __future__ import annotations

import errno
import os
import re
import stat
from pathlib import Path
from typing import BinaryIO, TypeGuard

from anyburl.base.errors import AnyburlError, OptionError

HALF_CHARACTER = re.compile("[\ud800-\udfff]")  # of UTF-16: JSON can escape one, UTF-8 holds none


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value from a file of JSON is text that a column of labels can hold."""
    return isinstance(value, str) and (value.isascii() or not HALF_CHARACTER.search(value))


def at_home(path: str | os.PathLike[str]) -> Path:
    """Return a path with `~` written out; where there is no such user it stays, and is a file that is not there."""
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

    Raises OSError for anything else: a pipe would keep us waiting for its other end. A link that is not to be followed
    is refused as well.
    """
    if not follow_link and os.path.islink(path):
        raise OSError(errno.ELOOP, "it is a symbolic link", str(path))
    at_once = getattr(os, "O_NONBLOCK", 0) | (0 if follow_link else getattr(os, "O_NOFOLLOW", 0))
    descriptor = os.open(path, flags | at_once | getattr(os, "O_BINARY", 0), 0o666)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is not a regular file", str(path))


def open_to_read(path: Path) -> BinaryIO:
    """Open a regular file for reading; raise OSError for a pipe, which would keep us waiting for its other end."""
    return os.fdopen(open_regular(path), "rb")


def first_bytes(path: Path, content: str, error: type[AnyburlError]) -> bytes:
    """Return the first four bytes of a file of `content`; where it cannot be read, raise an `error` that says why."""
    check_regular(path, content, error)
    try:
        with open_to_read(path) as stream:
            return stream.read(4)
    except OSError as refused:
        raise error(f"{path}: the file cannot be read ({refused.strerror})") from refused


def check_regular(path: Path, content: str, error: type[AnyburlError]) -> None:
    """Raise an `error` that says what is at a path where a file of `content` should be, if there is none."""
    if path.is_dir():
        raise error(f"{path}: expected a file of {content}, got a folder")
    if not path.exists():
        raise error(f"{path}: no such file")
    if not path.is_file():
        raise error(f"{path}: expected a regular file of {content}, got a device or a pipe")


def lines_of(path: Path, content: str, error: type[AnyburlError]) -> dict[int, str]:
    """Return the lines of a file of `content` that are not blank, by number; else raise an `error` that says why."""
    check_regular(path, content, error)
    try:
        with open_to_read(path) as stream:
            lines = stream.read().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as refused:
        raise error(f"{path}: expected UTF-8 text") from refused
    except OSError as refused:
        raise error(f"{path}: the file cannot be read ({refused.strerror})") from refused
    return {number: line.strip("\r") for number, line in enumerate(lines, 1) if line.strip()}
