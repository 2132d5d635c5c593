"""Rules as columns: tens of millions of them, never as objects. The data only, checked once when made.

Everything else of this stage imports this file, and this file none of it.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from anyburl.errors import RuleError
from anyburl.rules.types import RuleType
from anyburl.ruleset import measures
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
        extras = ((name, np.float32 if name == "margin" else np.float64) for name in self.extras)
        for name, dtype in (("bodies", np.int32), *COLUMN_TYPES.items(), *extras):
            object.__setattr__(self, name, _read_only(_converted(name, getattr(self, name), dtype)))
        self._check_shapes()
        self._check_ids()

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
        return measures.confidence(self.support, self.predictions, smoothing)

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
        """Return a copy with some columns replaced."""
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
        part = copy.copy(self)
        for name in (*COLUMN_TYPES, *self.extras):
            object.__setattr__(part, name, _read_only(getattr(self, name)[rows]))
        return part

    def _check_shapes(self) -> None:
        if self.bodies.ndim != 2:
            raise RuleError(f"expected bodies as the rows of a matrix, got {self.bodies.ndim} dimensions")
        for name in (*COLUMN_TYPES, *self.extras):
            if getattr(self, name).shape != self.head.shape[:1]:
                raise RuleError(f"expected columns of {len(self.head)} rules, got another length for {name!r}")

    def _check_ids(self) -> None:
        """Refuse ids that the vocabulary or the table of bodies does not have: kernels use them without a look."""
        last_directed, last_constant = 2 * self.vocabulary.n_relations - 1, self.vocabulary.self_id
        ranges = {
            "bodies": (-1, last_directed),
            "type": (0, len(RuleType) - 1),
            "head": (0, last_directed),
            "body": (0, len(self.bodies) - 1),
            "head_constant": (-1, last_constant),
            "body_constant": (-1, last_constant),
        }
        for name, (least, most) in ranges.items():
            column = getattr(self, name)
            found = (int(column.min()), int(column.max())) if column.size else ()
            wrong = [number for number in found if not least <= number <= most]
            if wrong:
                raise RuleError(
                    f"expected numbers from {least} to {most} in the column {name!r}, got {wrong[0]}: "
                    "do the rules belong to another vocabulary?"
                )
        if ((self.bodies[:, 1:] >= 0) & (self.bodies[:, :-1] < 0)).any():
            raise RuleError("expected bodies padded with -1 at the end, got one with -1 before a relation")


def _converted(name: str, column: ArrayLike, dtype: DTypeLike) -> NDArray[Any]:
    """Return a column as an array of its type; numbers that the type cannot hold are refused."""
    given = np.asarray(column)
    if given.dtype == dtype:
        return given
    converted = given.astype(dtype)
    if not (converted == given).all():
        raise RuleError(f"expected numbers of type {np.dtype(dtype)} in the column {name!r}, got {given.dtype}")
    return converted


def _read_only(column: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view."""
    view = np.asarray(column).view()
    view.flags.writeable = False
    return view
