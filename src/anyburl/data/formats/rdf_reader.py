"""Turns RDF statements into triples of labels, treating literals, graphs and names as the options say.

Turns RDF numbers and dates into ranges: the values of each relation are cut at every tenth.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import polars as pl

from anyburl.base.errors import DataError
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.formats.rdf import NAMING, gather_name, open_statements, oxigraph, rdf_format
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.terms import OWN, XSD, Prefixes, own_label, own_labels

N_RANGES = 10  # at most, of a relation
AT_A_TIME = 1 << 18  # statements
RANGE = f"{OWN}range:"
"""How the datatype of a range starts; what follows is the relation, for 3 metres are not 3 kilograms."""

NUMBER, DATE = "number", "date"
_NUMBERS = (
    "integer decimal double float int long short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger unsignedInt unsignedLong unsignedShort unsignedByte"
)
_DATES = "date dateTime dateTimeStamp gYear gYearMonth"
KINDS = {**{XSD + name: NUMBER for name in _NUMBERS.split()}, **{XSD + name: DATE for name in _DATES.split()}}

_DATE = r"^(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d))?"
_SMALLEST = 1, 1, 1, 0, 0, 0
_RADIX = 0, 12, 31, 24, 60, 60
_COLUMNS = dict.fromkeys(("subject", "relation", "kind", "text"), pl.String)

Cut = tuple[float, str]
"""Where a range begins, as a number and in writing."""


class Values:
    """The numbers and dates of a file, which wait for their ranges until all of them are known."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, str]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, subject: str, relation: str, kind: str, text: str) -> None:
        """Keep one statement with a number or a date."""
        self._rows.append((subject, relation, kind, text))
        if len(self._rows) == AT_A_TIME:
            self._pack()

    def _pack(self) -> None:
        """Put rows into a frame, which takes a fraction of their memory."""
        self._frames.append(pl.DataFrame(self._rows, schema=_COLUMNS, orient="row"))
        self._rows.clear()

    def __bool__(self) -> bool:
        return bool(self._rows or self._frames)

    def triples(self, gathered: Gathered) -> pl.DataFrame:
        """Return the statements with ranges for objects. What no number can be made of is left out.

        A relation that an earlier file has values of keeps the ranges it had there.
        """
        self._pack()
        rows = pl.concat(self._frames).with_columns(value=_value())
        known = rows.filter(pl.col("value").is_finite())
        gathered.left_out += Counter({"literals": rows.height - known.height, "exact numbers and dates": known.height})
        parts = [_cut(group, gathered) for group in known.partition_by("relation", "kind", maintain_order=True)]
        return pl.concat([pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String)), *parts])


def _value() -> pl.Expr:
    """Return the number behind the text of a number or a date; months and days count as equally long."""
    parts = [pl.col("text").str.extract(_DATE, place + 1).cast(pl.Float64) for place in range(len(_RADIX))]
    date = parts[0]
    for part, smallest, radix in list(zip(parts, _SMALLEST, _RADIX, strict=True))[1:]:
        date = date * radix + part.fill_null(smallest) - smallest
    number = pl.col("text").str.strip_chars().cast(pl.Float64, strict=False)
    return pl.when(pl.col("kind") == DATE).then(date).otherwise(number)


def _cut(group: pl.DataFrame, gathered: Gathered) -> pl.DataFrame:
    relation, kind = group["relation"][0], group["kind"][0]
    cuts = gathered.cuts.get((relation, kind))
    if cuts is None:
        cuts = gathered.cuts[relation, kind] = _cuts(group.sort("value", "text"), kind)
    words = _words(cuts)
    labels = [f'"{text}"^^<{RANGE}{quote(relation, safe="")}>' for text in words]
    gathered.names.update(zip(labels, words, strict=True))
    starts = [start for start, _ in cuts]
    objects = pl.Series([labels[bisect_right(starts, value)] for value in group["value"]], dtype=pl.String)
    return group.select("subject", "relation", object=objects)


