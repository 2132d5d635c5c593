"""Rules as a frame with labels: the columns of a rules.parquet file.

Labels are dictionary-encoded (Enum), bodies are lists gathered from the small table of bodies, and everything
is done in slices, so that 50 million rules take seconds and little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import MissingExtraError
from anyburl.rules import RuleType

if TYPE_CHECKING:
    import pandas as pd

    from anyburl.ruleset.ruleset import RuleSet

SELF_MARKER = "\0self"
"""Stands for the token self among labels; no label can hold its first character."""

SLICE_ROWS = 2_000_000
MOST_ENUM_LABELS = 500_000
"""Larger vocabularies are written as strings: a dictionary of all labels in every file would cost more."""

TYPES = pl.Enum([str(name) for name in RuleType])


def to_frame(rules: RuleSet) -> pl.DataFrame:
    """Return the rules as one frame."""
    return pl.concat(FrameWriter(rules).slices())


def to_pandas(rules: RuleSet) -> pd.DataFrame:
    """Return the rules as a pandas frame."""
    try:
        return to_frame(rules).to_pandas()
    except ModuleNotFoundError as error:
        raise MissingExtraError("RuleSet.to_pandas()", "pandas") from error


class FrameWriter:
    """Gives the rules of a set as frames."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        vocabulary = rules.vocabulary
        marker = pl.Series([SELF_MARKER], dtype=pl.String)
        self.entities = _dictionary(pl.concat([vocabulary.entities, marker]))
        self.relations = _dictionary(vocabulary.relations)
        self.types = pl.Series(TYPES.categories, dtype=TYPES)
        self.bodies = self._body_lists()

    @property
    def schema(self) -> pl.Schema:
        return self.frame(0, 0).schema

    def slices(self, size: int = SLICE_ROWS) -> Iterator[pl.DataFrame]:
        """Yield the rules in frames of `size` rows; one empty frame if there are none."""
        for start in range(0, max(1, len(self.rules)), size):
            yield self.frame(start, min(start + size, len(self.rules)))

    def frame(self, start: int, stop: int) -> pl.DataFrame:
        """Return the rules from row `start` to row `stop`."""
        part = self.rules.slice(start, stop)
        n_relations = max(1, part.vocabulary.n_relations)
        backward = part.head >= n_relations
        constant = part.head_constant
        return pl.DataFrame(
            {
                "type": self.types.gather(part.type),
                "head": self.relations.gather(part.head % n_relations),
                "body": self.bodies["body"].gather(part.body),
                "forward": self.bodies["forward"].gather(part.body),
                "subject": _gather(self.entities, np.where(backward, constant, -1)),
                "object": _gather(self.entities, np.where(backward, -1, constant)),
                "constant": _gather(self.entities, part.body_constant),
                "predictions": part.predictions,
                "support": part.support,
                "exact": part.exact,
                "confidence": part.confidence(),
            }
        )

    def _body_lists(self) -> pl.DataFrame:
        """Return the table of bodies as lists of labels and of directions."""
        bodies = self.rules.bodies
        n_relations = max(1, self.rules.vocabulary.n_relations)
        columns: dict[str, pl.Series] = {}
        for position in range(bodies.shape[1]):
            steps = bodies[:, position]
            columns[f"r{position}"] = _gather(self.relations, np.where(steps < 0, -1, steps % n_relations))
            directions = pl.Series(steps < n_relations)
            columns[f"f{position}"] = directions.set(pl.Series(steps < 0), None)
        return pl.DataFrame(columns).select(
            body=pl.concat_list(pl.col("^r\\d+$")).list.drop_nulls(),
            forward=pl.concat_list(pl.col("^f\\d+$")).list.drop_nulls(),
        )


def _dictionary(labels: pl.Series) -> pl.Series:
    """Return labels as a column to gather from: dictionary-encoded, unless they are too many."""
    return labels.cast(pl.Enum(labels)) if len(labels) <= MOST_ENUM_LABELS else labels


def _gather(labels: pl.Series, rows: NDArray[np.int32]) -> pl.Series:
    """Return the labels at some rows, null for -1."""
    places = pl.Series(rows)
    return labels.gather(places.set(places < 0, None))
