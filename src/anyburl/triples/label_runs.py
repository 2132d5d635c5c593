"""From labels to ids when memory does not hold all labels.

Labels get codes, as many at a time as memory may hold. Then the distinct ones are sorted and written to a file, a run,
and codes begin again. In the end runs are merged, a piece of each at a time: an id is a place in the merged order.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.triples.encoding import Codes, LabelCoder
from anyburl.triples.stored import LABEL_FILES, join_labels, write_labels

MOST_LABELS = 1 << 22  # distinct ones that have codes at a time, or are merged at a time
LEAST_SLICE = 1 << 14  # labels of a run that are read at a time
Ids = NDArray[np.int32]


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

    def ids(self, run: int) -> list[Ids]:
        """Return for each of the three columns what turns a code of a run into an id."""
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

    def places(self) -> Ids:
        """Return the place of every label of the run."""
        return np.fromfile(self._places, np.int32)

    def remove(self) -> None:
        """Remove the files."""
        self._path.unlink()
        self._places.unlink()
