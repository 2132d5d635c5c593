"""Build the tables of an index in its folder, in bounded memory.

Labels are in memory one batch at a time, besides a bounded number of distinct ones. Their codes wait in a file until
all labels are known; then the triples of a split are sorted as numbers and written in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from anyburl.triples.entries import SPLITS
from anyburl.triples.gathered import Gathered
from anyburl.triples.label_runs import Ids, LabelRuns
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.sorting import write_sorted
from anyburl.triples.sources import Source

PIECE = 1 << 20  # triples at a time
Progress = Callable[[str, int], None]
"""Called with the current step and the number of lines or triples."""


class Written(NamedTuple):
    """How much was written: labels, triples of each split, and how many repetitions were dropped."""

    n_entities: int
    n_relations: int
    triples: dict[str, int]
    duplicates: dict[str, int]


class _Stretch(NamedTuple):
    """Lines of a split whose codes belong to one run of labels."""

    run: int
    n_lines: int


def write_tables(source: Source, options: ReadOptions, gathered: Gathered, folder: Path, progress: Progress) -> Written:
    """Write labels and triples of the splits."""
    labels = LabelRuns(folder)
    stretches = {
        split: _write_codes(labels, split, source.batches(split, options, gathered), folder, progress)
        for split in SPLITS
    }
    read = {split: sum(stretch.n_lines for stretch in found) for split, found in stretches.items()}
    progress("sorting labels", sum(read.values()))
    sizes = labels.write(lambda n_labels: progress("merging labels", n_labels))
    triples = {}
    for split, found in stretches.items():
        progress(f"sorting {split}", read[split])
        codes = _codes_file(folder, split)
        read_ids = partial(_read_ids, codes, found, labels)
        triples[split] = write_sorted(read_ids, read[split], sizes, folder / f"{split}.npy")
        codes.unlink()
    labels.remove()
    return Written(*sizes, triples, {split: read[split] - triples[split] for split in SPLITS})


def _codes_file(folder: Path, split: str) -> Path:
    return folder / f"{split}.codes"


def _write_codes(
    labels: LabelRuns, split: str, batches: Iterator[pl.DataFrame], folder: Path, progress: Progress
) -> list[_Stretch]:
    """Write the codes of a split's labels, three a line; return to which runs they belong."""
    stretches = []
    n_lines = n_read = 0
    with _codes_file(folder, split).open("wb") as out:
        for batch in batches:
            np.stack(labels.encode(batch), axis=1).tofile(out)
            n_lines += batch.height
            n_read += batch.height
            progress(f"reading {split}", n_read)
            if labels.is_full:
                stretches.append(_Stretch(labels.run, n_lines))
                labels.end_run()
                n_lines = 0
    return [*stretches, _Stretch(labels.run, n_lines)]


def _read_ids(codes: Path, stretches: list[_Stretch], labels: LabelRuns) -> Iterator[list[Ids]]:
    """Yield the ids of a split's lines, in columns, a piece at a time."""
    with codes.open("rb") as stream:
        for run, n_lines in stretches:
            ids = labels.ids(run)
            for start in range(0, n_lines, PIECE):
                rows = np.fromfile(stream, np.uint32, 3 * min(PIECE, n_lines - start))
                yield [by_code[column] for by_code, column in zip(ids, rows.reshape(-1, 3).T, strict=True)]
