"""Labels as terms of RDF, as they stand in N-Triples, Turtle and SPARQL.

IRIs, blank nodes and literals are labels as `triples/rdf.py` reads them; any other label becomes an IRI of our own.
"""

from __future__ import annotations

import re
from urllib.parse import quote

OWN = "urn:anyburl:"
"""How the IRIs of labels start that are none."""

_FORBIDDEN = r"\x00-\x20\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U000e0000-\U0010ffff<>\"{}|^`\\%\[\]#"
_HOST_CHARACTER = rf"(?:[^{_FORBIDDEN}/?:@]|%[0-9A-Fa-f]{{2}})"
_CHARACTER = rf"(?:[^{_FORBIDDEN}]|%[0-9A-Fa-f]{{2}})"
_AUTHORITY = rf"//(?:(?:{_HOST_CHARACTER}|:)*@)?(?:{_HOST_CHARACTER}*|\[[0-9A-Fa-f:.]+\])(?::[0-9]*)?(?=[/?#>]|$)"
_IRI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{_AUTHORITY}|(?!//)){_CHARACTER}*(?:#{_CHARACTER}*)?"
_ESCAPE = r"\\(?:[tbnrf\"'\\]|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8})"

IRI = re.compile(_IRI)
BLANK_NODE = re.compile(r"_:\w(?:[\w.-]*[\w-])?")
LITERAL = re.compile(rf'"(?:[^"\\\r\n]|{_ESCAPE})*"(?:@[A-Za-z]{{2,8}}(?:-[A-Za-z0-9]{{1,8}})*|\^\^<{_IRI}>)?')


def is_blank_node(label: str) -> bool:
    """Whether a label names a blank node."""
    return BLANK_NODE.fullmatch(label) is not None


def rdf_term(label: str, *, is_object: bool, base: str = OWN) -> str:
    """Return a label as a term; literals are objects only, and labels that are no terms become IRIs below `base`."""
    if is_blank_node(label) or (is_object and LITERAL.fullmatch(label)):
        return label
    return f"<{label}>" if IRI.fullmatch(label) else f"<{base}{quote(label, safe='')}>"
