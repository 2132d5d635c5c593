"""Parquet, the native format: dictionary-encoded labels, one row group for each slice of rules."""

from __future__ import annotations

import os
from pathlib import Path

from anyburl.base.errors import RuleError
from anyburl.base.polars_unstable import UNREADABLE, frame_batches, sink_frames
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replacing
from anyburl.data.vocabulary import Vocabulary
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import concatenate, unify
from anyburl.rules.files.rule_file import PathLike, ReadReport, first_bytes_of_rules
from anyburl.rules.frames import SLICE_ROWS, FrameReader, FrameWriter
from anyburl.rules.labels import labels_for_files


def write_parquet(rules: RuleColumns, path: PathLike) -> None:
    """Write rules slice by slice, each a row group; the file appears when it is complete."""
    writer = FrameWriter(rules, labels_for_files(rules.vocabulary))
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
