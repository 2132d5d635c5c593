"""How a file starts, or why it cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from anyburl.errors import RuleError

PathLike = str | os.PathLike[str]


def first_bytes(path: Path) -> bytes:
    """Return the first four bytes of a file of rules, or say why it cannot be read."""
    if path.is_dir():
        raise RuleError(f"{path}: expected a file of rules, got a folder")
    if not path.exists():
        raise RuleError(f"{path}: there is no such file")
    try:
        with path.open("rb") as stream:
            return stream.read(4)
    except OSError as error:
        raise RuleError(f"{path}: the file cannot be read ({error.strerror})") from error
