"""Rules for people: small, immutable, hashable, printable.

Millions of rules are columns (`anyburl.rules.columns`); a `Rule` is the view of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from anyburl.base.errors import RuleError, quoted
from anyburl.data.vocabulary import SELF_TOKEN
from anyburl.rules.types import TYPE_OF_END, End, RuleType

BODY_VARIABLES = "ABCDEFGHIJKLMNOPQRSTUVWZ"
"""Names of the variables that occur in the body only, in order along the path."""

MAX_BODY_ATOMS = len(BODY_VARIABLES)


def _check_text(what: str, value: object) -> None:
    if not isinstance(value, str):
        raise RuleError(f"expected {what} as text, got {quoted(value)}")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: X and Y in the head, A, B, C, ... in the body."""

    name: str

    def __post_init__(self) -> None:
        _check_text("the name of a variable", self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity by its label, which may be any text; the token `self` is `SELF`, which equals no label."""

    label: str
    is_self: bool = False

    def __post_init__(self) -> None:
        _check_text("the label of a constant", self.label)

    def __str__(self) -> str:
        return self.label


SELF = Constant(SELF_TOKEN, is_self=True)
"""Stands for the other argument: h(X, self) is h(X, X). No entity can be confused with it."""

Term = Variable | Constant

X = Variable("X")
Y = Variable("Y")


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation between two terms."""

    relation: str
    subject: Term
    object: Term

    def __post_init__(self) -> None:
        _check_text("the relation of an atom", self.relation)
        for term in (self.subject, self.object):
            if not isinstance(term, Variable | Constant):
                raise RuleError(f"expected a Variable or a Constant as an argument of an atom, got {quoted(term)}")

    def __str__(self) -> str:
        return f"{self.relation}({self.subject},{self.object})"

    def other(self, term: Term) -> Term | None:
        """Return the argument across from `term`, or None if `term` is not an argument."""
        if self.subject == term:
            return self.object
        return self.subject if self.object == term else None


@dataclass(frozen=True, slots=True)
class Rule:
    """A head and the body that predicts it.

    The body is a path: from X to Y in a binary rule, from the head's only variable to a constant or a
    dangling variable in a unary rule. However its atoms are given, they are put in the order of the path and
    variables are named in that order, so that rules that say the same are equal. Anything else raises
    `RuleError`.
    """

    head: Atom
    body: tuple[Atom, ...]
    type: RuleType = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.body, Iterable):
            raise RuleError(f"expected the atoms of a body, got {quoted(self.body)}")
        body = tuple(self.body)
        for atom in (self.head, *body):
            if not isinstance(atom, Atom):
                raise RuleError(f"expected an Atom, got {quoted(atom)}")
        head, body = _arrange(self.head, body)
        object.__setattr__(self, "head", head)
        object.__setattr__(self, "body", body)
        object.__setattr__(self, "type", _type(head, body))

    @property
    def length(self) -> int:
        """The number of body atoms."""
        return len(self.body)

    @property
    def variable(self) -> Variable:
        """Where the body's path starts: X, or Y if the head's subject is a constant."""
        return X if isinstance(self.head.subject, Variable) else Y

    def __str__(self) -> str:
        return f"{self.head} <= {', '.join(map(str, self.body))}"

    def __repr__(self) -> str:
        return f"Rule({str(self)!r})"


def _type(head: Atom, body: tuple[Atom, ...]) -> RuleType:
    """Tell the type of a rule that is in order."""
    if isinstance(head.subject, Variable) and isinstance(head.object, Variable):
        return TYPE_OF_END[End.HEAD]
    if not body:
        return TYPE_OF_END[End.NOTHING]
    is_grounded = any(isinstance(term, Constant) for term in (body[-1].subject, body[-1].object))
    return TYPE_OF_END[End.CONSTANT if is_grounded else End.VARIABLE]


def _arrange(head: Atom, body: tuple[Atom, ...]) -> tuple[Atom, tuple[Atom, ...]]:
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
    return _rename(head, names), ordered


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
