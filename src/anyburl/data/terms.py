"""Labels as terms of RDF, as they stand in N-Triples, Turtle and SPARQL, and back.

IRIs, blank nodes and literals are labels as `data/formats/rdf_reader.py` reads them; any other label becomes an IRI of
our own, which is that label again when it is read.

Prefixes of IRIs: `wdt:P530` for people, the IRI itself in files.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    import polars as pl


OWN = "urn:anyburl:"
"""How the IRIs of labels start that are none. In what follows, a label has its colons escaped, our vocabulary not."""

_FORBIDDEN = r"\x00-\x20\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U000e0000-\U0010ffff<>\"{}|^`\\%\[\]#"
_HOST_CHARACTER = rf"(?:[^{_FORBIDDEN}/?:@]|%[0-9A-Fa-f]{{2}})"
_CHARACTER = rf"(?:[^{_FORBIDDEN}]|%[0-9A-Fa-f]{{2}})"
_AUTHORITY = rf"//(?:(?:{_HOST_CHARACTER}|:)*@)?(?:{_HOST_CHARACTER}*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?=[/?#>]|$)"
_IRI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//)){_CHARACTER}*(?:#{_CHARACTER}*)?"
_ESCAPE = r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"

_ONE_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_NAMED_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}

IRI = re.compile(_IRI)
_LETTER = (
    r"A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f\u2c00-\u2fef"
    r"\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = rf"{_LETTER}0-9\u00b7\u0300-\u036f\u203f\u2040\-"
BLANK_NODE = re.compile(rf"_:[{_LETTER}0-9](?:[{_NAME}.]*[{_NAME}])?")
LITERAL = re.compile(rf'"(?:[^"\\\r\n]|{_ESCAPE})*"(?:@[A-Za-z]{{2,8}}(?:-[A-Za-z0-9]{{1,8}})*|\^\^<{_IRI}>)?')


def is_blank_node(label: str) -> bool:
    """Whether a label names a blank node."""
    return BLANK_NODE.fullmatch(label) is not None


def rdf_term(label: str, *, is_object: bool, is_relation: bool = False, base: str = OWN) -> str:
    """Return a label as a term that may stand at its place in a statement.

    Literals are objects only, blank nodes are no relations, and what is no term becomes an IRI below `base`.
    """
    if (is_blank_node(label) and not is_relation) or (is_object and LITERAL.fullmatch(label)):
        return label
    is_iri = IRI.fullmatch(label) and own_label(label) == label
    return f"<{label}>" if is_iri else f"<{base}{quote(label, safe='')}>"


def literal_text(escaped: str) -> str:
    """Return the text of a literal that stands between quotes with its escapes."""
    return _ONE_ESCAPE.sub(lambda found: _NAMED_ESCAPES.get(found[1]) or _character(found[1]), escaped)


def _character(escape: str) -> str:
    """Return the character of an escape; what is no character is the one that stands for such."""
    if len(escape) == 1:
        return escape
    code = int(escape[1:], 16)
    return "\ufffd" if 0xD800 <= code < 0xE000 or code > sys.maxunicode else chr(code)


def own_label(iri: str) -> str:
    """Return the label behind an IRI of our own; any other IRI is its own label."""
    if not iri.startswith(OWN):
        return iri
    escaped = iri.removeprefix(OWN)
    label = unquote(escaped)
    return label if label and quote(label, safe="") == escaped else iri


def own_labels(iris: pl.Series) -> pl.Series:
    """Return what `own_label` makes of many IRIs."""
    found = iris.filter(iris.str.starts_with(OWN)).unique()
    return iris.replace(found, [own_label(iri) for iri in found.to_list()]) if len(found) else iris


RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
RDFS = "http://www.w3.org/2000/01/rdf-schema#"
XSD = "http://www.w3.org/2001/XMLSchema#"
SKOS = "http://www.w3.org/2004/02/skos/core#"
SCHEMA = "https://schema.org/"

RDF_TYPE = f"{RDF}type"
SUBCLASS = f"{RDFS}subClassOf"

WELL_KNOWN: Mapping[str, str] = MappingProxyType(
    {
        "rdf": RDF,
        "rdfs": RDFS,
        "xsd": XSD,
        "owl": "http://www.w3.org/2002/07/owl#",
        "skos": SKOS,
        "schema": SCHEMA,
        "foaf": "http://xmlns.com/foaf/0.1/",
        "dc": "http://purl.org/dc/elements/1.1/",
        "dcterms": "http://purl.org/dc/terms/",
        "dcat": "http://www.w3.org/ns/dcat#",
        "prov": "http://www.w3.org/ns/prov#",
        "sh": "http://www.w3.org/ns/shacl#",
        "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
        "obo": "http://purl.obolibrary.org/obo/",
        "yago": "http://yago-knowledge.org/resource/",
        "wd": "http://www.wikidata.org/entity/",
        "wdt": "http://www.wikidata.org/prop/direct/",
        "fb": "http://rdf.freebase.com/ns/",
        "dbr": "http://dbpedia.org/resource/",
        "dbo": "http://dbpedia.org/ontology/",
        "dbp": "http://dbpedia.org/property/",
    }
)
"""Prefixes that need not be declared; declarations take precedence."""


class Prefixes:
    """Shortens IRIs and writes them out again: with the prefixes `given`, and the well-known ones."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._iris = {**WELL_KNOWN, **{prefix: iri for prefix, iri in given.items() if iri}}
        by_iri = {iri: prefix for prefix, iri in self._iris.items()}
        self._by_length = sorted(by_iri.items(), key=lambda item: (-len(item[0]), item[1]))

    def shorten(self, label: str) -> str:
        """Return a label with its longest prefix; what is no IRI, or has none of the prefixes, as it is."""
        if ":" not in label:
            return label
        for iri, prefix in self._by_length:
            if label.startswith(iri) and len(label) > len(iri):
                return f"{prefix}:{label[len(iri) :]}"
        return label

    def expand(self, text: str) -> str:
        """Return the IRI behind a prefixed name or behind <...>; anything else as it is."""
        if text.startswith("<") and text.endswith(">"):
            return text[1:-1]
        prefix, colon, rest = text.partition(":")
        return self._iris[prefix] + rest if colon and prefix in self._iris else text

    def of(self, iris: Iterable[str]) -> dict[str, str]:
        """Return the prefixes that shorten at least one of some IRIs."""
        used = {short.partition(":")[0] for iri in iris if (short := self.shorten(iri)) != iri}
        return {prefix: self._iris[prefix] for prefix in sorted(used)}
