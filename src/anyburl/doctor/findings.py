"""A finding: a sentence, a count, and examples in columns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import polars as pl

Cell = str | int | float | None


class Severity(StrEnum):
    """How much a finding matters; a note describes the data and is no reason to fail."""

    PROBLEM = "problem"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True)
class Finding:
    """One thing that a check found, `count` times."""

    check: str
    severity: Severity
    sentence: str
    count: int
    columns: tuple[str, ...] = ()
    examples: tuple[tuple[Cell, ...], ...] = ()

    @classmethod
    def of(cls, check: str, severity: Severity, sentence: str, count: int, examples: pl.DataFrame) -> Finding:
        """Return a finding with the rows of a frame as examples."""
        return cls(check, severity, sentence, count, tuple(examples.columns), tuple(examples.rows()))

    def to_json(self) -> dict[str, Any]:
        """Return the finding as plain values."""
        return {
            "check": self.check,
            "severity": str(self.severity),
            "sentence": self.sentence,
            "count": self.count,
            "examples": [dict(zip(self.columns, row, strict=True)) for row in self.examples],
        }


def share(part: int, whole: int) -> str:
    """Return a share in words: 12.3 %."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"
