"""The tables of an index in its folder: built in bounded memory, memory-mapped when opened.

index.json                        format, version, name, source, fingerprint, counts; written last
entities.arrow, relations.arrow   the labels, sorted: Arrow IPC, one column `label`
train.npy, valid.npy, test.npy    the distinct triples, sorted: (n, 3) int32
names.arrow                       readable names, if there are any: the columns `label` and `name`
attributes.parquet                values of attributes, if there are any, see `anyburl.data.attributes`
graph/                            the index of train's graph, see `anyburl.graph.stored`

To build it, labels get codes, as many at a time as memory may hold; then the distinct ones are sorted and written to a
file, a run, and codes begin again. At the end runs are merged, a piece of each at a time: an id is a position in the
merged order. Triples wait in a file as codes; they are sorted as numbers, by ranges of subjects small enough for
memory.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import open_array
from anyburl.data.attributes import Attributes
from anyburl.data.catalogue import INDEX
from anyburl.data.files import SPLITS
from anyburl.data.names import Names
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.sources import DataLocation
from anyburl.data.table import Codes, Ids, LabelCoder, TripleTable, packed, unpacked
from anyburl.data.vocabulary import Vocabulary

FORMAT = 1
NAMES = "names.arrow"
LARGE = 1 << 26  # bytes of labels from which on they are mapped
LABEL_FILES = {"entities": "entities.arrow", "relations": "relations.arrow"}


@dataclass(frozen=True)
class IndexCard:
    """The contents of index.json: the data set and its sizes."""

    name: str
    source: str | None
    fingerprint: str
    triples: dict[str, int]
    duplicates: dict[str, int]
    entities: int
    relations: int
    reading: dict[str, Any] = field(default_factory=dict)
    prefixes: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        """Write the file that makes a folder an index."""
        described = {"format": FORMAT, "anyburl": __version__, **asdict(self)}
        (folder / INDEX).write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", "utf-8")

    @classmethod
    def read(cls, folder: Path) -> IndexCard:
        """Read index.json; raise an error if it is damaged or of another format."""
        try:
            described = dict(json.loads((folder / INDEX).read_text("utf-8")))
            written = described.pop("format"), described.pop("anyburl")
            if written[0] == FORMAT:
                return cls(**described)
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataError(f"{folder / INDEX}: not written by `anyburl index`") from error
        raise DataError(
            f"{folder} was written by anyburl {written[1]} in format {written[0]}, expected format {FORMAT}: build "
            "it again with `anyburl index`"
        )


@dataclass(frozen=True)
class StoredTables:
    """An index without its graph."""

    card: IndexCard
    tables: list[TripleTable]
    names: Names
    attributes: Attributes


def open_index(folder: Path) -> StoredTables:
    """Open the tables of an index; triples, and labels if there are many, are mapped."""
    card = IndexCard.read(folder)
    try:
        entities = _read_labels(folder / "entities.arrow", card.entities)
        vocabulary = Vocabulary(entities, _read_labels(folder / "relations.arrow", card.relations))
        mapped = {split: map_triples(folder / f"{split}.npy", card.triples[split]) for split in SPLITS}
        tables = [
            TripleTable.checked_before(
                vocabulary, mapped[split], card.duplicates[split], folder.absolute() if split == "train" else None
            )
            for split in SPLITS
        ]
        names = _read_names(folder / NAMES, card.prefixes)
        attributes = Attributes.load(folder, vocabulary)
    except (*UNREADABLE, ValueError, TypeError, KeyError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{folder}: the index is damaged ({reason}): build it again with `anyburl index`") from error
    return StoredTables(card, tables, names, attributes)


def write_labels(labels: pl.Series, path: Path, at_a_time: int | None = None) -> None:
    """Write labels as one batch, so that they are contiguous when read, or as small ones to be read in slices."""
    labels.to_frame("label").write_ipc(path, record_batch_size=max(1, at_a_time or len(labels)))


def join_labels(parts: list[Path], path: Path) -> None:
    """Concatenate files of labels, a few at a time in memory, and remove them."""
    pl.scan_ipc(parts, glob=False).sink_ipc(path)
    for part in parts:
        part.unlink()


def label_slices(path: Path, n_labels: int, size: int) -> Iterator[pl.Series]:
    """Yield the labels in a file, `size` at a time."""
    for start in range(0, n_labels, size):
        yield pl.scan_ipc(path).slice(start, size).collect()["label"]


def write_names(names: Names, folder: Path) -> None:
    """Write readable names beside the labels, if there are any."""
    if names:
        pl.DataFrame({"label": list(names), "name": list(names.values())}).write_ipc(folder / NAMES)


def _read_names(path: Path, prefixes: dict[str, str]) -> Names:
    stored = pl.read_ipc(path) if path.exists() else pl.DataFrame({"label": [], "name": []})
    return Names(dict(zip(stored["label"].to_list(), stored["name"].to_list(), strict=True)), prefixes)


def write_header(file: Any, n_rows: int) -> None:
    """Write the .npy header of a table; its rows follow, C-ordered."""
    np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": (n_rows, 3)})


def _read_labels(path: Path, n_labels: int) -> pl.Series:
    labels = _map_labels(path) if path.stat().st_size >= LARGE else pl.read_ipc(path)["label"]
    if len(labels) != n_labels or labels.dtype != pl.String:
        raise ValueError(f"{path.name} does not hold {n_labels} labels")
    return labels.rename("").rechunk()


def _map_labels(path: Path) -> pl.Series:
    """Map labels with pyarrow, if it is installed; Polars alone reads all of them."""
    try:
        from pyarrow import ipc, memory_map
    except ImportError:
        return pl.read_ipc(path)["label"]
    labels = pl.from_arrow(ipc.open_file(memory_map(str(path))).read_all()["label"], rechunk=False)
    assert isinstance(labels, pl.Series)
    return labels


def map_triples(path: Path, n_triples: int) -> NDArray[np.int32]:
    """Map the triples."""
    triples = open_array(path)
    if triples.shape != (n_triples, 3) or triples.dtype != np.int32:
        raise ValueError(f"{path.name} does not hold {n_triples} triples")
    return triples


MOST_KEYS = 1 << 26  # triples sorted at a time, 8 bytes each
MOST_BLOCKS = 1 << 16  # of subjects, whose triples are counted
LARGEST = 2**63 - 1  # number that stands for a triple
PIECE = 1 << 20  # triples at a time

Read = Callable[[], Iterator[Sequence[Ids]]]
"""Reads triples, in columns and in pieces."""


def write_sorted(read: Read, n_read: int, sizes: tuple[int, int], target: Path) -> int:
    """Write the distinct triples among `n_read` in order; return how many there are.

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
    """Return the first subjects of ranges with few enough triples to sort and subjects to pack into a number."""
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
    """Write triples to a file for each range, then sort one after the other."""
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
    """Yield distinct numbers of a sorted array, a piece at a time."""
    for start in range(0, len(keys), PIECE):
        piece = keys[start : start + PIECE]
        is_new = np.empty(len(piece), np.bool_)
        is_new[0] = start == 0 or piece[0] != keys[start - 1]
        np.not_equal(piece[1:], piece[:-1], out=is_new[1:])
        yield piece[is_new]


