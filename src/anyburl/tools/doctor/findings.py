"""`Report` and its findings: each a sentence, a count and examples in columns, for the terminal and as an HTML page.

`DatasetFacts` holds the facts of a data set in the form that checks use. The page has no scripts or fonts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import DataError
from anyburl.base.writing import replace_text
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.names import Names
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.reasoning.explanation.render import STYLE
from anyburl.tools.options import CHECKS, check_names

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


def share_text(part: int, whole: int) -> str:
    """Return a share in words: 12.3 %."""
    return f"{100 * part / whole:.1f} %" if whole else "0 %"


Triples = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class DatasetFacts:
    """A data set, with what several checks need, made on first use."""

    dataset: Dataset

    @property
    def n_relations(self) -> int:
        return self.dataset.vocabulary.n_relations

    @property
    def n_entities(self) -> int:
        return self.dataset.vocabulary.n_entities

    @property
    def train(self) -> Triples:
        return self.dataset.train.triples

    @cached_property
    def every(self) -> Triples:
        """The facts of all splits; one that several splits state is there as often."""
        return np.concatenate([self.dataset.split(split).triples for split in SPLITS])

    @cached_property
    def graph(self) -> GraphArrays:
        """The graph of train."""
        return graph_of(self.dataset.train)

    def labels(self, triples: Triples) -> pl.DataFrame:
        """Return triples as people read them: subject, relation, object."""
        return self.dataset.vocabulary.decode_triples(triples)

    def relation_labels(self, relations: NDArray[np.int32] | NDArray[np.int64]) -> pl.Series:
        """Return the labels of relations."""
        return self.dataset.vocabulary.relations.gather(relations)


def pair_keys(triples: Triples, n_entities: int, *, back: bool = False) -> NDArray[np.int64]:
    """Return one number for the subject and object of each triple, or for the object and subject."""
    first, second = (2, 0) if back else (0, 2)
    return triples[:, first].astype(np.int64) * n_entities + triples[:, second]


def questions_of(triples: Triples, n_relations: int, *, back: bool = False) -> NDArray[np.int64]:
    """Return one number for the question (subject, relation, ?) of each triple, or for (?, relation, object)."""
    return triples[:, 2 if back else 0].astype(np.int64) * n_relations + triples[:, 1]


STYLES = {Severity.PROBLEM: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}


Checks = Mapping[str, str]
"""The checks of an examination, by name, and what they look for."""


def to_group(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names, checks: Checks) -> Group:
    """Return the findings one below the other, and what was found to be in order."""
    return Group(*_parts(name, sizes, findings, names, checks))


def _parts(
    name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names, checks: Checks
) -> Iterator[RenderableType]:
    yield Text(f"{name}: {sizes_text(sizes)}", "bold")
    for finding in findings:
        yield Text("")
        yield Text.assemble(
            (f"{finding.severity}  ", STYLES[finding.severity]), (finding.check, "bold"), f"  {finding.sentence}"
        )
        if finding.examples:
            yield Padding(_table(finding, names), (0, 0, 0, 2), expand=False)
    if rest := in_order(findings, checks):
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


def in_order(findings: Sequence[Finding], checks: Checks) -> list[str]:
    """Return the checks that found nothing."""
    with_findings = {finding.check for finding in findings}
    return [check for check in checks if check not in with_findings]


TABLES = """
.anyburl .scroll { overflow-x: auto; }
.anyburl table { border-collapse: collapse; font-size: 13.5px; margin-top: 10px; }
.anyburl th, .anyburl td { text-align: left; vertical-align: top; padding: 3px 14px 3px 0; overflow-wrap: anywhere; }
.anyburl th { color: var(--dim); font-weight: 500; border-bottom: 1px solid var(--edge); }
.anyburl td.number { text-align: right; overflow-wrap: normal; }
.anyburl .problem h2 b { color: var(--lack); }
.anyburl .warning h2 b { color: var(--claim); }
.anyburl .note h2 b { color: var(--dim); }
"""


def report_html(name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names, checks: Checks) -> str:
    """Return a whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(name)}</title><style>body {{ margin: 0; }}</style></head>\n"
        f"<body>{report_fragment(name, sizes, findings, names, checks)}</body></html>\n"
    )


