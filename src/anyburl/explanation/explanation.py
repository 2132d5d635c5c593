"""`Explanation`: why rules predict a triple, shown as a tree in the terminal and drawn in notebooks."""

from __future__ import annotations

from dataclasses import dataclass

from rich.tree import Tree

from anyburl.explanation.page import to_fragment
from anyburl.explanation.record import ExplanationRecord
from anyburl.explanation.render import to_tree


@dataclass(frozen=True, repr=False)
class Explanation(ExplanationRecord):
    __doc__ = ExplanationRecord.__doc__

    def __repr__(self) -> str:
        best = f", best {str(self.reasons[0].rule)!r}" if self.reasons else ""
        return f"Explanation({self.triple}: score {self.score:.3f}, {self.n_reasons} rules{best})"

    def __rich__(self) -> Tree:
        return to_tree(self)

    def _repr_html_(self) -> str:
        return to_fragment(self)
