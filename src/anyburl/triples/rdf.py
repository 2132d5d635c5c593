"""RDF files as triples (extra `rdf`): N-Triples, Turtle, N-Quads, TriG, RDF/XML; the parser is Oxigraph's."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any, cast

import polars as pl

from anyburl.errors import DataError, MissingExtraError
from anyburl.triples.frames import COLUMNS

FORMATS = {".nt": "N_TRIPLES", ".ttl": "TURTLE", ".nq": "N_QUADS", ".trig": "TRIG", ".rdf": "RDF_XML"}
RDF_SUFFIXES = tuple(kind + packed for kind in FORMATS for packed in ("", ".gz"))


def is_rdf(path: Path) -> bool:
    """Whether the name of a file says that it holds RDF."""
    return path.name.lower().endswith(RDF_SUFFIXES)


def read_rdf(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the statements of a file as labels, in order, so many at a time.

    An IRI is its own label, a blank node is written as _:name, a literal as in N-Triples, quotes included. Names of
    graphs are left out.
    """
    kind = FORMATS[Path(path.name.lower().removesuffix(".gz")).suffix]
    statements = _statements(path, kind)
    n_read = 0
    try:
        while batch := list(islice(statements, rows)):
            n_read += len(batch)
            yield pl.DataFrame(batch, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{place}: expected {kind.replace('_', '-')}, got what is not: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error
    if not n_read:
        raise DataError(f"{path}: there are no triples in it")


def _statements(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError(f"{path}: reading RDF", "rdf") from error
    packed = path.name.lower().endswith(".gz")
    with (gzip.open if packed else open)(path, "rb") as file:
        for quad in pyoxigraph.parse(cast(IO[bytes], file), format=getattr(pyoxigraph.RdfFormat, kind)):
            yield (
                _label(pyoxigraph, quad.subject),
                _label(pyoxigraph, quad.predicate),
                _label(pyoxigraph, quad.object),
            )


def _label(pyoxigraph: Any, term: Any) -> str:
    return str(term.value) if isinstance(term, pyoxigraph.NamedNode) else str(term)
