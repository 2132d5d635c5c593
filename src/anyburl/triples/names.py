"""Readable names for labels: from a file of two columns, or from the labels in an RDF file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.errors import DataError
from anyburl.polars_unstable import numbered_lines
from anyburl.triples.rdf import RDF_SUFFIXES, read_labels

BYTE_ORDER_MARK = "\ufeff"
MOST_SHOWN = 10


class Names(Mapping[str, str]):
    """Names by label; a label without a name stands for itself in `get`. `prefixes` are those of IRIs."""

    def __init__(self, names: Mapping[str, str] | None = None, prefixes: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self.prefixes = dict(prefixes or {})

    def __getitem__(self, label: str) -> str:
        return self._names[label]

    def get(self, label: str, default: Any = None) -> Any:
        """Return the name of a label or, if it has none, `default`, by default the label itself."""
        return self._names.get(label, label if default is None else default)

    def series(self, labels: pl.Series) -> pl.Series:
        """Return the names of many labels."""
        known = labels.unique().to_list()
        return labels.replace_strict(known, [self.get(label) for label in known], return_dtype=pl.String)

    def label_of(self, text: str, known: pl.Series, kind: str) -> str:
        """Return the label that someone means: `text` itself if it is among the `known` ones, or the one of that name.

        A name, in upper or lower case, that several labels have is refused with the list of them.
        """
        if not self._names or _contains(known, text):
            return text
        found = [label for label in self._by_name.get(text.casefold(), ()) if _contains(known, label)]
        exact = [label for label in found if self._names[label] == text]
        meant = exact if len(exact) == 1 else found
        if len(meant) > 1:
            shown = ", ".join(sorted(meant)[:MOST_SHOWN]) + (", ..." if len(meant) > MOST_SHOWN else "")
            raise DataError(f"the {kind} {text!r} is ambiguous; it may mean {shown}")
        return meant[0] if meant else text

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for label, name in self._names.items():
            found.setdefault(name.casefold(), []).append(label)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        return f"Names({len(self)} names)"


def _contains(known: pl.Series, label: str) -> bool:
    row = int(known.search_sorted(label))
    return row < len(known) and known[row] == label


def read_names(path: str | os.PathLike[str]) -> Names:
    """Read lines of label, tab, name (and anything after another tab), plain or compressed with gzip or zstd; or the
    rdfs:label of everything in an RDF file.

    Blank lines and empty names are skipped; of several names for a label, the first counts.
    """
    path = Path(path)
    if path.name.lower().endswith(RDF_SUFFIXES):
        return Names(read_labels(path))
    fields = _lines(path).filter(pl.col("line").str.strip_chars() != "")
    split = fields.with_columns(pl.col("line").str.split("\t").alias("fields"))
    wrong = split.filter((pl.col("fields").list.len() < 2) | (pl.col("fields").list.first() == ""))
    if wrong.height:
        number, line = wrong["number"][0], wrong["line"][0]
        shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
        raise DataError(f"{path}:{number}: expected a label, a tab and a name, got {shown}")
    labels = split["fields"].list.get(0).to_list()
    names = split["fields"].list.get(1).str.strip_chars().to_list() if split.height else []
    return Names({label: name for label, name in reversed(list(zip(labels, names, strict=True))) if name})


def _lines(path: Path) -> pl.DataFrame:
    """Return the numbered lines of a file of text."""
    if not path.is_file():
        got = "a folder" if path.is_dir() else "no such file"
        raise DataError(f"{path}: expected a file of labels and names, got {got}")
    if not path.stat().st_size:
        return pl.DataFrame(schema={"number": pl.UInt32, "line": pl.String})
    try:
        lines = numbered_lines(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: expected UTF-8 text, plain, .gz or .zst, and cannot read it") from error
    text = pl.col("line").str.strip_suffix("\r")
    first = pl.col("number") == 1
    return lines.with_columns(pl.when(first).then(text.str.strip_prefix(BYTE_ORDER_MARK)).otherwise(text).alias("line"))
