"""`EmbedOptions`: how an embedding is trained."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, TypedDict

from anyburl.errors import InvalidOptionError

DEVICES = ("auto", "cpu", "cuda", "mps")


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
        for name in ("rank", "epochs", "batch_size", "patience"):
            if getattr(self, name) < 1:
                raise InvalidOptionError(name, "at least 1", getattr(self, name))
        if not self.learning_rate > 0:
            raise InvalidOptionError("learning_rate", "more than 0", self.learning_rate)
        for name in ("regularisation", "relation_weight"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InvalidOptionError(name, "at least 0", getattr(self, name))
        if self.device not in DEVICES:
            raise InvalidOptionError("device", f"one of {', '.join(DEVICES)}", self.device)
        if self.threads is not None and self.threads < 1:
            raise InvalidOptionError("threads", "at least 1", self.threads)

    def to_json(self) -> dict[str, Any]:
        """Return all options as plain values."""
        return asdict(self)
