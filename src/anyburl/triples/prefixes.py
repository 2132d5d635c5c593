"""Prefixes of IRIs: `wdt:P530` for people, the IRI itself in files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

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
