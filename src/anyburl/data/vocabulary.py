"""Labels and ids. Labels are sorted, so ids depend on the data and not on its order in a file."""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from anyburl.base.errors import DataError, UnknownLabelError

SELF_TOKEN = "me_myself_i"
"""How the token `self` is written in the text of a rule. It has an id, but is no entity and has no label."""

MOST_COMPARED = 5000  # labels, in full
MOST_GROUPS = 40  # of characters
"""At most this many labels are compared with an unknown one to find similar names."""

FEW = 2
"""Labels are looked up by binary search if there are this many times as many known ones: an Enum takes longer."""

_TOKEN = pl.Series([SELF_TOKEN], dtype=pl.String)
_UNKNOWN = pl.Series([-1], dtype=pl.Int32)


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The entities and relations of a data set: an id is a position in a sorted list of distinct labels.

    Use `from_labels`; the constructor requires both Series to be sorted and unique. `values` are the attributes of
    the entities, if there are any: whoever has ids of entities can look them up (`attributes_of`). Their names are
    relations as well, without triples, since bodies of rules may end in them. `same_labels` does not compare values.
    """

    entities: pl.Series
    relations: pl.Series
    values: Mapping[str, object] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for labels in (self.entities, self.relations):
            if not isinstance(labels, pl.Series) or labels.dtype not in (pl.String, pl.Null):
                raise DataError("expected sorted Series of labels: use Vocabulary.from_labels")

    @classmethod
    def from_labels(cls, entities: Iterable[object] | pl.Series, relations: Iterable[object] | pl.Series) -> Vocabulary:
        """Sort the labels and drop duplicates."""
        return cls(_sorted_labels(entities, "entity"), _sorted_labels(relations, "relation"))

    @classmethod
    def from_sorted(cls, entities: pl.Series, relations: pl.Series) -> Vocabulary:
        """Use labels that are already sorted and distinct, such as those of a file; refuse others."""
        for labels, kind in ((entities, "entity"), (relations, "relation")):
            if check_labels(labels, kind).len() and not (labels[1:] > labels[:-1]).all():
                raise DataError(f"expected {kind} labels that are sorted and distinct")
        return cls(entities, relations)

    @classmethod
    def unnamed(cls, n_entities: int, n_relations: int) -> Vocabulary:
        """Return a vocabulary with ids but no labels, which takes no memory, for code that only computes."""
        nothing = pl.Series([None], dtype=pl.Null)
        return cls(nothing.new_from_index(0, n_entities), nothing.new_from_index(0, n_relations))

    def with_attributes(self, attributes: Mapping[str, object]) -> Vocabulary:
        """Return the vocabulary with values of its entities; the names of the attributes are relations in it."""
        names = pl.Series(list(attributes), dtype=pl.String)
        if names.is_in(self.relations.implode()).all():
            return Vocabulary(self.entities, self.relations, attributes)
        return Vocabulary(self.entities, _sorted_labels(pl.concat([self.relations, names]), "relation"), attributes)

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
        return self._encode(_as_series(labels).to_frame("entity"))[0]

    def encode_relations(self, labels: pl.Series | Sequence[str]) -> NDArray[np.int32]:
        """Return the ids of relation labels, -1 where a label is unknown."""
        return self._encode(_as_series(labels).to_frame("relation"))[0]

    def encode_triples(self, labels: pl.DataFrame) -> list[NDArray[np.int32]]:
        """Return the ids of the columns subject, relation and object, -1 where a label is unknown."""
        return self._encode(labels.select("subject", "relation", "object"))

    def entity_id(self, label: str) -> int:
        """Return the id of an entity; if it is unknown, the error suggests similar ones."""
        return _find(self.entities, "entity", label)

    def relation_id(self, label: str) -> int:
        """Return the id of a relation; if it is unknown, the error suggests similar ones."""
        return _find(self.relations, "relation", label)

    def entity_label(self, entity: int) -> str:
        """Return the label of one entity; for `self_id`, the token that stands for it in text."""
        return SELF_TOKEN if entity == self.self_id else _label(self.entities, "entity", entity)

    def relation_label(self, relation: int) -> str:
        """Return the label of one relation."""
        return _label(self.relations, "relation", relation)

    def decode_entities(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of entity ids: null for -1, the token `self` for `self_id`."""
        rows = _checked_ids(ids, self.self_id, "entity")
        return _decode(rows, self.entities).zip_with(pl.Series(rows != self.self_id), _TOKEN)

    def decode_relations(self, ids: ArrayLike) -> pl.Series:
        """Return the labels of relation ids: null for -1."""
        return _decode(_checked_ids(ids, self.n_relations - 1, "relation"), self.relations)

    def decode_triples(self, triples: NDArray[np.integer]) -> pl.DataFrame:
        """Return the labels of (n, 3) ids of triples, in the columns subject, relation and object."""
        subjects, relations, objects = triples.T
        return pl.DataFrame(
            {
                "subject": self.entities.gather(subjects),
                "relation": self.relations.gather(relations),
                "object": self.entities.gather(objects),
            }
        )

    def triple_labels(self, subject: int, relation: int, object: int) -> tuple[str, str, str]:
        """Return the labels of one triple."""
        return self.entity_label(subject), self.relation_label(relation), self.entity_label(object)

    def same_labels(self, other: Vocabulary) -> bool:
        """Whether `other` gives the same ids to the same labels."""
        if self is other:
            return True
        return self.entities.equals(other.entities) and self.relations.equals(other.relations)

    def __eq__(self, other: object) -> bool:
        return self.same_labels(other) if isinstance(other, Vocabulary) else NotImplemented

    def __hash__(self) -> int:
        return hash((self.n_entities, self.n_relations))

    def __repr__(self) -> str:
        return f"Vocabulary(n_entities={self.n_entities}, n_relations={self.n_relations})"

    def _encode(self, labels: pl.DataFrame) -> list[NDArray[np.int32]]:
        """Return the codes of each column, most in one selection, so that Polars works on all columns at once."""
        known = {name: self.relations if name == "relation" else self.entities for name in labels.columns}
        few = [name for name in labels.columns if labels.height * FEW < len(known[name])]
        codes = {name: _search(labels[name], known[name]) for name in few}
        for column in labels.select(self._code_of(name) for name in labels.columns if name not in few):
            codes[column.name] = column.to_numpy()
        return [codes[name] for name in labels.columns]

    def _code_of(self, column: str) -> pl.Expr:
        enum = self._relation_type if column == "relation" else self._entity_type
        return pl.col(column).cast(enum, strict=False).to_physical().cast(pl.Int32).fill_null(-1)

    @cached_property
    def _entity_type(self) -> pl.Enum:
        return pl.Enum(self.entities)

    @cached_property
    def _relation_type(self) -> pl.Enum:
        return pl.Enum(self.relations)


