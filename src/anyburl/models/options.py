"""`EmbedOptions`: how an embedding is trained."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypedDict

from anyburl.base import checking
from anyburl.base.checking import MOST_KEPT, Options, choice, option, real, whole

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
