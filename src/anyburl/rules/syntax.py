"""Rules as text, as AnyBURL writes them: `h(X,Y) <= b(X,A), c(A,Y)`.

A term is a variable if it is one capital letter, the token self if it is `me_myself_i`, otherwise an entity. Text has
no quotes: `h(X,Paris (Texas)) <= b(X,A)`. Names may hold blanks, commas and parentheses where that leaves one way to
read the rule: an atom ends at a parenthesis that a comma follows, its arguments start at the parenthesis that matches
its last, and every atom has a variable. So a label can be read back if its parentheses are balanced and it does not
look like a part of a rule; `escape_label` writes other labels with %28 and the like.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from anyburl.base.errors import RuleError
from anyburl.data.vocabulary import SELF_TOKEN
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Term, Variable

BLANK = r"^[\s\x1c-\x1f]+$"  # also what only Python takes for white space
SUSPICIOUS = rf"[(),\t\r\n]|^ | $|^[A-Z]?$|^me_myself_i$|{BLANK}"
"""Labels that match need a closer look; the others can be carried. (For Polars and for Python.)"""

_suspicious = re.compile(SUSPICIOUS)
_ends_an_atom = re.compile(r"\) *(?:,|<=)")
_looks_like_terms = re.compile(r"^[A-Z] *,|, *[A-Z]$")
_closes_an_atom = re.compile(r"^[A-Z] *\)")
_offending = re.compile(rf"{BLANK}|[(),\t\r\n]|^ | $")
_escapes = re.compile(r"(?:%[0-9A-Fa-f]{2})+")
_arrow = re.compile(r"\) *<=")
_between_atoms = re.compile(r"\) *, *(?![A-Z] *\))")  # not inside b(Paris (Texas),Y)
_variable_first = re.compile(r"([A-Z]) *,(.+)", re.DOTALL)
_variable_last = re.compile(r"(.+), *([A-Z])", re.DOTALL)


def parse_rule(text: str, *, escaped: bool = False) -> Rule:
    """Parse the text of a rule; body atoms may be in any order. With `escaped`, undo `escape_label`."""
    if not isinstance(text, str):
        raise RuleError(f"expected the text of a rule, got {type(text).__name__}")
    arrow = _arrow.search(text)
    if arrow is None:
        raise RuleError(f"expected a head, '<=' and a body, got {text!r}")
    head = _parse_atom(text[: arrow.start()].strip(" "), escaped)
    rest = text[arrow.end() :].strip(" ")
    if not rest:
        return Rule(head, ())
    if not rest.endswith(")"):
        raise RuleError(f"expected a body that ends in ')', got {rest!r}")
    pieces = _between_atoms.split(rest)
    pieces[-1] = pieces[-1][:-1]
    return Rule(head, tuple(_parse_atom(piece.strip(" "), escaped) for piece in pieces))


def format_rule(rule: Rule, *, escaped: bool = False) -> str:
    """Write a rule as text. `parse_rule` reads it back if its labels are writable, or with `escaped` on both sides."""
    if not isinstance(rule, Rule):
        raise RuleError(f"expected a Rule, got {type(rule).__name__}")
    if not escaped:
        return str(rule)
    body = ", ".join(_format_atom(atom) for atom in rule.body)
    return f"{_format_atom(rule.head)} <= {body}"


def _format_atom(atom: Atom) -> str:
    relation = escape_label(atom.relation, is_entity=False)
    return f"{relation}({_format_term(atom.subject)},{_format_term(atom.object)})"


def _format_term(term: Term) -> str:
    return str(term) if isinstance(term, Variable) or term.is_self else escape_label(term.label)


def _parse_atom(text: str, escaped: bool) -> Atom:
    """Read an atom without its last parenthesis."""
    for opening in _openings(text):
        relation = text[:opening].strip(" ")
        terms = _split_terms(text[opening + 1 :])
        if relation.strip() and terms:
            label = unescape_label(relation) if escaped else relation
            return Atom(label, *(_parse_term(term, escaped) for term in terms))
    raise RuleError(f"expected an atom like r(X,Y) or r(X,entity), got {text + ')'!r}")


def _openings(text: str) -> list[int]:
    """Return where the arguments may start: first at the match of the last parenthesis, else anywhere."""
    everywhere = [index for index, character in enumerate(text) if character == "("]
    depth = 1
    for index in range(len(text) - 1, -1, -1):
        depth += (text[index] == ")") - (text[index] == "(")
        if depth == 0:
            return [index, *everywhere]
    return everywhere


def _split_terms(arguments: str) -> tuple[str, str] | None:
    """Split at the comma beside the variable, which is in the first place if both would do."""
    arguments = arguments.strip(" ")
    if match := _variable_first.fullmatch(arguments):
        subject, object = match.group(1), match.group(2).strip(" ")
    elif match := _variable_last.fullmatch(arguments):
        subject, object = match.group(1).strip(" "), match.group(2)
    else:
        return None
    return (subject, object) if subject.strip() and object.strip() else None


def _parse_term(text: str, escaped: bool) -> Term:
    if len(text) == 1 and "A" <= text <= "Z":
        return Variable(text)
    if text == SELF_TOKEN:
        return SELF
    if looks_like_terms(text):
        raise RuleError(f"expected two arguments, got three or more: {text!r} would be one of them")
    return Constant(unescape_label(text) if escaped else text)


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
