"""Reads the graph behind a SPARQL endpoint in pages, and checks that it is complete.

Relations and their numbers of triples are queried first, and again at the end. Small relations share a page; a large
one is read in order, page by page. The distinct triples are counted: fewer or more than the server has counted are an
error, never a smaller graph. Triples in several graphs count once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import polars as pl

from anyburl.base.errors import DataError
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.formats.rdf import Values, keep_literal
from anyburl.data.options import PARTS, RECOGNISED, Gathered, ReadOptions
from anyburl.data.remote.addresses import Address
from anyburl.data.remote.http import LiteralTerm, Row, is_literal, label, select
from anyburl.data.terms import IRI, Prefixes, own_labels

TRIPLE = "?s ?p ?o"
DEFAULT_GRAPH = "default"
PROLOGUE = re.compile(r"(?:\s+|#[^\n]*\n|(?:PREFIX\s+[^\s<]*\s*|BASE\s*)<[^>]*>)*", re.IGNORECASE)
NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
MOST_RELATIONS = 500  # in one query


@dataclass(frozen=True)
class QueryPart:
    """Triples that are read together: those of some relations, or all results of a query."""

    relations: tuple[str, ...]
    n_triples: int

    def __str__(self) -> str:
        return self.relations[0] if len(self.relations) == 1 else f"{len(self.relations) or 'all'} relations"


@dataclass(frozen=True)
class GraphQueries:
    """The queries that read one graph: `pattern` binds ?s ?p ?o, `prologue` has prefixes, `source` names graphs.

    `variables` are those three, and those of times if a query has them.
    """

    pattern: str = f"{TRIPLE} ."
    prologue: str = ""
    source: str = ""
    variables: str = TRIPLE

    @classmethod
    def of(cls, options: ReadOptions) -> Self:
        """Return the queries that the options describe."""
        graphs = [Prefixes(options.prefixes).expand(graph) for graph in options.graphs]
        source = "".join(f"FROM <{graph}>\n" for graph in _named(graphs))
        if options.query is None:
            return cls(source=source)
        prologue, query = _split(options.query)
        variables = " ".join(f"?{name}" for name in row_names(options))
        return cls(f"{{\n{query}\n}}", prologue, source, variables)

    def count(self, by: str) -> str:
        """Return the query for the numbers ?n of triples, by ?p or altogether."""
        group = f"GROUP BY {by}\n" if by else ""
        distinct = f"SELECT DISTINCT {self.variables} WHERE {{ {self.pattern} }}"
        return f"{self.prologue}SELECT {by} (COUNT(*) AS ?n)\n{self.source}WHERE {{ {{ {distinct} }} }}\n{group}"

    def page(self, part: QueryPart, size: int, start: int | None) -> str:
        """Return the query for a page of triples; without a `start`, their order does not matter."""
        order = "" if start is None else f"ORDER BY {self.variables}\nOFFSET {start}\n"
        chosen = f"VALUES ?p {{ {' '.join(map(_iri, part.relations))} }} " if part.relations else ""
        where = f"WHERE {{ {chosen}{self.pattern} }}"
        return f"{self.prologue}SELECT DISTINCT {self.variables}\n{self.source}{where}\n{order}LIMIT {size}\n"


def group_relations(counts: Sequence[tuple[str, int]], page_size: int) -> Iterator[QueryPart]:
    """Group relations whose triples fit one page."""
    together: list[str] = []
    n_triples = 0
    for relation, n in counts:
        if together and (n_triples + n > page_size or len(together) == MOST_RELATIONS):
            yield QueryPart(tuple(together), n_triples)
            together, n_triples = [], 0
        together.append(relation)
        n_triples += n
    if together:
        yield QueryPart(tuple(together), n_triples)


def _named(graphs: Sequence[str]) -> Sequence[str]:
    """Return the named graphs to read, none for the default graph."""
    if [*graphs] == [DEFAULT_GRAPH]:
        return ()
    for graph in graphs:
        if graph == DEFAULT_GRAPH:
            raise DataError("an endpoint returns its default graph or named ones, not both: use --query for both")
        if not IRI.fullmatch(graph):
            raise DataError(f"expected the IRI of a named graph, got {graph!r}")
    return graphs


def _split(query: str) -> tuple[str, str]:
    """Return the prefixes of a query, and the rest, which can then become a subquery."""
    match = PROLOGUE.match(query)
    end = match.end() if match else 0
    prologue, rest = query[:end].strip(), query[end:]
    if not re.match(r"SELECT\b", rest, re.IGNORECASE):
        raise DataError(f"expected a SELECT query with ?s, ?p and ?o, got {rest[:60]!r}")
    return f"{prologue}\n" if prologue else "", rest


def _iri(relation: str) -> str:
    if NOT_IN_IRI.search(relation):
        raise DataError(f"expected relations that are IRIs, got {relation!r}")
    return f"<{relation}>"


NAMES = ("s", "p", "o")


def row_names(options: ReadOptions) -> tuple[str, ...]:
    """Return the variables of a row: those of the triple and, where facts have times, those that `time` names."""
    if not options.has_times:
        return NAMES
    times = options.time or ()
    if options.query is None:
        raise DataError("times of an endpoint are variables of a query: pass --query 'SELECT ?s ?p ?o ?time ...'")
    return (*NAMES, *(("time",) if times == (RECOGNISED,) else (name.removeprefix("?") for name in times)))


def all_triples(rows: Iterable[Row], names: Sequence[str] = NAMES) -> pl.DataFrame:
    """Return all rows as labels, times as their values."""
    labels = [
        (*(label(row[name]) for name in names[:3]), *(row[name]["value"] if name in row else "" for name in names[3:]))
        for row in rows
    ]
    return pl.DataFrame(labels, schema=dict.fromkeys(PARTS[: len(names)], pl.String), orient="row")


class Statements:
    """Turns rows into triples, names and values, and counts those that are left out, like RDF files."""

    def __init__(self, options: ReadOptions, gathered: Gathered) -> None:
        self._options, self._gathered = options, gathered
        self._names = row_names(options)
        self._values = Values(options)

    def triples(self, rows: Sequence[Row]) -> pl.DataFrame:
        """Return rows as labels; IRIs made of other labels become those labels again."""
        kept = (row for row in rows if not is_literal(row["o"]) or self._is_kept(row))
        frame = all_triples(kept, self._names)
        return frame.with_columns(own_labels(frame[name]) for name in COLUMNS)

    def finish(self) -> Iterator[pl.DataFrame]:
        """Pass on the values, or yield the triples of numbers and dates, once all of them are known."""
        return self._values.finish(self._gathered)

    def _is_kept(self, row: Row) -> bool:
        literal = LiteralTerm.of(row["o"])
        subject, relation = label(row["s"]), label(row["p"])
        return keep_literal(subject, relation, literal, literal.datatype, self._options, self._gathered, self._values)


def read_endpoint(address: Address, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the triples of an endpoint, a page at a time; names and counts go to `gathered`."""
    reader = EndpointReader(address, options)
    before = reader.counts()
    if not sum(n for _, n in before):
        graphs = " and ".join(options.graphs) or "its default graph; name others with --graph"
        raise DataError(f"{address.text}: no triples in {graphs}")
    statements = Statements(options, gathered)
    for part in reader.parts(before):
        for page in reader.pages(part):
            yield statements.triples(page)
    yield from statements.finish()
    if reader.counts() != before:
        raise DataError(f"{address.text}: the graph changed while it was being read: try again, or read a copy of it")


