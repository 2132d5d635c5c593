"""Rows of SPARQL results, from JSON to labels."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from typing import Any, NamedTuple

from anyburl.errors import DataError
from anyburl.reading import is_text
from anyburl.triples.remote.addresses import Address
from anyburl.triples.remote.protocol import Answer, send

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

TERM = ("type", "value", "xml:lang", "datatype")

Row = Mapping[str, Mapping[str, Any]]


def select(address: Address, query: str, names: Sequence[str], *, timeout: float) -> list[Row]:
    """Return the rows of a SELECT query, each with all of `names` bound."""
    rows = send(address, "query", query, timeout=timeout, read=lambda answer: _rows(address, answer))
    for name in names:
        if any(name not in row for row in rows):
            wanted = ", ".join(f"?{name}" for name in names)
            raise DataError(f"{address.shown}: expected {wanted} in every row of the results, got one without ?{name}")
    return rows


def _rows(address: Address, answer: Answer) -> list[Row]:
    """Return the rows of an answer; one that was cut short is worth another try, one of another kind is not."""
    if "json" not in answer.content_type:
        start = address.hide(" ".join(answer.content[:80].decode("utf-8", "replace").split()))
        raise DataError(
            f"{address.shown} does not respond like a SPARQL endpoint: expected JSON results, got "
            f"{answer.content_type}: {start}"
        )
    try:
        rows: list[Row] = json.loads(answer.content)["results"]["bindings"]
        if all(_is_term(term) for row in rows for term in row.values()):
            return rows
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HTTPException(f"the results are damaged or truncated ({error})") from error
    raise HTTPException("the results are damaged: expected text values")


def _is_term(term: Mapping[str, Any]) -> bool:
    return "value" in term and all(is_text(term[name]) for name in TERM if name in term)


class LiteralTerm(NamedTuple):
    """A literal, with its language or its type."""

    value: str
    language: str | None
    datatype: str

    @classmethod
    def of(cls, term: Mapping[str, Any]) -> LiteralTerm:
        """Return the literal that a term of results is."""
        language = term.get("xml:lang")
        return cls(term["value"], language.lower() if language else None, term.get("datatype", XSD_STRING))


def is_literal(term: Mapping[str, Any]) -> bool:
    """Whether a term is a literal; older servers say so in another word if it has a type."""
    return term.get("type") in ("literal", "typed-literal")


def label(term: Mapping[str, Any]) -> str:
    """Return a term as RDF files have it: an IRI, _:name, or a literal as in N-Triples."""
    kind, value = term.get("type"), term["value"]
    if kind == "uri":
        return str(value)
    if kind == "bnode":
        return f"_:{value}"
    if not is_literal(term):
        raise DataError(f"expected IRIs, blank nodes and literals in results, got {kind!r}")
    literal = LiteralTerm.of(term)
    quoted = f'"{ESCAPED.sub(_escape, literal.value)}"'
    if literal.language:
        return f"{quoted}@{literal.language}"
    return quoted if literal.datatype == XSD_STRING else f"{quoted}^^<{literal.datatype}>"


def _escape(found: re.Match[str]) -> str:
    return ESCAPES.get(found[0], f"\\u{ord(found[0]):04X}")
