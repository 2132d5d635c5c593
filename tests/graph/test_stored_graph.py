"""A stored graph is the graph that was built."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from anyburl.base.errors import DataError
from anyburl.data.table import TripleTable
from anyburl.graph.stored import graph_of, open_graph, store_graph


def small_table() -> TripleTable:
    return TripleTable.from_labels([*"abcca"], [*"rsrrs"], [*"bcaca"])


def test_stored_graph_is_the_built_one(tmp_path: Path) -> None:
    table = small_table()
    built = store_graph(table, tmp_path)
    opened = graph_of(TripleTable(table.vocabulary, table.triples, folder=tmp_path))
    for one, other in zip(built, opened, strict=True):
        np.testing.assert_array_equal(one, other)
        if isinstance(one, np.ndarray):
            assert one.dtype == other.dtype
            assert not other.flags.writeable
            assert type(other) is np.ndarray
            assert isinstance(other.base, np.memmap) or not other.size


def test_a_graph_without_entities_reached_is_stored_as_well(tmp_path: Path) -> None:
    table = TripleTable.from_labels(["a"], ["r"], ["a"])
    store_graph(table, tmp_path)
    opened = graph_of(TripleTable(table.vocabulary, table.triples, folder=tmp_path))
    assert len(opened.domains) == 0
    assert len(opened.targets) == 4


def test_without_a_folder_the_graph_is_built() -> None:
    table = small_table()
    assert graph_of(table).n_entities == table.vocabulary.n_entities


@pytest.mark.parametrize("missing", ["targets.npy", "sizes.json"])
def test_a_damaged_folder_is_refused(tmp_path: Path, missing: str) -> None:
    store_graph(small_table(), tmp_path)
    (tmp_path / "graph" / missing).unlink()
    with pytest.raises(DataError, match="anyburl index"):
        open_graph(tmp_path / "graph", small_table())


@pytest.mark.parametrize(
    ("name", "array"),
    [("targets", [0]), ("segment_offsets", [0, 9]), ("partners", [[0], [0]]), ("domains", [0.5]), ("neighbours", [])],
)
def test_arrays_of_other_sizes_are_refused(tmp_path: Path, name: str, array: list[float]) -> None:
    store_graph(small_table(), tmp_path)
    np.save(tmp_path / "graph" / f"{name}.npy", np.array(array))
    with pytest.raises(DataError, match="anyburl index"):
        open_graph(tmp_path / "graph", small_table())


def test_the_graph_of_other_labels_is_refused(tmp_path: Path) -> None:
    store_graph(small_table(), tmp_path)
    other = TripleTable.from_labels(["a"], ["r"], ["b"])
    with pytest.raises(DataError, match="anyburl index"):
        open_graph(tmp_path / "graph", other)
