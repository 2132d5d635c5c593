"""Labels as terms of RDF, as they stand in N-Triples, Turtle and SPARQL, and back.

IRIs, blank nodes and literals are labels as `triples/rdf_reader.py` reads them; any other label becomes an IRI of our
own, which is that label again when it is read.
"""

from __future__ import annotations

import re
import sys
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
