"""What Datalog and Prolog share: a rule is a clause of `predicted` over facts of `triple`.

Datalog as Soufflé reads it: facts are `triple`, predictions are `predicted`.

Prolog as SWI-Prolog reads it: facts are `triple/3`, predictions are `predicted/3`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from anyburl.rules.rule import Atom, Constant, Term
from anyburl.tools.export.clause import ANYTHING, Clause, Writer


class ClauseWriter(Writer):
    """Writes clauses; a language says how labels are quoted and inequality is written."""

    differs: ClassVar[str]

    @abstractmethod
    def quoted(self, label: str) -> str:
        """Return a label as the language writes it."""

    def write(self, clause: Clause) -> str:
        terms = [term for atom in (clause.head, *clause.body) for term in (atom.subject, atom.object)]
        terms += [term for pair in clause.different for term in pair]
        names = {term: self._term(term, is_alone=terms.count(term) == 1) for term in terms}

        def arguments(atom: Atom) -> str:
            return f"({names[atom.subject]}, {self.quoted(atom.relation)}, {names[atom.object]})"

        goals = [f"triple{arguments(atom)}" for atom in clause.body]
        goals += [f"{names[first]} {self.differs} {names[second]}" for first, second in clause.different]
        body = ",\n  ".join(goals)
        return f"{self.remark(clause)}predicted{arguments(clause.head)} :-\n  {body}.\n"

    def _term(self, term: Term, *, is_alone: bool) -> str:
        """Return a term as the language writes it; a variable that occurs once may be anything, which has no name."""
        if isinstance(term, Constant):
            return self.quoted(term.label)
        return str(ANYTHING if is_alone else term)


DATALOG_DECLARATIONS = """\
.decl triple(subject: symbol, relation: symbol, object: symbol)
.input triple
.decl predicted(subject: symbol, relation: symbol, object: symbol)
.output predicted

"""
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class DatalogWriter(ClauseWriter):
    """A rule is a clause of `predicted`; it does not see the predictions of others."""

    comment = "//"
    differs = "!="

    def begin(self) -> str:
        return DATALOG_DECLARATIONS

    def quoted(self, label: str) -> str:
        return '"' + "".join(ESCAPES.get(character, character) for character in label) + '"'


PROLOG_DECLARATIONS = """\
:- encoding(utf8).
:- multifile triple/3.
:- dynamic triple/3, predicted/3.

"""


class PrologWriter(ClauseWriter):
    """A rule is a clause of `predicted`; labels are atoms."""

    comment = "%"
    differs = "\\=="

    def begin(self) -> str:
        return PROLOG_DECLARATIONS

    def quoted(self, label: str) -> str:
        """Quote a label; control characters are written by their numbers."""
        return "'" + "".join(map(_character, label)) + "'"


def _character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
