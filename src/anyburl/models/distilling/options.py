"""How many rules to keep, and by what they are chosen. Imports no compiler: the command line takes flags from here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from anyburl.base import checking
from anyburl.base.checking import Options, option, real, whole
from anyburl.base.errors import InvalidOptionError

QUALITY = 0.98
SIZE = "How many rules are kept"
EVIDENCE = "What they are chosen by"


def _relations(name: str, relations: Any) -> tuple[str, ...]:
    labels = checking.texts(name, relations, "a list of relations")
    if not labels:
        raise InvalidOptionError(name, "at least one relation", labels)
    return labels


class DistilKeywords(TypedDict, total=False):
    """The fields of `DistilOptions` as keywords."""

    rules: int | None
    per_relation: int | None
    quality: float | None
    relations: tuple[str, ...] | None
    facts: int | None
    seed: int


@dataclass(frozen=True, kw_only=True)
class DistilOptions(Options):
    """Options of distilling, checked on creation; without any size, `quality` is 0.98."""

    rules: int | None = option(None, whole, 1, checking.MOST_KEPT, help="Keep this many rules.", panel=SIZE)
    per_relation: int | None = option(
        None, whole, 1, checking.MOST_KEPT, help="Keep at most this many rules for each relation.", panel=SIZE
    )
    quality: float | None = option(
        None,
        real,
        0,
        1,
        help="Keep as few rules as rank held-out facts with this share of the MRR that all rules have.",
        panel=SIZE,
        shown={"show_default": f"{QUALITY:g}"},
    )
    relations: tuple[str, ...] | None = option(
        None,
        _relations,
        help="Keep rules for these relations only.",
        parse=checking.parse_texts,
        metavar="A,B",
        panel=SIZE,
    )
    facts: int | None = option(
        None,
        whole,
        2,
        help="Look at this many known facts: those of the valid split, then of train. Defaults to 32,000, and to more "
        "where many rules are to be kept: 100,000 for 5,000 rules or more, 150,000 for 200,000.",
        panel=EVIDENCE,
    )
    seed: int = option(0, whole, 0, help="Seed of the choice of facts.", panel=EVIDENCE)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rules is not None and self.quality is not None:
            raise InvalidOptionError("quality", "left out when {rules} is given", self.quality)
        if self.rules is None and self.per_relation is None and self.quality is None:
            object.__setattr__(self, "quality", QUALITY)
