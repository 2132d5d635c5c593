"""`Report`: what an examination found."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Group

from anyburl.doctor import page, render
from anyburl.doctor.facts import Facts
from anyburl.doctor.findings import Finding, Severity
from anyburl.doctor.options import check_names
from anyburl.triples.dataset import SPLITS
from anyburl.triples.names import Names
from anyburl.writing import replace_text


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
    facts: Facts = field(repr=False)

    def failed(self, checks: Iterable[str]) -> tuple[str, ...]:
        """Return which of these checks found a problem or gave a warning."""
        wrong = {finding.check for finding in self.findings if finding.severity != Severity.NOTE}
        return tuple(check for check in check_names(checks) if check in wrong)

    def suspects(self, top: int | None = None) -> pl.DataFrame:
        """Return facts of train, the most suspicious first: subject, relation, object, suspicion."""
        rows = np.argsort(-self.suspicion, kind="stable")[:top]
        return self.facts.labels(self.facts.train[rows]).with_columns(pl.Series("suspicion", self.suspicion[rows]))

    @property
    def sizes(self) -> dict[str, int]:
        """How many facts each split has, and how many entities and relations there are."""
        counts = {split: len(self.facts.dataset.split(split)) for split in SPLITS}
        return {**counts, "entities": self.facts.n_entities, "relations": self.facts.n_relations}

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
        replace_text(Path(path), page.to_html(self.name, self.sizes, self.findings, self._names))

    def __rich__(self) -> Group:
        return render.to_group(self.name, self.sizes, self.findings, self._names)

    def _repr_html_(self) -> str:
        return page.to_fragment(self.name, self.sizes, self.findings, self._names)
