"""An index is the data it was built from."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from anyburl import DataError, Dataset, build_index, load_dataset
from anyburl.data import SPLITS, sources, stored, table, write_triples
from anyburl.data.files import read_batches
from anyburl.graph import stored as dataset_index
from anyburl.graph.build import build_graph
from anyburl.graph.stored import graph_of
from kernels import examples

TRAIN = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch"), ("ed", "married", "lisa"), ("ed", "speaks", "dutch")]
FILES = ["entities.arrow", "graph", "index.json", "relations.arrow", "test.npy", "train.npy", "valid.npy"]
small_labels = st.sampled_from("abcdeé")
rows = st.lists(st.tuples(small_labels, st.sampled_from("rst"), small_labels), max_size=12)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    write_triples(TRAIN, tmp_path / "family.txt")
    return tmp_path / "family.txt"


def assert_same(built: Dataset, read: Dataset) -> None:
    assert built.name == read.name
    assert built.vocabulary == read.vocabulary
    for split in SPLITS:
        one, other = built.split(split), read.split(split)
        assert one.vocabulary is built.vocabulary
        assert one.n_duplicates == other.n_duplicates
        np.testing.assert_array_equal(one.triples, other.triples)
        assert type(one.triples) is np.ndarray
        assert numba.typeof(one.triples) == numba.typeof(other.triples)  # or kernels would be compiled twice
    for one, other in zip(graph_of(built.train), build_graph(read.train), strict=True):
        np.testing.assert_array_equal(one, other)
        assert numba.typeof(one) == numba.typeof(other)
    assert built.fingerprint == read.fingerprint == plain_fingerprint(read)


def plain_fingerprint(data: Dataset) -> str:
    """The fingerprint in the plainest way: run folders keep it, so it must never change."""
    digest = hashlib.blake2b(digest_size=16)
    for labels in (data.vocabulary.entities, data.vocabulary.relations):
        digest.update("\0".join([str(len(labels)), *labels]).encode())
    for split in SPLITS:
        table = data.split(split)
        digest.update(f"\0{len(table)}\0".encode())
        digest.update(table.triples.astype("<i4").tobytes())
    return digest.hexdigest()


def test_the_index_of_geo_is_geo(tmp_path: Path) -> None:
    steps: dict[str, int] = {}
    built = build_index("geo", tmp_path / "geo.index", steps.__setitem__)
    assert_same(built, load_dataset("geo"))
    assert built.source == str(tmp_path / "geo.index")
    assert built.train.folder == tmp_path / "geo.index"
    assert built.valid.folder is None
    assert isinstance(built.train.triples.base, np.memmap)
    assert (steps["reading train"], steps["indexing"]) == (8935, 8935)
    assert [entry.name for entry in tmp_path.iterdir()] == ["geo.index"]
    assert sorted(entry.name for entry in built.train.folder.iterdir()) == FILES


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(30), deadline=None)
@given(
    splits=st.tuples(rows.filter(bool), rows, rows),
    piece=st.integers(1, 5),
    most_labels=st.sampled_from([1, 3, 4, 100]),
    slice_size=st.integers(1, 3),
    most_keys=st.integers(1, 12),
    largest=st.sampled_from([200, 1000, 2**63 - 1]),
)
def test_any_data_in_pieces_is_the_same(
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
    splits: tuple[list[tuple[str, str, str]], ...],
    piece: int,
    most_labels: int,
    slice_size: int,
    most_keys: int,
    largest: int,
) -> None:
    folder = tmp_path_factory.mktemp("data")
    for split, triples in zip(SPLITS, splits, strict=True):
        if triples:
            write_triples(triples, folder / f"{split}.txt")
    for module in (stored, table, dataset_index):
        monkeypatch.setattr(module, "PIECE", piece)
    monkeypatch.setattr(stored, "MOST_LABELS", most_labels)
    monkeypatch.setattr(stored, "LEAST_SLICE", slice_size)
    monkeypatch.setattr(stored, "MOST_KEYS", most_keys)
    monkeypatch.setattr(stored, "LARGEST", largest)
    monkeypatch.setattr(sources, "read_batches", lambda path, *rest: read_batches(path, *rest, size=piece))
    built = build_index(folder, folder / folder.name)
    assert_same(built, load_dataset(folder))
    assert built.train.folder is not None
    assert sorted(entry.name for entry in built.train.folder.iterdir()) == FILES


@pytest.mark.parametrize("with_pyarrow", [True, False])
def test_many_labels_are_the_same_if_they_are_mapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, with_pyarrow: bool
) -> None:
    if with_pyarrow:
        pytest.importorskip("pyarrow", reason="mapping labels takes pyarrow")
    else:
        monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setattr(stored, "LARGE", 0)
    monkeypatch.setattr(stored, "MOST_LABELS", 1000)
    assert_same(build_index("geo", tmp_path / "geo.index"), load_dataset("geo"))


def test_an_empty_folder_may_be_filled_and_others_are_left_alone(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "family.index"
    out.mkdir(parents=True)
    build_index(file, out)
    for place, sentence in (
        (out, "already contains an index: choose another folder, or remove this one"),
        (tmp_path, "is not empty: an index needs a folder of its own"),
        (file, "is a file: an index is written to a folder"),
    ):
        with pytest.raises(DataError, match=sentence):
            build_index(file, place)
    with pytest.raises(DataError, match="is already an index: pass the data it was built from"):
        build_index(out, tmp_path / "again")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["family.txt", "new"]


@pytest.mark.parametrize(
    "step", ["reading train", "sorting labels", "merging labels", "sorting valid", "indexing", "computing"]
)
def test_an_interrupted_build_leaves_nothing(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    monkeypatch.setattr(stored, "MOST_LABELS", 1)

    def interrupt(doing: str, n: int) -> None:
        if doing.startswith(step):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(file, tmp_path / "out", interrupt)
    assert list(tmp_path.iterdir()) == [file]


def test_wrong_data_leave_nothing(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_text("a\tr\tb\na\tr\n")
    with pytest.raises(DataError, match=r"bad\.txt:2: expected 3 tab-separated fields, got 2"):
        build_index(tmp_path / "bad.txt", tmp_path / "out")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bad.txt"]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


@pytest.mark.parametrize("harm", [Path.unlink, cut, lambda path: path.write_text("something else")])
@pytest.mark.parametrize("name", ["train.npy", "test.npy", "entities.arrow", "relations.arrow"])
def test_a_damaged_index_is_refused(file: Path, tmp_path: Path, name: str, harm: Callable[[Path], object]) -> None:
    build_index(file, tmp_path / "out")
    harm(tmp_path / "out" / name)
    with pytest.raises(DataError, match=r"out: the index is damaged \(.+\): build it again with `anyburl index`"):
        load_dataset(tmp_path / "out")


def test_counts_that_differ_are_damage(file: Path, tmp_path: Path) -> None:
    build_index(file, tmp_path / "out")
    card = tmp_path / "out" / "index.json"
    whole = card.read_text()
    assert json.loads(whole)["duplicates"] == {"train": 1, "valid": 0, "test": 0}
    card.write_text(whole.replace('"train": 3', '"train": 4'))
    with pytest.raises(DataError, match=r"damaged \(train\.npy does not hold 4 triples\)"):
        load_dataset(tmp_path / "out")
    card.write_text(whole.replace('"entities": 3', '"entities": 2'))
    with pytest.raises(DataError, match=r"damaged \(entities\.arrow does not hold 2 labels\)"):
        load_dataset(tmp_path / "out")
    card.write_text(whole.replace('"format": 1', '"format": 9'))
    with pytest.raises(DataError, match=r"in format 9, expected format 1: build it again"):
        load_dataset(tmp_path / "out")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": 1, "anyburl": "0", "name": "x"}', '{"a": 1}', "\x00"])
def test_a_foreign_folder_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(DataError, match=r"index\.json: not written by `anyburl index`"):
        load_dataset(tmp_path)


def test_a_folder_of_text_may_hold_a_file_of_that_name(file: Path, tmp_path: Path) -> None:
    file.rename(tmp_path / "train.txt")
    (tmp_path / "index.json").write_text("[]")
    assert len(load_dataset(tmp_path).train) == 3


def test_an_index_is_found_by_its_name(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    build_index(file, home / "Large-Family")
    monkeypatch.setenv("ANYBURL_DATA", str(home))
    assert load_dataset("largefamily").source == str(home / "Large-Family")
