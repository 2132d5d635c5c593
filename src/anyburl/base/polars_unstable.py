"""The only file that uses Polars features marked as unstable, which a later version may change.

The tests allow Polars to warn here; a warning from anywhere else is an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Event

import polars as pl
from polars.io.plugins import register_io_source

UNREADABLE = (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException)
"""What Polars raises at a file that it cannot read; at some damaged ones, it panics."""

LOOK_FOR_INTERRUPTS = 0.1  # seconds


def stream_frames(schema: pl.Schema, frames: Callable[[], Iterator[pl.DataFrame]]) -> pl.LazyFrame:
    """Return a lazy frame whose parts are made one after the other, so that a sink can write more than fits memory."""

    def source(
        columns: list[str] | None, predicate: pl.Expr | None, n_rows: int | None, batch_size: int | None
    ) -> Iterator[pl.DataFrame]:
        return frames()

    return register_io_source(source, schema=dict(schema))


def sink_frames(
    schema: pl.Schema, frames: Callable[[], Iterator[pl.DataFrame]], write: Callable[[pl.LazyFrame], object]
) -> None:
    """Write the frames in another thread, since Polars would turn an interrupt while a part is made into its own error.

    After an interrupt, no more parts are written; it is raised when the writer has ended.
    """
    is_stopped = Event()

    def parts() -> Iterator[pl.DataFrame]:
        for frame in frames():
            if is_stopped.is_set():
                raise InterruptedError
            yield frame

    with ThreadPoolExecutor(1, thread_name_prefix="anyburl-writer") as pool:
        writing = pool.submit(write, stream_frames(schema, parts))
        try:
            while wait([writing], timeout=LOOK_FOR_INTERRUPTS).not_done:
                pass  # an interrupt that the system gave to another thread is raised here, between two waits
            writing.result()
        finally:
            is_stopped.set()


def frame_batches(frames: pl.LazyFrame, n_rows: int) -> Iterator[pl.DataFrame]:
    """Collect a lazy frame part by part, `n_rows` rows at a time."""
    return frames.collect_batches(chunk_size=n_rows)


def line_batches(path: Path, n_lines: int, *, numbered: bool = False) -> Iterator[pl.DataFrame]:
    """Read the lines of a file, plain or compressed, `n_lines` at a time: the column `line`, and `number` from 1 on.

    Polars counts up to 2^32 lines; larger files cannot be `numbered`.
    """
    number = "number" if numbered else None
    lines = pl.scan_lines(path, name="line", row_index_name=number, row_index_offset=1, glob=False)
    return frame_batches(lines, n_lines)


def numbered_lines(text: Path | bytes, first: int = 1) -> pl.DataFrame:
    """Read the lines of a file, plain or compressed, or of some text: columns `number`, from `first` on, and `line`."""
    return pl.read_lines(text, name="line", row_index_name="number", row_index_offset=first, glob=False)


def first_lines(path: Path, n_lines: int) -> list[str]:
    """Read the first lines of a file, plain or compressed."""
    return pl.scan_lines(path, name="line", glob=False).head(n_lines).collect()["line"].to_list()
