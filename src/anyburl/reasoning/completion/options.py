"""Which missing facts to find. Imports no compiler, so the command line can take defaults and choices from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

from anyburl.base import checking
from anyburl.base.checking import Options, option
from anyburl.base.errors import InvalidOptionError, OptionError

PER_CHOICES = ("relation", "subject", "question")
PROVENANCES = ("none", "rdf-star", "reification")
"""How RDF may say where facts come from; none: in comments."""

MIN_SCORE = 0.8  # where nothing else says how many facts there will be
AUTO, NONE = "auto", "none"
MOST_MISSING = 0.9
MISSING = f"a share from 0 to {MOST_MISSING}, or one for each of some relations"


PANEL = "Which facts"


def _labels(option: str, labels: Any) -> tuple[str, ...]:
    if isinstance(labels, str):
        raise OptionError(f"{option} must be a list of labels, got the string {labels!r}")
    return checking.texts(option, labels, "a list of labels")


def _labels_or_auto(option: str, labels: Any) -> tuple[str, ...] | str:
    return AUTO if isinstance(labels, str) and labels == AUTO else _labels(option, labels)


def check_proposes(aggregation: str) -> None:
    """Refuse an aggregation that proposes no facts."""
    if aggregation == "hybrid":
        raise OptionError(
            'aggregation="hybrid" ranks the answers to questions and proposes no facts: complete and calibrate with '
            '"tuned" or another'
        )


def check_missing(option: str, missing: Any) -> float | dict[str, float]:
    """Return the share of true facts that no split states, overall or by the label of a relation."""
    shares = missing if isinstance(missing, Mapping) else {"": missing}
    for label, share in shares.items():
        if not isinstance(label, str) or not isinstance(share, int | float) or not 0 <= share <= MOST_MISSING:
            raise InvalidOptionError(option, MISSING, missing)
    return {label: float(share) for label, share in shares.items()} if isinstance(missing, Mapping) else float(missing)


def parse_missing(text: str) -> float | dict[str, float]:
    """Return the value of a flag: 0.1, or a=0.1,b=0.2."""
    parts = [part.rpartition("=") for part in text.split(",")]
    try:
        if len(parts) == 1 and not parts[0][1]:
            return float(text)
        return {label: float(share) for label, _, share in parts if label} if all(p[0] for p in parts) else float(text)
    except ValueError:
        raise InvalidOptionError("missing", MISSING, text) from None


MISSING_HELP = (
    "Which share of the true facts is missing, such as 0.1, or of relations, such as a=0.1,b=0.2. The data cannot "
    "tell; by default, as many facts as the valid split has."
)


def _parse_labels(flag: str, text: str) -> tuple[str, ...]:
    labels = tuple(filter(None, checking.parse_texts(text)))
    if not labels:
        raise OptionError(f"{flag} takes labels such as a,b, got {text!r}")
    return labels


def _parse_functional(text: str) -> tuple[str, ...] | str:
    if text == AUTO:
        return AUTO
    return () if text == NONE else _parse_labels("--functional", text)


@dataclass(frozen=True, kw_only=True)
class CompleteOptions(Options):
    """Options of completion, checked on creation; `relations` and `subjects` are all by default."""

    min_score: float | None = option(
        None,
        checking.share,
        help=f"Minimum score. Defaults to {MIN_SCORE} without --top and --min-probability.",
        metavar="SCORE",
        panel=PANEL,
    )
    min_probability: float | None = option(
        None,
        checking.share,
        help="Minimum probability that a fact is true (see `anyburl calibrate`).",
        metavar="CHANCE",
        panel=PANEL,
    )
    top: int | None = option(
        None, checking.whole, 1, help="Keep the N best facts of each group (see --per).", metavar="N", panel=PANEL
    )
    per: str = option(
        "relation",
        checking.choice,
        PER_CHOICES,
        help="How --top groups facts; a question is (subject, relation, ?).",
        metavar="|".join(PER_CHOICES),
        panel=PANEL,
    )
    relations: Sequence[str] | None = option(
        None,
        _labels,
        help="Only facts of these relations.",
        parse=lambda text: _parse_labels("--relations", text),
        metavar="A,B",
        panel=PANEL,
    )
    subjects: Sequence[str] | None = option(
        None,
        _labels,
        help="Only facts about these subjects.",
        flag_help="One label per line.",
        parse=Path,
        metavar="FILE",
        panel=PANEL,
    )
    functional: Sequence[str] | str = option(
        AUTO,
        _labels_or_auto,
        help="These relations have one object per subject: propose nothing for subjects that have one, and only the "
        f"best object for the others. {AUTO} finds them in the data, {NONE} takes no relation for one.",
        parse=_parse_functional,
        metavar=f"A,B|{AUTO}|{NONE}",
        panel=PANEL,
    )
    exempt: Sequence[str] = option(
        (),
        _labels,
        help="Nothing that is stated contradicts facts of these relations.",
        parse=lambda text: _parse_labels("--exempt", text),
        metavar="A,B",
        panel=PANEL,
    )
    conflicts: bool = option(
        False,
        checking.flag,
        help="Also facts that stated ones contradict, with the stated fact.",
        flag="--conflicts",
        panel=PANEL,
    )
    missing: float | Mapping[str, float] | None = option(
        None, check_missing, help=MISSING_HELP, parse=parse_missing, metavar="SHARE", panel=PANEL
    )
    types: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="Require subject and object to have a type, stated by this relation, that is known in their position, or "
        "a subclass of it (rdfs:subClassOf).",
        metavar="RELATION",
        panel=PANEL,
    )
    reasons: bool = option(
        False, checking.flag, help="Include the facts that make the best rule predict each fact.", flag="--reasons"
    )

    @property
    def about_probabilities(self) -> str:
        """The name of an option that is given and makes sense only where scores are calibrated; "" if there is none."""
        given = (name for name in ("min_probability", "missing") if getattr(self, name) is not None)
        return next(given, "")

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
    exempt: Sequence[str]
    conflicts: bool
    missing: float | Mapping[str, float] | None
    types: str | None
    reasons: bool
