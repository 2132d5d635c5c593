"""A graph behind a SPARQL endpoint, read in pages.

Relations and their numbers of triples are asked for first, and again at the end. Small relations share a page; a large
one is read in order, page by page. What comes is counted, and triples that come twice are noticed: as many distinct
triples as the server has counted are all of them. Anything else is an error, never a smaller graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import polars as pl

from anyburl.errors import DataError
from anyburl.triples.gathered import Gathered
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.addresses import Address
from anyburl.triples.remote.queries import GraphQueries, Part, parts_of
from anyburl.triples.remote.results import Row, label, select
from anyburl.triples.remote.statements import NAMES, Statements, all_triples


def read_endpoint(address: Address, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the triples of an endpoint, a page at a time; what they hold besides goes to `gathered`."""
    reader = EndpointReader(address, options)
    before = reader.counts()
    if not sum(n for _, n in before):
        place = " and ".join(options.graphs) or "its default graph; name others with --graph"
        raise DataError(f"{address.text}: no triples in {place}")
    statements = Statements(options, gathered)
    for part in reader.parts(before):
        for page in reader.pages(part):
            yield statements.triples(page)
    yield from statements.ranges()
    if reader.counts() != before:
        raise DataError(f"{address.text}: the graph changed while it was being read: try again, or read a copy of it")


@dataclass
class EndpointReader:
    """Asks one endpoint; `page_size` shrinks to what the server is willing to give at a time."""

    address: Address
    options: ReadOptions
    page_size: int = field(init=False)

    def __post_init__(self) -> None:
        self._queries = GraphQueries.of(self.options)
        self.page_size = self.options.page_size

    def counts(self) -> list[tuple[str, int]]:
        """Return how many triples each relation has, in the order of their names; for a query, one number."""
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

    def parts(self, counts: list[tuple[str, int]]) -> Iterator[Part]:
        """Yield what is to be read together."""
        if self.options.query is not None:
            return iter([Part((), counts[0][1])])
        return parts_of(counts, self.page_size)

    def pages(self, part: Part) -> Iterator[list[Row]]:
        """Yield all triples of a part."""
        if part.n_triples <= self.page_size:
            page = self._page(part, None)
            if len(page) == part.n_triples:
                yield page
                return
            self.page_size = max(1, min(self.page_size, len(page)))  # perhaps the server gives no more at a time
        seen = pl.Series(dtype=pl.UInt64)
        n_read = n_distinct = 0
        while n_read < part.n_triples:
            page = self._page(part, n_read)
            seen.append(all_triples(page).hash_rows())
            n_read += len(page)
            yield page
            # Pages that come again are noticed soon: each look is at twice as many triples, so looking costs little.
            if not page or n_read >= min(2 * n_distinct, part.n_triples):
                n_distinct = seen.n_unique()
                if n_distinct < n_read or not page:
                    break
        if n_distinct != part.n_triples:
            raise DataError(
                f"{self.address.shown}: the graph changed while it was being read, or its pages have no stable order: "
                f"expected {part.n_triples:,} triples of {part}, got {n_distinct:,}; try again, or read a copy of it"
            )

    def _page(self, part: Part, start: int | None) -> list[Row]:
        query = self._queries.page(part, self.page_size, start)
        return select(self.address, query, NAMES, timeout=self.options.timeout)
