"""Writes triples as RDF, one statement per line: N-Triples, N-Quads, and Turtle and TriG with prefixes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import polars as pl

from anyburl.errors import DataError
from anyburl.rdf_terms import rdf_term
from anyburl.triples.frames import COLUMNS
from anyburl.triples.rdf import rdf_format

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
