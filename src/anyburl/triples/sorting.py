"""Sort the triples of a split on disk: range by range of subjects, each as numbers in memory.

A range has few enough triples to be sorted at a time, and few enough subjects for a triple to be one number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from anyburl.triples.stored import write_header
from anyburl.triples.table import Ids, packed, unpacked

MOST_KEYS = 1 << 26  # triples sorted at a time, 8 bytes each
MOST_BLOCKS = 1 << 16  # of subjects, whose triples are counted
LARGEST = 2**63 - 1  # number that stands for a triple
PIECE = 1 << 20  # triples at a time

Read = Callable[[], Iterator[Sequence[Ids]]]
"""Reads triples, in columns and in pieces."""


def write_sorted(read: Read, n_read: int, sizes: tuple[int, int], target: Path) -> int:
    """Write the distinct ones of `n_read` triples in order; return how many there are.

    `sizes` are the numbers of entities and relations.
    """
    starts = _subject_ranges(read, n_read, sizes)
    with target.open("wb") as out:
        write_header(out, 0)
        if len(starts) == 1:
            n_triples = _sort_range(read(), n_read, 0, sizes, out)
        else:
            n_triples = _sort_ranges(read, starts, sizes, target, out)
        out.seek(0)
        write_header(out, n_triples)  # NumPy leaves room for any number
    return n_triples


def _subject_ranges(read: Read, n_read: int, sizes: tuple[int, int]) -> NDArray[np.int64]:
    """Return where the ranges of subjects begin."""
    n_entities, n_relations = sizes
    most_subjects = LARGEST // max(1, n_entities * n_relations)
    if n_read <= MOST_KEYS and n_entities <= most_subjects:
        return np.zeros(1, np.int64)
    step = max(1, min(most_subjects, -(-n_entities // MOST_BLOCKS)))
    counts = np.zeros(n_entities // step + 1, np.int64)
    for subjects, _, _ in read():
        counts += np.bincount(subjects // step, minlength=len(counts))
    starts, n_triples = [0], 0
    for block, count in enumerate(counts.tolist()):
        is_wide = (block + 1) * step - starts[-1] > most_subjects
        if block * step > starts[-1] and (is_wide or n_triples + count > MOST_KEYS):
            starts.append(block * step)
            n_triples = 0
        n_triples += count
    return np.array(starts, np.int64)


def _sort_ranges(read: Read, starts: NDArray[np.int64], sizes: tuple[int, int], target: Path, out: BinaryIO) -> int:
    """Divide triples into a file for each range, then sort one after the other."""
    files = [target.with_suffix(f".{number}") for number in range(len(starts))]
    with ExitStack() as stack:
        streams = [stack.enter_context(file.open("wb")) for file in files]
        for columns in read():
            ranges = np.searchsorted(starts, columns[0], side="right") - 1
            order = np.argsort(ranges, kind="stable")
            rows = np.stack(columns, axis=1)[order]
            bounds = np.searchsorted(ranges[order], np.arange(len(starts) + 1))
            for stream, first, last in zip(streams, bounds[:-1], bounds[1:], strict=True):
                rows[first:last].tofile(stream)
    n_triples = 0
    for file, start in zip(files, starts.tolist(), strict=True):
        n_rows = file.stat().st_size // 12
        n_triples += _sort_range(_columns(file), n_rows, start, sizes, out)
        file.unlink()
    return n_triples


def _columns(file: Path) -> Iterator[Sequence[Ids]]:
    with file.open("rb") as stream:
        while len(rows := np.fromfile(stream, np.int32, 3 * PIECE)):
            yield list(rows.reshape(-1, 3).T)


def _sort_range(pieces: Iterator[Sequence[Ids]], n_rows: int, start: int, sizes: tuple[int, int], out: BinaryIO) -> int:
    """Sort the triples whose subjects are in the range from `start` on; write the distinct ones."""
    keys = np.empty(n_rows, np.int64)
    filled = 0
    for subjects, relations, objects in pieces:
        keys[filled : filled + len(subjects)] = packed([subjects - np.int32(start), relations, objects], *sizes)
        filled += len(subjects)
    keys.sort()
    n_triples = 0
    for piece in distinct(keys):
        triples = unpacked(piece, *sizes)
        triples[:, 0] += start
        triples.tofile(out)
        n_triples += len(triples)
    return n_triples


def distinct(keys: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield the distinct ones of sorted numbers, a piece at a time."""
    for start in range(0, len(keys), PIECE):
        piece = keys[start : start + PIECE]
        is_new = np.empty(len(piece), np.bool_)
        is_new[0] = start == 0 or piece[0] != keys[start - 1]
        np.not_equal(piece[1:], piece[:-1], out=is_new[1:])
        yield piece[is_new]
