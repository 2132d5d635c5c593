"""What is kept of the dumps of Wikidata and Freebase, and what kinds of statements the rest are.

A statement is three columns of text, with the brackets of its IRIs and the full stop behind its object.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import polars as pl

from anyburl.triples.prefixes import RDF_TYPE, RDFS, SCHEMA, SKOS, WELL_KNOWN

Kinds = tuple[tuple[str, pl.Expr], ...]


@dataclass(frozen=True)
class Dump:
    """A dump: what separates the terms of a line, which statements are kept, and what the others are called.

    The first of `kinds` that fits counts. Subjects that begin as the first of `named` have labels, which name the
    relations that begin as the second.
    """

    title: str
    separator: str
    wanted: pl.Expr
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
    wanted = _starts("subject", entity) & is_direct & _starts("object", entity)
    return Dump("Wikidata", " ", wanted, kinds, named=(f"{entity}P", f"{WELL_KNOWN['wdt']}P"))


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
