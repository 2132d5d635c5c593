"""Labels and ids.

Labels are sorted, so that an id depends on the data and not on the order in which a file happens to list it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from anyburl.errors import DataError, UnknownLabelError

SELF_TOKEN = "me_myself_i"
"""How the token `self` is written in the text of a rule. It has an id, but is no entity and has no label."""

MOST_COMPARED = 5000
"""At most so many labels are compared with an unknown one to find names that are like it."""


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entities and relations of a data set: an id is a position in a sorted list of distinct labels.

    Made by `from_labels`; who calls the constructor vouches that both Series are strings, sorted and unique.
    """

    entities: pl.Series
    relations: pl.Series

    @classmethod
    def from_labels(cls, entities: Iterable[object] | pl.Series, relations: Iterable[object] | pl.Series) -> Vocabulary:
        """Sort the labels and drop repetitions."""
        return cls(_sorted_labels(entities, "entity"), _sorted_labels(relations, "relation"))

    @property
    def n_entities(self) -> int:
        return len(self.entities)

    @property
    def n_relations(self) -> int:
        return len(self.relations)

    @property
    def self_id(self) -> int:
        """The id of the token `self`: one past the last entity."""
        return len(self.entities)

    def encode_entities(self, labels: pl.Series | Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of entity labels, -1 where a label is unknown."""
        return _encode(_as_series(labels).to_frame("entity"), [self._entity_type])[0]

    def encode_relations(self, labels: pl.Series | Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of relation labels, -1 where a label is unknown."""
        return _encode(_as_series(labels).to_frame("relation"), [self._relation_type])[0]

    def encode_triples(self, labels: pl.DataFrame) -> list[NDArray[np.int32]]:
        """Return the ids of the columns subject, relation and object, -1 where a label is unknown."""
        frame = labels.select("subject", "relation", "object")
        return _encode(frame, [self._entity_type, self._relation_type, self._entity_type])

    def entity_id(self, label: str) -> int:
        """Return the id of one entity; if it is unknown, the error suggests entities like it."""
        return _find(self.entities, "entity", label)

    def relation_id(self, label: str) -> int:
        """Return the id of one relation; if it is unknown, the error suggests relations like it."""
        return _find(self.relations, "relation", label)

    def entity_label(self, entity: int) -> str:
        """Return the label of one entity; for `self_id`, the token that stands for it in text."""
        return SELF_TOKEN if entity == self.self_id else _label(self.entities, "entity", entity)

    def relation_label(self, relation: int) -> str:
        """Return the label of one relation."""
        return _label(self.relations, "relation", relation)

    def decode_entities(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of entity ids: null for -1, the token `self` for `self_id`."""
        with_self = pl.concat([self.entities, pl.Series([SELF_TOKEN], dtype=pl.String)])
        return _decode(ids, with_self, "entity")

    def decode_relations(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of relation ids: null for -1."""
        return _decode(ids, self.relations, "relation")

    def same_labels(self, other: Vocabulary) -> bool:
        """Tell whether `other` gives the same ids to the same labels."""
        if self is other:
            return True
        return self.entities.equals(other.entities) and self.relations.equals(other.relations)

    def __eq__(self, other: object) -> bool:
        return self.same_labels(other) if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n_entities, self.n_relations))

    def __repr__(self) -> str:
        return f"Vocabulary(n_entities={self.n_entities}, n_relations={self.n_relations})"

    @cached_property
    def _entity_type(self) -> pl.Enum:
        return pl.Enum(self.entities)

    @cached_property
    def _relation_type(self) -> pl.Enum:
        return pl.Enum(self.relations)


def _sorted_labels(labels: Iterable[object] | pl.Series, kind: str) -> pl.Series:
    if not isinstance(labels, pl.Series):
        labels = pl.Series([str(label) for label in labels], dtype=pl.String)
    found = labels.cast(pl.String).unique().sort().rename("")
    if found.null_count():
        raise DataError(f"expected {kind} labels, got a missing one (null)")
    if len(found) and found[0] == "":
        raise DataError(f"expected {kind} labels, got an empty one")
    with_nul = found.filter(found.str.contains("\0", literal=True))
    if len(with_nul):
        # Joined labels (fingerprints, rule files) rely on it, and text does not hold any.
        raise DataError(f"expected {kind} labels of text, got one with a NUL character: {with_nul[0]!r}")
    return found


def _as_series(labels: pl.Series | Sequence[str]) -> pl.Series:
    return labels.cast(pl.String) if isinstance(labels, pl.Series) else pl.Series(labels, dtype=pl.String)


def _encode(labels: pl.DataFrame, types: Sequence[pl.Enum]) -> list[NDArray[np.int32]]:
    """Return the codes of each column, in one selection, so that Polars works on all columns at once."""
    codes = labels.select(
        pl.col(name).cast(enum, strict=False).to_physical().cast(pl.Int32).fill_null(-1)
        for name, enum in zip(labels.columns, types, strict=True)
    )
    return [column.to_numpy() for column in codes]


def _find(labels: pl.Series, kind: str, label: str) -> int:
    if isinstance(label, str):
        row = int(labels.search_sorted(label))
        if row < len(labels) and labels[row] == label:
            return row
    raise UnknownLabelError(kind, str(label), _suggestions(labels, str(label)))


def _suggestions(labels: pl.Series, unknown: str) -> list[str]:
    """Find up to three labels like `unknown`: first those that differ by upper and lower case only."""
    lower = labels.str.to_lowercase()
    same = labels.filter(lower == unknown.lower()).to_list()
    if len(labels) > MOST_COMPARED:
        labels = labels.filter(lower.str.starts_with(unknown.lower()[:2]))
    near = difflib.get_close_matches(unknown, labels.head(MOST_COMPARED).to_list(), n=3, cutoff=0.7)
    return list(dict.fromkeys(same + near))[:3]


def _label(labels: pl.Series, kind: str, row: int) -> str:
    if not 0 <= row < len(labels):
        raise DataError(f"expected the id of a{'n' * (kind == 'entity')} {kind}, 0 to {len(labels) - 1}, got {row}")
    return str(labels[int(row)])


def _decode(ids: ArrayLike, labels: pl.Series, kind: str) -> pl.Series:
    rows = np.asarray(ids, dtype=np.int64).reshape(-1)
    wrong = rows[(rows < -1) | (rows >= len(labels))]
    if len(wrong):
        raise DataError(f"expected {kind} ids from -1 to {len(labels) - 1}, got {wrong[0]}")
    known = pl.Series(rows)
    return labels.gather(known.set(known < 0, None)).rename("")
