"""A table with a row for each thing, which is no graph yet: what its columns are, and how to make facts of it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import polars as pl

from anyburl.base.errors import DataError, counted
from anyburl.base.files import first_bytes
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.data.dataset import Dataset
from anyburl.data.formats.delimited import first_fields, is_csv
from anyburl.data.options import choose_columns
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Report, Severity
from anyburl.tools.doctor.labels import LITERALS, literal_kind

COLUMN_CHECKS = {"columns": "what the columns of a table are, and how to make facts of it"}
FEWEST_COLUMNS, MOST_ROWS = 4, 200_000
KEY, SHARED, LISTS = 0.99, 0.5, 0.5  # shares: of different values in a key, in a relation; of cells with several values
SEPARATORS = (", ", "; ", "|")
VALUES = {"values: numbers": "number", "values: dates": "date"}


def is_row_per_thing(path: Path) -> bool:
    """Whether a file is a CSV table that has no columns for subject, relation and object."""
    if not is_csv(path):
        return False
    names = first_fields(path, first_bytes(path, "a table", DataError))
    try:
        choose_columns(names, None, path)
    except DataError:
        return len(names) >= FEWEST_COLUMNS
    return False


def examine_columns(path: Path) -> Report:
    """Report what the columns of a table are; the sizes are those of the graph that it would give."""
    started = time.monotonic()
    try:
        table = pl.read_csv(path, infer_schema=False, n_rows=MOST_ROWS)
    except UNREADABLE as error:
        raise DataError(f"{path}: cannot read this table ({' '.join(str(error).split())[:200]})") from error
    key = next((name for name in table.columns if _is_key(table[name])), table.columns[0])
    rows = [(name, *_describe(table[name], is_key=name == key)) for name in table.columns]
    relations = [name for name, is_what, *_ in rows if is_what == "a relation"]
    lists = {name: _separator(table[name]) for name, is_what, *_ in rows if is_what == "a list"}
    facts = table.unpivot(relations, index=key).drop_nulls() if relations else table.select(key).clear()
    examples = pl.DataFrame(rows, schema=["column", "is", "different", "such as", "what to do"], orient="row")
    words = counted(len(relations), "column is a relation", "columns are relations")
    sentence = f"{path.name} has a row for each {key}, not for each fact; {words}"
    findings = [Finding.of("columns", Severity.PROBLEM, sentence, len(rows), examples)]
    if relations or lists:
        values = {name: VALUES[is_what] for name, is_what, *_ in rows if is_what in VALUES}
        findings.append(_recipe(path, key, relations, values, lists))
    named = facts.rename({key: "subject", "variable": "relation", "value": "object"}) if relations else None
    dataset = Dataset.from_triples([("?", "?", "?")] if named is None else named, name=path.stem)
    nothing, seconds = np.zeros(len(dataset.train)), time.monotonic() - started
    return Report(path.stem, tuple(findings), nothing, None, seconds, DatasetFacts(dataset), COLUMN_CHECKS)


def _recipe(
    path: Path, key: str, relations: list[str], values: dict[str, str], lists: dict[str, str | None]
) -> Finding:
    """Return the lines of Python that turn the table into facts, and the command that learns from them."""
    kinds = "".join(f" --attribute '{name}={kind}'" for name, kind in values.items())
    lines = [
        "import polars as pl",
        f"table = pl.read_csv({str(path)!r}, infer_schema=False)",
        f"facts = table.unpivot({[*relations, *values]!r}, index={key!r})",
    ]
    for name, separator in lists.items():
        lines += [
            f"parts = table.unpivot([{name!r}], index={key!r}).with_columns(pl.col('value').str.split({separator!r}))",
            "facts = facts.vstack(parts.explode('value'))",
        ]
    lines += [
        "facts.drop_nulls().unique(maintain_order=True).write_csv('facts.csv')",
        f"then: anyburl learn facts.csv --columns '{key},variable,value'{kinds} --out runs/{path.stem}",
    ]
    examples = tuple((line,) for line in lines)
    return Finding("columns", Severity.NOTE, "this makes facts of its relations", len(lines), ("in Python",), examples)


def _is_key(values: pl.Series) -> bool:
    known = values.drop_nulls()
    return len(known) == len(values) and known.n_unique() >= KEY * len(known) and literal_kind(known) is None


def _describe(values: pl.Series, *, is_key: bool) -> tuple[str, int, str | None, str]:
    """Return what a column is, how many different values it has, one of them, and what to do with it."""
    known = values.drop_nulls()
    different = known.unique(maintain_order=True)
    first = None if known.is_empty() else str(known[0])[:60]
    if is_key:
        return "the subject", len(different), first, "the subject of all facts"
    if not len(known):
        return "empty", 0, None, "leave it out"
    separator = _separator(known)
    if separator is not None:
        return "a list", len(different), first, f"split it at {separator!r}: a fact for each part"
    kind = literal_kind(different)
    if kind is not None and len(different) > SHARED * min(len(known), 50):
        advice = LITERALS[kind][1].replace("these rows", "it").replace("'{}=", f"'{values.name}=")
        return f"values: {kind}", len(different), first, advice
    if len(different) <= SHARED * len(known):
        return "a relation", len(different), first, "a fact for each row"
    return "names", len(different), first, "hardly shared: leave it out, unless other columns name the same things"


def _separator(values: pl.Series) -> str | None:
    """Return what is between the parts of a column's cells, if many have several."""
    n_known = max(1, values.count())
    shares = {one: int(values.str.contains(one, literal=True).sum()) / n_known for one in SEPARATORS}
    return next((one for one in SEPARATORS if shares[one] >= LISTS), None)
