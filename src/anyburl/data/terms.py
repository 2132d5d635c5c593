"""Labels as terms of RDF, as N-Triples, Turtle and SPARQL write them, and back; prefixes of IRIs.

A label that is no IRI, blank node or literal becomes an IRI below `OWN`, and is that label again when it is read.
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
"""The start of IRIs made of labels that are none; such a label has its colons escaped, our own vocabulary has not."""

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
    """Return a label as a term of a statement.

    Literals are objects only, blank nodes are no relations, and what is no term becomes an IRI below `base`.
    """
    if (is_blank_node(label) and not is_relation) or (is_object and LITERAL.fullmatch(label)):
        return label
    is_iri = IRI.fullmatch(label) and own_label(label) == label
    return f"<{label}>" if is_iri else f"<{base}{quote(label, safe='')}>"


def literal_text(escaped: str) -> str:
    """Return the text of a literal without its escapes."""
    return _ONE_ESCAPE.sub(lambda match: _NAMED_ESCAPES.get(match[1]) or _character(match[1]), escaped)


def _character(escape: str) -> str:
    """Return the character of an escape, U+FFFD for an invalid one."""
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
    """Return the labels of many IRIs by `own_label`."""
    own = iris.filter(iris.str.starts_with(OWN)).unique()
    return iris.replace(own, [own_label(iri) for iri in own.to_list()]) if len(own) else iris


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
    """Shortens and expands IRIs with the `given` and the well-known prefixes."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._iris = {**WELL_KNOWN, **{prefix: iri for prefix, iri in given.items() if iri}}
        by_iri = {iri: prefix for prefix, iri in self._iris.items()}
        self._by_length = sorted(by_iri.items(), key=lambda item: (-len(item[0]), item[1]))

    def shorten(self, label: str) -> str:
        """Return an IRI with its longest prefix; any other label as it is."""
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
