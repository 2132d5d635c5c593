"""Turns RDF statements into triples of labels, treating literals, graphs and names as the options say."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import polars as pl

from anyburl.errors import DataError
from anyburl.rdf_terms import own_label, own_labels
from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.prefixes import Prefixes
from anyburl.triples.ranges import KINDS, Values
from anyburl.triples.rdf import open_statements, oxigraph, rdf_format
from anyburl.triples.rdf_names import NAMING, gather_name
from anyburl.triples.read_options import ReadOptions

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
