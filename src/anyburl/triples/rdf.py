"""RDF files as triples (extra `rdf`): N-Triples, Turtle, N-Quads, TriG, RDF/XML; the parser is Oxigraph's."""

from __future__ import annotations

import gzip
import zlib
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


def read_rdf(path: Path) -> pl.DataFrame:
    """Return the statements of a file as labels, in order.

    An IRI is its own label, a blank node is written as _:name, a literal as in N-Triples, quotes included. Names of
    graphs are left out.
    """
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError(f"{path}: reading RDF", "rdf") from error
    packed = path.name.lower().endswith(".gz")
    kind = Path(path.name.lower().removesuffix(".gz")).suffix
    parts: tuple[list[str], list[str], list[str]] = ([], [], [])
    try:
        with (gzip.open if packed else open)(path, "rb") as file:
            for quad in pyoxigraph.parse(cast(IO[bytes], file), format=getattr(pyoxigraph.RdfFormat, FORMATS[kind])):
                for part, term in zip(parts, (quad.subject, quad.predicate, quad.object), strict=True):
                    part.append(_label(pyoxigraph, term))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{place}: expected {FORMATS[kind].replace('_', '-')}, got what is not: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error
    if not parts[0]:
        raise DataError(f"{path}: there are no triples in it")
    return pl.DataFrame(dict(zip(COLUMNS, parts, strict=True)), schema=dict.fromkeys(COLUMNS, pl.String))


def _label(pyoxigraph: Any, term: Any) -> str:
    return str(term.value) if isinstance(term, pyoxigraph.NamedNode) else str(term)
