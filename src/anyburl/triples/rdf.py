"""RDF files (extra `rdf`): their formats, and their statements as parsed by Oxigraph."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from anyburl.errors import DataError, MissingExtraError
from anyburl.triples.lines import BZIP2, GZIP, ZSTD, read_blocks

FORMATS = {
    ".nt": "N_TRIPLES",
    ".ttl": "TURTLE",
    ".nq": "N_QUADS",
    ".trig": "TRIG",
    ".rdf": "RDF_XML",
    ".owl": "RDF_XML",
    ".jsonld": "JSON_LD",
    ".n3": "N3",
}
PACKED = ("", ".gz", ".zst", ".bz2")
RDF_SUFFIXES = tuple(kind + packed for kind in FORMATS for packed in PACKED)

BLOCK = 1 << 20  # bytes of decompressed text at a time


def is_rdf(path: Path) -> bool:
    """Whether the name of a file says that it holds RDF."""
    return path.name.lower().endswith(RDF_SUFFIXES)


def rdf_format(path: Path) -> str:
    """Return the format that the name of a file states, as `RdfFormat` calls it."""
    name = path.name.lower()
    return FORMATS[Path(name.removesuffix(next(packed for packed in PACKED[::-1] if name.endswith(packed)))).suffix]


def oxigraph(path: Path) -> Any:
    """Return the library that reads RDF."""
    try:
        import pyoxigraph
    except ImportError as error:
        raise MissingExtraError(f"{path}: reading RDF", "rdf") from error
    return pyoxigraph


@contextmanager
def open_statements(path: Path) -> Iterator[Any]:
    """Open the parser of a file: an iterator of quads, which knows the prefixes met so far.

    Wherever the file turns out to be wrong, the error says in which line.
    """
    library, kind = oxigraph(path), rdf_format(path)
    try:
        with path.open("rb") as file:
            start = file.read(4)
        packed = start.startswith((GZIP, ZSTD, BZIP2))
        given = {"input": _Stream(read_blocks(path, start, BLOCK))} if packed else {"path": path}
        yield library.parse(**given, format=getattr(library.RdfFormat, kind))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{place}: expected {kind.replace('_', '-')}, cannot read it: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file that a parser reads."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block = blocks, b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = next(self._blocks, b"")
        part, self._block = self._block[: len(buffer)], self._block[len(buffer) :]
        buffer[: len(part)] = part
        return len(part)