def check_vocabulary(vocabulary: object) -> None:
    """Raise an error unless this is a `Vocabulary`."""
    if not isinstance(vocabulary, Vocabulary):
        raise DataError(f"expected a Vocabulary, such as that of a data set, got {type(vocabulary).__name__}")


def _sorted_labels(labels: Iterable[object] | pl.Series, kind: str) -> pl.Series:
    if isinstance(labels, str | bytes) or not isinstance(labels, Iterable):
        raise DataError(f"expected a list of {kind} labels, got {type(labels).__name__}")
    if not isinstance(labels, pl.Series):
        labels = pl.Series([str(label) for label in labels], dtype=pl.String)
    return check_labels(labels.cast(pl.String).unique().sort().rename(""), kind)


def check_labels(labels: pl.Series, kind: str) -> pl.Series:
    """Return sorted labels; raise an error for a missing, empty or blank one, or one with a NUL."""
    if labels.null_count():
        raise DataError(f"expected {kind} labels, got a missing one (null)")
    if len(labels) and labels[0] == "":
        raise DataError(f"expected {kind} labels, got an empty one")
    blank = labels.filter(labels.str.strip_chars() == "")
    if len(blank):
        raise DataError(f"expected {kind} labels, got one of spaces only: {blank[0]!r}")
    with_nul = labels.filter(labels.str.contains("\0", literal=True))
    if len(with_nul):
        # Joined labels (fingerprints, rule files) rely on it, and text does not hold any.
        raise DataError(f"expected {kind} labels, got one with a NUL character: {with_nul[0]!r}")
    return labels


def _as_series(labels: pl.Series | Sequence[str]) -> pl.Series:
    return labels.cast(pl.String) if isinstance(labels, pl.Series) else pl.Series(labels, dtype=pl.String)


def _search(labels: pl.Series, known: pl.Series) -> NDArray[np.int32]:
    """Return the positions of labels among sorted ones, -1 where there is none."""
    rows = known.search_sorted(labels)
    is_known = known.gather(rows.set(rows == len(known), None)) == labels
    return rows.cast(pl.Int32).zip_with(is_known.fill_null(False), _UNKNOWN).to_numpy()


def _find(labels: pl.Series, kind: str, label: str) -> int:
    if isinstance(label, str):
        row = bisect_left(labels, label)  # Polars takes many times as long for one label
        if row < len(labels) and labels[row] == label:
            return row
    raise UnknownLabelError(kind, str(label), similar_labels(labels, str(label)))


def similar_labels(labels: pl.Series, text: str, cutoff: float = 0.7) -> list[str]:
    """Return up to three labels that resemble `text`: first those that differ by upper and lower case only.

    Of many labels, those that share most groups of three characters with `text` are compared.
    """
    lower, plain = labels.str.to_lowercase(), text.lower()
    same = labels.filter(lower == plain).to_list()
    if len(labels) > MOST_COMPARED:
        groups = {plain[i : i + 3] for i in range(min(len(plain), MOST_GROUPS))}
        shared = sum((lower.str.contains(group, literal=True).cast(pl.Int32) for group in groups), pl.Series([0]))
        likeness = shared / (lower.str.len_chars() + len(plain))
        labels = labels.gather(likeness.arg_sort(descending=True).head(MOST_COMPARED // 10))
    near = difflib.get_close_matches(text, labels.to_list(), n=3, cutoff=cutoff)
    return list(dict.fromkeys(same + near))[:3]


def _label(labels: pl.Series, kind: str, row: int) -> str:
    if not 0 <= row < len(labels):
        raise DataError(f"expected the id of a{'n' * (kind == 'entity')} {kind}, 0 to {len(labels) - 1}, got {row}")
    return str(labels[int(row)])


def _checked_ids(ids: ArrayLike, largest: int, kind: str) -> NDArray[np.int64]:
    rows = np.asarray(ids, dtype=np.int64).reshape(-1)
    wrong = rows[(rows < -1) | (rows > largest)]
    if len(wrong):
        raise DataError(f"expected {kind} ids from -1 to {largest}, got {wrong[0]}")
    return rows


def _decode(rows: NDArray[np.int64], labels: pl.Series) -> pl.Series:
    """Return labels by their positions, null for positions out of range."""
    ids = pl.Series(rows)
    return labels.gather(ids.set((ids < 0) | (ids >= len(labels)), None)).rename("")
