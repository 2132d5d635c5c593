"""The parts of a rule, atoms and conditions, each of which can tell its text, its words and the fact it stands for.

A condition is on numbers, dates or booleans: a unary rule may bound a value, `size(A) >= 10, size(A) < 20`; a binary
rule may compare the values that its two ends have of an attribute, `from(X) < from(Y)`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import ClassVar

from anyburl.base.errors import RuleError, quoted
from anyburl.data.attributes import AttributeKind, attributes_of, format_value, parse_value
from anyburl.data.vocabulary import SELF_TOKEN, Vocabulary

OpenFact = tuple[str | None, str, str | None]
"""Subject, relation and object by their labels; None is anything."""

COMPARED = {"<": (1.0, 2.0), "=": (0.0, 1.0), ">": (-1.0, 0.0)}
"""Comparisons as bounds: of 1, 0 or -1, as the second value is larger than the first, the same or smaller."""

_OPERATORS = {bounds: operator for operator, bounds in COMPARED.items()}
_TRUTHS = {(1.0, math.inf): "true", (-math.inf, 1.0): "false"}

_bound = re.compile(r"\(([A-Z])\) *(>=|<=|[<>=]) *([^,()]*)$")  # the last one of a body, without its attribute
_before_bound = re.compile(r"\)(?: *(?:>=|<=|[<>=])[^,()]*)? *, *")  # the end of an atom or of another bound
_operator = re.compile(r"\(([A-Z])\) *(>=|<=|[<>=]) *")  # of a comparison, after its first side
_side = re.compile(r"(.+)\(([A-Z])\)", re.DOTALL)
_ends_before = re.compile(r"(?:^|\) *, *)$")  # the end of the atoms, or their absence


def check_text(what: str, value: object) -> None:
    """Refuse what is not a text."""
    if not isinstance(value, str):
        raise RuleError(f"expected {what} as text, got {quoted(value)}")


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable: X and Y in the head, A, B, C, ... in the body."""

    name: str

    def __post_init__(self) -> None:
        check_text("the name of a variable", self.name)

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Constant:
    """An entity by its label, which may be any text; the token `self` is `SELF`, which equals no label."""

    label: str
    is_self: bool = False

    def __post_init__(self) -> None:
        check_text("the label of a constant", self.label)

    def __str__(self) -> str:
        return self.label


SELF = Constant(SELF_TOKEN, is_self=True)
"""Stands for the other argument: h(X, self) is h(X, X). No entity can be confused with it."""

