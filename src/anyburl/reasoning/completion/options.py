"""Which missing facts to find. Imports no compiler, so the command line can take defaults and choices from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from anyburl.base import checking
from anyburl.base.errors import InvalidOptionError, OptionError

PER_CHOICES = ("relation", "subject", "question")
PROVENANCES = ("none", "rdf-star", "reification")
"""How RDF may say where facts come from; none: in comments."""

MIN_SCORE = 0.8  # where nothing else says how many facts there will be
AUTO = "auto"


@dataclass(frozen=True, kw_only=True)
class CompleteOptions:
    """Options of completion, checked on creation.

    Facts need a score of at least `min_score` (0.8 if nothing else limits them) and a calibrated probability of at
    least `min_probability`. Of these, the `top` best are kept `per` relation, subject or question (subject, relation,
    ?). `relations` and `subjects` are labels; the default is all. `functional` relations get one object per subject,
    and none if one is stated: pass labels, or "auto" to detect them in the data. With `types`, the relation that states
    types, subject and object must have a type known in their position. With `reasons`, each fact comes with the facts
    behind it.
    """

    min_score: float | None = None
    min_probability: float | None = None
    top: int | None = None
    per: str = "relation"
    relations: Sequence[str] | None = None
    subjects: Sequence[str] | None = None
    functional: Sequence[str] | str = ()
    types: str | None = None
    reasons: bool = False

    def __post_init__(self) -> None:
        for name in ("min_score", "min_probability"):
            value = getattr(self, name)
            if value is not None:
                checking.share(name, value)
        if self.top is not None:
            checking.whole("top", self.top, 1)
        checking.choice("per", self.per, PER_CHOICES)
        checking.flag("reasons", self.reasons)
        if self.types is not None and not isinstance(self.types, str):
            raise InvalidOptionError("types", "the label of a relation", self.types)
        for name in ("relations", "subjects", "functional"):
            value = getattr(self, name)
            if isinstance(value, str) and (name, value) != ("functional", AUTO):
                raise OptionError(f"{name} must be a list of labels, got the string {value!r}")
            if value is not None and not isinstance(value, str):
                object.__setattr__(self, name, checking.texts(name, value, "a list of labels"))

    @property
    def least(self) -> float:
        """The minimum score asked for."""
        if self.min_score is not None:
            return self.min_score
        return MIN_SCORE if self.top is None and self.min_probability is None else 0.0


class CompleteKeywords(TypedDict, total=False):
    """The fields of `CompleteOptions` as keywords."""

    min_score: float | None
    min_probability: float | None
    top: int | None
    per: str
    relations: Sequence[str] | None
    subjects: Sequence[str] | None
    functional: Sequence[str] | str
    types: str | None
    reasons: bool
