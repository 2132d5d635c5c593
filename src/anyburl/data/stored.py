"""Tables of triples in the folder of an index, memory-mapped when opened.

index.json                        format, version, name, source, fingerprint, counts; written last
entities.arrow, relations.arrow   the labels, sorted: Arrow IPC, one column `label`
train.npy, valid.npy, test.npy    the distinct triples, sorted: (n, 3) int32
names.arrow                       readable names, if there are any: the columns `label` and `name`
graph/                            the index of train's graph, see `anyburl.graph.stored`
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import open_array
from anyburl.data.catalogue import INDEX
from anyburl.data.entries import SPLITS
from anyburl.data.names import Names
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary

FORMAT = 1
NAMES = "names.arrow"
LARGE = 1 << 26  # bytes of labels, which are worth mapping
LABEL_FILES = {"entities": "entities.arrow", "relations": "relations.arrow"}


@dataclass(frozen=True)
class IndexCard:
    """What index.json says: whose index it is, and how much there is in it."""

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
        """Read what an index says of itself; what is no index, or one of another format, is refused."""
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
    """What an index holds besides its graph."""

    card: IndexCard
    tables: list[TripleTable]
    names: Names


def open_index(folder: Path) -> StoredTables:
    """Open the tables of an index; triples are not read before they are used, and many labels need not be."""
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
    except (*UNREADABLE, ValueError, TypeError, KeyError, EOFError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{folder}: the index is damaged ({reason}): build it again with `anyburl index`") from error
    return StoredTables(card, tables, names)


def write_labels(labels: pl.Series, path: Path, at_a_time: int | None = None) -> None:
    """Write labels as one batch, so that they are one piece when they are read, or as small ones to be read apart."""
    labels.to_frame("label").write_ipc(path, record_batch_size=max(1, at_a_time or len(labels)))


def join_labels(parts: list[Path], path: Path) -> None:
    """Put files of labels after each other, and remove them; memory holds a few of them at a time."""
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
    """Write how the file of a table begins; its rows follow, C-ordered."""
    np.lib.format.write_array_header_1_0(file, {"descr": "<i4", "fortran_order": False, "shape": (n_rows, 3)})


def _read_labels(path: Path, n_labels: int) -> pl.Series:
    labels = _map_labels(path) if path.stat().st_size >= LARGE else pl.read_ipc(path)["label"]
    if len(labels) != n_labels or labels.dtype != pl.String:
        raise ValueError(f"{path.name} does not hold {n_labels} labels")
    return labels.rename("").rechunk()


def _map_labels(path: Path) -> pl.Series:
    """Return labels that are read as they are used, if pyarrow is there: Polars alone reads all of them."""
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
