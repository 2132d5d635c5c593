"""`EmbedOptions`: how an embedding is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from anyburl.base import checking

DEVICES = ("auto", "cpu", "cuda", "mps")
MOST_DIMENSIONS = 1 << 16


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
class EmbedOptions:
    """How ComplEx is trained: on both queries of every triple of train, against all entities, with Adagrad.

    `rank` is the number of complex dimensions. `regularisation` is the factor of the N3 norm, `relation_weight` that of
    the loss of guessing the relation from both entities. Training ends after `epochs`, or once the MRR on a sample of
    valid has not risen for `patience` looks at it; the best epoch is kept.
    """

    rank: int = 512
    epochs: int = 100
    batch_size: int = 1000
    learning_rate: float = 0.1
    regularisation: float = 0.05
    relation_weight: float = 1.0
    patience: int = 4
    device: str = "auto"
    seed: int = 0
    threads: int | None = None

    def __post_init__(self) -> None:
        checking.whole("rank", self.rank, 1, MOST_DIMENSIONS)
        for name in ("epochs", "batch_size", "patience"):
            checking.whole(name, getattr(self, name), 1, checking.MOST_KEPT)
        checking.above_zero("learning_rate", self.learning_rate)
        for name in ("regularisation", "relation_weight"):
            checking.real(name, getattr(self, name), 0)
        checking.choice("device", self.device, DEVICES)
        checking.whole("seed", self.seed, 0)
        checking.threads(self.threads)

    def to_json(self) -> dict[str, Any]:
        """Return all options as plain values."""
        return asdict(self)
