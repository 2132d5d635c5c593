"""Options of what is fitted on known facts: `EmbedOptions` and `DistilOptions`.

Imports no compiler: the command line takes its flags from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

from anyburl.base import checking
from anyburl.base.checking import MOST_KEPT, Options, choice, option, real, whole
from anyburl.base.errors import InvalidOptionError

DEVICES = ("auto", "cpu", "cuda", "mps")
MOST_DIMENSIONS = 1 << 16
UNFINISHED = "unfinished"
"""What is kept of an unfinished training: options say that they may change when it is resumed."""

_option = partial(option, panel="Training")


class EmbedKeywords(TypedDict, total=False):
    """The fields of `EmbedOptions` as keywords."""

    rank: int
    epochs: int
    batch_size: int
    learning_rate: float
    regularisation: float
    relation_weight: float
    patience: int
    device: str
    seed: int
    threads: int | None


@dataclass(frozen=True, kw_only=True)
class EmbedOptions(Options):
    """How ComplEx is trained: on both queries of every triple of train, against all entities, with Adagrad.

    Training ends after `epochs`, or once the MRR on a sample of valid has not risen for `patience` looks at it; the
    best epoch is kept.
    """

    rank: int = _option(512, whole, 1, MOST_DIMENSIONS, help="Number of complex dimensions.")
    epochs: int = _option(
        100, whole, 1, MOST_KEPT, help="Maximum number of passes over the train split.", no_effect_on=(UNFINISHED,)
    )
    batch_size: int = _option(1000, whole, 1, MOST_KEPT, help="Triples per batch.")
    learning_rate: float = _option(0.1, checking.above_zero, help="Learning rate of Adagrad.")
    regularisation: float = _option(0.05, real, 0, help="Weight of the N3 regularisation.")
    relation_weight: float = _option(1.0, real, 0, help="Weight of the relation prediction loss.")
    patience: int = _option(
        4,
        whole,
        1,
        MOST_KEPT,
        help="Stop after this many evaluations on valid without a better MRR.",
        no_effect_on=(UNFINISHED,),
    )
    device: str = _option("auto", choice, DEVICES, help="Where to train", no_effect_on=(UNFINISHED,))
    seed: int = _option(0, whole, 0, help="Seed of all random numbers.")
    threads: int | None = checking.threads_option(no_effect_on=(UNFINISHED,))


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
