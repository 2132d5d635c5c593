"""Finds a file, reads its start or its lines, or says why it cannot be read."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TypeGuard

from anyburl.errors import AnyburlError, OptionError

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
    return Path(os.path.expanduser(given))


def first_bytes(path: Path, content: str, error: type[AnyburlError]) -> bytes:
    """Return the first four bytes of a file of `content`; where it cannot be read, raise an `error` that says why."""
    if path.is_dir():
        raise error(f"{path}: expected a file of {content}, got a folder")
    if not path.exists():
        raise error(f"{path}: no such file")
    if not path.is_file():
        raise error(f"{path}: expected a regular file of {content}, got a device or a pipe")
    try:
        with path.open("rb") as stream:
            return stream.read(4)
    except OSError as refused:
        raise error(f"{path}: the file cannot be read ({refused.strerror})") from refused


def lines_of(path: Path, content: str, error: type[AnyburlError]) -> dict[int, str]:
    """Return the lines of a file of `content` that are not blank, by number; else raise an `error` that says why."""
    if not path.is_file():
        raise error(f"{path}: expected a file of {content}, got {'a folder' if path.is_dir() else 'no such file'}")
    try:
        lines = path.read_text("utf-8-sig").split("\n")
    except UnicodeDecodeError as refused:
        raise error(f"{path}: expected UTF-8 text") from refused
    return {number: line.strip("\r") for number, line in enumerate(lines, 1) if line.strip()}
