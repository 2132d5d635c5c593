"""`TripleTable`: triples as integers over a vocabulary, made from labels batch by batch; and their fingerprint."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from anyburl.base.errors import DataError, UnknownLabelError
from anyburl.data.attributes import Attributes
from anyburl.data.formats.frames import COLUMNS, TriplesLike, label_frame
from anyburl.data.vocabulary import Vocabulary, check_labels, check_vocabulary

Codes = NDArray[np.uint32]


class LabelCoder:
    """Gives labels codes in order of appearance, batch by batch and, at the end, the ids that belong to the codes.

    Polars' categories collect the labels and encode them in one pass; only the distinct ones are then sorted.
    """

    def __init__(self) -> None:
        entities, relations = (pl.Categorical(pl.Categories.random()) for _ in range(2))
        self._types = {"subject": entities, "relation": relations, "object": entities}
        # Polars forgets categories that no Series has any more.
        self._kept = [pl.Series([], dtype=kind) for kind in (entities, relations)]

    def encode(self, labels: pl.DataFrame) -> list[Codes]:
        """Return the codes of the columns subject, relation and object."""
        coded = labels.select(pl.col(name).cast(kind) for name, kind in self._types.items())
        return [coded[name].to_physical().to_numpy() for name in COLUMNS]

    def finish(self) -> tuple[Vocabulary, list[NDArray[np.int32]]]:
        """Return all labels and the arrays that turn codes of the three columns into ids; empty the coder."""
        labels = [self._types[name].categories.to_series() for name in ("subject", "relation")]
        self._kept.clear()
        entities, entity_ids = _sorted_labels(labels[0], "entity")
        relations, relation_ids = _sorted_labels(labels[1], "relation")
        return Vocabulary(entities, relations), [entity_ids, relation_ids, entity_ids]


def _sorted_labels(labels: pl.Series, kind: str) -> tuple[pl.Series, NDArray[np.int32]]:
    """Return labels in order, and the position of each among them."""
    order = labels.arg_sort()
    ids = np.empty(len(labels), np.int32)
    ids[order.to_numpy()] = np.arange(len(labels), dtype=np.int32)
    return check_labels(labels.gather(order).rename(""), kind), ids


Ids = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class TripleTable:
    """Distinct triples, sorted by their ids.

    `triples` has the columns subject, relation and object, and is read-only; `n_duplicates` repetitions were dropped;
    `folder` is that of the table's index, if it was opened from one. Use the class methods: the constructor requires
    ids that are sorted and distinct, and checks them.
    """

    vocabulary: Vocabulary
    triples: NDArray[np.int32]
    n_duplicates: int = 0
    folder: Path | None = None

    @classmethod
    def from_labels(
        cls,
        subjects: Iterable[object] | pl.Series,
        relations: Iterable[object] | pl.Series,
        objects: Iterable[object] | pl.Series,
        vocabulary: Vocabulary | None = None,
    ) -> TripleTable:
        """Make a table from three columns of labels; without a vocabulary, it gets its own."""
        given = (subjects, relations, objects)
        for column in given:
            if isinstance(column, str | bytes) or not isinstance(column, Iterable):
                raise DataError(f"expected a column of labels, got {type(column).__name__}")
        columns = [column if isinstance(column, pl.Series) else list(column) for column in given]
        lengths = [len(column) for column in columns]
        if len(set(lengths)) > 1:
            raise DataError(f"expected as many subjects as relations and objects, got {lengths}")
        frame = pl.DataFrame(dict(zip(COLUMNS, columns, strict=True)), strict=False)
        return cls.from_frame(frame, vocabulary)

    @classmethod
    def from_frame(cls, frame: TriplesLike, vocabulary: Vocabulary | None = None) -> TripleTable:
        """Make a table from a Polars or pandas frame: columns subject, relation, object, or the first 3."""
        labels = label_frame(frame)
        if vocabulary is not None:
            check_vocabulary(vocabulary)
        return tables_of([[labels]])[0] if vocabulary is None else cls.from_clean_frame(labels, vocabulary)

    @classmethod
    def from_array(cls, array: NDArray[Any], vocabulary: Vocabulary | None = None) -> TripleTable:
        """Make a table from an (n, 3) array of strings, or of integers whose digits become the labels."""
        return cls.from_frame(np.asarray(array), vocabulary)

    def with_values(self, attributes: Attributes) -> TripleTable:
        """Return the table over the vocabulary with these values of entities, see `Vocabulary.with_attributes`."""
        vocabulary = self.vocabulary.with_attributes(attributes)
        if vocabulary.n_relations == self.vocabulary.n_relations:
            return replace(self, vocabulary=vocabulary)
        triples = self.triples.copy()
        triples[:, 1] = vocabulary.encode_relations(self.vocabulary.relations)[triples[:, 1]]
        triples.flags.writeable = False
        return TripleTable(vocabulary, triples, self.n_duplicates)

    @classmethod
    def from_clean_frame(cls, labels: pl.DataFrame, vocabulary: Vocabulary) -> TripleTable:
        """Make a table from what `read_triples` or `label_frame` returned."""
        columns = vocabulary.encode_triples(labels)
        for name, ids in zip(COLUMNS, columns, strict=True):
            if len(ids) and ids.min() < 0:
                kind = "relation" if name == "relation" else "entity"
                raise UnknownLabelError(kind, labels[name][int(ids.argmin())])
        return cls.from_columns(columns, vocabulary)

    @classmethod
    def from_ids(cls, ids: ArrayLike, vocabulary: Vocabulary) -> TripleTable:
        """Make a table from an (n, 3) array of ids, in any order."""
        return cls.from_columns(list(_checked_ids(ids, vocabulary).T), vocabulary)

    @classmethod
    def from_columns(cls, columns: list[NDArray[np.int32]], vocabulary: Vocabulary) -> TripleTable:
        """Make a table from three columns of ids that are known to be in range."""
        triples = sorted_unique(columns, vocabulary.n_entities, vocabulary.n_relations)
        return cls.checked_before(vocabulary, triples, len(columns[0]) - len(triples))

    @classmethod
    def checked_before(
        cls, vocabulary: Vocabulary, triples: Ids, n_duplicates: int = 0, folder: Path | None = None
    ) -> TripleTable:
        """Make a table without checks, of triples that are known to be in range, in order and not shared."""
        made = cls.__new__(cls)
        made.__setstate__(dict(vocabulary=vocabulary, triples=triples, n_duplicates=n_duplicates, folder=folder))
        return made

    def __post_init__(self) -> None:
        given = _checked_ids(self.triples, self.vocabulary)
        if not _is_ascending(given):
            raise DataError("expected triples that are sorted and distinct: use TripleTable.from_ids")
        triples = np.array(given) if can_change(given) else given
        self.__setstate__({"triples": np.ascontiguousarray(triples)})

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.triples.setflags(write=False)  # the flag is lost when an array is pickled

    def __len__(self) -> int:
        return len(self.triples)

    def __repr__(self) -> str:
        return f"TripleTable({len(self)} triples, {self.vocabulary!r})"

    def to_polars(self) -> pl.DataFrame:
        """Return the labels, in the columns subject, relation and object."""
        return self.vocabulary.decode_triples(self.triples)


def can_change(array: NDArray[Any]) -> bool:
    """Whether an array can be written to, be it through the array that it is a view of, as columns of pandas are."""
    owner: object = array
    while isinstance(owner, np.ndarray):
        if owner.flags.writeable:
            return True
        owner = owner.base
    return False


def tables_of(frames: Sequence[Iterable[pl.DataFrame]]) -> list[TripleTable]:
    """Make a table from each sequence of frames of labels, all over one vocabulary."""
    coder = LabelCoder()
    coded = [[coder.encode(frame) for frame in batches] for batches in frames]
    vocabulary, ids = coder.finish()
    tables = []
    for batches in coded:
        columns = [
            np.concatenate([by_code[:0], *(by_code[batch[i]] for batch in batches)]) for i, by_code in enumerate(ids)
        ]
        tables.append(TripleTable.from_columns(columns, vocabulary))
    return tables


def _checked_ids(ids: ArrayLike, vocabulary: Vocabulary) -> Ids:
    """Return ids as an (n, 3) array; raise an error for ids out of range, which kernels do not check."""
    check_vocabulary(vocabulary)
    array = np.asarray(ids)
    if not array.size:
        array = np.empty((0, 3), np.int32)
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        raise DataError(f"expected an (n, 3) array of whole numbers as ids, got {array.dtype} of shape {array.shape}")
    limits = [vocabulary.n_entities, vocabulary.n_relations, vocabulary.n_entities]
    for column, limit in zip(array.T, limits, strict=True):
        if len(column) and not (column.min() >= 0 and column.max() < limit):
            wrong = array[(column < 0) | (column >= limit)][0]
            raise DataError(f"expected ids from 0 to below {limits}, got {wrong.tolist()}")
    return array.astype(np.int32, copy=False)


def _is_ascending(triples: Ids) -> bool:
    """Return whether each triple comes after the one before it."""
    later = np.zeros(max(0, len(triples) - 1), np.bool_)
    for column in triples.T[::-1]:
        later &= column[1:] == column[:-1]
        later |= column[1:] > column[:-1]
    return bool(later.all())


def sorted_unique(columns: Sequence[Ids], n_entities: int, n_relations: int) -> Ids:
    """Return the distinct triples in order, as one array."""
    if not fits_one_number(n_entities, n_relations):
        frame = pl.DataFrame(dict(zip(COLUMNS, columns, strict=True))).unique().sort(COLUMNS)
        return np.ascontiguousarray(frame.to_numpy(), dtype=np.int32)
    keys = pl.Series(packed(columns, n_entities, n_relations)).sort().to_numpy()
    if len(keys):
        keys = keys[np.concatenate([[True], keys[1:] != keys[:-1]])]
    return unpacked(keys, n_entities, n_relations)


def fits_one_number(n_entities: int, n_relations: int) -> bool:
    """Whether a triple can be packed into 64 bits: one number sorts several times as fast as three."""
    return n_entities * n_relations * n_entities < 2**63


def packed(columns: Sequence[Ids | NDArray[np.int64]], n_entities: int, n_relations: int) -> NDArray[np.int64]:
    """Return one number per triple, in the order of the triples."""
    subjects, relations, objects = columns
    keys: NDArray[np.int64] = subjects.astype(np.int64)
    keys *= n_relations
    keys += relations
    keys *= n_entities
    keys += objects
    return keys


def unpacked(keys: NDArray[np.int64], n_entities: int, n_relations: int) -> Ids:
    """Return the triples that were packed."""
    triples: Ids = np.empty((len(keys), 3), dtype=np.int32)
    rest, triples[:, 2] = np.divmod(keys, max(n_entities, 1))
    triples[:, 0], triples[:, 1] = np.divmod(rest, max(n_relations, 1))
    return triples


def find_keys(keys: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each key first stands among the `ordered` ones, -1 where it does not."""
    if not len(ordered):
        return np.full(len(keys), -1, np.int64)
    rows = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return np.where(ordered[rows] == keys, rows, -1)


PIECE = 1 << 18  # labels or triples at a time


def fingerprint(vocabulary: Vocabulary, tables: Sequence[TripleTable]) -> str:
    """Return a digest of the labels and the triples, which are read in pieces."""
    labels = (vocabulary.entities, vocabulary.relations)
    slices = [(piece.to_series() for piece in series.to_frame().iter_slices(PIECE)) for series in labels]
    return fingerprint_of(list(zip(map(len, labels), slices, strict=True)), tables)


def fingerprint_of(labels: Sequence[tuple[int, Iterable[pl.Series]]], tables: Sequence[TripleTable]) -> str:
    """Return the digest, given how many entities and relations there are and their labels, in pieces."""
    digest = hashlib.blake2b(digest_size=16)
    for n_labels, pieces in labels:
        digest.update(str(n_labels).encode())
        for piece in pieces:
            digest.update(f"\0{piece.str.join(chr(0)).item()}".encode())
    for table in tables:
        digest.update(f"\0{len(table)}\0".encode())
        for start in range(0, len(table), PIECE):
            digest.update(table.triples[start : start + PIECE].astype("<i4", copy=False).tobytes())
    return digest.hexdigest()
