"""Turns frames with labels back into columns of rules, and checks them."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import DataError, RuleError
from anyburl.rules.types import RuleType
from anyburl.ruleset.bodytable import distinct_rows, pad_lists
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.measures import MEASURES
from anyburl.ruleset.notation import SELF_MARKER, read_labels
from anyburl.triples.vocabulary import Vocabulary

Ids = NDArray[np.int32]

ENTITY_COLUMNS = ("subject", "object", "constant")
LABEL_COLUMNS = ("type", "head", *ENTITY_COLUMNS)
COUNT_COLUMNS = ("predictions", "support")
REQUIRED = (*LABEL_COLUMNS, "body", "forward", *COUNT_COLUMNS)
READ = (*REQUIRED, "exact", "margin", *MEASURES)
TYPES = pl.Enum([str(name) for name in RuleType])
NO_TYPE = 255


class FrameReader:
    """Makes columns of rules of a large frame part by part, over the vocabulary of all its labels.

    The frame may be one for people or the contents of a file: `notation` tells them apart.
    """

    def __init__(self, frames: pl.LazyFrame, source: str) -> None:
        self.source = source
        self.n_read = 0
        self.schema = frames.collect_schema()
        self._check_columns(self.schema)
        self.frames = frames.select(name for name in READ if name in self.schema)
        entities, relations = self._texts(*ENTITY_COLUMNS), self._texts("head", "body")
        labels = read_labels(entities)
        is_self = labels == SELF_MARKER
        try:
            self.vocabulary = Vocabulary.from_labels(labels.filter(~is_self), relations)
        except DataError as error:
            raise RuleError(f"{source}: {error}") from error
        ids = np.where(is_self.to_numpy(), self.vocabulary.self_id, self.vocabulary.encode_entities(labels))
        self.entities = TextIds(entities, ids)
        self.relations = TextIds(relations, self.vocabulary.encode_relations(relations))

    def read(self, frame: pl.DataFrame) -> RuleColumns:
        """Return the rules of the next part of the frame."""
        vocabulary = self.vocabulary
        types = _type_codes(frame["type"])
        subject, object, constant = (self.entities.of(frame[name]) for name in ENTITY_COLUMNS)
        head = self.relations.of(frame["head"])
        bodies, body, lengths = self._bodies(frame)
        counts = {name: frame[name].cast(pl.Int64, strict=False).fill_null(-1).to_numpy() for name in COUNT_COLUMNS}
        self._refuse(_faults(types, head, subject, object, constant, lengths, **counts))
        self.n_read += len(frame)
        return RuleColumns(
            vocabulary=vocabulary,
            bodies=bodies,
            type=types,
            head=np.where(subject >= 0, head + vocabulary.n_relations, head),
            body=body,
            head_constant=np.maximum(subject, object),
            body_constant=constant,
            exact=_exact(frame),
            **counts,
            **_extras(frame),
        )

    def _bodies(self, frame: pl.DataFrame) -> tuple[Ids, Ids, NDArray[np.int64]]:
        """Return the distinct bodies, which of them each rule has, and how long it is."""
        lengths = frame["body"].list.len().fill_null(0).cast(pl.Int64)
        directions = frame["forward"].list.len().fill_null(0).cast(pl.Int64)
        self._refuse([((lengths != directions).to_numpy(), "body and forward have different lengths")])
        has_atoms = lengths > 0
        relations = self.relations.of(frame["body"].filter(has_atoms).explode(empty_as_null=False))
        forward = frame["forward"].filter(has_atoms).explode(empty_as_null=False)
        if (relations < 0).any() or forward.null_count():
            raise RuleError(f"{self.source}: expected relations and directions in bodies, got a null")
        steps = np.where(forward.to_numpy(), relations, relations + np.int32(self.vocabulary.n_relations))
        bodies, body = distinct_rows(pad_lists(steps.astype(np.int32), lengths.to_numpy()))
        return bodies, body, lengths.to_numpy()

    def _texts(self, *names: str) -> pl.Series:
        """Return the distinct texts of some columns: those of their dictionaries, or else those that occur."""
        return pl.concat([self._texts_of(name) for name in names]).unique()

    def _texts_of(self, name: str) -> pl.Series:
        dtype = self.schema[name]
        dictionary = dtype.inner if isinstance(dtype, pl.List) else dtype
        if isinstance(dictionary, pl.Enum):
            return dictionary.categories.rename("")
        column = pl.col(name).explode(empty_as_null=False) if isinstance(dtype, pl.List) else pl.col(name)
        return self.frames.select(column.unique().cast(pl.String).drop_nulls()).collect().to_series().rename("")

    def _refuse(self, faults: list[tuple[NDArray[np.bool_], str]]) -> None:
        for mask, reason in faults:
            if mask.any():
                raise RuleError(f"{self.source}: row {self.n_read + int(mask.argmax()) + 1}: {reason}")

    def _check_columns(self, schema: pl.Schema) -> None:
        missing = [name for name in REQUIRED if name not in schema]
        if missing:
            raise RuleError(
                f"{self.source}: expected rules in columns {', '.join(REQUIRED)}, got no column {', '.join(missing)}"
            )
        for name in READ:
            if name in schema and not _is_suitable(name, schema[name]):
                raise RuleError(f"{self.source}: column {name!r} cannot have type {schema[name]} in a rule file")


class TextIds:
    """Looks up ids by the texts of labels, -1 for null. Dictionary codes are mapped, strings are joined."""

    def __init__(self, texts: pl.Series, ids: Ids) -> None:
        self.table = pl.DataFrame({"text": texts, "id": pl.Series(ids, dtype=pl.Int32)})

    def of(self, texts: pl.Series) -> Ids:
        """Return the ids of a column."""
        if not isinstance(texts.dtype, pl.Enum):
            return self._join(texts.cast(pl.String))
        by_code = np.append(self._join(texts.dtype.categories), np.int32(-1))
        codes = texts.to_physical().cast(pl.Int64).fill_null(len(by_code) - 1).to_numpy()
        ids: Ids = by_code[codes]
        return ids

    def _join(self, texts: pl.Series) -> Ids:
        frame = pl.DataFrame({"text": texts})
        found = frame.join(self.table, on="text", how="left", maintain_order="left")["id"]
        return found.fill_null(-1).to_numpy()


def _faults(
    types: NDArray[np.uint8],
    head: Ids,
    subject: Ids,
    object: Ids,
    constant: Ids,
    lengths: NDArray[np.int64],
    predictions: NDArray[np.int64],
    support: NDArray[np.int64],
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return what is wrong with rules, as masks with reasons."""
    n_constants = (subject >= 0).astype(np.int8) + (object >= 0)
    is_type = {name: types == name.code for name in RuleType}
    is_binary = is_type[RuleType.BINARY]
    return [
        (types == NO_TYPE, "expected a type B, Uc, Ud or Z"),
        (head < 0, "expected a head, got a null"),
        (is_binary & (n_constants > 0), "a rule of type B has no subject and no object"),
        (~is_binary & (n_constants != 1), "a unary rule has either a subject or an object"),
        (is_type[RuleType.UNARY_CONSTANT] != (constant >= 0), "rules of type Uc, and no others, have a constant"),
        (is_type[RuleType.ZERO] != (lengths == 0), "rules of type Z, and no others, have an empty body"),
        ((support < 0) | (support > predictions), "expected 0 <= support <= predictions"),
        (support > np.iinfo(np.int32).max, "the support is too large"),
    ]


