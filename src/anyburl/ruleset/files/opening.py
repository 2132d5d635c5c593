"""Reads the start or the lines of a rule file, or says why it cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from anyburl import polars_unstable, reading
from anyburl.errors import RuleError

PathLike = str | os.PathLike[str]


def first_bytes(path: PathLike) -> bytes:
    """Return the first four bytes of a file of rules, or say why it cannot be read."""
    return reading.first_bytes(Path(path), "rules", RuleError)


def first_lines(path: PathLike, n_lines: int) -> list[str]:
    """Return the first lines of a file of text."""
    with _as_text(path):
        return polars_unstable.first_lines(Path(path), n_lines)


def numbered_lines(path: PathLike, n_lines: int) -> Iterator[pl.DataFrame]:
    """Yield the lines of a file of text with their numbers, some at a time."""
    with _as_text(path):
        yield from polars_unstable.line_batches(Path(path), n_lines, numbered=True)


@contextmanager
def _as_text(path: PathLike) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{os.fspath(path)}: expected UTF-8 text, plain or compressed ({error})") from error
