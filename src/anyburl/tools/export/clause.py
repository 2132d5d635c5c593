"""A rule in a form that every language can express: atoms over variables and entities, and which terms differ.

The token self is gone: b(A,self) is b(A,A). Under object identity every two terms differ; without it none have to.

The interface of a language writer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

from anyburl.rules.rule import Atom, Constant, Rule, Term, Variable
from anyburl.tools.export.options import ExportOptions

ANYTHING = Variable("_")
"""The other end of a fact that makes a rule without a body predict; it may be any entity."""

Pair = tuple[Term, Term]


@dataclass(frozen=True, slots=True)
class Scores:
    """What a rule is worth."""

    predictions: int
    support: int
    confidence: float
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Clause:
    """A rule to be written: no atom holds the token self, and `different` is every inequality that is not obvious."""

    rule: Rule
    scores: Scores
    head: Atom
    body: tuple[Atom, ...]
    different: tuple[Pair, ...]

    @property
    def start(self) -> Variable:
        """Where the body's path starts."""
        return self.rule.variable

    @property
    def constants(self) -> list[str]:
        """The labels of the entities that the rule names."""
        terms = (term for atom in (self.head, *self.body) for term in (atom.subject, atom.object))
        return list(dict.fromkeys(term.label for term in terms if isinstance(term, Constant)))

    @property
    def relations(self) -> list[str]:
        """The labels of its relations."""
        return list(dict.fromkeys(atom.relation for atom in (self.head, *self.body)))


def make_clause(rule: Rule, scores: Scores, *, object_identity: bool = True) -> Clause:
    """Write out what a rule means."""
    head = _without_self(rule.head)
    body: tuple[Atom, ...]
    if not rule.body:
        # h(X,c) <= predicts for every X that is a subject of h, whatever the object is.
        body = (_about_anything(rule),)
        different = _pairs(_terms((head,))) if object_identity else ()
    else:
        body = tuple(map(_without_self, rule.body))
        different = _pairs(_terms((*body, head))) if object_identity else ()
    return Clause(rule, scores, head, body, different)


def _without_self(atom: Atom) -> Atom:
    """Write b(A,self) as b(A,A)."""
    subject, object = atom.subject, atom.object
    if isinstance(object, Constant) and object.is_self:
        return Atom(atom.relation, subject, subject)
    return Atom(atom.relation, object, object) if isinstance(subject, Constant) and subject.is_self else atom


def _about_anything(rule: Rule) -> Atom:
    head = rule.head
    if isinstance(head.subject, Variable):
        return Atom(head.relation, head.subject, ANYTHING)
    return Atom(head.relation, ANYTHING, head.object)


def _terms(atoms: tuple[Atom, ...]) -> list[Term]:
    return list(dict.fromkeys(term for atom in atoms for term in (atom.subject, atom.object)))


def _pairs(terms: list[Term]) -> tuple[Pair, ...]:
    """Return every two terms, but for two entities, which differ anyway; a variable comes first."""
    pairs = (pair if isinstance(pair[0], Variable) else pair[::-1] for pair in combinations(terms, 2))
    return tuple((first, second) for first, second in pairs if isinstance(first, Variable))


class Writer(ABC):
    """Writes rules in one language: `begin`, every rule with `between` in between, `end`."""

    comment: ClassVar[str]
    """What starts a comment, which goes to the end of the line."""

    between: ClassVar[str] = "\n"

    def __init__(self, options: ExportOptions) -> None:
        self.options = options

    def begin(self) -> str:
        """Return what stands before the rules."""
        return ""

    @abstractmethod
    def write(self, clause: Clause) -> str:
        """Return a rule, with a remark before it."""

    def end(self) -> str:
        """Return what stands after the rules."""
        return ""

    def fault(self, clause: Clause) -> str | None:
        """Say why the language cannot say a rule, None if it can."""
        form = clause.rule.type.form
        return None if form.says_its_atoms else f"is {form.title}, which is not what its atoms say"

    def remark(self, clause: Clause) -> str:
        """Return the text of a rule and its scores as a comment, which no label can end.

        It ends in a bracket, since Soufflé continues a line after a backslash. SPARQL and Cypher turn an escape
        like that of a line break into the character before they look for comments.
        """
        scores = clause.scores
        counts = f"{scores.support} of {'' if scores.exact else '~'}{scores.predictions}"
        text = " ".join(str(clause.rule).splitlines()).replace("\\u", "\\ u").replace("\\U", "\\ U")
        return f"{self.comment} {text}  [confidence {scores.confidence:.6g}, {counts}]\n"
