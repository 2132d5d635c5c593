"""`Embedding`: vectors of entities and directed relations, and how they score answers. PyTorch is not needed for it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Embedding:
    """ComplEx: a row holds the real parts, then the imaginary parts. `relations` are directed, backward ones last."""

    entities: Floats
    relations: Floats

    @property
    def rank(self) -> int:
        """The number of complex dimensions."""
        return int(self.entities.shape[1]) // 2

    @cached_property
    def digest(self) -> str:
        """What tells one embedding from another."""
        return hashlib.blake2b(self.entities.tobytes() + self.relations.tobytes(), digest_size=16).hexdigest()

    def scores(self, entities: NDArray[np.integer], relations: NDArray[np.integer]) -> Floats:
        """Return the score of every entity as an answer to (entity, directed relation, ?): the real part of
        <entity, relation, conjugate of answer>, queries by entities.
        """
        return np.asarray(self.queries(entities, relations) @ self.entities.T, np.float32)

    def queries(self, entities: NDArray[np.integer], relations: NDArray[np.integer]) -> Floats:
        """Return the complex products of entity and relation."""
        first, second, rank = self.entities[entities], self.relations[relations], self.rank
        real, imaginary, by_real, by_imaginary = first[:, :rank], first[:, rank:], second[:, :rank], second[:, rank:]
        product = [real * by_real - imaginary * by_imaginary, real * by_imaginary + imaginary * by_real]
        return np.concatenate(product, axis=1)
