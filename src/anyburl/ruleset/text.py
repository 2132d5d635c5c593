"""AnyBURL's text: `predictions<TAB>support<TAB>confidence<TAB>rule`, one rule a line.

Lines are read by columns. Those of an unusual shape (names with commas or parentheses, a body in another
order) are parsed one by one; what is no rule is reported with its line number.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from anyburl.errors import RuleError
from anyburl.ruleset.combine import concatenate
from anyburl.ruleset.files import PathLike, first_bytes, replacing, stream
from anyburl.ruleset.report import ReadReport
from anyburl.ruleset.ruletext import RuleWriter, check_writable
from anyburl.ruleset.textlines import read_lines
from anyburl.ruleset.unify import unify
from anyburl.triples.vocabulary import Vocabulary

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet

SLICE_LINES = 500_000


def write_text(rules: RuleSet, path: PathLike, *, escaped: bool = False) -> None:
    """Write rules as text, compressed if the path ends in .gz or .zst; it appears when it is complete.

    Labels that text cannot carry are refused, or escaped on request.
    """
    if not escaped:
        check_writable(rules)
    writer = RuleWriter(rules, escaped=escaped)

    def lines() -> Iterator[pl.DataFrame]:
        for start in range(0, len(rules), SLICE_LINES):
            yield _lines(writer, start, min(start + SLICE_LINES, len(rules)))

    compression: Literal["gzip", "zstd", "uncompressed"]
    compression = {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix.lower(), "uncompressed")  # type: ignore[assignment]
    with replacing(Path(path)) as unfinished:
        stream(pl.Schema({"line": pl.String}), lines).sink_csv(
            unfinished,
            include_header=False,
            quote_style="never",
            compression=compression,
            check_extension=False,
        )


def read_text(
    path: PathLike, vocabulary: Vocabulary | None = None, *, escaped: bool = False
) -> tuple[RuleSet, ReadReport]:
    """Read rules in the order of their lines. Scores are taken as sampled, since the text does not say."""
    from anyburl.ruleset.ruleset import RuleSet

    first_bytes(Path(path))
    batches = [read_lines(frame, escaped=escaped) for frame in _numbered_lines(path)]
    n_comments = sum(batch.n_comments for batch in batches)
    rejected = sorted(pair for batch in batches for pair in batch.rejected)
    parts = unify((batch.rules for batch in batches if batch.rules is not None), vocabulary)
    if not parts.sets:
        nothing = RuleSet.empty(vocabulary or Vocabulary.from_labels([], []))
        return nothing, ReadReport(0, n_comments, rejected)
    return concatenate(parts.sets), ReadReport(parts.n_rules, n_comments, rejected, parts.n_unknown)


def _numbered_lines(path: PathLike) -> Iterator[pl.DataFrame]:
    lines = pl.scan_lines(Path(path), name="line", row_index_name="number", row_index_offset=1, glob=False)
    try:
        yield from lines.collect_batches(chunk_size=SLICE_LINES)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise RuleError(f"{os.fspath(path)}: expected text in UTF-8, plain or compressed ({error})") from error


def _lines(writer: RuleWriter, start: int, stop: int) -> pl.DataFrame:
    part = writer.rules.slice(start, stop)
    columns = {
        "predictions": pl.Series(part.predictions),
        "support": pl.Series(part.support),
        "confidence": float_texts(part.confidence()),
        "rule": writer.texts(start, stop),
    }
    return pl.DataFrame(columns).select(line=pl.concat_str(pl.all(), separator="\t"))


def float_texts(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> pl.Series:
    """Write numbers as Python does. Polars differs in small ones only (1e-5 for 1e-05)."""
    texts = pl.Series(values).cast(pl.String)
    small = np.flatnonzero((values != 0) & (np.abs(values) < 1e-4))
    return texts.scatter(small, [repr(float(value)) for value in values[small]]) if len(small) else texts
