"""Options of reports, without imports that would slow down the command line."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.base import checking
from anyburl.base.checking import Options, option


def _labels(name: str, labels: object) -> tuple[str, ...]:
    return tuple(checking.texts(name, labels, "the labels of relations"))


def _split(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """What a report holds, checked on creation."""

    relations: tuple[str, ...] = option(
        (), _labels, help="Only these relations. Defaults to all.", parse=_split, metavar="A,B,..."
    )
    laws: int = option(6, checking.whole, 1, 100, help="Most laws of a relation.", metavar="N")
    sections: int = option(
        30, checking.whole, 1, help="Relations told in full, those with most facts; the others get a line.", metavar="N"
    )
