"""The types of rules, and the one code that stands for each of them in columns and kernels."""

from __future__ import annotations

from enum import StrEnum


class RuleType(StrEnum):
    """The kinds of rules in the paper, and the zero rules of other tools' files.

    A type prints as its name ("B"); columns of rules hold its `code`.
    """

    BINARY = "B"
    UNARY_CONSTANT = "Uc"
    UNARY_DANGLING = "Ud"
    ZERO = "Z"

    @property
    def code(self) -> int:
        """What stands for the type in `RuleSet.type`: 0, 1, 2, ... in the order of the types."""
        return _CODES[self]


MAX_LENGTH = 7
"""Of a body that rules are learned with or applied: the witnesses of a longer way would not fit into one integer."""

# They are in the folders of runs that did not end: a change makes these unreadable.
_CODES = {RuleType.BINARY: 0, RuleType.UNARY_CONSTANT: 1, RuleType.UNARY_DANGLING: 2, RuleType.ZERO: 3}
