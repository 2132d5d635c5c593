"""Readable names in RDF: literals of rdfs:label and the like, in the preferred language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from anyburl.rdf_terms import own_label
from anyburl.triples.gathered import Gathered
from anyburl.triples.prefixes import RDFS, SCHEMA, SKOS
from anyburl.triples.rdf import open_statements

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