MOST_LABELS = 1 << 22  # distinct ones that have codes at a time, or are merged at a time
LEAST_SLICE = 1 << 14  # labels of a run that are read at a time


class LabelRuns:
    """Gives labels codes, run by run and, at the end, the ids of the codes of every run; uses temporary files."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._coder = folder, LabelCoder()
        self._n_coded = 0
        self.run = 0
        """The number of the current run."""

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
        for kind, labels, ids in self._finish():
            write_labels(labels, self._file(kind, self.run, "labels"), LEAST_SLICE)
            np.save(self._file(kind, self.run, "npy"), ids)
        self._coder, self._n_coded = LabelCoder(), 0
        self.run += 1

    def write(self, progress: Callable[[int], None] = lambda n_labels: None) -> tuple[int, int]:
        """Write all labels, sorted, and the ids of codes; return how many entities and relations there are."""
        if self.run:
            self.end_run()
            entities, relations = (self._merge(kind, progress) for kind in LABEL_FILES)
            return entities, relations
        counts = []
        for kind, labels, ids in self._finish():
            write_labels(labels, self._folder / LABEL_FILES[kind])
            np.save(self._file(kind, 0, "npy"), ids)
            counts.append(len(labels))
        return counts[0], counts[1]

    def ids(self, run: int) -> list[Ids]:
        """Return the array that turns a code of a run into an id, for each of the three columns."""
        entities, relations = (np.load(self._file(kind, run, "npy")) for kind in LABEL_FILES)
        return [entities, relations, entities]

    def remove(self) -> None:
        """Remove the files of ids."""
        for run in range(max(self.run, 1)):
            for kind in LABEL_FILES:
                self._file(kind, run, "npy").unlink()

    def _finish(self) -> list[tuple[str, pl.Series, Ids]]:
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
                run.add_ids(merged.search_sorted(labels).to_numpy() + n_labels)
            parts.append(self._file(kind, len(parts), "part"))
            write_labels(merged, parts[-1])
            n_labels += len(merged)
            progress(n_labels)
        join_labels(parts, self._folder / LABEL_FILES[kind])
        for number, run in enumerate(runs):
            codes = self._file(kind, number, "npy")
            np.save(codes, run.ids()[np.load(codes)])
            run.remove()
        return n_labels


class _Run:
    """The sorted labels of a run, read slice by slice, and their ids among all labels."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self._size = path, size
        self._ids = path.with_suffix(".ids")
        self._ids.touch()
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

    def add_ids(self, ids: NDArray[np.int64]) -> None:
        """Write the ids of the labels that were taken."""
        with self._ids.open("ab") as out:
            ids.astype(np.int32).tofile(out)

    def ids(self) -> Ids:
        """Return the id of every label of the run."""
        return np.fromfile(self._ids, np.int32)

    def remove(self) -> None:
        """Remove the files."""
        self._path.unlink()
        self._ids.unlink()


