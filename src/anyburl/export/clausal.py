"""What Datalog and Prolog share: a rule is a clause of `predicted` over facts of `triple`."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from anyburl.export.clause import Clause
from anyburl.export.writer import Writer
from anyburl.rules.rule import Atom, Constant, Term


class ClauseWriter(Writer):
    """Writes clauses; a language says how labels are quoted and inequality is written."""

    differs: ClassVar[str]

    @abstractmethod
    def quoted(self, label: str) -> str:
        """Return a label as the language writes it."""

    def write(self, clause: Clause) -> str:
        goals = [f"triple{self._arguments(atom)}" for atom in clause.body]
        goals += [f"{self._term(first)} {self.differs} {self._term(second)}" for first, second in clause.different]
        body = ",\n  ".join(goals)
        return f"{self.remark(clause)}predicted{self._arguments(clause.head)} :-\n  {body}.\n"

    def _arguments(self, atom: Atom) -> str:
        return f"({self._term(atom.subject)}, {self.quoted(atom.relation)}, {self._term(atom.object)})"

    def _term(self, term: Term) -> str:
        return self.quoted(term.label) if isinstance(term, Constant) else str(term)
