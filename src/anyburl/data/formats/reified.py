"""Facts with times in RDF: statements about statements, reified (rdf:subject, rdf:predicate, rdf:object) or quoted.

ex:membership42 rdf:subject ex:Malta ; rdf:predicate ex:member_of ; rdf:object ex:EU ; ex:since "2004-05-01" .
<< ex:Malta ex:member_of ex:EU >> ex:since "2004-05-01" .
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.errors import DataError
from anyburl.data.formats.rdf import open_statements, oxigraph
from anyburl.data.options import COLUMNS, KNOWN, PARTS, RECOGNISED, Gathered, ReadOptions
from anyburl.data.vocabulary import Prefixes, own_labels

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TRIPLE_PARTS = {f"{RDF}subject": "subject", f"{RDF}predicate": "relation", f"{RDF}object": "object"}
REIFIES = f"{RDF}reifies"


def read_reified(path: Path, rows: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the facts of a file that statements give a time, `rows` at a time.

    Properties of times are those that `options.time` names, or those that end in a usual name: since, date, start.
    Statements without a time, and plain statements, are counted and left out.
    """
    library = oxigraph(path)
    part_of = _TimeProperties(options)
    facts: dict[str, dict[str, str]] = {}
    with open_statements(path) as statements:
        for quad in statements:
            predicate, object = quad.predicate.value, quad.object
            part = TRIPLE_PARTS.get(predicate) or part_of(predicate)
            if predicate == REIFIES and isinstance(object, library.Triple):
                terms = (object.subject, object.predicate, object.object)
                facts.setdefault(str(quad.subject), {}).update(zip(COLUMNS, map(_label, terms), strict=True))
            elif part is not None and (part in COLUMNS or isinstance(object, library.Literal)):
                facts.setdefault(str(quad.subject), {})[part] = _label(object) if part in COLUMNS else object.value
            else:
                gathered.left_out["plain statements"] += 1
        gathered.prefixes.update(statements.prefixes)
    dated = [fact for fact in facts.values() if all(part in fact for part in PARTS[:4])]
    gathered.left_out["statements without a time"] += sum(
        "object" in fact and "time" not in fact for fact in facts.values()
    )
    if not dated:
        raise DataError(
            f"{path}: expected statements with a time, reified (rdf:subject, rdf:predicate, rdf:object) or quoted "
            f"(<< s p o >>), got none; --time names the property of the time"
        )
    columns = PARTS if any("end" in fact for fact in dated) else PARTS[:4]
    for start in range(0, len(dated), rows):
        batch = dated[start : start + rows]
        frame = pl.DataFrame([[fact.get(part, "") for part in columns] for fact in batch], schema=columns, orient="row")
        yield frame.with_columns(own_labels(frame[name]) for name in COLUMNS)


class _TimeProperties:
    """Tells which part of a fact a property states: its time, its end, or none."""

    def __init__(self, options: ReadOptions) -> None:
        names = () if options.time in (None, (RECOGNISED,)) else options.time or ()
        prefixes = Prefixes(options.prefixes)
        self._named = {prefixes.expand(name): part for name, part in zip(names, PARTS[3:], strict=False)}

    def __call__(self, predicate: str) -> str | None:
        if self._named:
            return self._named.get(predicate)
        words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", re.split(r"[#/:]", predicate)[-1]).lower())
        return next((part for part in ("end", "time") if KNOWN[part] & {*words}), None)


def _label(term: Any) -> str:
    return str(term.value) if type(term).__name__ == "NamedNode" else str(term)
