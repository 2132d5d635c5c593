"""RDF files (extra `rdf`): Oxigraph's statements become triples, names and ranges of values, and triples statements."""

from __future__ import annotations

import io
import re
import zlib
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import quote

import polars as pl

from anyburl.base.errors import DataError, MissingExtraError
from anyburl.data.formats.delimited import BZIP2, GZIP, ZSTD, read_blocks
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import ENTITY, Gathered, ReadOptions
from anyburl.data.terms import OWN, RDFS, SCHEMA, SKOS, XSD, Prefixes, own_label, own_labels, rdf_term

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
SHORT_ENTITY = re.compile(
    rb'<!ENTITY\s+[^\s%%&;"<>]+\s+"(?:[^"&<]|&(?:#[0-9]+|#x[0-9A-Fa-f]+|amp|lt|gt|quot|apos);){0,%d}"\s*>'
    % MOST_IN_ENTITY
)
MOST_EXPANDED = 1 << 24  # bytes in one piece of text that may refer to entities
MOST_SHOWN = 60  # bytes of a declaration


def is_rdf(path: Path) -> bool:
    """Whether the name of a file says that it holds RDF."""
    return path.name.lower().endswith(RDF_SUFFIXES)


def rdf_format(path: Path) -> str:
    """Return the format of a file by its suffix, as `RdfFormat` calls it."""
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
    """Open the parser of a file: an iterator of quads with the prefixes so far. Errors name the line."""
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
        line = f"{path}:{error.lineno}" if error.lineno else str(path)
        raise DataError(f"{line}: expected {kind.replace('_', '-')}, cannot read it: {error.msg}") from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file cannot be read ({error})") from error


def _without_bombs(path: Path, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Pass on the text of RDF/XML; raise an error for entities that would make it much longer ("billion laughs").

    Short ones for plain text, as OWL files have them for namespaces, are kept.
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
        if not SHORT_ENTITY.match(text, start):
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
        part, self._block = self._block[: len(buffer)], self._block[len(buffer) :]  # views: reads are small
        buffer[: len(part)] = part
        return len(part)


PREFIXED = ("TURTLE", "TRIG")
WRITTEN = ("N_TRIPLES", "N_QUADS", *PREFIXED)
WRITABLE_RDF = ".nt, .ttl, .nq or .trig, plain or with .gz or .zst"

_PREFIX = re.compile(r"(?:[A-Za-z][A-Za-z0-9_-]*)?")
_LOCAL = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]*)")


class TermWriter:
    """Writes labels as terms, IRIs with a prefix where the format has prefixes and the IRI fits."""

    def __init__(self, kind: str, prefixes: Mapping[str, str]) -> None:
        usable = {prefix: iri for prefix, iri in prefixes.items() if _PREFIX.fullmatch(prefix) and _is_plain(iri)}
        self.prefixes = usable if kind in PREFIXED else {}
        self._by_length = sorted(self.prefixes.items(), key=lambda item: (-len(item[1]), item[0]))

    def term(self, label: str, role: str) -> str:
        """Return a label as a term of a statement: its subject, relation or object."""
        term = rdf_term(label, is_object=role == "object", is_relation=role == "relation")
        return self.shortened(term)

    def shortened(self, term: str) -> str:
        """Return a term with its longest prefix, if it is an IRI that has one."""
        for prefix, iri in self._by_length:
            if term.startswith(f"<{iri}") and _LOCAL.fullmatch(term, len(iri) + 1, len(term) - 1):
                return f"{prefix}:{term[len(iri) + 1 : -1]}"
        return term

    def terms(self, labels: pl.Series, role: str) -> pl.Series:
        """Return many labels as terms."""
        known = labels.unique().to_list()
        return labels.replace_strict(known, [self.term(label, role) for label in known], return_dtype=pl.String)

    def statements(self, triples: pl.DataFrame) -> pl.Series:
        """Return triples as statements, without the dot that ends them."""
        terms = pl.DataFrame({role: self.terms(triples[role], role) for role in COLUMNS})
        return terms.select(pl.concat_str(COLUMNS, separator=" ")).to_series()

    def statement(self, triple: Sequence[str]) -> str:
        """Return a triple as a statement, without the dot that ends it."""
        return " ".join(self.term(label, role) for label, role in zip(triple, COLUMNS, strict=True))

    def head(self) -> list[str]:
        """Return the lines that declare prefixes."""
        return [f"@prefix {prefix}: <{iri}> ." for prefix, iri in sorted(self.prefixes.items())]


