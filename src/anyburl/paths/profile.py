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

    @classmethod
    def parse(cls, text: str) -> PathProfile | None:
        """Return the profile that `str` writes as `text`, or None if there is none."""
        kind, _, length = text.partition(" ")
        if kind not in ("cyclic", "acyclic") or not (length.isascii() and length.isdecimal() and 0 < len(length) < 10):
            return None
        return cls(kind == "cyclic", int(length)) if int(length) else None

    def __str__(self) -> str:
        return f"{'cyclic' if self.cyclic else 'acyclic'} {self.rule_length}"
