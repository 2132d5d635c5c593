"""Writes accepted facts as triple files."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path

import polars as pl

from anyburl.rdf_terms import rdf_term
from anyburl.review.review import Fact
from anyburl.triples.files import write_triples
from anyburl.triples.frames import COLUMNS
from anyburl.writing import replacing

RDF = (".nt", ".ttl", ".nt.gz", ".ttl.gz")


def write_facts(facts: Sequence[Fact], path: Path) -> None:
    """Write facts by the suffix of the file: RDF, or tab-separated."""
    if not path.name.lower().endswith(RDF):
        write_triples(pl.DataFrame(list(facts), schema=dict.fromkeys(COLUMNS, pl.String), orient="row"), path)
        return
    text = "".join(_statement(fact) for fact in facts).encode()
    with replacing(path) as unfinished:
        unfinished.write_bytes(gzip.compress(text, mtime=0) if path.name.lower().endswith(".gz") else text)


def _statement(fact: Fact) -> str:
    """Return a line of N-Triples, which is Turtle, too."""
    terms = (rdf_term(label, is_object=place == "object") for place, label in zip(COLUMNS, fact, strict=True))
    return f"{' '.join(terms)} .\n"
