"""Rules as frames with labels: for people, and for rules.parquet files.

Labels are gathered by id, bodies are lists gathered from the small table of bodies, and everything is done in slices,
so that 50 million rules take seconds and little memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.rules.types import RuleType
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.notation import SELF_MARKER, quote_labels
from anyburl.triples.vocabulary import SELF_TOKEN, Vocabulary

SLICE_ROWS = 2_000_000
MOST_ENUM_LABELS = 500_000
"""Larger vocabularies are written as strings: a dictionary of all labels in every file would cost more."""


class Labels(NamedTuple):
    """What ids are called, as columns to gather from."""

    types: pl.Series
    relations: pl.Series
    entities: pl.Series  # and the token self, in the last place


def labels_for_people(vocabulary: Vocabulary) -> Labels:
    """Return labels as strings, with which Polars can do most; the token self is `me_myself_i`."""
    entities = _with_self(quote_labels(vocabulary.entities), SELF_TOKEN)
    return Labels(_type_names(), vocabulary.relations, entities)


def labels_for_files(vocabulary: Vocabulary) -> Labels:
    """Return dictionary-encoded labels; the token self is `SELF_MARKER`."""
    entities = _with_self(vocabulary.entities, SELF_MARKER)
    types = _type_names()
    return Labels(types.cast(pl.Enum(types)), _dictionary(vocabulary.relations), _dictionary(entities))


def to_frame(rules: RuleColumns) -> pl.DataFrame:
    """Return the rules as one frame for people."""
    return pl.concat(FrameWriter(rules, labels_for_people(rules.vocabulary)).slices())


class FrameWriter:
    """Gives the rules of a set as frames."""

    def __init__(self, rules: RuleColumns, labels: Labels) -> None:
        self.rules = rules
        self.labels = labels
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
        types, relations, entities = self.labels
        extras: dict[str, NDArray[np.floating]] = {name: getattr(part, name) for name in part.extras}
        return pl.DataFrame(
            {
                "type": types.gather(part.type),
                "head": relations.gather(part.head % n_relations),
                "body": self.bodies["body"].gather(part.body),
                "forward": self.bodies["forward"].gather(part.body),
                "subject": _gather(entities, np.where(backward, constant, -1)),
                "object": _gather(entities, np.where(backward, -1, constant)),
                "constant": _gather(entities, part.body_constant),
                "predictions": part.predictions,
                "support": part.support,
                "exact": part.exact,
                "confidence": part.confidence(),
                **extras,
            }
        )

    def _body_lists(self) -> pl.DataFrame:
        """Return the table of bodies as lists of labels and of directions."""
        bodies = self.rules.bodies
        n_relations = max(1, self.rules.vocabulary.n_relations)
        columns: dict[str, pl.Series] = {}
        for position in range(bodies.shape[1]):
            steps = bodies[:, position]
            relations = np.where(steps < 0, -1, steps % n_relations)
            columns[f"r{position}"] = _gather(self.labels.relations, relations)
            directions = pl.Series(steps < n_relations)
            columns[f"f{position}"] = directions.set(pl.Series(steps < 0), None)
        return pl.DataFrame(columns).select(
            body=pl.concat_list(pl.col("^r\\d+$")).list.drop_nulls(),
            forward=pl.concat_list(pl.col("^f\\d+$")).list.drop_nulls(),
        )


def _type_names() -> pl.Series:
    return pl.Series([str(name) for name in RuleType])


def _with_self(entities: pl.Series, token: str) -> pl.Series:
    return pl.concat([entities, pl.Series([token], dtype=pl.String)])


def _dictionary(labels: pl.Series) -> pl.Series:
    """Return labels dictionary-encoded, unless they are too many."""
    return labels.cast(pl.Enum(labels)) if len(labels) <= MOST_ENUM_LABELS else labels


def _gather(labels: pl.Series, rows: NDArray[np.int32]) -> pl.Series:
    """Return the labels at some rows, null for -1."""
    places = pl.Series(rows)
    return labels.gather(places.set(places < 0, None))
