"""Rule sets: tens of millions of rules as columns, never as objects."""

from __future__ import annotations

import dataclasses
import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from anyburl.errors import RuleError
from anyburl.rules import Rule, RuleType
from anyburl.ruleset import selection
from anyburl.ruleset.combine import concatenate, first_of_each, reencode
from anyburl.ruleset.selection import TYPE_CODES as TYPE_CODES
from anyburl.ruleset.selection import Order
from anyburl.triples.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

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
class RuleSet:
    """Rules and their scores, one column per property; all arrays are read-only.

    With R relations, a directed relation d is relation d read forward if d < R, and d - R read backward
    otherwise. Unary heads h(X, c) have d = h, heads h(c, Y) have d = h + R.
    """

    vocabulary: Vocabulary
    bodies: NDArray[np.int32]
    """(m, L) distinct bodies: directed relations along the path from the head's variable, padded with -1."""
    type: NDArray[np.uint8]
    """Codes as in TYPE_CODES."""
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

    def __post_init__(self) -> None:
        _freeze(self, "bodies", np.int32)
        for name, dtype in COLUMN_TYPES.items():
            _freeze(self, name, dtype)
            if getattr(self, name).shape != self.head.shape[:1]:
                raise RuleError(f"expected columns of {len(self.head)} rules, got another length for {name!r}")
        if self.bodies.ndim != 2:
            raise RuleError(f"expected bodies as the rows of a matrix, got {self.bodies.ndim} dimensions")

    @classmethod
    def empty(cls, vocabulary: Vocabulary) -> RuleSet:
        """Return a set without rules."""
        columns: dict[str, Any] = {name: np.empty(0, dtype) for name, dtype in COLUMN_TYPES.items()}
        return cls(vocabulary=vocabulary, bodies=np.empty((0, 1), np.int32), **columns)

    @classmethod
    def concat(cls, sets: Sequence[RuleSet]) -> RuleSet:
        """Put sets over one vocabulary after each other; equal rules are kept."""
        return concatenate(sets)

    def merge(self, *others: RuleSet) -> RuleSet:
        """Join sets over one vocabulary; of equal rules, the first is kept with its scores."""
        joint = concatenate([self, *others])
        return joint.take(first_of_each(joint))

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

    def confidence(self, smoothing: float = 0) -> NDArray[np.float64]:
        """Return support / (predictions + smoothing), 0 where there are no predictions."""
        divisors = self.predictions + np.float64(smoothing)
        divisors[self.predictions == 0] = np.inf
        return self.support / divisors

    def take(self, index: ArrayLike) -> RuleSet:
        """Return the rules at some rows, in that order, or the rules that a mask marks."""
        rows = np.asarray(index)
        if rows.size == 0 and rows.dtype != np.bool_:
            rows = rows.astype(np.int64)
        return self.replace(**{name: getattr(self, name)[rows] for name in COLUMN_TYPES})

    def slice(self, start: int, stop: int) -> RuleSet:
        """Return the rules from row `start` to row `stop`, without copying."""
        return self.replace(**{name: getattr(self, name)[start:stop] for name in COLUMN_TYPES})

    def replace(self, **changes: Any) -> RuleSet:
        """Return a copy with some columns replaced."""
        return dataclasses.replace(self, **changes)

    def filter(
        self,
        *,
        type: RuleType | str | Iterable[RuleType | str] | None = None,
        relation: str | None = None,
        min_confidence: float | None = None,
        min_support: int | None = None,
        contains: str | None = None,
        length: int | None = None,
    ) -> RuleSet:
        """Return the rules that meet every condition; `contains` is an entity or relation anywhere in it."""
        masks: list[NDArray[np.bool_]] = []
        if type is not None:
            masks.append(selection.type_mask(self, type))
        if relation is not None:
            masks.append(selection.relation_mask(self, relation))
        if min_confidence is not None:
            masks.append(self.confidence() >= min_confidence)
        if min_support is not None:
            masks.append(self.support >= min_support)
        if contains is not None:
            masks.append(selection.label_mask(self, contains))
        if length is not None:
            masks.append(self.lengths == length)
        return self.take(np.logical_and.reduce(masks)) if masks else self

    def top(self, k: int, by: Order = "confidence") -> RuleSet:
        """Return the k best rules, best first; "value" is support times confidence. Ties are settled."""
        return self.take(selection.best_rows(self, k, by))

    def for_relation(self, relation: str) -> RuleSet:
        """Return the rules that predict a relation."""
        return self.filter(relation=relation)

    def with_vocabulary(self, vocabulary: Vocabulary) -> tuple[RuleSet, int]:
        """Return the rules with the ids of another vocabulary, and how many it lacks labels for (dropped)."""
        return reencode(self, vocabulary)

    def counts_by_type(self) -> dict[str, int]:
        """Return the number of rules of each type."""
        counts = np.bincount(self.type, minlength=len(TYPE_CODES))
        return {str(name): int(counts[code]) for name, code in TYPE_CODES.items()}

    def counts_by_length(self) -> dict[str, int]:
        """Return the number of rules of each type and length that occurs: {"B 1": 11, "Uc 1": 35}."""
        width = self.bodies.shape[1] + 1
        counts = np.bincount(self.type * np.int64(width) + self.lengths, minlength=len(TYPE_CODES) * width)
        table = counts.reshape(len(TYPE_CODES), width)
        return {
            f"{name} {length}": int(table[code, length])
            for name, code in TYPE_CODES.items()
            for length in range(width)
            if table[code, length]
        }

    def rule(self, row: int) -> Rule:
        """Return one rule as an object."""
        from anyburl.ruleset.display import view

        return view(self, range(len(self))[row])

    def __iter__(self) -> Iterator[Rule]:
        return (self.rule(row) for row in range(len(self)))

    def texts(self) -> pl.Series:
        """Return the rules as text, as AnyBURL writes them."""
        from anyburl.ruleset.ruletext import RuleWriter

        return RuleWriter(self).texts(0, len(self))

    def to_polars(self) -> pl.DataFrame:
        """Return a frame with the columns of a rules.parquet file; `SELF_MARKER` stands for the token self.

        Labels are Enum columns, or strings where the vocabulary is very large.
        """
        from anyburl.ruleset.frame import to_frame

        return to_frame(self)

    @classmethod
    def from_polars(cls, frame: pl.DataFrame) -> RuleSet:
        """Read a frame like that of `to_polars`; the vocabulary is made of its labels."""
        from anyburl.ruleset.framereader import FrameReader

        return FrameReader(frame.lazy(), "frame").read(frame)

    def to_pandas(self) -> pd.DataFrame:
        """Return `to_polars` as a pandas frame."""
        from anyburl.ruleset.frame import to_pandas

        return to_pandas(self)

    def save(self, path: str | os.PathLike[str], *, escaped: bool = False) -> None:
        """Write Parquet or AnyBURL's text by suffix: .parquet, .txt, .tsv; text also with .gz or .zst.

        Text cannot carry every label; with `escaped`, what it cannot carry is written as %28 and the like.
        """
        from anyburl.ruleset.files import write_rules

        write_rules(self, path, escaped=escaped)

    @classmethod
    def load(
        cls, path: str | os.PathLike[str], vocabulary: Vocabulary | None = None, *, escaped: bool = False
    ) -> RuleSet:
        """Read a file of rules, with the ids of `vocabulary` if given; warn if rules were left out."""
        from anyburl.ruleset.files import read_rules

        rules, report = read_rules(path, vocabulary, escaped=escaped)
        if not report.is_complete:
            warnings.warn(f"{os.fspath(path)}: {report}", stacklevel=2)
        return rules

    def __repr__(self) -> str:
        counts = ", ".join(f"{n} {name}" for name, n in self.counts_by_type().items() if n)
        return f"RuleSet({len(self)} rules{': ' if counts else ''}{counts})"

    def __rich__(self) -> Table:
        from anyburl.ruleset.display import rich_table

        return rich_table(self)

    def _repr_html_(self) -> str:
        from anyburl.ruleset.display import html_table

        return html_table(self)


def _freeze(rules: RuleSet, name: str, dtype: Any) -> None:
    """Store a read-only view, of the right type, of a column."""
    column = np.asarray(getattr(rules, name), dtype=dtype).view()
    column.flags.writeable = False
    object.__setattr__(rules, name, column)