def report_fragment(
    name: str, sizes: Mapping[str, int], findings: Sequence[Finding], names: Names, checks: Checks
) -> str:
    """Return the findings as one element, with its style: for pages and notebooks."""
    rest, sections = in_order(findings, checks), "".join(_finding(finding, names, checks) for finding in findings)
    quiet = f"<p>nothing found by: {escape(', '.join(rest))}</p>" if rest else ""
    return (
        f'<div class="anyburl"><style>{STYLE}{TABLES}</style><h1>{escape(name)}</h1>'
        f"<p>{escape(sizes_text(sizes))}</p>\n{sections}{quiet}</div>"
    )


def _finding(finding: Finding, names: Names, checks: Checks) -> str:
    return (
        f'<section class="{finding.severity}"><h2><b>{finding.check}</b>{escape(finding.sentence)}</h2>'
        f"<p>{finding.severity}: {escape(checks[finding.check])}</p>"
        f"{_html_table(finding, names) if finding.examples else ''}</section>\n"
    )


def _html_table(finding: Finding, names: Names) -> str:
    headings = "".join(f"<th>{escape(column)}</th>" for column in finding.columns)
    rows = "".join(f"<tr>{''.join(_cell(cell, names) for cell in row)}</tr>" for row in finding.examples)
    return f'<div class="scroll"><table><thead><tr>{headings}</tr></thead><tbody>{rows}</tbody></table></div>'


def _cell(cell: str | int | float | None, names: Names) -> str:
    kind = ' class="number"' if isinstance(cell, int | float) else ""
    return f"<td{kind}>{escape(cell_text(cell, names))}</td>"


@dataclass(frozen=True)
class Report:
    """The findings about a data set, in the order of the checks; shown as tables in terminals and notebooks.

    `suspicion` has a number for each row of the train split: the logarithm of wrong : right.
    """

    name: str
    findings: tuple[Finding, ...]
    suspicion: NDArray[np.float64] = field(repr=False)
    n_rules: int | None  # that facts were judged by; None without rules
    seconds: float
    facts: DatasetFacts = field(repr=False)
    every_check: Checks = field(default_factory=lambda: CHECKS, repr=False)
    n_facts: Mapping[str, int] | None = None  # of each split, where a fact may be stated at several times
    every_suspect: Callable[[], pl.DataFrame] | None = field(default=None, repr=False)

    def failed(self, checks: Iterable[str]) -> tuple[str, ...]:
        """Return which of these checks found a problem or gave a warning."""
        wrong = {finding.check for finding in self.findings if finding.severity != Severity.NOTE}
        return tuple(check for check in check_names(checks) if check in wrong)

    @property
    def checks(self) -> Checks:
        """The checks that could find something: without values, none is about them."""
        has_values = not self.facts.dataset.attributes.empty
        return {name: about for name, about in self.every_check.items() if has_values or name != "values"}

    def suspects(self, top: int | None = None) -> pl.DataFrame:
        """Return facts of train, the most suspicious first: subject, relation, object, suspicion."""
        rows = np.argsort(-self.suspicion, kind="stable")[:top]
        return self.facts.labels(self.facts.train[rows]).with_columns(pl.Series("suspicion", self.suspicion[rows]))

    def all_suspects(self) -> pl.DataFrame:
        """Return the facts that are listed as suspects, all of them and with the reasons, the most suspicious first."""
        if self.every_suspect is None:
            raise DataError("facts with times have no suspects")
        return self.every_suspect()

    @property
    def sizes(self) -> dict[str, int]:
        """How many facts each split has, and how many entities and relations there are."""
        counts = self.n_facts or {split: len(self.facts.dataset.split(split)) for split in SPLITS}
        sizes = {**counts, "entities": self.facts.n_entities, "relations": self.facts.n_relations}
        n_values = self.facts.dataset.attributes.n_values
        return {**sizes, "values": n_values} if n_values else sizes

    @property
    def _names(self) -> Names:
        return self.facts.dataset.names

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "data": self.name,
            **self.sizes,
            "rules": self.n_rules,
            "seconds": round(self.seconds, 3),
            "findings": [finding.to_json() for finding in self.findings],
        }

    def write_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report as a self-contained page."""
        replace_text(Path(path), report_html(self.name, self.sizes, self.findings, self._names, self.checks))

    def __rich__(self) -> Group:
        return to_group(self.name, self.sizes, self.findings, self._names, self.checks)

    def _repr_html_(self) -> str:
        return report_fragment(self.name, self.sizes, self.findings, self._names, self.checks)
