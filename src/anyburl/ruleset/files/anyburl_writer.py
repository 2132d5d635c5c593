"""Writing AnyBURL's text: `predictions<TAB>support<TAB>confidence<TAB>rule`, one rule a line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.errors import RuleError
from anyburl.polars_unstable import sink_frames
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.files.opening import PathLike
from anyburl.ruleset.texts import RuleTexts, check_writable
from anyburl.writing import replacing

SLICE_LINES = 500_000
COMPRESSIONS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd"}


def write_text(rules: RuleColumns, path: PathLike, *, escaped: bool = False) -> None:
    """Write rules as text, compressed if the path ends in .gz or .zst; it appears when it is complete.

    Labels that text cannot carry are refused, or escaped on request.
    """
    if not escaped:
        check_writable(rules)
    texts = RuleTexts(rules, escaped=escaped)

    def frames() -> Iterator[pl.DataFrame]:
        for start in range(0, len(rules), SLICE_LINES):
            yield _lines(texts, start, min(start + SLICE_LINES, len(rules)))

    with replacing(Path(path), RuleError) as unfinished:
        sink_frames(
            pl.Schema({"line": pl.String}),
            frames,
            lambda lines: lines.sink_csv(
                unfinished,
                include_header=False,
                quote_style="never",
                compression=COMPRESSIONS.get(Path(path).suffix.lower(), "uncompressed"),
                check_extension=False,
            ),
        )


def _lines(texts: RuleTexts, start: int, stop: int) -> pl.DataFrame:
    part = texts.rules.slice(start, stop)
    columns = {
        "predictions": pl.Series(part.predictions),
        "support": pl.Series(part.support),
        "confidence": float_texts(part.confidence()),
        "rule": texts.texts(start, stop),
    }
    return pl.DataFrame(columns).select(line=pl.concat_str(pl.all(), separator="\t"))


def float_texts(values: NDArray[np.float64]) -> pl.Series:
    """Write numbers as Python does. Polars differs in small ones only (1e-5 for 1e-05)."""
    texts = pl.Series(values).cast(pl.String)
    small = np.flatnonzero((values != 0) & (np.abs(values) < 1e-4))
    return texts.scatter(small, [repr(float(value)) for value in values[small]]) if len(small) else texts