Term = Variable | Constant


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation between two terms."""

    relation: str
    subject: Term
    object: Term
    is_value: ClassVar[bool] = False  # it is a fact

    def __post_init__(self) -> None:
        check_text("the relation of an atom", self.relation)
        for term in self.terms:
            if not isinstance(term, Variable | Constant):
                raise RuleError(f"expected a Variable or a Constant as an argument of an atom, got {quoted(term)}")

    @property
    def terms(self) -> tuple[Term, ...]:
        return self.subject, self.object

    @property
    def object_words(self) -> tuple[str | Term, ...]:
        """What a sentence says after the subject and the relation."""
        return (self.object,)

    def text(self, relation: Callable[[str], str] = str, entity: Callable[[str], str] = str) -> str:
        """Return the atom with its labels written by two functions, such as escaped, or as names."""
        written = (entity(term.label) if isinstance(term, Constant) and term != SELF else term for term in self.terms)
        return f"{relation(self.relation)}({','.join(map(str, written))})"

    def fact(self, entities: Mapping[Term, int], vocabulary: Vocabulary, *, with_values: bool = True) -> OpenFact:
        """Return the fact that the atom is for some entities, -1 for anything; `self` is the other one."""
        subject, object = (entities[term] for term in self.terms)
        subject, object = (
            object if subject == vocabulary.self_id else subject,
            subject if object == vocabulary.self_id else object,
        )
        return _label(vocabulary, subject), self.relation, _label(vocabulary, object)

    def __str__(self) -> str:
        return self.text()

    def other(self, term: Term) -> Term | None:
        """Return the argument across from `term`, or None if `term` is not an argument."""
        if self.subject == term:
            return self.object
        return self.subject if self.object == term else None


def _label(vocabulary: Vocabulary, entity: int) -> str | None:
    return vocabulary.entity_label(entity) if 0 <= entity < vocabulary.n_entities else None


@dataclass(frozen=True, slots=True)
class Condition:
    """Bounds on an attribute of a variable: it has a value v with low <= v < high.

    A bound that is infinite is none. A boolean is 0 or 1; a date counts the days since 1970-01-01. With another
    variable to compare with, `than`, the bounds are one of `COMPARED`: some value of the one compares so with some
    value of the other.
    """

    attribute: str
    variable: Variable
    low: float = -math.inf
    high: float = math.inf
    kind: AttributeKind = field(default=AttributeKind.NUMBER, compare=False)  # how bounds are written
    than: Variable | None = None
    is_value: ClassVar[bool] = True  # it is not a fact between entities

    def __post_init__(self) -> None:
        check_text("the attribute of a condition", self.attribute)
        object.__setattr__(self, "kind", AttributeKind(self.kind))
        if self.than is not None:
            if (self.low, self.high) not in _OPERATORS:
                raise RuleError(f"expected a comparison of two values by <, = or >, got {self.low} and {self.high}")
            return
        for name in ("low", "high"):
            bound = float(getattr(self, name)) + 0.0  # -0.0 becomes 0.0
            if self.kind is AttributeKind.DATE and math.isfinite(bound):
                bound = parse_value(format_value(bound, self.kind), self.kind) or bound  # to a millisecond, as written
            object.__setattr__(self, name, bound)
        if not (self.low < self.high) or (math.isinf(self.low) and math.isinf(self.high)):
            raise RuleError(f"expected a condition that some values satisfy and others do not, got {self}")

    @property
    def bounds(self) -> tuple[tuple[str, str], ...]:
        """The comparisons that the value has to satisfy, as operators and texts: (">=", "10"), ("<", "20"); of a
        comparison with another variable, the operator and that variable.
        """
        if self.than is not None:
            return ((_OPERATORS[self.low, self.high], str(self.than)),)
        if self.kind is AttributeKind.BOOLEAN and (self.low, self.high) in _TRUTHS:
            return (("=", _TRUTHS[self.low, self.high]),)
        both = ((">=", self.low), ("<", self.high))
        return tuple((operator, format_value(bound, self.kind)) for operator, bound in both if math.isfinite(bound))

    @property
    def words(self) -> str:
        """The condition in words: "at least 10 and less than 20", "before 1900-01-01", "true", "less than"."""
        is_date = self.kind is AttributeKind.DATE
        words = {"<": "before" if is_date else "less than", ">=": "from" if is_date else "at least", "=": ""}
        if self.than is not None:
            words |= {">": "after" if is_date else "greater than", "=": "the same as"}
            return words[self.bounds[0][0]]
        return " and ".join(f"{words[operator]} {bound}".lstrip() for operator, bound in self.bounds)

    def holds(self, value: float, other: float = 0.0) -> bool:
        """Whether a value satisfies the condition, of a comparison: beside a value of the other variable."""
        return self.low <= (value if self.than is None else (other > value) - (other < value)) < self.high

    def turned(self) -> Condition:
        """Return a comparison with its sides exchanged."""
        assert self.than is not None
        return replace(self, variable=self.than, than=self.variable, low=-self.low + 0.0, high=1.0 - self.low)

    def renamed(self, names: Mapping[object, Variable]) -> Condition:
        """Return the condition with other names of variables."""
        than = self.than and names[self.than]
        return replace(self, variable=names[self.variable], than=than)

    @property
    def relation(self) -> str:
        """The attribute, as the relation between an entity and its value."""
        return self.attribute

    @property
    def subject(self) -> Variable:
        return self.variable

    @property
    def terms(self) -> tuple[Term, ...]:
        return (self.variable,) if self.than is None else (self.variable, self.than)

    @property
    def object_words(self) -> tuple[str | Term, ...]:
        """What a sentence says after "the size of X is"."""
        return (self.words,) if self.than is None else (f"{self.words} that of ", self.than)

    def text(self, relation: Callable[[str], str] = str, entity: Callable[[str], str] = str) -> str:
        """Return the condition with the attribute written by a function, such as escaped, or as a name."""
        name = relation(self.attribute)
        sides = [(operator, bound if self.than is None else f"{name}({bound})") for operator, bound in self.bounds]
        return ", ".join(f"{name}({self.variable}) {operator} {side}" for operator, side in sides)

    def fact(self, entities: Mapping[Term, int], vocabulary: Vocabulary, *, with_values: bool = True) -> OpenFact:
        """Return the value of an entity that satisfies the condition, beside the condition, in the place of an object;
        without values, as where there are none, only the condition.
        """
        labels = {term: _label(vocabulary, entities[term]) for term in self.terms}
        shown = "".join(piece if isinstance(piece, str) else str(labels[piece]) for piece in self.object_words)
        if with_values:
            known = attributes_of(vocabulary)[self.attribute]
            pairs = product(*(known.values_of(entities[term]).tolist() for term in self.terms))
            values = [known.format(value) for value in next(pair for pair in pairs if self.holds(*pair))]
            if self.than is not None:
                shown = f"{values[0]}, {self.words} {values[1]} of {labels[self.than]}"
            elif values[0] != self.words:  # true
                shown = f"{values[0]}, {self.words}"
        return labels[self.variable], self.attribute, shown

    def __str__(self) -> str:
        return self.text()


Part = Atom | Condition


def parse_conditions(body: str, read: Callable[[str], str]) -> tuple[str, Condition | None]:
    """Return the atoms of a body, and the condition that follows them; `read` turns the text of an attribute into its
    label.
    """
    if _side.fullmatch(body):  # an atom ends in two arguments
        return _parse_comparison(body, read)
    condition = None
    while not body.endswith(")") and (match := _bound.search(body)):
        variable, operator, value = match.groups()
        before = list(_before_bound.finditer(body, 0, match.start()))
        start = before[-1].end() if before else 0
        attribute = body[start : match.start()]
        if not attribute.strip():
            break
        one = _parse_bound(read(attribute), variable, operator, value)
        condition = one if condition is None else _both(one, condition)
        body = body[:start].rstrip(" ,")
    return body, condition


def _parse_comparison(body: str, read: Callable[[str], str]) -> tuple[str, Condition | None]:
    """Return the atoms of a body that ends in a comparison of an attribute of two variables, and the comparison."""
    for match in _operator.finditer(body):
        side = _side.fullmatch(body, match.end())
        start = match.start() - (len(side[1]) if side else 0)
        if side is None or start < 0 or body[start : match.start()] != side[1] or not _ends_before.search(body[:start]):
            continue
        if match[2] not in COMPARED:
            break
        condition = Condition(read(side[1]), Variable(match[1]), *COMPARED[match[2]], than=Variable(side[2]))
        return body[:start].rstrip(" ,"), condition
    raise RuleError(f"expected a comparison of one attribute by <, = or >, such as size(X) < size(Y), got {body!r}")


def _parse_bound(attribute: str, variable: str, operator: str, text: str) -> Condition:
    kinds = (AttributeKind.NUMBER, AttributeKind.BOOLEAN, AttributeKind.DATE)  # 1 and 1999 are numbers
    read = [(kind, value) for kind in kinds if (value := parse_value(text, kind)) is not None]
    written = f"{attribute}({variable}) {operator} {text}"
    if not read:
        raise RuleError(f"expected a number, a date such as 1999-12-31, true or false in a condition, got {written!r}")
    kind, value = read[0]
    if (operator == "=") != (kind is AttributeKind.BOOLEAN) or operator not in (">=", "<", "="):
        raise RuleError(f"expected a condition with >= or < and a number or date, or = true, got {written!r}")
    if operator == "=":
        low, high = next(bounds for bounds, truth in _TRUTHS.items() if truth == format_value(value, kind))
        return Condition(attribute, Variable(variable), low, high, kind)
    low, high = (value, math.inf) if operator == ">=" else (-math.inf, value)
    return Condition(attribute, Variable(variable), low, high, kind)


def _both(one: Condition, other: Condition) -> Condition:
    """Return the condition that both cuts make together."""
    if (one.attribute, one.variable) != (other.attribute, other.variable) or (
        math.isfinite(one.low) == math.isfinite(other.low)
    ):
        raise RuleError(f"expected one condition, or a lower and an upper bound on one value, got {one} and {other}")
    return replace(one, low=max(one.low, other.low), high=min(one.high, other.high))
