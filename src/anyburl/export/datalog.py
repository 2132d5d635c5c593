"""Datalog as Soufflé reads it: facts are `triple`, predictions are `predicted`."""

from __future__ import annotations

from anyburl.export.clause import Clause
from anyburl.export.writer import Writer
from anyburl.rules.rule import Atom, Constant, Term

DECLARATIONS = """\
.decl triple(subject: symbol, relation: symbol, object: symbol)
.input triple
.decl predicted(subject: symbol, relation: symbol, object: symbol)
.output predicted

"""
ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class DatalogWriter(Writer):
    """A rule is a clause of `predicted`; it does not see the predictions of others."""

    comment = "//"

    def begin(self) -> str:
        return DECLARATIONS

    def write(self, clause: Clause) -> str:
        goals = [f"triple{_arguments(atom)}" for atom in clause.body]
        goals += [f"{_term(first)} != {_term(second)}" for first, second in clause.different]
        body = ",\n  ".join(goals)
        return f"{self.remark(clause)}predicted{_arguments(clause.head)} :-\n  {body}.\n"


def _arguments(atom: Atom) -> str:
    return f"({_term(atom.subject)}, {_text(atom.relation)}, {_term(atom.object)})"


def _term(term: Term) -> str:
    return _text(term.label) if isinstance(term, Constant) else str(term)


def _text(label: str) -> str:
    return '"' + "".join(ESCAPES.get(character, character) for character in label) + '"'