@dataclass
class EndpointReader:
    """Queries one endpoint; `page_size` shrinks to the size of pages that the server returns."""

    address: Address
    options: ReadOptions
    page_size: int = field(init=False)

    def __post_init__(self) -> None:
        self._queries, self._names = GraphQueries.of(self.options), row_names(self.options)
        self.page_size = self.options.page_size

    def counts(self) -> list[tuple[str, int]]:
        """Return how many triples each relation has, sorted by name; for a query, one number."""
        is_query = self.options.query is not None
        query = self._queries.count("" if is_query else "?p")
        rows = select(self.address, query, ("n",) if is_query else ("p", "n"), timeout=self.options.timeout)
        try:
            counts = sorted((label(row["p"]) if "p" in row else "", int(row["n"]["value"])) for row in rows)
            if any(n < 0 for _, n in counts):
                raise ValueError(f"got {min(n for _, n in counts)}")
        except ValueError as error:
            raise DataError(f"{self.address.shown}: expected numbers of triples ({error})") from error
        return counts

    def parts(self, counts: list[tuple[str, int]]) -> Iterator[QueryPart]:
        """Yield the parts to be read."""
        if self.options.query is not None:
            return iter([QueryPart((), counts[0][1])])
        return group_relations(counts, self.page_size)

    def pages(self, part: QueryPart) -> Iterator[list[Row]]:
        """Yield all triples of a part."""
        if part.n_triples <= self.page_size:
            page = self._page(part, None)
            if len(page) == part.n_triples:
                yield page
                return
            self.page_size = max(1, min(self.page_size, len(page)))  # the server may limit pages
        seen = pl.Series(dtype=pl.UInt64)
        n_read = n_distinct = 0
        while n_read < part.n_triples:
            page = self._page(part, n_read)
            seen.append(all_triples(page, self._names).hash_rows())
            n_read += len(page)
            yield page
            # Count distinct triples whenever their number has doubled: it costs little and detects repeated pages.
            if not page or n_read >= min(2 * n_distinct, part.n_triples):
                n_distinct = seen.n_unique()
                if n_distinct < n_read or not page:
                    break
        if n_distinct != part.n_triples:
            raise DataError(
                f"{self.address.shown}: the graph changed while it was being read, or its pages have no stable order: "
                f"expected {part.n_triples:,} triples of {part}, got {n_distinct:,}; try again, or read a copy of it"
            )

    def _page(self, part: QueryPart, start: int | None) -> list[Row]:
        query = self._queries.page(part, self.page_size, start)
        required = self._names[: PARTS.index("end")]  # a fact without an end goes on
        return select(self.address, query, required, timeout=self.options.timeout)