def _cuts(values: pl.DataFrame, kind: str) -> list[Cut]:
    """Return where ranges begin: at values that a tenth, two tenths and so on of all values lie below."""
    places = [values.height * number // N_RANGES for number in range(1, N_RANGES)]
    starts = {values["value"][place]: values["text"][place] for place in reversed(places)}
    if len(starts) > 1:
        starts.pop(values["value"][0], None)  # nothing lies below
    return [(start, _text(start) if kind == NUMBER else starts[start].strip()) for start in sorted(starts)]


def _words(cuts: Sequence[Cut]) -> list[str]:
    texts = [text for _, text in cuts]
    between = [f"[{start}, {end})" for start, end in pairwise(texts)]
    return [f"< {texts[0]}", *between, f">= {texts[-1]}"]


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


DEFAULT_GRAPH = "default"
"""How `ReadOptions.graphs` calls the graph without a name."""

LABELLED = ("N_TRIPLES", "N_QUADS")  # formats in which every blank node has a label
_UNNAMED = re.compile("[a-f][0-9a-f]{15,31}")  # what the parser makes up: a number without leading zeros


def read_rdf(path: Path, rows: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the statements of a file as labels, in order, `rows` at a time; numbers and dates in ranges come last.

    An IRI is its own label, a blank node is written as _:name, a literal as in N-Triples, quotes included. The IRIs
    that stand for other labels (see `rdf_terms`) are those labels again.
    """
    sorting = _Sorting(path, options, gathered)
    n_rows = 0
    with open_statements(path) as statements:
        wanted = sorting.chosen(statements)
        while sorting.add(islice(wanted, rows)):
            gathered.prefixes.update(statements.prefixes)
            frame = sorting.take()
            n_rows += frame.height
            if frame.height:
                yield frame
    if sorting.values:
        frame = sorting.values.triples(gathered)
        n_rows += frame.height
        yield frame
    if not n_rows:
        _refuse_empty(path, options, gathered)


def _refuse_empty(path: Path, options: ReadOptions, gathered: Gathered) -> NoReturn:
    if gathered.left_out["literals"] and options.literals == "skip":
        raise DataError(f"{path}: no triples besides literals, which are skipped unless you keep them")
    where = f" in {', '.join(options.graphs)}" if options.graphs else ""
    raise DataError(f"{path}: no triples{where}")


class _Sorting:
    """Sorts the statements of a file into triples, names, values and what is left out."""

    def __init__(self, path: Path, options: ReadOptions, gathered: Gathered) -> None:
        library = oxigraph(path)
        self._iri, self._blank, self._literal = library.NamedNode, library.BlankNode, library.Literal
        self._triple = library.Triple
        self._options, self._gathered = options, gathered
        self._labelled = rdf_format(path) in LABELLED
        self._is_n3 = rdf_format(path) == "N3"
        self._unnamed: dict[str, str] = {}
        self._columns: tuple[list[str], list[str], list[str]] = [], [], []
        self.values = Values()

    def chosen(self, statements: Iterator[Any]) -> Iterator[Any]:
        """Return the statements of the graphs wanted; what N3 only quotes is in graphs of its own and never is."""
        if self._is_n3:
            return (quad for quad in statements if str(quad.graph_name) == "DEFAULT")
        if not self._options.graphs:
            return statements
        prefixes = Prefixes(self._options.prefixes)
        names = {DEFAULT_GRAPH: "DEFAULT"}
        wanted = {names.get(graph) or _graph_text(prefixes.expand(graph)) for graph in self._options.graphs}
        return (quad for quad in statements if self._is_wanted(quad, wanted))

    def _is_wanted(self, quad: Any, wanted: set[str]) -> bool:
        if str(quad.graph_name) in wanted:
            return True
        self._gathered.left_out["statements of other graphs"] += 1
        return False

    def add(self, statements: Iterator[Any]) -> int:
        """Sort some statements; return how many there were."""
        subjects, relations, objects = self._columns
        iri, n_statements = self._iri, 0
        for quad in statements:
            n_statements += 1
            subject, object = quad.subject, quad.object
            label = subject.value if type(subject) is iri else self._label(subject)
            kind = type(object)
            if kind is not iri and not self._is_kept(label, quad.predicate.value, object):
                continue
            subjects.append(label)
            relations.append(quad.predicate.value)
            objects.append(object.value if kind is iri else self._label(object))
        return n_statements

    def take(self) -> pl.DataFrame:
        """Return the triples found since the last time."""
        frame = pl.DataFrame(dict(zip(COLUMNS, self._columns, strict=True)), schema=dict.fromkeys(COLUMNS, pl.String))
        for column in self._columns:
            column.clear()
        return frame.select(own_labels(series) for series in frame)

    def _label(self, term: Any) -> str:
        """Return the label of a term that is no IRI."""
        if type(term) is self._blank:
            return f"_:{term.value}" if self._labelled else self._blank_label(term.value)
        return str(term)

    def _blank_label(self, name: str) -> str:
        """Return the label of a blank node; where the file gives it no name, the parser makes one up at random."""
        if not _UNNAMED.fullmatch(name):
            return f"_:{name}"
        if name not in self._unnamed:
            self._gathered.n_unnamed += 1
            self._unnamed[name] = f"_:unnamed{self._gathered.n_unnamed}"
        return self._unnamed[name]

    def _is_kept(self, label: str, relation: str, object: Any) -> bool:
        """Return whether a statement, whose object is no IRI, becomes a triple; if not, see to what becomes of it."""
        if type(object) is self._literal:
            return self._is_kept_literal(label, relation, object)
        if type(object) is self._triple:
            self._gathered.left_out["statements about statements"] += 1
            return False
        return True

    def _is_kept_literal(self, label: str, relation: str, literal: Any) -> bool:
        names_something = relation in NAMING
        if names_something:
            gather_name(self._gathered, own_label(label), relation, literal, self._options.language)
        if self._options.literals == "keep":
            return True
        kind = KINDS.get(literal.datatype.value) if self._options.literals == "ranges" else None
        if kind is not None:
            self.values.add(own_label(label), own_label(relation), kind, literal.value)
        elif not names_something:
            self._gathered.left_out["literals"] += 1
        return False


def _graph_text(graph: str) -> str:
    return graph if graph.startswith("_:") else f"<{graph}>"