def rdf_lines(triples: pl.DataFrame, path: Path) -> pl.Series:
    """Return the lines of a file of RDF; its name says which kind."""
    kind = rdf_format(path)
    if kind not in WRITTEN or path.suffix.lower() == ".bz2":
        raise DataError(f"{path}: expected an RDF file that ends in {WRITABLE_RDF}")
    writer = TermWriter(kind, {})
    ended = writer.statements(triples) + " ."
    return pl.concat([pl.Series(writer.head(), dtype=pl.String), ended.rename("")])


def string_term(text: str) -> str:
    """Return text as a literal."""
    escapes = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"}
    return f'"{"".join(escapes.get(character, character) for character in text)}"'


def _is_plain(iri: str) -> bool:
    """Whether an IRI can stand between < and >."""
    return rdf_term(f"{iri}x", is_object=False) == f"<{iri}x>"


_NAMING = (f"{RDFS}label", f"{SKOS}prefLabel", f"{SCHEMA}name", f"{SCHEMA.replace('https', 'http')}name")
NAMING = {relation: rank for rank, relation in enumerate(_NAMING)}
"""The relations that name things; of two names in the same language, the one of the earlier relation counts."""


def gather_name(gathered: Gathered, label: str, relation: str, literal: Any, language: str) -> None:
    """Keep a name if it is the best so far: in the chosen language, in none, in English, or in another one."""
    rank = _language_rank(literal.language, language.lower()) * len(NAMING) + NAMING[relation]
    name = " ".join(literal.value.split())
    if name and rank < gathered.name_ranks.get(label, 1 << 10):
        gathered.names[label], gathered.name_ranks[label] = name, rank


def _language_rank(language: str | None, chosen: str) -> int:
    if language == chosen:
        return 0
    if language is None:
        return 2
    if language.startswith(f"{chosen}-"):
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


N_RANGES = 10  # at most, of a relation
AT_A_TIME = 1 << 18  # statements
RANGE = f"{OWN}range:"
"""The start of the datatype of a range, followed by the relation: 3 metres are not 3 kilograms."""

NUMBER, DATE = "number", "date"
_NUMBERS = (
    "integer decimal double float int long short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger unsignedInt unsignedLong unsignedShort unsignedByte"
)
_DATES = "date dateTime dateTimeStamp gYear gYearMonth"
NUMBERS_AND_DATES = {
    **{XSD + name: NUMBER for name in _NUMBERS.split()},
    **{XSD + name: DATE for name in _DATES.split()},
}
DATATYPES = {**NUMBERS_AND_DATES, f"{XSD}boolean": "boolean"}
"""The kinds of attributes, by the datatypes of literals."""

VALUE_ROWS = dict.fromkeys(("entity", "attribute", "text", "kind", "origin"), pl.String)
"""Values as texts, with their kind where it is known, and the file they are from where they must be values."""

_DATE = r"^(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d))?"
_SMALLEST = 1, 1, 1, 0, 0, 0
_RADIX = 0, 12, 31, 24, 60, 60
_COLUMNS = dict.fromkeys(("subject", "relation", "kind", "text"), pl.String)

Cut = tuple[float, str]
"""The lower bound of a range, as a number and as text."""


