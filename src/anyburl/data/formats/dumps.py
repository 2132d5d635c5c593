"""RDF of particular shapes: the dumps of Wikidata and Freebase, as they are published, and statements about statements.

A dump is N-Triples, one statement a line, of which most are no triples here: lines are sorted by how their terms begin,
many at a time, and literals are never parsed. A statement is three columns of text, with the brackets of its IRIs and
the full stop after its object.

Facts with times are statements that are reified (rdf:subject, rdf:predicate, rdf:object) or quoted:

ex:membership42 rdf:subject ex:Malta ; rdf:predicate ex:member_of ; rdf:object ex:EU ; ex:since "2004-05-01" .
<< ex:Malta ex:member_of ex:EU >> ex:since "2004-05-01" .
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
import polars as pl

from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import numbered_lines
from anyburl.data.formats.delimited import read_blocks
from anyburl.data.formats.rdf import open_statements, oxigraph
from anyburl.data.options import COLUMNS, KNOWN, PARTS, RECOGNISED, Gathered, ReadOptions
from anyburl.data.terms import RDF_TYPE, RDFS, SCHEMA, SKOS, WELL_KNOWN, Prefixes, literal_text, own_labels

Kinds = tuple[tuple[str, pl.Expr], ...]


@dataclass(frozen=True)
class Dump:
    """A dump: its separator, the statements that are kept, and the `kinds` of others, of which the first match counts.

    The labels of subjects that start with the first of `named` name the relations that start with the second.
    """

    title: str
    separator: str
    kept: pl.Expr
    kinds: Kinds
    named: tuple[str, str] | None = None

    def names_relations(self) -> pl.Expr:
        """Whether a statement is the label of a relation."""
        return (
            _starts("subject", self.named[0]) & _is("relation", f"{RDFS}label") if self.named else pl.lit(value=False)
        )


def _starts(column: str, *starts: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(column).str.starts_with(start) for start in starts)


def _is(column: str, *terms: str) -> pl.Expr:
    return pl.any_horizontal(pl.col(column) == f"<{term}>" for term in terms)


_LITERAL = _starts("object", '"')
_ANYTHING = pl.lit(value=True)
_SCHEMA = SCHEMA.replace("https", "http")


def _wikidata() -> Dump:
    entity, direct = f"<{WELL_KNOWN['wd']}", f"<{WELL_KNOWN['wdt']}"
    site = "<http://www.wikidata.org/"
    is_direct = _starts("relation", direct)
    texts = (f"{RDFS}label", f"{SKOS}prefLabel", f"{SKOS}altLabel", f"{_SCHEMA}name", f"{_SCHEMA}description")
    kinds = (
        ("statements about web pages", ~_starts("subject", entity)),
        ("labels, descriptions and aliases", _is("relation", *texts)),
        ("normalized duplicates", _starts("relation", f"{site}prop/direct-normalized/")),
        ("literals", is_direct & _LITERAL),
        ("unknown values", is_direct & _starts("object", "_:", f"{site}.well-known/genid/")),
        ("links to other sites", is_direct),
        ("other statements", _ANYTHING),
    )
    kept = _starts("subject", entity) & is_direct & _starts("object", entity)
    return Dump("Wikidata", " ", kept, kinds, named=(f"{entity}P", f"{WELL_KNOWN['wdt']}P"))


def _freebase() -> Dump:
    space = f"<{WELL_KNOWN['fb']}"
    entities = f"{space}m.", f"{space}g."
    administrative = _starts("relation", *(f"{space}{domain}." for domain in ("type", "common", "freebase")))
    types = f"{WELL_KNOWN['fb']}type.object.type", f"{WELL_KNOWN['fb']}type.type.instance", RDF_TYPE
    between = _starts("subject", *entities) & _starts("object", *entities)
    kinds = (
        ("literals", _LITERAL),
        ("types", _is("relation", *types)),
        ("statements of the domains type, common and freebase", administrative),
        ("statements about types and properties", ~_starts("subject", *entities)),
        ("other statements", _ANYTHING),
    )
    return Dump("Freebase", "\t", between & _starts("relation", space) & ~administrative, kinds)


DUMPS: Mapping[str, Dump] = MappingProxyType({"wikidata": _wikidata(), "freebase": _freebase()})
"""By the name that `ReadOptions.dump` takes."""


KEPT = 0  # the kinds follow
ODD = "lines that are no statements"


def read_dump(path: Path, start: bytes, size: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the statements between entities, in pieces of about `size` bytes of text; count the others by kind."""
    assert options.dump is not None
    dump = DUMPS[options.dump]
    sorting = _Sorting(path, dump, options.language, gathered)
    n_triples = 0
    try:
        for block in _ahead(read_blocks(path, start, size)):
            frame = sorting.sort(block)
            n_triples += frame.height
            if frame.height:
                yield frame
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path}: the file is damaged or truncated ({error})") from error
    if not n_triples:
        raise DataError(f"{path}: no statements between entities of {dump.title}")


