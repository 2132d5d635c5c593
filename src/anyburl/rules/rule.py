"""Rules for people, small and immutable, and their text as AnyBURL writes it: `h(X,Y) <= b(X,A), c(A,Y)`.

Millions of rules are columns (`anyburl.rules.columns`); a `Rule` is the view of one of them.

A term is a variable if it is one capital letter, the token self if it is `me_myself_i`, otherwise an entity. Text has
no quotes: `h(X,Paris (Texas)) <= b(X,A)`. Names may hold blanks, commas and parentheses where that leaves one way to
read the rule: an atom ends at a parenthesis that a comma follows, its arguments start at the parenthesis that matches
its last, and every atom has a variable. So a label can be read back if its parentheses are balanced and it does not
look like a part of a rule; `escape_label` writes other labels with %28 and the like.

A condition follows the atoms: `h(X,c) <= made_by(X,A), employees(A) < 50`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from anyburl.base.errors import RuleError, quoted
from anyburl.data.names import Names
from anyburl.data.vocabulary import SELF_TOKEN, Vocabulary
from anyburl.rules.parts import SELF as SELF
from anyburl.rules.parts import Atom as Atom
from anyburl.rules.parts import Condition as Condition
from anyburl.rules.parts import Constant as Constant
from anyburl.rules.parts import OpenFact as OpenFact
from anyburl.rules.parts import Part as Part
from anyburl.rules.parts import Term as Term
from anyburl.rules.parts import Variable as Variable
from anyburl.rules.parts import parse_conditions
from anyburl.rules.types import TYPE_OF_END, End, RuleType

BODY_VARIABLES = "ABCDEFGHIJKLMNOPQRSTUVWZ"
"""Names of the variables that occur in the body only, in order along the path."""

MAX_BODY_ATOMS = len(BODY_VARIABLES)


X = Variable("X")
Y = Variable("Y")


@dataclass(frozen=True, slots=True)
class Rule:
    """A head and the body that predicts it.

    The body is a path: from X to Y in a binary rule, from the head's only variable to a constant or a
    dangling variable in a unary rule. However its atoms are given, they are put in the order of the path and
    variables are named in that order, so that rules that say the same are equal. A unary rule may have a condition
    on its last variable, at most one step from the head's, a binary rule one that compares the values of X and Y.
    Anything else raises `RuleError`.
    """

    head: Atom
    body: tuple[Atom, ...]
    condition: Condition | None = None
    type: RuleType = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.body, Iterable):
            raise RuleError(f"expected the atoms of a body, got {quoted(self.body)}")
        body = tuple(self.body)
        for atom in (self.head, *body):
            if not isinstance(atom, Atom):
                raise RuleError(f"expected an Atom, got {quoted(atom)}")
        if not isinstance(self.condition, Condition | None):
            raise RuleError(f"expected a Condition, got {quoted(self.condition)}")
        head, body, condition = _arrange(self.head, body, self.condition)
        object.__setattr__(self, "head", head)
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "condition", condition)
        object.__setattr__(self, "type", _type(head, body, condition))

    @property
    def parts(self) -> tuple[Part, ...]:
        """All that the body says, in order: its atoms, then its condition. Whoever shows a rule loops over this."""
        return self.body if self.condition is None else (*self.body, self.condition)

    @property
    def length(self) -> int:
        """The number of parts."""
        return len(self.parts)

    @property
    def variable(self) -> Variable:
        """Where the body's path starts: X, or Y if the head's subject is a constant."""
        return X if isinstance(self.head.subject, Variable) else Y

    @property
    def path(self) -> tuple[Term, ...]:
        """The terms along the body, one more than it has atoms."""
        terms: list[Term] = [self.variable]
        for atom in self.body:
            there = atom.other(terms[-1])
            assert there is not None
            terms.append(there)
        return tuple(terms)

    @property
    def steps(self) -> tuple[tuple[str, bool], ...]:
        """The relations of all parts, and whether the path follows each forward."""
        ends = zip(self.path, self.parts, strict=False)
        return tuple((part.relation, part.is_value or part.subject == here) for here, part in ends)

    def text(self, relation: Callable[[str], str] = str, entity: Callable[[str], str] = str) -> str:
        """Return the rule with its labels written by two functions, such as escaped, or as names."""
        head, *body = (part.text(relation, entity) for part in (self.head, *self.parts))
        return f"{head} <= {', '.join(body)}"

    def named(self, names: Names) -> str:
        """Return the rule with the names of its relations and constants."""
        return self.text(names.get, names.get)

    def facts(self, walk: Iterable[int], vocabulary: Vocabulary, *, with_values: bool = True) -> tuple[OpenFact, ...]:
        """Return what each part says of the entities along the path, -1 for anything; see `Condition.fact`."""
        entities = dict(zip(self.path, walk, strict=False))
        return tuple(part.fact(entities, vocabulary, with_values=with_values) for part in self.parts)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Rule({str(self)!r})"


def _type(head: Atom, body: tuple[Atom, ...], condition: Condition | None) -> RuleType:
    """Return the type of a valid rule."""
    if condition is not None:
        return TYPE_OF_END[End.VALUE if condition.than is None else End.COMPARED]
    if isinstance(head.subject, Variable) and isinstance(head.object, Variable):
        return TYPE_OF_END[End.HEAD]
    if not body:
        return TYPE_OF_END[End.NOTHING]
    is_grounded = any(isinstance(term, Constant) for term in (body[-1].subject, body[-1].object))
    return TYPE_OF_END[End.CONSTANT if is_grounded else End.VARIABLE]


def _arrange(
    head: Atom, body: tuple[Atom, ...], condition: Condition | None
) -> tuple[Atom, tuple[Atom, ...], Condition | None]:
    """Order the body as a path from the head's variable and name the variables along it."""
    goal = _check_head(head)
    start = head.subject if isinstance(head.subject, Variable) else head.object
    if not body and goal is not None:
        raise RuleError(f"a rule with two variables in its head needs a body, got {head} <= ")
    if len(body) > MAX_BODY_ATOMS:
        raise RuleError(f"expected at most {MAX_BODY_ATOMS} body atoms, got {len(body)}")
    path = _path(start, goal, body)
    names = _names(head, [start, *(term for _, term in path)])
    ordered = tuple(_rename(atom, names) for atom, _ in path)
    if condition is not None:
        condition = _placed(condition, head, path, goal).renamed(
            {a: b for a, b in names.items() if isinstance(b, Variable)}
        )
    return _rename(head, names), ordered, condition


