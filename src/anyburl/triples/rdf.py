"""RDF files (extra `rdf`): their formats, and their statements as parsed by Oxigraph."""

from __future__ import annotations

import io
import re
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

# The parser of RDF/XML takes UTF-8 only, and finds entities by these bytes wherever in a file they are.
DECLARATION = b"<!ENTITY"
MOST_IN_ENTITY = 256
ENTITY = re.compile(
    rb'<!ENTITY\s+[^\s%%&;"<>]+\s+"(?:[^"&<]|&(?:#[0-9]+|#x[0-9A-Fa-f]+|amp|lt|gt|quot|apos);){0,%d}"\s*>'
    % MOST_IN_ENTITY
)
MOST_EXPANDED = 1 << 24  # bytes in one piece of text that may refer to entities
MOST_SHOWN = 60  # bytes of a declaration


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
        if packed or kind == "RDF_XML":
            blocks = read_blocks(path, start, BLOCK, whole_lines=False)
            given: dict[str, Any] = {"input": _Stream(_without_bombs(path, blocks) if kind == "RDF_XML" else blocks)}
        else:
            given = {"path": path}
        yield library.parse(**given, format=getattr(library.RdfFormat, kind))
    except SyntaxError as error:
        place = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{place}: expected {kind.replace('_', '-')}, cannot read it: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error


def _without_bombs(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on the text of RDF/XML; refuse entities that would make it much longer, before the parser sees them.

    An entity made of other entities multiplies: ten of them take more memory than there is. Short ones that stand for
    plain text, as OWL files have them for namespaces, are kept.
    """
    first = b""
    for block in blocks:
        first += block
        if len(first) >= BLOCK:
            break
    else:
        blocks = iter(())
    _check_entities(path, first)
    has_entities = DECLARATION in first
    if first:
        yield first
    tail, n_in_piece = first, 0
    for block in blocks:
        overlap = tail[1 - len(DECLARATION) :]
        if DECLARATION in overlap + block:
            raise DataError(
                f"{path}: expected the declarations of XML entities in the first {BLOCK:,} bytes, got later ones"
            )
        n_in_piece = len(block) - block.rfind(b"<") if b"<" in block else n_in_piece + len(block)
        if has_entities and n_in_piece > MOST_EXPANDED:
            raise DataError(f"{path}: expected at most {MOST_EXPANDED:,} bytes of text in one piece with XML entities")
        yield block
        tail = overlap + block


def _check_entities(path: Path, text: bytes) -> None:
    """Refuse entities that are declared with anything but a short plain text."""
    start = text.find(DECLARATION)
    while start >= 0:
        if not ENTITY.match(text, start):
            line = text.count(b"\n", 0, start) + 1
            shown = text[start : start + MOST_SHOWN].decode(errors="replace")
            raise DataError(
                f"{path}:{line}: expected XML entities that stand for at most {MOST_IN_ENTITY} bytes of plain text in "
                f"double quotes, without other entities, got {shown!r}: such a file may take more memory than there is"
            )
        start = text.find(DECLARATION, start + 1)


class _Stream(io.RawIOBase):
    """Blocks of bytes as a file that a parser reads."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block = blocks, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._block:
            self._block = memoryview(next(self._blocks, b""))
        part, self._block = (
            self._block[: len(buffer)],
            self._block[len(buffer) :],
        )  # views: the parser asks for a little
        buffer[: len(part)] = part
        return len(part)
