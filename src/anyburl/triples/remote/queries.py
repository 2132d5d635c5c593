"""The queries sent to an endpoint: triple counts, and pages of triples. Triples in several graphs count once."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

from anyburl.errors import DataError
from anyburl.rdf_terms import IRI
from anyburl.triples.prefixes import Prefixes
from anyburl.triples.read_options import ReadOptions

TRIPLE = "?s ?p ?o"
DEFAULT_GRAPH = "default"
PROLOGUE = re.compile(r"(?:\s+|#[^\n]*\n|(?:PREFIX\s+[^\s<]*\s*|BASE\s*)<[^>]*>)*", re.IGNORECASE)
NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')
MOST_RELATIONS = 500  # in one query


@dataclass(frozen=True)
class Part:
    """Triples that are read together: those of some relations, or all that a query gives."""

    relations: tuple[str, ...]
    n_triples: int

    def __str__(self) -> str:
        return self.relations[0] if len(self.relations) == 1 else f"{len(self.relations) or 'all'} relations"


@dataclass(frozen=True)
class GraphQueries:
    """The queries that read one graph: `pattern` gives ?s ?p ?o, `prologue` its prefixes, `source` the graphs."""

    pattern: str = f"{TRIPLE} ."
    prologue: str = ""
    source: str = ""

    @classmethod
    def of(cls, options: ReadOptions) -> Self:
        """Return the queries for what the options ask for."""
        graphs = [Prefixes(options.prefixes).expand(graph) for graph in options.graphs]
        source = "".join(f"FROM <{graph}>\n" for graph in _named(graphs))
        if options.query is None:
            return cls(source=source)
        prologue, query = _split(options.query)
        return cls(f"{{\n{query}\n}}", prologue, source)

    def count(self, by: str) -> str:
        """Return the query for the numbers ?n of triples, by ?p or altogether."""
        group = f"GROUP BY {by}\n" if by else ""
        distinct = f"SELECT DISTINCT {TRIPLE} WHERE {{ {self.pattern} }}"
        return f"{self.prologue}SELECT {by} (COUNT(*) AS ?n)\n{self.source}WHERE {{ {{ {distinct} }} }}\n{group}"

    def page(self, part: Part, size: int, start: int | None) -> str:
        """Return the query for a page of triples; without a `start`, their order does not matter."""
        order = "" if start is None else f"ORDER BY {TRIPLE}\nOFFSET {start}\n"
        chosen = f"VALUES ?p {{ {' '.join(map(_iri, part.relations))} }} " if part.relations else ""
        where = f"WHERE {{ {chosen}{self.pattern} }}"
        return f"{self.prologue}SELECT DISTINCT {TRIPLE}\n{self.source}{where}\n{order}LIMIT {size}\n"


def parts_of(counts: Sequence[tuple[str, int]], page_size: int) -> Iterator[Part]:
    """Put relations together as long as their triples fit one page."""
    together: list[str] = []
    n_triples = 0
    for relation, n in counts:
        if together and (n_triples + n > page_size or len(together) == MOST_RELATIONS):
            yield Part(tuple(together), n_triples)
            together, n_triples = [], 0
        together.append(relation)
        n_triples += n
    if together:
        yield Part(tuple(together), n_triples)


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
    """Return the prefixes of a query, and the rest, which can then stand inside another query."""
    found = PROLOGUE.match(query)
    end = found.end() if found else 0
    prologue, rest = query[:end].strip(), query[end:]
    if not re.match(r"SELECT\b", rest, re.IGNORECASE):
        raise DataError(f"expected a SELECT query with ?s, ?p and ?o, got {rest[:60]!r}")
    return f"{prologue}\n" if prologue else "", rest


def _iri(relation: str) -> str:
    if NOT_IN_IRI.search(relation):
        raise DataError(f"expected relations that are IRIs, got {relation!r}")
    return f"<{relation}>"
