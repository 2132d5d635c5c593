"""Rules as text, as AnyBURL writes them: `h(X,Y) <= b(X,A), c(A,Y)`.

A term is a variable if it is one capital letter, the token self if it is `me_myself_i`, otherwise an entity.
Names may hold blanks, commas and parentheses where that leaves one way to read the rule (see `labels`): an
atom ends at a parenthesis that a comma follows, its arguments start at the parenthesis that matches its last,
and every atom has a variable.
"""

from __future__ import annotations

import re

from anyburl.errors import RuleError
from anyburl.rules.labels import escape_label, looks_like_terms, unescape_label
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Term, Variable
from anyburl.triples.vocabulary import SELF_TOKEN

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
    everywhere = [place for place, character in enumerate(text) if character == "("]
    depth = 1
    for place in range(len(text) - 1, -1, -1):
        depth += (text[place] == ")") - (text[place] == "(")
        if depth == 0:
            return [place, *everywhere]
    return everywhere


def _split_terms(arguments: str) -> tuple[str, str] | None:
    """Split at the comma beside the variable, which is in the first place if both would do."""
    arguments = arguments.strip(" ")
    if found := _variable_first.fullmatch(arguments):
        subject, object = found.group(1), found.group(2).strip(" ")
    elif found := _variable_last.fullmatch(arguments):
        subject, object = found.group(1).strip(" "), found.group(2)
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
