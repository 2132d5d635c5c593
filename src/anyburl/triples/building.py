"""Build the tables of an index in its folder.

Labels are in memory one batch at a time, besides the distinct ones. Their codes wait in a file until all labels are
known; then a split is one number per triple, sorted in place and written in pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.triples.encoding import LabelCoder
from anyburl.triples.entries import SPLITS
from anyburl.triples.gathered import Gathered
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.sources import Source
from anyburl.triples.stored import write_header, write_labels
from anyburl.triples.table import Ids, fits_one_number, packed, sorted_unique, unpacked
from anyburl.triples.vocabulary import Vocabulary

PIECE = 1 << 20  # triples at a time
Progress = Callable[[str, int], None]
"""Is told what is being done, and with how many lines or triples."""


def write_tables(
    source: Source, options: ReadOptions, gathered: Gathered, folder: Path, progress: Progress
) -> tuple[Vocabulary, dict[str, int], dict[str, int]]:
    """Write labels and triples of the splits; return the labels, and how many triples and repetitions there were."""
    coder = LabelCoder()
    read = {
        split: _write_codes(coder, split, source.batches(split, options, gathered), folder, progress)
        for split in SPLITS
    }
    progress("sorting labels", sum(read.values()))
    vocabulary, ids = coder.finish()
    write_labels(vocabulary.entities, folder / "entities.arrow")
    write_labels(vocabulary.relations, folder / "relations.arrow")
    triples = {}
    for split, n_read in read.items():
        progress(f"sorting {split}", n_read)
        triples[split] = _write_sorted(folder, split, n_read, ids, vocabulary)
        _codes_file(folder, split).unlink()
    return vocabulary, triples, {split: read[split] - triples[split] for split in SPLITS}


def _codes_file(folder: Path, split: str) -> Path:
    return folder / f"{split}.codes"


def _write_codes(
    coder: LabelCoder, split: str, batches: Iterator[pl.DataFrame], folder: Path, progress: Progress
) -> int:
    """Write the codes of a split's labels, three a line; return how many lines there were."""
    n_read = 0
    with _codes_file(folder, split).open("wb") as out:
        for batch in batches:
            np.stack(coder.encode(batch), axis=1).tofile(out)
            n_read += batch.height
            progress(f"reading {split}", n_read)
    return n_read


def _read_ids(folder: Path, split: str, ids: Sequence[Ids]) -> Iterator[list[Ids]]:
    """Yield the ids of a split's lines, in columns, a piece at a time."""
    with _codes_file(folder, split).open("rb") as stream:
        while len(codes := np.fromfile(stream, np.uint32, 3 * PIECE)):
            yield [by_code[column] for by_code, column in zip(ids, codes.reshape(-1, 3).T, strict=True)]


def _write_sorted(folder: Path, split: str, n_read: int, ids: Sequence[Ids], vocabulary: Vocabulary) -> int:
    """Write the distinct triples of a split in order; return how many there are."""
    target = folder / f"{split}.npy"
    sizes = vocabulary.n_entities, vocabulary.n_relations
    if not fits_one_number(*sizes):
        pieces = [[by_code[:0] for by_code in ids], *_read_ids(folder, split, ids)]
        triples = sorted_unique([np.concatenate(column) for column in zip(*pieces, strict=True)], *sizes)
        np.save(target, triples)
        return len(triples)
    keys = np.empty(n_read, np.int64)
    start = 0
    for columns in _read_ids(folder, split, ids):
        keys[start : start + len(columns[0])] = packed(columns, *sizes)
        start += len(columns[0])
    keys.sort()
    n_triples = sum(map(len, _distinct(keys)))
    with target.open("wb") as out:
        write_header(out, n_triples)
        for piece in _distinct(keys):
            unpacked(piece, *sizes).tofile(out)
    return n_triples


def _distinct(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the distinct ones of sorted numbers, a piece at a time."""
    for start in range(0, len(keys), PIECE):
        piece = keys[start : start + PIECE]
        is_new = np.empty(len(piece), np.bool_)
        is_new[0] = start == 0 or piece[0] != keys[start - 1]
        np.not_equal(piece[1:], piece[:-1], out=is_new[1:])
        yield piece[is_new]
