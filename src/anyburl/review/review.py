"""One verdict on one fact."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Self
from uuid import uuid4

from anyburl.errors import DataError, InvalidOptionError
from anyburl.reading import is_text

VERDICTS = ("accepted", "rejected", "withdrawn")
LONGEST_NOTE = 10_000
LONGEST_LABEL = 100_000

Fact = tuple[str, str, str]


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


@dataclass(frozen=True)
class Review:
    """What a reader says about a fact; "withdrawn" takes an earlier verdict back."""

    triple: Fact
    verdict: str
    note: str = ""
    reader: str = ""
    time: str = field(default_factory=_now)
    id: str = field(default_factory=lambda: uuid4().hex)

    def __post_init__(self) -> None:
        object.__setattr__(self, "triple", tuple(self.triple))
        texts = (*self.triple, self.verdict, self.note, self.reader, self.time, self.id)
        if len(self.triple) != 3 or not all(isinstance(text, str) for text in texts):
            raise DataError(f"expected a review of a subject, a relation and an object, got {self.triple!r:.200}")
        if not all(0 < len(label) <= LONGEST_LABEL and is_text(label) for label in self.triple):
            raise DataError("expected a review of a fact with labels, got one that is empty, far too long or no text")
        if self.verdict not in VERDICTS:
            raise InvalidOptionError("verdict", f"one of {', '.join(VERDICTS)}", self.verdict)
        for name in ("note", "reader"):
            if len(getattr(self, name)) > LONGEST_NOTE:
                raise InvalidOptionError(name, f"at most {LONGEST_NOTE:,} characters", f"{getattr(self, name)[:20]}...")

    def to_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes."""
        return {
            "id": self.id,
            "time": self.time,
            "triple": list(self.triple),
            "verdict": self.verdict,
            "note": self.note,
            "reader": self.reader,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """Return a review that was stored; what is none is a `DataError` or an `InvalidOptionError`."""
        try:
            return cls(**{name: stored[name] for name in ("triple", "verdict", "note", "reader", "time", "id")})
        except (KeyError, TypeError) as error:
            raise DataError(f"expected a review, got {stored!r:.200}") from error
