"""What Datalog and Prolog share: a rule is a clause of `predicted` over facts of `triple`."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from anyburl.export.clause import ANYTHING, Clause
from anyburl.export.writer import Writer
from anyburl.rules.rule import Atom, Constant, Term


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
