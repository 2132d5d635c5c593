"""Rules as columns: tens of millions of them, never as objects.

The data only, checked once on creation. Everything else in this stage imports this file, which itself imports only what
checks and measures columns.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from anyburl import checking
from anyburl.rules.types import RuleType
from anyburl.ruleset import measures
from anyburl.ruleset.checks import check_columns, owned_column
from anyburl.ruleset.measures import MEASURES
from anyburl.triples.vocabulary import Vocabulary

Rows = slice | NDArray[Any]

COLUMN_TYPES = {
    "type": np.uint8,
    "head": np.int32,
    "body": np.int32,
    "head_constant": np.int32,
    "body_constant": np.int32,
    "predictions": np.int64,
    "support": np.int32,
    "exact": np.bool_,
}


@dataclass(frozen=True, eq=False, repr=False)
class RuleColumns:
    """Rules and their scores, one column per property; all arrays are read-only.

    With R relations, a directed relation d is relation d read forward if d < R, and d - R read backward
    otherwise. Unary heads h(X, c) have d = h, heads h(c, Y) have d = h + R.
    """

    vocabulary: Vocabulary
    bodies: NDArray[np.int32]
    """(m, L) distinct bodies: directed relations along the path from the head's variable, padded with -1."""
    type: NDArray[np.uint8]
    """The code of each rule's `RuleType`."""
    head: NDArray[np.int32]
    """Directed relation of the head; forward in binary rules."""
    body: NDArray[np.int32]
    """Row of `bodies`."""
    head_constant: NDArray[np.int32]
    """Entity, the vocabulary's `self_id`, or -1 in binary rules."""
    body_constant: NDArray[np.int32]
    """Entity or `self_id` at the end of the last body atom, -1 where that is a variable."""
    predictions: NDArray[np.int64]
    support: NDArray[np.int32]
    exact: NDArray[np.bool_]
    """Whether predictions and support are exact, not estimated from a sample."""
    margin: NDArray[np.float32] | None = None
    """How far the true confidence may be from that of estimated counts (95 % interval): 0 where they are exact, NaN
    where that is not known; None if it is not known of any rule."""
    pca_confidence: NDArray[np.float64] | None = None
    """Support / the predictions that the partial completeness assumption can judge; None unless measured."""
    head_coverage: NDArray[np.float64] | None = None
    """Which part of the facts of the head's relation is predicted; None unless measured."""
    lift: NDArray[np.float64] | None = None
    """How many times likelier the head is where the body holds than anywhere; None unless measured."""

    def __post_init__(self) -> None:
        extras = {name: np.float32 if name == "margin" else np.float64 for name in self.extras}
        types: dict[str, Any] = {"bodies": np.int32, **COLUMN_TYPES, **extras}
        columns = {name: owned_column(name, getattr(self, name), dtype) for name, dtype in types.items()}
        check_columns(self.vocabulary, columns)
        vars(self).update(columns)

    @classmethod
    def empty(cls, vocabulary: Vocabulary) -> Self:
        """Return a set without rules."""
        columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in COLUMN_TYPES.items()}
        return cls(vocabulary=vocabulary, bodies=np.empty((0, 1), np.int32), **columns)

    @classmethod
    def of(cls, columns: RuleColumns) -> Self:
        """Return the same rules as an object of this class; nothing is copied."""
        made = cls.__new__(cls)
        made.__dict__.update(vars(columns))
        return made

    @classmethod
    def checked_before(cls, vocabulary: Vocabulary, columns: Mapping[str, NDArray[Any]]) -> Self:
        """Return rules whose columns were checked when they were stored: to read them all again would take long."""
        made = cls.__new__(cls)
        made.__dict__.update(columns, vocabulary=vocabulary)
        return made

    def with_checked(self, columns: Mapping[str, NDArray[Any] | None]) -> Self:
        """Return a set with some columns replaced by others that were checked before, as parts of the whole."""
        made = copy.copy(self)
        for name, column in columns.items():
            object.__setattr__(made, name, None if column is None else _read_only(column))
        return made

    @property
    def n_rules(self) -> int:
        return len(self.head)

    def __len__(self) -> int:
        return len(self.head)

    @property
    def lengths(self) -> NDArray[np.int32]:
        """The number of body atoms of each rule."""
        lengths: NDArray[np.int32] = (self.bodies >= 0).sum(axis=1, dtype=np.int32)[self.body]
        return lengths

    @property
    def measures(self) -> tuple[measures.Measure, ...]:
        """The names of the measures that these rules have."""
        return tuple(name for name in MEASURES if getattr(self, name) is not None)

    @property
    def extras(self) -> tuple[str, ...]:
        """The names of the columns that these rules have and others may lack."""
        return self.measures if self.margin is None else ("margin", *self.measures)

    def confidence(self, smoothing: float = 0) -> NDArray[np.float64]:
        """Return support / (predictions + smoothing), 0 where there are no predictions."""
        return measures.confidence(self.support, self.predictions, checking.real("smoothing", smoothing, 0))

    def take(self, index: ArrayLike) -> Self:
        """Return the rules at some rows, in that order, or the rules that a mask marks."""
        rows = np.asarray(index)
        if rows.size == 0 and rows.dtype != np.bool_:
            rows = rows.astype(np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "biu":
            raise TypeError(f"expected the numbers of rules or a mask, got {rows.ndim} dimensions of {rows.dtype}")
        return self._at(rows)

    def slice(self, start: int, stop: int) -> Self:
        """Return the rules from row `start` to row `stop`, without copying."""
        return self._at(slice(start, stop))

    def replace(self, **changes: Any) -> Self:
        """Return a set with some columns replaced; arrays that can be written to are copied."""
        return dataclasses.replace(self, **changes)

    def counts_by_type(self) -> dict[str, int]:
        """Return the number of rules of each type."""
        counts = np.bincount(self.type, minlength=len(RuleType))
        return {str(name): int(counts[name.code]) for name in RuleType}

    def counts_by_length(self) -> dict[str, int]:
        """Return the number of rules of each type and length that occurs: {"B 1": 11, "Uc 1": 35}."""
        width = self.bodies.shape[1] + 1
        counts = np.bincount(self.type * np.int64(width) + self.lengths, minlength=len(RuleType) * width)
        table = counts.reshape(len(RuleType), width)
        return {
            f"{name} {length}": int(table[name.code, length])
            for name in RuleType
            for length in range(width)
            if table[name.code, length]
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in (
            "bodies",
            *COLUMN_TYPES,
            *self.extras,
        ):  # an array forgets it when it is copied to another process
            state[name].flags.writeable = False

    def _at(self, rows: Rows) -> Self:
        """Return some of the rules; what was checked is not checked again."""
        return self.with_checked({name: getattr(self, name)[rows] for name in (*COLUMN_TYPES, *self.extras)})


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return the column, read-only from now on."""
    column.flags.writeable = False
    return np.asarray(column)
