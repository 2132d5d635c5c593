"""Path profiles: the arms among which a policy divides the cores."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl import checking


@dataclass(frozen=True, order=True)
class PathProfile:
    """Cyclic or acyclic, and the length of the rules: a path of n + 1 triples gives rules with n body atoms."""

    cyclic: bool
    rule_length: int

    def __post_init__(self) -> None:
        checking.flag("cyclic", self.cyclic)
        object.__setattr__(self, "rule_length", checking.whole("rule_length", self.rule_length, 1))

    def __str__(self) -> str:
        return f"{'cyclic' if self.cyclic else 'acyclic'} {self.rule_length}"
