"""How a file of rules starts, or why it cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from anyburl import reading
from anyburl.errors import RuleError

PathLike = str | os.PathLike[str]


def first_bytes(path: PathLike) -> bytes:
    """Return the first four bytes of a file of rules, or say why it cannot be read."""
    return reading.first_bytes(Path(path), "rules", RuleError)