class Values:
    """Collects the values in a file, which become attributes, or ranges that are cut at every tenth of a relation."""

    def __init__(self, options: ReadOptions | None = None) -> None:
        self._options = options or ReadOptions()
        self.kinds = self._options.attribute_kinds
        """The kinds of attributes that the options name."""
        self._rows: list[tuple[str, str, str, str]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, subject: str, relation: str, kind: str, text: str) -> None:
        """Keep one statement with a number or a date."""
        self._rows.append((subject, relation, kind, text))
        if len(self._rows) == AT_A_TIME:
            self._pack()

    def _pack(self) -> None:
        """Move rows into a frame, which takes a fraction of their memory."""
        self._frames.append(pl.DataFrame(self._rows, schema=_COLUMNS, orient="row"))
        self._rows.clear()

    def __bool__(self) -> bool:
        return bool(self._rows or self._frames)

    def finish(self, gathered: Gathered) -> Iterator[pl.DataFrame]:
        """Pass on the values of attributes, or yield the triples with ranges."""
        if self and self._options.literals == "ranges":
            yield self.triples(gathered)
        elif self:
            self._pack()
            rows = pl.concat(self._frames).rename({"subject": "entity", "relation": "attribute"})
            rows = rows.with_columns(pl.lit(None, pl.String).alias("origin"))
            gathered.values.append((gathered.split, rows.select(list(VALUE_ROWS))))

    def triples(self, gathered: Gathered) -> pl.DataFrame:
        """Return the statements with ranges as objects, those of an earlier file if it has any; drop invalid values."""
        self._pack()
        rows = pl.concat(self._frames).with_columns(value=_value())
        known = rows.filter(pl.col("value").is_finite())
        gathered.left_out += Counter({"literals": rows.height - known.height, "exact numbers and dates": known.height})
        parts = [_cut(group, gathered) for group in known.partition_by("relation", "kind", maintain_order=True)]
        return pl.concat([pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String)), *parts])


def _value() -> pl.Expr:
    """Return the number behind the text of a number or a date; months and days count as equally long."""
    parts = [pl.col("text").str.extract(_DATE, i + 1).cast(pl.Float64) for i in range(len(_RADIX))]
    date = parts[0]
    for part, smallest, radix in list(zip(parts, _SMALLEST, _RADIX, strict=True))[1:]:
        date = date * radix + part.fill_null(smallest) - smallest
    number = pl.col("text").str.strip_chars().cast(pl.Float64, strict=False)
    return pl.when(pl.col("kind") == DATE).then(date).otherwise(number)


def _cut(group: pl.DataFrame, gathered: Gathered) -> pl.DataFrame:
    relation, kind = group["relation"][0], group["kind"][0]
    cuts = gathered.cuts.get((relation, kind))
    if cuts is None:
        cuts = gathered.cuts[relation, kind] = _cuts(group.sort("value", "text"), kind)
    words = _words(cuts)
    labels = [f'"{text}"^^<{RANGE}{quote(relation, safe="")}>' for text in words]
    gathered.names.update(zip(labels, words, strict=True))
    starts = [start for start, _ in cuts]
    objects = pl.Series([labels[bisect_right(starts, value)] for value in group["value"]], dtype=pl.String)
    return group.select("subject", "relation", object=objects)


def _cuts(values: pl.DataFrame, kind: str) -> list[Cut]:
    """Return the lower bounds of ranges: values that a tenth, two tenths and so on of all values lie below."""
    rows = [values.height * number // N_RANGES for number in range(1, N_RANGES)]
    starts = {values["value"][row]: values["text"][row] for row in reversed(rows)}
    if len(starts) > 1:
        starts.pop(values["value"][0], None)  # nothing lies below
    return [(start, _text(start) if kind == NUMBER else starts[start].strip()) for start in sorted(starts)]


def _words(cuts: Sequence[Cut]) -> list[str]:
    texts = [text for _, text in cuts]
    between = [f"[{start}, {end})" for start, end in pairwise(texts)]
    return [f"< {texts[0]}", *between, f">= {texts[-1]}"]


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)


DEFAULT_GRAPH = "default"
"""The name of the default graph in `ReadOptions.graphs`."""

LABELLED = ("N_TRIPLES", "N_QUADS")  # formats in which every blank node has a label
_UNNAMED = re.compile("[a-f][0-9a-f]{15,31}")  # as the parser invents them: a number without leading zeros


