"""Rules as frames of labels, for people and for Parquet, the native format; and back to columns, with checks.

Labels are gathered by id, bodies are lists gathered from the small table of bodies, and everything is done in slices,
each a row group of the file, so that 50 million rules take seconds and little memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, RuleError
from anyburl.base.polars_unstable import UNREADABLE, frame_batches, sink_frames
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replacing
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import COLUMNS, VALUE_KINDS, Column, Holds, RuleColumns, misfits
from anyburl.rules.combine import concatenate, distinct_rows, pad_lists, unify
from anyburl.rules.labels import (
    SELF_MARKER,
    FrameLabels,
    gather_labels,
    labels_for_files,
    labels_for_people,
    labels_of_texts,
)
from anyburl.rules.rule_file import PathLike, ReadReport, first_bytes_of_rules
from anyburl.rules.types import KINDS

Ids = NDArray[np.int32]

SLICE_ROWS = 2_000_000

ENTITY_COLUMNS = ("subject", "object", "constant")
LABEL_COLUMNS = ("type", "head", *ENTITY_COLUMNS)
SCORES = tuple(name for name, column in COLUMNS.items() if not column.is_identity or column.holds is Holds.BOUND)
NEEDED = (
    *LABEL_COLUMNS,
    "body",
    "forward",
    *(name for name in SCORES if not COLUMNS[name].optional and COLUMNS[name].if_absent is None),
)
READ = tuple(dict.fromkeys([*NEEDED, *SCORES]))
TYPES = pl.Enum([str(kind) for kind in KINDS])
VALUE_KIND = pl.Enum([str(kind) for kind in VALUE_KINDS])
NO_TYPE = 255


def to_frame(rules: RuleColumns) -> pl.DataFrame:
    """Return the rules as one frame for people."""
    return pl.concat(FrameWriter(rules, labels_for_people(rules.vocabulary)).slices())


class FrameWriter:
    """Gives the rules of a set as frames."""

    def __init__(self, rules: RuleColumns, labels: FrameLabels) -> None:
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
        """Return the rules from row `start` to row `stop`: the rule in labels, then its scores."""
        part = self.rules.slice(start, stop)
        n_relations = max(1, part.vocabulary.n_relations)
        backward = part.head >= n_relations
        constant = part.head_constant
        types, relations, entities = self.labels
        scores = {name: _written(part, name) for name in part.columns if name in SCORES}
        required = {name: scores.pop(name) for name in SCORES if not COLUMNS[name].optional}
        return pl.DataFrame(
            {
                "type": types.gather(part.type),
                "head": relations.gather(part.head % n_relations),
                "body": self.bodies["body"].gather(part.body),
                "forward": self.bodies["forward"].gather(part.body),
                "subject": gather_labels(entities, np.where(backward, constant, -1)),
                "object": gather_labels(entities, np.where(backward, -1, constant)),
                "constant": gather_labels(entities, part.body_constant),
                **required,
                "confidence": part.confidence(),
                **scores,
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
            columns[f"r{position}"] = gather_labels(self.labels.relations, relations)
            directions = pl.Series(steps < n_relations)
            columns[f"f{position}"] = directions.set(pl.Series(steps < 0), None)
        return pl.DataFrame(columns).select(
            body=pl.concat_list(pl.col("^r\\d+$")).list.drop_nulls(),
            forward=pl.concat_list(pl.col("^f\\d+$")).list.drop_nulls(),
        )


def _written(rules: RuleColumns, name: str) -> NDArray[Any] | pl.Series:
    """Return a column as frames have it: of rules without a condition, what belongs to one is null."""
    column: NDArray[Any] = rules.columns[name]
    if COLUMNS[name].holds is Holds.BOUND:
        return pl.Series(column).fill_nan(None)
    if COLUMNS[name].holds is Holds.VALUE_KIND:
        labels = pl.Series(VALUE_KINDS, dtype=VALUE_KIND).gather(column)
        return labels.set(pl.Series(~rules.has_condition), None)
    return column


class FrameReader:
    """Makes columns of rules of a large frame part by part, over the vocabulary of all its labels.

    The frame may be one for people or the contents of a file: `labels` says how they differ.
    """

    def __init__(self, frames: pl.LazyFrame, source: str) -> None:
        self.source = source
        self.n_read = 0
        self.schema = frames.collect_schema()
        self._check_columns(self.schema)
        self.frames = frames.select(name for name in READ if name in self.schema)
        entities, relations = self._texts(*ENTITY_COLUMNS), self._texts("head", "body")
        labels = labels_of_texts(entities)
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
        scores = {name: column for name in SCORES if (column := _score(frame, COLUMNS[name])) is not None}
        counts = scores["predictions"], scores["support"]
        conditional = ~np.isnan(scores["low"]) if "low" in scores else np.zeros(len(frame), np.bool_)
        self._refuse(_faults(types, head, subject, object, constant, lengths, *counts, conditional))
        self.n_read += len(frame)
        return RuleColumns(
            vocabulary=vocabulary,
            bodies=bodies,
            type=types,
            head=np.where(subject >= 0, head + vocabulary.n_relations, head),
            body=body,
            head_constant=np.maximum(subject, object),
            body_constant=constant,
            **scores,
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
        missing = [name for name in NEEDED if name not in schema]
        if missing:
            raise RuleError(
                f"{self.source}: expected rules in columns {', '.join(NEEDED)}, got no column {', '.join(missing)}"
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
        ids = frame.join(self.table, on="text", how="left", maintain_order="left")["id"]
        return ids.fill_null(-1).to_numpy()


def _faults(
    types: NDArray[np.uint8],
    head: Ids,
    subject: Ids,
    object: Ids,
    constant: Ids,
    lengths: NDArray[np.int64],
    predictions: NDArray[np.int64],
    support: NDArray[np.int64],
    conditional: NDArray[np.bool_],
) -> list[tuple[NDArray[np.bool_], str]]:
    """Return what is wrong with rules, as masks with reasons."""
    n_constants = (subject >= 0).astype(np.int8) + (object >= 0)
    binary = [kind for kind in KINDS if not kind.form.has_head_constant]
    is_binary = np.isin(types, [kind.code for kind in binary])
    return [
        (types == NO_TYPE, f"expected a type {', '.join(KINDS[:-1])} or {KINDS[-1]}"),
        (head < 0, "expected a head, got a null"),
        (is_binary & (n_constants > 0), f"a rule of type {' or '.join(binary)} has no subject and no object"),
        (~is_binary & (n_constants != 1), "a unary rule has either a subject or an object"),
        misfits(types, constant >= 0, lambda form: form.has_body_constant, "have a constant"),
        misfits(types, lengths == 0, lambda form: not form.has_body, "have an empty body"),
        misfits(types, conditional, lambda form: form.has_condition, "have a condition, low or high"),
        ((support < 0) | (support > predictions), "expected 0 <= support <= predictions"),
        (support > np.iinfo(np.int32).max, "the support is too large"),
    ]


def _inner(dtype: pl.DataType) -> Any:
    return dtype.inner if isinstance(dtype, pl.List) else None


def _is_label(dtype: Any) -> bool:
    return dtype in (pl.String, pl.Categorical, pl.Enum, pl.Null)


def _is_suitable(name: str, dtype: pl.DataType) -> bool:
    """Whether a column of a frame has a type that it can be read from."""
    if name in SCORES:
        return _is_score(COLUMNS[name], dtype)
    if name in LABEL_COLUMNS:
        return _is_label(dtype)
    inner = _inner(dtype)
    return inner is not None and (_is_label(inner) if name == "body" else inner in (pl.Boolean, pl.Null))


def _is_score(column: Column, dtype: pl.DataType) -> bool:
    if column.holds is Holds.VALUE_KIND:
        return _is_label(dtype)
    if column.holds is Holds.COUNT:
        return dtype.is_integer()
    return dtype == pl.Null or (dtype == pl.Boolean if column.holds is Holds.FLAG else dtype.is_numeric())


def _score(frame: pl.DataFrame, column: Column) -> NDArray[Any] | None:
    """Return a column that says how good rules are, with a number for null; None if the frame lacks it."""
    if column.name not in frame.columns:
        return None if column.optional else np.full(len(frame), column.if_absent, column.dtype)
    values = frame[column.name]
    if column.holds is Holds.COUNT:  # a null, like what does not fit into 64 bits, is refused later
        return values.cast(pl.Int64, strict=False).fill_null(-1).to_numpy()
    if column.holds is Holds.VALUE_KIND:
        kinds = values.cast(pl.String).cast(VALUE_KIND, strict=False)
        return kinds.to_physical().cast(pl.UInt8).fill_null(0).to_numpy()
    if column.holds is Holds.FLAG:
        return values.cast(pl.Boolean).fill_null(column.if_absent).to_numpy()
    return values.cast(pl.Series(np.empty(0, column.dtype)).dtype).fill_null(np.nan).to_numpy()


def _type_codes(types: pl.Series) -> NDArray[np.uint8]:
    """Return the codes of types, `NO_TYPE` for what is none."""
    known = types.cast(pl.String).cast(TYPES, strict=False)
    return known.to_physical().cast(pl.UInt8).fill_null(NO_TYPE).to_numpy()


def write_parquet(rules: RuleColumns, path: PathLike) -> None:
    """Write rules slice by slice, each a row group; the file appears when it is complete."""
    writer = FrameWriter(rules, labels_for_files(rules))
    with replacing(Path(path), RuleError) as unfinished:
        sink_frames(
            writer.schema,
            writer.slices,
            lambda frames: frames.sink_parquet(
                unfinished, compression="zstd", compression_level=1, row_group_size=SLICE_ROWS
            ),
        )
        seal(unfinished)


def read_rules_parquet(path: PathLike, vocabulary: Vocabulary | None = None) -> tuple[RuleColumns, ReadReport]:
    """Read rules row group by row group."""
    first_bytes_of_rules(path)
    try:
        reader = FrameReader(scan_parquet(path), os.fspath(path))
        batches = frame_batches(reader.frames, SLICE_ROWS)
        parts = unify((reader.read(frame) for frame in batches if len(frame)), vocabulary)
    except UNREADABLE as error:
        raise RuleError(f"{path}: the file cannot be read as Parquet ({_first_line(error)})") from error
    if not parts.sets:
        return RuleColumns.empty(vocabulary or reader.vocabulary), ReadReport(0)
    return concatenate(parts.sets), ReadReport(parts.n_rules, n_unknown=parts.n_unknown)


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