def _placed(condition: Condition, head: Atom, path: list[tuple[Atom, Term]], goal: Variable | None) -> Condition:
    """Return the condition of a rule as it is written: a comparison begins with the head's subject."""
    if goal is not None:
        if {condition.variable, condition.than} != {head.subject, goal}:
            raise RuleError(f"a condition of a binary rule compares both variables of its head, got {condition}")
        return condition if condition.variable == head.subject else condition.turned()
    if condition.than is not None or len(path) > 1:
        raise RuleError(f"a condition belongs to a unary rule with at most one atom, got {condition} in {head} <= ...")
    end = path[-1][1] if path else head.subject if isinstance(head.subject, Variable) else head.object
    if condition.variable != end:
        raise RuleError(f"a condition is on the last variable of the body, got {condition} where that is {end}")
    return condition


def _check_head(head: Atom) -> Variable | None:
    """Return the variable where a binary rule's body must end, None for a unary rule."""
    variables = [term for term in (head.subject, head.object) if isinstance(term, Variable)]
    if not variables:
        raise RuleError(f"expected one or two variables in the head, got {head}")
    if len(variables) == 2 and variables[0] == variables[1]:
        raise RuleError(f"expected two different variables in the head, got {head}")
    return variables[1] if len(variables) == 2 else None


def _path(start: Term, goal: Variable | None, body: tuple[Atom, ...]) -> list[tuple[Atom, Term]]:
    """Return the atoms in the order of the path from `start`, each with the term that it leads to."""
    remaining = list(body)
    path: list[tuple[Atom, Term]] = []
    here, seen = start, {start}
    while remaining:
        steps = [atom for atom in remaining if isinstance(here, Variable) and atom.other(here) is not None]
        if len(steps) != 1 or here == goal:
            raise RuleError(f"the body is not one path from {start}: {_listed(body)}")
        there = steps[0].other(here)
        assert there is not None
        if there in seen and isinstance(there, Variable):
            raise RuleError(f"the body returns to {there}: {_listed(body)}")
        remaining.remove(steps[0])
        path.append((steps[0], there))
        here, seen = there, seen | {there}
    if goal is not None and here != goal:
        raise RuleError(f"the body does not lead from {start} to {goal}: {_listed(body)}")
    return path


def _names(head: Atom, terms: Iterable[Term]) -> dict[Term, Term]:
    names: dict[Term, Term] = {}
    if isinstance(head.subject, Variable):
        names[head.subject] = X
    if isinstance(head.object, Variable):
        names[head.object] = Y
    letters = iter(BODY_VARIABLES)
    for term in terms:
        if isinstance(term, Variable) and term not in names:
            names[term] = Variable(next(letters))
    return names


def _rename(atom: Atom, names: dict[Term, Term]) -> Atom:
    return Atom(atom.relation, names.get(atom.subject, atom.subject), names.get(atom.object, atom.object))


def _listed(body: tuple[Atom, ...]) -> str:
    return ", ".join(map(str, body))


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
    rest, condition = parse_conditions(text[arrow.end() :].strip(" "), unescape_label if escaped else str)
    if not rest:
        return Rule(head, (), condition)
    if not rest.endswith(")"):
        raise RuleError(f"expected a body that ends in ')' or a condition such as size(X) >= 100, got {rest!r}")
    pieces = _between_atoms.split(rest)
    pieces[-1] = pieces[-1][:-1]
    return Rule(head, tuple(_parse_atom(piece.strip(" "), escaped) for piece in pieces), condition)


def format_rule(rule: Rule, *, escaped: bool = False) -> str:
    """Write a rule as text. `parse_rule` reads it back if its labels are writable, or with `escaped` on both sides."""
    if not isinstance(rule, Rule):
        raise RuleError(f"expected a Rule, got {type(rule).__name__}")
    return rule.text(partial(escape_label, is_entity=False), escape_label) if escaped else str(rule)


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
