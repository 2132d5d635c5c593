"""RDF files (extra `rdf`): their formats, and their statements as parsed by Oxigraph.

Writes triples as RDF, one statement per line: N-Triples, N-Quads, and Turtle and TriG with prefixes.

Readable names in RDF: literals of rdfs:label and the like, in the preferred language.
"""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from anyburl.base.errors import DataError, MissingExtraError
from anyburl.data.formats.delimited import BZIP2, GZIP, ZSTD, read_blocks
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import Gathered
from anyburl.data.terms import RDFS, SCHEMA, SKOS, own_label, rdf_term

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


PREFIXED = ("TURTLE", "TRIG")
WRITTEN = ("N_TRIPLES", "N_QUADS", *PREFIXED)
SUFFIXES = ".nt, .ttl, .nq or .trig, plain or with .gz or .zst"

_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*)?")
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*)")


class TermWriter:
    """Writes labels as terms, IRIs with a prefix where the format has prefixes and the IRI fits."""

    def __init__(self, kind: str, prefixes: Mapping[str, str]) -> None:
        usable = {prefix: iri for prefix, iri in prefixes.items() if _PREFIX.fullmatch(prefix) and _is_plain(iri)}
        self.prefixes = usable if kind in PREFIXED else {}
        self._by_length = sorted(self.prefixes.items(), key=lambda item: (-len(item[1]), item[0]))

    def term(self, label: str, place: str) -> str:
        """Return a label as a term at a place: subject, relation or object."""
        term = rdf_term(label, is_object=place == "object", is_relation=place == "relation")
        return self.shortened(term)

    def shortened(self, term: str) -> str:
        """Return a term with its longest prefix, if it is an IRI that has one."""
        for prefix, iri in self._by_length:
            if term.startswith(f"<{iri}") and _LOCAL.fullmatch(term, len(iri) + 1, len(term) - 1):
                return f"{prefix}:{term[len(iri) + 1 : -1]}"
        return term

    def terms(self, labels: pl.Series, place: str) -> pl.Series:
        """Return many labels as terms."""
        known = labels.unique().to_list()
        return labels.replace_strict(known, [self.term(label, place) for label in known], return_dtype=pl.String)

    def statements(self, triples: pl.DataFrame) -> pl.Series:
        """Return triples as statements, without the dot that ends them."""
        terms = pl.DataFrame({place: self.terms(triples[place], place) for place in COLUMNS})
        return terms.select(pl.concat_str(COLUMNS, separator=" ")).to_series()

    def statement(self, triple: Sequence[str]) -> str:
        """Return a triple as a statement, without the dot that ends it."""
        return " ".join(self.term(label, place) for label, place in zip(triple, COLUMNS, strict=True))

    def head(self) -> list[str]:
        """Return the lines that declare prefixes."""
        return [f"@prefix {prefix}: <{iri}> ." for prefix, iri in sorted(self.prefixes.items())]


def rdf_lines(triples: pl.DataFrame, path: Path, prefixes: Mapping[str, str] | None = None) -> pl.Series:
    """Return the lines of a file of RDF; its name says which kind."""
    kind = rdf_format(path)
    if kind not in WRITTEN or path.suffix.lower() == ".bz2":
        raise DataError(f"{path}: expected an RDF file that ends in {SUFFIXES}")
    writer = TermWriter(kind, prefixes or {})
    ended = writer.statements(triples) + " ."
    return pl.concat([pl.Series(writer.head(), dtype=pl.String), ended.rename("")])


def string_term(text: str) -> str:
    """Return some text as a literal."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return f'"{"".join(escapes.get(character, character) for character in text)}"'


def _is_plain(iri: str) -> bool:
    """Whether an IRI can stand between < and >."""
    return rdf_term(f"{iri}x", is_object=False) == f"<{iri}x>"


NAMING = {
    relation: place
    for place, relation in enumerate(
        (f"{RDFS}label", f"{SKOS}prefLabel", f"{SCHEMA}name", f"{SCHEMA.replace('https', 'http')}name")
    )
}
"""The relations that name things; of two names in the same language, the one of the earlier relation counts."""


def gather_name(gathered: Gathered, label: str, relation: str, literal: Any, language: str) -> None:
    """Keep a name if it is the best so far: in the language wanted, in none, in English, or in another one."""
    rank = _language_rank(literal.language, language.lower()) * len(NAMING) + NAMING[relation]
    name = " ".join(literal.value.split())
    if name and rank < gathered.name_ranks.get(label, 1 << 10):
        gathered.names[label], gathered.name_ranks[label] = name, rank


def _language_rank(language: str | None, wanted: str) -> int:
    if language == wanted:
        return 0
    if language is None:
        return 2
    if language.startswith(f"{wanted}-"):
        return 1
    return 3 if language.split("-")[0] == "en" else 4


def read_labels(path: Path, language: str = "en") -> Gathered:
    """Return the names and prefixes in a file of RDF."""
    gathered = Gathered()
    with open_statements(path) as statements:
        for quad in statements:
            relation = quad.predicate.value
            if relation in NAMING and hasattr(quad.object, "language"):
                subject = quad.subject
                label = subject.value if type(subject).__name__ == "NamedNode" else str(subject)
                gather_name(gathered, own_label(label), relation, quad.object, language)
        gathered.prefixes.update(statements.prefixes)
    return gathered
