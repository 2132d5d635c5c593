"""Facts as RDF, with where they come from.

What is said of a fact has a vocabulary of its own, below `urn:anyburl:provenance:`.

    score, probability   numbers, xsd:double
    rule                 the best rule that predicts it, as text
    rules                how many rules agree
    premise              a fact that makes the rule predict it

RDF-star states it of << the fact >>. Reification states it of an rdf:Statement, whose IRI is made from its triple.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import polars as pl

from anyburl.completion.options import PROVENANCES
from anyburl.rdf_terms import OWN
from anyburl.triples.frames import COLUMNS
from anyburl.triples.prefixes import RDF, XSD
from anyburl.triples.rdf_writer import TermWriter, string_term

VOCABULARY = f"{OWN}provenance:"
STATEMENT = f"{OWN}statement:"

Triple = Sequence[str]


class RdfText:
    """Writes parts of facts as RDF of a format; the first part begins with the prefixes."""

    def __init__(self, kind: str, provenance: str = PROVENANCES[0], prefixes: Mapping[str, str] | None = None) -> None:
        own = {"rdf": RDF, "xsd": XSD, "anyburl": VOCABULARY} if provenance != "none" else {}
        self._terms = TermWriter(kind, {**(prefixes or {}), **own})
        self._quotes = provenance == "rdf-star" and bool(self._terms.prefixes)
        self._provenance = provenance

    def __call__(self, facts: pl.DataFrame, is_first: bool) -> str:
        head = [f"{line}\n" for line in self._terms.head()] if is_first else []
        lines = self._commented(facts) if self._provenance == "none" else self._told(facts)
        return "".join([*head, *lines])

    def _commented(self, facts: pl.DataFrame) -> list[str]:
        """Return one statement per fact; score, probability and rule are a comment."""
        number = pl.col("probability").round(6).cast(pl.String)
        comments = facts.select(
            pl.concat_str(
                pl.lit(" . # score "),
                pl.col("score").round(6).cast(pl.String),
                pl.concat_str(pl.lit(", probability "), number).fill_null(""),
                pl.lit(", "),
                pl.col("rule").str.replace_all(r"[\r\n]", " "),
                pl.lit("\n"),
            )
        ).to_series()
        return (self._terms.statements(facts) + comments).to_list()

    def _told(self, facts: pl.DataFrame) -> Iterator[str]:
        for fact in facts.iter_rows(named=True):
            triple = [fact[place] for place in COLUMNS]
            premises = fact.get("facts") or []
            yield f"{self._terms.statement(triple)} .\n"
            yield from self._described(triple, [*self._said(fact), *map(self._premise, premises)])
            if not self._quotes:
                for premise in premises:
                    yield from self._described(premise, [])

    def _said(self, fact: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield what is said of a fact: relations and their objects."""
        for name in ("score", "probability"):
            if fact[name] is not None:
                yield self._own(name), f'"{fact[name]!r}"^^{self._iri(f"{XSD}double")}'
        yield self._own("rule"), string_term(fact["rule"])
        yield self._own("rules"), f'"{fact["rules"]}"^^{self._iri(f"{XSD}integer")}'

    def _premise(self, triple: Triple) -> tuple[str, str]:
        return self._own("premise"), self._node(triple)

    def _described(self, triple: Triple, said: Sequence[tuple[str, str]]) -> Iterator[str]:
        """Yield what is said of a statement and, unless it is quoted, which statement it is."""
        node, parts = self._node(triple), list(said)
        if not self._quotes:
            parts = [*self._identified(triple), *parts]
        if self._terms.prefixes:
            told = " ;\n    ".join(f"{relation} {object}" for relation, object in parts)
            yield f"{node} {told} .\n"
        else:
            yield from (f"{node} {relation} {object} .\n" for relation, object in parts)

    def _identified(self, triple: Triple) -> Iterator[tuple[str, str]]:
        if self._provenance == "rdf-star":
            yield self._iri(f"{RDF}reifies"), f"<<( {self._terms.statement(triple)} )>>"
            return
        yield self._iri(f"{RDF}type"), self._iri(f"{RDF}Statement")
        for name, place, label in zip(("subject", "predicate", "object"), COLUMNS, triple, strict=True):
            yield self._iri(f"{RDF}{name}"), self._terms.term(label, place)

    def _node(self, triple: Triple) -> str:
        """Return what stands for a statement: itself, quoted, or an IRI that is always the same."""
        if self._quotes:
            return f"<< {self._terms.statement(triple)} >>"
        digest = sha256("\0".join(triple).encode("utf-8", "surrogatepass")).hexdigest()[:32]
        return f"<{STATEMENT}{digest}>"

    def _own(self, name: str) -> str:
        return self._iri(f"{VOCABULARY}{name}")

    def _iri(self, iri: str) -> str:
        return self._terms.shortened(f"<{iri}>")
