"""Prolog as SWI-Prolog reads it: facts are `triple/3`, predictions are `predicted/3`."""

from __future__ import annotations

from anyburl.export.clause import Clause
from anyburl.export.writer import Writer
from anyburl.rules.rule import Atom, Constant, Term

DECLARATIONS = """\
:- encoding(utf8).
:- multifile triple/3.
:- dynamic triple/3, predicted/3.

"""


class PrologWriter(Writer):
    """A rule is a clause of `predicted`; labels are atoms."""

    comment = "%"

    def begin(self) -> str:
        return DECLARATIONS

    def write(self, clause: Clause) -> str:
        goals = [f"triple{_arguments(atom)}" for atom in clause.body]
        goals += [f"{_term(first)} \\== {_term(second)}" for first, second in clause.different]
        body = ",\n  ".join(goals)
        return f"{self.remark(clause)}predicted{_arguments(clause.head)} :-\n  {body}.\n"


def _arguments(atom: Atom) -> str:
    return f"({_term(atom.subject)}, {_atom(atom.relation)}, {_term(atom.object)})"


def _term(term: Term) -> str:
    return _atom(term.label) if isinstance(term, Constant) else str(term)


def _atom(label: str) -> str:
    """Quote a label; control characters are written by their numbers."""
    return "'" + "".join(map(_character, label)) + "'"


def _character(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    number = ord(character)
    return f"\\u{number:04x}" if number < 1 << 16 else f"\\U{number:08x}"
