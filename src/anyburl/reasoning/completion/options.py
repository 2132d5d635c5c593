"""Which missing facts to find. Imports no compiler, so the command line can take defaults and choices from here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from anyburl.base import checking
from anyburl.base.checking import Options, option
from anyburl.base.errors import OptionError

PER_CHOICES = ("relation", "subject", "question")
PROVENANCES = ("none", "rdf-star", "reification")
"""How RDF may say where facts come from; none: in comments."""

MIN_SCORE = 0.8  # where nothing else says how many facts there will be
AUTO = "auto"


WANTED = "Which facts"


def _labels(option: str, labels: Any) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise OptionError(f"{option} must be a list of labels, got the string {labels!r}")
    return checking.texts(option, labels, "a list of labels")


def _labels_or_auto(option: str, labels: Any) -> tuple[str, ...] | str:
    return AUTO if isinstance(labels, str) and labels == AUTO else _labels(option, labels)


def _parse_labels(flag: str, text: str) -> tuple[str, ...]:
    labels = tuple(filter(None, checking.parse_texts(text)))
    if not labels:
        raise OptionError(f"{flag} takes labels such as a,b, got {text!r}")
    return labels


@dataclass(frozen=True, kw_only=True)
class CompleteOptions(Options):
    """Options of completion, checked on creation; `relations` and `subjects` are all by default."""

    min_score: float | None = option(
        None,
        checking.share,
        help=f"Minimum score. Defaults to {MIN_SCORE} without --top and --min-probability.",
        metavar="SCORE",
        panel=WANTED,
    )
    min_probability: float | None = option(
        None,
        checking.share,
        help="Minimum calibrated probability (see `anyburl calibrate`).",
        metavar="CHANCE",
        panel=WANTED,
    )
    top: int | None = option(
        None, checking.whole, 1, help="Keep the N best facts of each group (see --per).", metavar="N", panel=WANTED
    )
    per: str = option(
        "relation",
        checking.choice,
        PER_CHOICES,
        help="How --top groups facts; a question is (subject, relation, ?).",
        metavar="|".join(PER_CHOICES),
        panel=WANTED,
    )
    relations: Sequence[str] | None = option(
        None,
        _labels,
        help="Only facts of these relations.",
        parse=lambda text: _parse_labels("--relations", text),
        metavar="A,B",
        panel=WANTED,
    )
    subjects: Sequence[str] | None = option(
        None,
        _labels,
        help="Only facts about these subjects.",
        flag_help="One label per line.",
        parse=Path,
        metavar="FILE",
        panel=WANTED,
    )
    functional: Sequence[str] | str = option(
        (),
        _labels_or_auto,
        help="These relations have one object per subject: propose nothing for subjects that have one, and only the "
        f"best object for the others. {AUTO} detects them in the data.",
        parse=lambda text: AUTO if text == AUTO else _parse_labels("--functional", text),
        metavar=f"A,B|{AUTO}",
        panel=WANTED,
    )
    types: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="Require subject and object to have a type, stated by this relation, that is known in their position, or "
        "a subclass of it (rdfs:subClassOf).",
        metavar="RELATION",
        panel=WANTED,
    )
    reasons: bool = option(
        False, checking.flag, help="Include the facts that make the best rule predict each fact.", flag="--reasons"
    )

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