def read_rdf(path: Path, rows: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the statements of a file as labels, in order, `rows` at a time; numbers and dates in ranges come last.

    An IRI is its own label, a blank node is written as _:name, a literal as in N-Triples, quotes included. IRIs made of
    other labels become those labels again (`data/vocabulary.py`).
    """
    sorting = _Sorting(path, options, gathered)
    n_rows = 0
    with open_statements(path) as statements:
        chosen = sorting.chosen(statements)
        while sorting.add(islice(chosen, rows)):
            gathered.prefixes.update(statements.prefixes)
            frame = sorting.take()
            n_rows += frame.height
            if frame.height:
                yield frame
    for frame in sorting.values.finish(gathered):
        n_rows += frame.height
        yield frame
    if not n_rows:
        _refuse_empty(path, options, gathered)


def _refuse_empty(path: Path, options: ReadOptions, gathered: Gathered) -> NoReturn:
    if (gathered.left_out["literals"] or gathered.values) and options.literals in ("attributes", "skip"):
        raise DataError(f"{path}: no triples besides literals, which are no triples unless you keep them")
    where = f" in {', '.join(options.graphs)}" if options.graphs else ""
    raise DataError(f"{path}: no triples{where}")


class _Sorting:
    """Turns statements into triples, names and values, and counts those that are left out."""

    def __init__(self, path: Path, options: ReadOptions, gathered: Gathered) -> None:
        library = oxigraph(path)
        self._iri, self._blank, self._literal = library.NamedNode, library.BlankNode, library.Literal
        self._triple = library.Triple
        self._options, self._gathered = options, gathered
        self._labelled = rdf_format(path) in LABELLED
        self._is_n3 = rdf_format(path) == "N3"
        self._unnamed: dict[str, str] = {}
        self._columns: tuple[list[str], list[str], list[str]] = [], [], []
        self.values = Values(options)

    def chosen(self, statements: Iterator[Any]) -> Iterator[Any]:
        """Return the statements of the chosen graphs, never those that N3 only quotes, in graphs of their own."""
        if self._is_n3:
            return (quad for quad in statements if str(quad.graph_name) == "DEFAULT")
        if not self._options.graphs:
            return statements
        prefixes = Prefixes(self._options.prefixes)
        expanded = {prefixes.expand(graph) for graph in self._options.graphs if graph != DEFAULT_GRAPH}
        chosen = {graph if graph.startswith("_:") else f"<{graph}>" for graph in expanded}
        if DEFAULT_GRAPH in self._options.graphs:
            chosen.add("DEFAULT")
        return (quad for quad in statements if self._is_chosen(quad, chosen))

    def _is_chosen(self, quad: Any, chosen: set[str]) -> bool:
        if str(quad.graph_name) in chosen:
            return True
        self._gathered.left_out["statements of other graphs"] += 1
        return False

    def add(self, statements: Iterator[Any]) -> int:
        """Process some statements; return how many there were."""
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
        """Return the triples since the last call."""
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
        """Return the label of a blank node; those without a name are numbered: the parser names them at random."""
        if not _UNNAMED.fullmatch(name):
            return f"_:{name}"
        if name not in self._unnamed:
            self._gathered.n_unnamed += 1
            self._unnamed[name] = f"_:unnamed{self._gathered.n_unnamed}"
        return self._unnamed[name]

    def _is_kept(self, label: str, relation: str, object: Any) -> bool:
        """Return whether a statement whose object is no IRI becomes a triple; otherwise record what it is."""
        if type(object) is self._literal:
            relation_label, datatype = own_label(relation), object.datatype.value
            return keep_literal(
                own_label(label), relation_label, object, datatype, self._options, self._gathered, self.values
            )
        if type(object) is self._triple:
            self._gathered.left_out["statements about statements"] += 1
            return False
        return True


def keep_literal(
    subject: str,
    relation: str,
    literal: Any,
    datatype: str,
    options: ReadOptions,
    gathered: Gathered,
    values: Values,
) -> bool:
    """Return whether a statement with a literal becomes a triple; otherwise record it as a name, value or count."""
    if relation in NAMING:
        gather_name(gathered, subject, relation, literal, options.language)
    if options.literals == "keep":
        return True
    if options.literals == "attributes":
        kind = values.kinds.get(relation) or DATATYPES.get(datatype)
        if kind == ENTITY:
            return True
    else:
        kind = NUMBERS_AND_DATES.get(datatype) if options.literals == "ranges" else None
    if kind is not None:
        values.add(subject, relation, kind, literal.value)
    elif relation not in NAMING:
        gathered.left_out["literals"] += 1
    return False
