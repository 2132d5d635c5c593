"""Readable names for labels: from a file of two columns, or from the labels in an RDF file."""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.errors import AmbiguousNameError, DataError, UnknownLabelError
from anyburl.base.files import check_regular
from anyburl.base.polars_unstable import numbered_lines
from anyburl.data.formats.rdf import is_rdf, read_labels
from anyburl.data.terms import RDF_TYPE, Prefixes
from anyburl.data.vocabulary import Vocabulary, similar_labels

BYTE_ORDER_MARK = "\ufeff"


class Names(Mapping[str, str]):
    """Names by label; `prefixes` shorten IRIs without a name, besides the well-known prefixes."""

    def __init__(self, names: Mapping[str, str] | None = None, prefixes: Mapping[str, str] | None = None) -> None:
        self._names = dict(names or {})
        self.prefixes = dict(prefixes or {})

    @cached_property
    def _shortening(self) -> Prefixes:
        return Prefixes(self.prefixes)

    def __getitem__(self, label: str) -> str:
        return self._names[label]

    def get(self, label: str, default: Any = None) -> Any:
        """Return the name of a label or, without one, `default`, or else the label, shortened if it is an IRI."""
        name = self._names.get(label, default)
        if name is None:
            return self._shortening.shorten(label) if ":" in label else label
        return name

    def series(self, labels: pl.Series) -> pl.Series:
        """Return the names of many labels."""
        known = labels.unique().to_list()
        return labels.replace_strict(known, [self.get(label) for label in known], return_dtype=pl.String)

    def label_of(self, text: str, known: pl.Series, kind: str) -> str:
        """Return the `known` label given by label, by prefixed or bracketed IRI, or by name in any case; else `text`.

        A name of several labels raises an error that lists them.
        """
        if _contains(known, text):
            return text
        for label in (self._shortening.expand(text), RDF_TYPE if text == "a" else text):
            if _contains(known, label):
                return label
        labels = [label for label in self._by_name.get(text.casefold(), ()) if _contains(known, label)]
        exact = [label for label in labels if self._names[label] == text]
        labels = exact if len(exact) == 1 else labels
        if len(labels) > 1:
            raise AmbiguousNameError(kind, text, labels)
        return labels[0] if labels else text

    def entity_id(self, text: str, vocabulary: Vocabulary) -> int:
        """Return the id of an entity given by label or name; if it is unknown, the error suggests similar names."""
        return self._id("entity", text, vocabulary.entities, vocabulary.entity_id)

    def relation_id(self, text: str, vocabulary: Vocabulary) -> int:
        """Return the id of a relation given by label or name; if it is unknown, the error suggests similar names."""
        return self._id("relation", text, vocabulary.relations, vocabulary.relation_id)

    def _id(self, kind: str, text: str, known: pl.Series, id_of: Callable[[str], int]) -> int:
        if not isinstance(text, str):
            raise DataError(f"expected the label of one {kind}, got {text!r}")
        try:
            return id_of(self.label_of(text, known, kind))
        except UnknownLabelError as error:
            if error.suggestions or not self:
                raise
            raise UnknownLabelError(kind, text, similar_labels(self.series(known), text, cutoff=0.6)) from error

    @cached_property
    def _by_name(self) -> dict[str, list[str]]:
        labels: dict[str, list[str]] = {}
        for label, name in self._names.items():
            labels.setdefault(name.casefold(), []).append(label)
        return labels

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __bool__(self) -> bool:
        """Whether there is anything to show besides labels and well-known prefixes."""
        return bool(self._names or self.prefixes)

    def among(self, *labels: pl.Series) -> Names:
        """Return the names of some labels only; the prefixes stay."""
        chosen = pl.concat([pl.Series(series, dtype=pl.String) for series in labels])
        named = pl.Series(list(self._names), dtype=pl.String)
        kept = named.filter(named.is_in(chosen.implode())).to_list()
        return Names({label: self._names[label] for label in kept}, self.prefixes)

    def __repr__(self) -> str:
        return f"Names({len(self)} names)"


def entity_name(label: str, names: Names) -> str:
    """Return the name of an entity, or its label if it has none."""
    return str(names.get(label))


def relation_name(label: str, names: Names) -> str:
    """Return the name of a relation; without one, the last word of a path such as /location/location/contains."""
    if label in names:
        return names[label]
    steps = [_last_word(step) for step in label.split("./")] if label.startswith("/") else [_last_word(label)]
    return ", ".join(dict.fromkeys(steps)).replace("_", " ").strip() or label


def _last_word(path: str) -> str:
    """Return what follows the last slash or number sign; all of the path if that would be empty."""
    for sign in ("#", "/"):
        before, _, after = path.rstrip(sign).rpartition(sign)
        if before and after:
            return after
    return path


def _contains(known: pl.Series, label: str) -> bool:
    row = bisect_left(known, label)
    return row < len(known) and known[row] == label


def read_names(path: str | os.PathLike[str]) -> Names:
    """Read lines of label, tab, name (and anything after another tab), plain or compressed with gzip or zstd; or the
    rdfs:label, skos:prefLabel or schema:name of everything in an RDF file.

    Blank lines and empty names are skipped; of several names for a label, the first counts.
    """
    path = Path(path)
    check_regular(path, "labels and names", DataError)
    if is_rdf(path):
        gathered = read_labels(path)
        return Names(gathered.names, gathered.prefixes)
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
    if not path.stat().st_size:
        return pl.DataFrame(schema={"number": pl.UInt32, "line": pl.String})
    try:
        lines = numbered_lines(path)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path}: expected UTF-8 text, plain, .gz or .zst") from error
    text = pl.col("line").str.strip_suffix("\r")
    first = pl.col("number") == 1
    return lines.with_columns(pl.when(first).then(text.str.strip_prefix(BYTE_ORDER_MARK)).otherwise(text).alias("line"))
