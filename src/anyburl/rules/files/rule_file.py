"""What all readers of rule files share: the file's first bytes, its lines, and the report of what was left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl

from anyburl.base import files, polars_unstable
from anyburl.base.errors import RuleError, counted

PathLike = str | os.PathLike[str]


@dataclass(frozen=True)
class ReadReport:
    """How many rules were read, and what was not.

    `rejected` has the line number and the reason of each line that is neither a rule nor a comment nor blank;
    `n_unknown` counts rules with labels that are not in the given vocabulary; `damaged` says which files
    of a run folder are damaged and were left out, `remarks` what else was odd.
    """

    n_rules: int
    n_comments: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)
    n_unknown: int = 0
    damaged: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether every rule of the file was read, and nothing was odd."""
        return not (self.rejected or self.n_unknown or self.damaged or self.remarks)

    def __str__(self) -> str:
        parts = [f"{counted(self.n_rules, 'rule')} read"]
        if self.rejected:
            line, reason = self.rejected[0]
            verb = "is not a rule" if len(self.rejected) == 1 else "are not rules"
            parts.append(f"{counted(len(self.rejected), 'line')} {verb} (line {line}: {reason})")
        if self.n_unknown:
            verb = "uses" if self.n_unknown == 1 else "use"
            parts.append(f"{counted(self.n_unknown, 'rule')} {verb} labels that are not in the data")
        return "; ".join([*parts, *self.remarks, *self.damaged])


def repeated(n_lines: int) -> Iterator[str]:
    """Say that rules occur again: as rules of their own, they would count twice."""
    if n_lines:
        verb = "repeats an earlier rule and was" if n_lines == 1 else "repeat earlier rules and were"
        yield f"{counted(n_lines, 'line')} {verb} left out"


def first_bytes_of_rules(path: PathLike) -> bytes:
    """Return the first four bytes of a file of rules, or say why it cannot be read."""
    return files.first_bytes(Path(path), "rules", RuleError)


def first_lines_of_rules(path: PathLike, n_lines: int) -> list[str]:
    """Return the first lines of a file of text."""
    with _as_text(path):
        return polars_unstable.first_lines(Path(path), n_lines)


def numbered_rule_lines(path: PathLike, n_lines: int) -> Iterator[pl.DataFrame]:
    """Yield the lines of a file of text with their numbers, some at a time."""
    with _as_text(path):
        yield from polars_unstable.line_batches(Path(path), n_lines, numbered=True)


@contextmanager
def _as_text(path: PathLike) -> Iterator[None]:
    try:
        yield
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{os.fspath(path)}: expected UTF-8 text, plain or compressed ({error})") from error
