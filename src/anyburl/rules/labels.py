"""Which labels the text of a rule can represent, and how to escape the others.

Text has no quotes: `h(X,Paris (Texas)) <= b(X,A)`. A label can be read back if its parentheses are balanced
and it does not look like a part of a rule. `escape_label` writes what cannot be carried as %28 and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from anyburl.errors import RuleError
from anyburl.triples.vocabulary import SELF_TOKEN

BLANK = r"^[\s\x1c-\x1f]+$"  # also what only Python takes for white space
SUSPICIOUS = rf"[(),\t\r\n]|^ | $|^[A-Z]?$|^me_myself_i$|{BLANK}"
"""Labels that match need a closer look; the others can be carried. (For Polars and for Python.)"""

_suspicious = re.compile(SUSPICIOUS)
_ends_an_atom = re.compile(r"\) *(?:,|<=)")
_looks_like_terms = re.compile(r"^[A-Z] *,|, *[A-Z]$")
_closes_an_atom = re.compile(r"^[A-Z] *\)")
_offending = re.compile(rf"{BLANK}|[(),\t\r\n]|^ | $")
_escapes = re.compile(r"(?:%[0-9A-Fa-f]{2})+")


def entity_fault(label: str) -> str | None:
    """Say why text cannot carry an entity's label, None if it can."""
    if not _suspicious.search(label):
        return None
    if len(label) == 1 and label.isupper() and label.isascii():
        return "reads as a variable"
    if label == SELF_TOKEN:
        return "reads as the token self"
    if looks_like_terms(label):
        return "reads as two terms"
    if not _balanced(label):
        return "has parentheses that do not match"
    return _common_fault(label)


def looks_like_terms(label: str) -> bool:
    """Return whether a label starts or ends like a variable beside another term: `Y,Z` is no entity."""
    return _looks_like_terms.search(label) is not None


def relation_fault(label: str) -> str | None:
    """Say why text cannot carry a relation's label, None if it can."""
    if not _suspicious.search(label):
        return None
    if _closes_an_atom.search(label):
        return "reads as the end of an atom"
    return _common_fault(label)


def unwritable_labels(entities: Iterable[str] = (), relations: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return the labels that the text of a rule cannot carry as they are, each with the reason."""
    checks = ((entities, entity_fault), (relations, relation_fault))
    return [(label, fault) for labels, check in checks for label in labels if (fault := check(label))]


def escape_label(label: str, *, is_entity: bool = True) -> str:
    """Write the characters that text cannot carry, and the percent sign, as %28 and the like."""
    escaped = label.replace("%", "%25")
    fault = entity_fault(escaped) if is_entity else relation_fault(escaped)
    if fault is None:
        return escaped
    escaped = _offending.sub(_encode, escaped)
    if not escaped:
        raise RuleError("expected a label, got an empty string")
    if is_entity and entity_fault(escaped):  # a variable or the token self: its first letter is enough
        escaped = f"%{ord(escaped[0]):02X}{escaped[1:]}"
    return escaped


def unescape_label(text: str) -> str:
    """Undo `escape_label`; a percent sign that starts no escape of text is left as it is."""
    return _escapes.sub(_decode, text) if "%" in text else text


def _common_fault(label: str) -> str | None:
    if not label:
        return "is empty"
    if re.search(r"[\t\r\n]", label):
        return "has a tab or a line break"
    if not label.strip():
        return "is blank"
    if label != label.strip(" "):
        return "starts or ends with a blank"
    if _ends_an_atom.search(label):
        return "reads as the end of an atom"
    return "has a comma and a blank, which other tools take for the end of a term" if ", " in label else None


def _balanced(label: str) -> bool:
    depth = 0
    for character in label:
        depth += (character == "(") - (character == ")")
        if depth < 0:
            return False
    return depth == 0


def _encode(match: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in match.group().encode())


def _decode(match: re.Match[str]) -> str:
    try:
        return bytes.fromhex(match.group().replace("%", "")).decode()
    except UnicodeDecodeError:
        return match.group()
