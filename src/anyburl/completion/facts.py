"""Facts in columns of ids, each with its score and evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.arrays import FactArrays


@dataclass(frozen=True)
class FactColumns:
    """Facts that rules imply, one row each."""

    triples: NDArray[np.int32]  # (rows, 3): subject, relation, object
    scores: NDArray[np.float64]
    rules: NDArray[np.int32]  # the best rule, a row of the rule set
    n_rules: NDArray[np.int32]  # how many rules agree

    @classmethod
    def of_answers(cls, found: FactArrays, scores: NDArray[np.float64], n_relations: int) -> Self:
        """Return answers (entity, directed relation, candidate) as facts."""
        backward = found.relations >= n_relations
        subjects = np.where(backward, found.candidates, found.entities)
        objects = np.where(backward, found.entities, found.candidates)
        triples = np.column_stack([subjects, found.relations % n_relations, objects]).astype(np.int32)
        return cls(triples, scores, found.rules, found.n_rules)

    @classmethod
    def empty(cls) -> Self:
        """Return no facts."""
        narrow = np.empty(0, np.int32)
        return cls(np.empty((0, 3), np.int32), np.empty(0), narrow, narrow)

    @classmethod
    def concat(cls, parts: Sequence[Self]) -> Self:
        """Return the facts of all parts, one after the other."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls.empty()
        return cls(
            np.vstack([part.triples for part in parts]),
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.rules for part in parts]),
            np.concatenate([part.n_rules for part in parts]),
        )

    def take(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> Self:
        """Return some of the facts, by a mask or by their rows."""
        return type(self)(self.triples[rows], self.scores[rows], self.rules[rows], self.n_rules[rows])

    def __len__(self) -> int:
        return len(self.scores)
