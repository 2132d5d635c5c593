"""What came of reading a file of rules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReadReport:
    """How many rules were read, and what was not.

    `rejected` has the line number and the reason of each line that is neither a rule nor a comment nor blank;
    `n_unknown` counts rules with labels that are not in the vocabulary that was asked for.
    """

    n_rules: int
    n_comments: int = 0
    rejected: list[tuple[int, str]] = field(default_factory=list)
    n_unknown: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every rule of the file was read."""
        return not self.rejected and not self.n_unknown

    def __str__(self) -> str:
        parts = [f"{self.n_rules} rules read"]
        if self.rejected:
            line, reason = self.rejected[0]
            parts.append(f"{len(self.rejected)} lines are no rules (line {line}: {reason})")
        if self.n_unknown:
            parts.append(f"{self.n_unknown} rules have labels that the data has not")
        return "; ".join(parts)
