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


RDFS_LABEL = "http://www.w3.org/2000/01/rdf-schema#label"
PREFERRED = (None, "en")  # languages


def is_rdf(path: Path) -> bool:
    """Whether the name of a file says that it holds RDF."""
    return path.name.lower().endswith(RDF_SUFFIXES)


def read_rdf(path: Path, rows: int) -> Iterator[pl.DataFrame]:
    """Yield the statements of a file as labels, in order, `rows` at a time.

    An IRI is its own label, a blank node is written as _:name, a literal as in N-Triples, quotes included. Names of
    graphs are left out.
    """
    kind = _kind(path)
    statements = _statements(path, kind)
    n_read = 0
    try:
        while batch := list(islice(statements, rows)):
            n_read += len(batch)
            yield pl.DataFrame(batch, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{place}: expected {kind.replace('_', '-')}, cannot read it: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error
    if not n_read:
        raise DataError(f"{path}: there are no triples in it")


def read_labels(path: Path) -> dict[str, str]:
    """Return the rdfs:label of everything in a file that has one, in English or in no language before others."""
    labels: dict[str, str] = {}
    for subject, predicate, object in _quads(path, _kind(path)):
        if predicate.value == RDFS_LABEL and hasattr(object, "language"):
            name = str(subject.value) if hasattr(subject, "value") else str(subject)
            if name not in labels or object.language in PREFERRED:
                labels[name] = str(object.value)
    return labels


def _kind(path: Path) -> str:
    return FORMATS[Path(path.name.lower().removesuffix(".gz")).suffix]


def _statements(path: Path, kind: str) -> Iterator[tuple[str, str, str]]:
    for terms in _quads(path, kind):
        subject, predicate, object = (str(term.value) if _is_iri(term) else str(term) for term in terms)
        yield subject, predicate, object


def _quads(path: Path, kind: str) -> Iterator[tuple[Any, Any, Any]]:
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError(f"{path}: reading RDF", "rdf") from error
    packed = path.name.lower().endswith(".gz")
    with (gzip.open if packed else open)(path, "rb") as file:
        for quad in pyoxigraph.parse(cast(IO[bytes], file), format=getattr(pyoxigraph.RdfFormat, kind)):
            yield quad.subject, quad.predicate, quad.object


def _is_iri(term: Any) -> bool:
    return type(term).__name__ == "NamedNode"