def _ahead(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks while the next one is read and decompressed in another thread."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, blocks, b"")
        while block := coming.result():
            coming = pool.submit(next, blocks, b"")
            yield block


class _Sorting:
    """Turns lines of a dump into triples, and counts the others by kind."""

    def __init__(self, path: Path, dump: Dump, language: str, gathered: Gathered) -> None:
        self._path, self._dump, self._gathered = path, dump, gathered
        self._name = rf'^"(.*)"@{language}[ \t]*\.$'
        self._n_lines = self._n_statements = self._n_odd = 0
        self._kind = _number_of_first([dump.kept, *(fits for _, fits in dump.kinds)]).alias("kind")

    def sort(self, block: bytes) -> pl.DataFrame:
        """Return the triples in a block of lines."""
        lines = self._lines(block)
        terms = pl.col("line").str.splitn(self._dump.separator, 3).struct.rename_fields(COLUMNS)
        fields = lines.with_columns(terms.alias("terms")).unnest("terms")
        is_statement = _is_statement().fill_null(value=False)
        statements = fields.filter(is_statement).with_columns(self._kind)
        self._n_statements += statements.height
        self._leave_out(fields.filter(~is_statement))
        self._count(statements["kind"])
        self._gather_names(statements.filter(self._dump.names_relations()))
        self._n_lines += block.count(b"\n")
        kept = statements.filter(pl.col("kind") == KEPT)
        self._leave_out(kept.filter(~_has_plain_terms()))
        return kept.filter(_has_plain_terms()).select(pl.col(COLUMNS).str.strip_chars("<> \t."))

    def _leave_out(self, odd: pl.DataFrame) -> None:
        """Count lines that are no statements; if most are not, raise an error: it is another kind of file."""
        if not odd.height:
            return
        self._gathered.left_out[ODD] += odd.height
        self._n_odd += odd.height
        if self._n_odd > self._n_statements:
            _refuse_line(self._path, odd["number"][0], odd["line"][0], self._dump)

    def _lines(self, block: bytes) -> pl.DataFrame:
        """Return the lines of a block with their numbers, except blank ones and comments."""
        try:
            lines = numbered_lines(block, self._n_lines + 1)
        except pl.exceptions.PolarsError:  # some bytes are no UTF-8
            lines = numbered_lines(block.decode(errors="replace").encode(), self._n_lines + 1)
        text = pl.col("line").str.strip_chars_end(" \t\r")
        return lines.with_columns(text).filter((text != "") & ~text.str.starts_with("#"))

    def _count(self, kinds: pl.Series) -> None:
        counts = np.bincount(kinds.to_numpy(), minlength=KEPT + 1 + len(self._dump.kinds))
        for (kind, _), n_statements in zip(self._dump.kinds, counts[KEPT + 1 :].tolist(), strict=True):
            if n_statements:
                self._gathered.left_out[kind] += n_statements

    def _gather_names(self, labels: pl.DataFrame) -> None:
        """Keep the names of relations in the chosen language."""
        if self._dump.named is None or not labels.height:
            return
        start, relation = self._dump.named
        named = labels.select("subject", name=pl.col("object").str.extract(self._name)).drop_nulls()
        for subject, name in named.iter_rows():
            self._gathered.names[relation + subject[len(start) : -1]] = " ".join(literal_text(name).split())


def _number_of_first(conditions: list[pl.Expr]) -> pl.Expr:
    """Return which of the conditions is the first that holds; the last one holds in any case."""
    number = pl.lit(len(conditions) - 1, pl.UInt8)
    for earlier in reversed(range(len(conditions) - 1)):
        number = pl.when(conditions[earlier]).then(pl.lit(earlier, pl.UInt8)).otherwise(number)
    return number


def _is_statement() -> pl.Expr:
    """Whether a line looks like three terms and a full stop; literals are not parsed."""
    starts = pl.col("subject").str.starts_with("<") | pl.col("subject").str.starts_with("_:")
    return starts & pl.col("relation").str.starts_with("<") & pl.col("object").str.ends_with(".")


def _has_plain_terms() -> pl.Expr:
    """Whether terms that begin like IRIs also end like IRIs, and nothing else follows."""
    ends = [pl.col(name).str.ends_with(">") for name in COLUMNS[:2]]
    return pl.all_horizontal(*ends, pl.col("object").str.contains("^<[^<> ]*>[ \t]*\\.$"))


def _refuse_line(path: Path, number: int, line: str, dump: Dump) -> NoReturn:
    shown = repr(line if len(line) <= 80 else f"{line[:77]}...")
    form = f"N-Triples, as {dump.title} publishes them, separated by {'tabs' if dump.separator == chr(9) else 'blanks'}"
    raise DataError(f"{path}:{number}: expected {form}, got {shown}")


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TRIPLE_PARTS = {f"{RDF}subject": "subject", f"{RDF}predicate": "relation", f"{RDF}object": "object"}
REIFIES = f"{RDF}reifies"


def read_reified(path: Path, rows: int, options: ReadOptions, gathered: Gathered) -> Iterator[pl.DataFrame]:
    """Yield the facts of a file that statements give a time, `rows` at a time.

    Properties of times are those that `options.time` names, or those that end in a usual name: since, date, start.
    Statements without a time, and plain statements, are counted and left out.
    """
    library = oxigraph(path)
    part_of = _TimeProperties(options)
    facts: dict[str, dict[str, str]] = {}
    with open_statements(path) as statements:
        for quad in statements:
            predicate, object = quad.predicate.value, quad.object
            part = TRIPLE_PARTS.get(predicate) or part_of(predicate)
            if predicate == REIFIES and isinstance(object, library.Triple):
                terms = (object.subject, object.predicate, object.object)
                facts.setdefault(str(quad.subject), {}).update(zip(COLUMNS, map(_label, terms), strict=True))
            elif part is not None and (part in COLUMNS or isinstance(object, library.Literal)):
                facts.setdefault(str(quad.subject), {})[part] = _label(object) if part in COLUMNS else object.value
            else:
                gathered.left_out["plain statements"] += 1
        gathered.prefixes.update(statements.prefixes)
    dated = [fact for fact in facts.values() if all(part in fact for part in PARTS[:4])]
    gathered.left_out["statements without a time"] += sum(
        "object" in fact and "time" not in fact for fact in facts.values()
    )
    if not dated:
        raise DataError(
            f"{path}: expected statements with a time, reified (rdf:subject, rdf:predicate, rdf:object) or quoted "
            f"(<< s p o >>), got none; --time names the property of the time"
        )
    columns = PARTS if any("end" in fact for fact in dated) else PARTS[:4]
    for start in range(0, len(dated), rows):
        batch = dated[start : start + rows]
        frame = pl.DataFrame([[fact.get(part, "") for part in columns] for fact in batch], schema=columns, orient="row")
        yield frame.with_columns(own_labels(frame[name]) for name in COLUMNS)


class _TimeProperties:
    """Tells which part of a fact a property states: its time, its end, or none."""

    def __init__(self, options: ReadOptions) -> None:
        names = () if options.time in (None, (RECOGNISED,)) else options.time or ()
        prefixes = Prefixes(options.prefixes)
        self._named = {prefixes.expand(name): part for name, part in zip(names, PARTS[3:], strict=False)}

    def __call__(self, predicate: str) -> str | None:
        if self._named:
            return self._named.get(predicate)
        words = re.split(r"[^a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", re.split(r"[#/:]", predicate)[-1]).lower())
        return next((part for part in ("end", "time") if KNOWN[part] & {*words}), None)


def _label(term: Any) -> str:
    return str(term.value) if type(term).__name__ == "NamedNode" else str(term)