Progress = Callable[[str, int], None]
"""Called with the current step and the number of lines or triples."""


class Written(NamedTuple):
    """Numbers of labels, of triples of each split, and of repetitions that were dropped."""

    n_entities: int
    n_relations: int
    triples: dict[str, int]
    duplicates: dict[str, int]


class _Stretch(NamedTuple):
    """Consecutive lines of a split whose codes belong to one run of labels."""

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
    read = {split: sum(stretch.n_lines for stretch in own) for split, own in stretches.items()}
    progress("sorting labels", sum(read.values()))
    sizes = labels.write(lambda n_labels: progress("merging labels", n_labels))
    triples = {}
    for split, own in stretches.items():
        progress(f"sorting {split}", read[split])
        codes = folder / f"{split}.codes"
        read_ids = partial(_read_ids, codes, own, labels)
        triples[split] = write_sorted(read_ids, read[split], sizes, folder / f"{split}.npy")
        codes.unlink()
    labels.remove()
    return Written(*sizes, triples, {split: read[split] - triples[split] for split in SPLITS})


def _write_codes(
    labels: LabelRuns, split: str, batches: Iterator[pl.DataFrame], folder: Path, progress: Progress
) -> list[_Stretch]:
    """Write the codes of a split's labels, three a line; return the runs that they belong to."""
    stretches = []
    n_lines = n_read = 0
    with (folder / f"{split}.codes").open("wb") as out:
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
