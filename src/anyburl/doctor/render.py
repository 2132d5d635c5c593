"""Findings for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anyburl.doctor.findings import Cell, Finding, Severity
from anyburl.doctor.options import CHECKS
from anyburl.triples.names import Names

STYLES = {Severity.PROBLEM: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}


def to_group(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names) -> Group:
    """Return the findings one below the other, and what was found to be in order."""
    return Group(*_parts(name, sizes, findings, names))


def _parts(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names) -> Iterator[RenderableType]:
    yield Text(f"{name}: {sizes_text(sizes)}", "bold")
    for finding in findings:
        yield Text("")
        yield Text.assemble(
            (f"{finding.severity}  ", STYLES[finding.severity]), (finding.check, "bold"), f"  {finding.sentence}"
        )
        if finding.examples:
            yield Padding(_table(finding, names), (0, 0, 0, 2), expand=False)
    if rest := in_order(findings):
        yield Text("")
        yield Text(f"nothing found by: {', '.join(rest)}", "green")


def _table(finding: Finding, names: Names) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for place, column in enumerate(finding.columns):
        is_number = all(isinstance(row[place], int | float) for row in finding.examples)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in finding.examples:
        table.add_row(*(Text(cell_text(cell, names)) for cell in row))
    return table


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Return how large the data set is, in words."""
    return ", ".join(f"{n:,} {what}" for what, n in sizes.items())


def cell_text(cell: Cell, names: Names) -> str:
    """Return a cell as people read it: a label by its name."""
    if isinstance(cell, str):
        return str(names.get(cell))
    return f"{cell:,}" if isinstance(cell, int) else "" if cell is None else str(cell)


def in_order(findings: Sequence[Finding]) -> list[str]:
    """Return the checks that found nothing."""
    found = {finding.check for finding in findings}
    return [check for check in CHECKS if check not in found]
