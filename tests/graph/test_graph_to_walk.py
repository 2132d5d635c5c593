"""A stored graph that is read into memory where that pays."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import anyburl
from anyburl.graph import stored
from anyburl.graph.stored import graph_of, graph_to_walk


@pytest.mark.parametrize(
    ("has_pages", "bytes_left", "is_read"), [(True, 10**12, True), (True, 10, False), (False, 10**12, False)]
)
def test_a_stored_graph_is_read_if_there_are_huge_pages_and_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_pages: bool, bytes_left: int, is_read: bool
) -> None:
    monkeypatch.setattr(stored, "has_huge_pages", lambda: has_pages)
    monkeypatch.setattr(stored, "memory_left", lambda: (bytes_left, 10**12))
    train = anyburl.build_index("geo", tmp_path / "geo.index").train
    mapped, walked = graph_of(train), graph_to_walk(train)
    assert isinstance(mapped.targets.base, np.memmap)
    assert isinstance(walked.targets.base, np.memmap) != is_read
    for one, other in zip(mapped, walked, strict=True):
        assert np.array_equal(one, other)
        assert isinstance(other, int) or not other.flags.writeable


def test_the_graph_of_a_table_in_memory_is_built() -> None:
    train = anyburl.load_dataset("geo").train
    assert np.array_equal(graph_to_walk(train).targets, graph_of(train).targets)


def test_a_damaged_array_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "has_huge_pages", lambda: True)
    train = anyburl.build_index("geo", tmp_path / "geo.index").train
    (tmp_path / "geo.index" / "graph" / "targets.npy").write_bytes(b"nothing")
    with pytest.raises(anyburl.DataError, match="missing or damaged"):
        graph_to_walk(train)
