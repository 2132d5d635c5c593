"""The types of rules, and the one code that stands for each of them in columns and kernels.

Path profiles: the arms among which a policy divides the cores.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from anyburl.base import checking


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


@dataclass(frozen=True, order=True)
class PathProfile:
    """Cyclic or acyclic, and the length of the rules: a path of n + 1 triples gives rules with n body atoms."""

    cyclic: bool
    rule_length: int

    def __post_init__(self) -> None:
        checking.flag("cyclic", self.cyclic)
        object.__setattr__(self, "rule_length", checking.whole("rule_length", self.rule_length, 1))

    @classmethod
    def parse(cls, text: str) -> PathProfile | None:
        """Return the profile that `str` writes as `text`, or None if there is none."""
        kind, _, length = text.partition(" ")
        if kind not in ("cyclic", "acyclic") or not (length.isascii() and length.isdecimal() and 0 < len(length) < 10):
            return None
        return cls(kind == "cyclic", int(length)) if int(length) else None

    def __str__(self) -> str:
        return f"{'cyclic' if self.cyclic else 'acyclic'} {self.rule_length}"