def _inner(dtype: pl.DataType) -> Any:
    return dtype.inner if isinstance(dtype, pl.List) else None


def _is_label(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)


def _is_suitable(name: str, dtype: pl.DataType) -> bool:
    if name in LABEL_COLUMNS:
        return _is_label(dtype)
    if name in COUNT_COLUMNS:
        return dtype.is_integer()
    if name == "exact":
        return dtype in (pl.Boolean, pl.Null)
    if name in ("margin", *MEASURES):
        return dtype.is_numeric() or dtype == pl.Null
    inner = _inner(dtype)
    return inner is not None and (_is_label(inner) if name == "body" else inner in (pl.Boolean, pl.Null))


def _exact(frame: pl.DataFrame) -> NDArray[np.bool_]:
    """Return which scores are exact: none where the frame does not say."""
    if "exact" not in frame.columns:
        return np.zeros(len(frame), dtype=np.bool_)
    return frame["exact"].cast(pl.Boolean).fill_null(False).to_numpy()


def _extras(frame: pl.DataFrame) -> dict[str, Any]:
    """Return the margins and measures that the frame has, NaN for null."""
    dtypes: dict[str, Any] = {"margin": pl.Float32, **dict.fromkeys(MEASURES, pl.Float64)}
    found = {name: dtype for name, dtype in dtypes.items() if name in frame.columns}
    return {name: frame[name].cast(dtype).fill_null(np.nan).to_numpy() for name, dtype in found.items()}


def _type_codes(types: pl.Series) -> NDArray[np.uint8]:
    """Return the codes of types, `NO_TYPE` for what is none."""
    known = types.cast(pl.String).cast(TYPES, strict=False)
    return known.to_physical().cast(pl.UInt8).fill_null(NO_TYPE).to_numpy()
