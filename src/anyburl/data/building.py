"""Build the tables of an index in its folder, in bounded memory.

Labels are in memory one batch at a time, besides a bounded number of distinct ones. Their codes wait in a file until
all labels are known; then the triples of a split are sorted as numbers and written in pieces.

Sort the triples of a split on disk: range by range of subjects, each as numbers in memory.

A range has few enough triples to be sorted at a time, and few enough subjects for a triple to be one number.

From labels to ids when memory does not hold all labels.

Labels get codes, as many at a time as memory may hold. Then the distinct ones are sorted and written to a file, a run,
and codes begin again. In the end runs are merged, a piece of each at a time: an id is a place in the merged order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.data.entries import SPLITS
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.sources import DataLocation
from anyburl.data.stored import LABEL_FILES, join_labels, write_header, write_labels
from anyburl.data.table import Codes, Ids, LabelCoder, packed, unpacked

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


MOST_LABELS = 1 << 22  # distinct ones that have codes at a time, or are merged at a time
LEAST_SLICE = 1 << 14  # labels of a run that are read at a time
LabelIds = NDArray[np.int32]


class LabelRuns:
    """Gives labels codes, run by run, and in the end the ids behind the codes of every run.

    Files beside the index hold what waits; they are removed when they are no longer needed.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._coder = folder, LabelCoder()
        self._n_coded = 0
        self.run = 0
        """The number of the run to which codes belong now."""

    def encode(self, labels: pl.DataFrame) -> list[Codes]:
        """Return the codes of the columns subject, relation and object; see `is_full`."""
        columns = self._coder.encode(labels)
        self._n_coded = max(self._n_coded, *(int(codes.max()) + 1 for codes in columns if len(codes)), 0)
        return columns

    @property
    def is_full(self) -> bool:
        """Whether the run should end."""
        return self._n_coded >= MOST_LABELS

    def end_run(self) -> None:
        """Write the labels of the run, sorted, and begin another one."""
        for kind, labels, places in self._finish():
            write_labels(labels, self._file(kind, self.run, "labels"), LEAST_SLICE)
            np.save(self._file(kind, self.run, "npy"), places)
        self._coder, self._n_coded = LabelCoder(), 0
        self.run += 1

    def write(self, progress: Callable[[int], None] = lambda n_labels: None) -> tuple[int, int]:
        """Write all labels, sorted, and the ids behind codes; return how many entities and relations there are."""
        if self.run:
            self.end_run()
            entities, relations = (self._merge(kind, progress) for kind in LABEL_FILES)
            return entities, relations
        counts = []
        for kind, labels, places in self._finish():
            write_labels(labels, self._folder / LABEL_FILES[kind])
            np.save(self._file(kind, 0, "npy"), places)
            counts.append(len(labels))
        return counts[0], counts[1]

    def ids(self, run: int) -> list[LabelIds]:
        """Return for each of the three columns what turns a code of a run into an id."""
        entities, relations = (np.load(self._file(kind, run, "npy")) for kind in LABEL_FILES)
        return [entities, relations, entities]

    def remove(self) -> None:
        """Remove the files of ids."""
        for run in range(max(self.run, 1)):
            for kind in LABEL_FILES:
                self._file(kind, run, "npy").unlink()

    def _finish(self) -> list[tuple[str, pl.Series, LabelIds]]:
        vocabulary, ids = self._coder.finish()
        return list(zip(LABEL_FILES, (vocabulary.entities, vocabulary.relations), ids, strict=False))

    def _file(self, kind: str, run: int, suffix: str) -> Path:
        return self._folder / f"{kind}-{run}.{suffix}"

    def _merge(self, kind: str, progress: Callable[[int], None]) -> int:
        """Merge the runs of a kind of labels; return how many labels there are."""
        size = max(LEAST_SLICE, MOST_LABELS // self.run)
        runs = [_Run(self._file(kind, run, "labels"), size) for run in range(self.run)]
        parts: list[Path] = []
        n_labels = 0
        while slices := [run for run in runs if run.fill()]:
            last = min(run.last for run in slices)
            taken = [(run, run.take_until(last)) for run in slices]
            merged = pl.concat([labels for _, labels in taken]).unique().sort()
            for run, labels in taken:
                run.add_places(merged.search_sorted(labels).to_numpy() + n_labels)
            parts.append(self._file(kind, len(parts), "part"))
            write_labels(merged, parts[-1])
            n_labels += len(merged)
            progress(n_labels)
        join_labels(parts, self._folder / LABEL_FILES[kind])
        for number, run in enumerate(runs):
            codes = self._file(kind, number, "npy")
            np.save(codes, run.places()[np.load(codes)])
            run.remove()
        return n_labels


class _Run:
    """The sorted labels of a run, read slice by slice, and their places among all labels."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        self._places = path.with_suffix(".places")
        self._places.touch()
        self._labels = pl.Series(dtype=pl.String)
        self._n_read = 0

    def fill(self) -> bool:
        """Read more labels if none are left; False if there are no more."""
        if not len(self._labels):
            rows = pl.scan_ipc(self._path).slice(self._n_read, self._size)
            self._labels = rows.collect()["label"]
            self._n_read += len(self._labels)
        return len(self._labels) > 0

    @property
    def last(self) -> str:
        """The last of the labels that were read."""
        return str(self._labels[-1])

    def take_until(self, label: str) -> pl.Series:
        """Return the labels up to `label`."""
        n_taken = int(self._labels.search_sorted(label, side="right"))
        taken, self._labels = self._labels.head(n_taken), self._labels.slice(n_taken)
        return taken

    def add_places(self, places: NDArray[np.int64]) -> None:
        """Write down where the labels that were taken stand."""
        with self._places.open("ab") as out:
            places.astype(np.int32).tofile(out)

    def places(self) -> LabelIds:
        """Return the place of every label of the run."""
        return np.fromfile(self._places, np.int32)

    def remove(self) -> None:
        """Remove the files."""
        self._path.unlink()
        self._places.unlink()


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


def write_tables(
    source: DataLocation, options: ReadOptions, gathered: Gathered, folder: Path, progress: Progress
) -> Written:
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


def _read_ids(codes: Path, stretches: list[_Stretch], labels: LabelRuns) -> Iterator[list[LabelIds]]:
    """Yield the ids of a split's lines, in columns, a piece at a time."""
    with codes.open("rb") as stream:
        for run, n_lines in stretches:
            ids = labels.ids(run)
            for start in range(0, n_lines, PIECE):
                rows = np.fromfile(stream, np.uint32, 3 * min(PIECE, n_lines - start))
                yield [by_code[column] for by_code, column in zip(ids, rows.reshape(-1, 3).T, strict=True)]
