"""The interface of a language writer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar

from anyburl.export.clause import Clause
from anyburl.export.options import ExportOptions


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
        return None

    def remark(self, clause: Clause) -> str:
        """Return the text of a rule and its scores as a comment, which no label can end.

        It ends in a bracket, since Soufflé continues a line after a backslash. SPARQL and Cypher turn an escape
        like that of a line break into the character before they look for comments.
        """
        scores = clause.scores
        counts = f"{scores.support} of {'' if scores.exact else '~'}{scores.predictions}"
        text = " ".join(str(clause.rule).splitlines()).replace("\\u", "\\ u").replace("\\U", "\\ U")
        return f"{self.comment} {text}  [confidence {scores.confidence:.6g}, {counts}]\n"
