"""Data sets and where they come from."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from anyburl.base.errors import DataError, OptionError
from anyburl.data import Dataset, TripleTable, load_dataset, write_triples

TRAIN = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch"), ("ed", "married", "lisa")]
VALID = [("lisa", "married", "ed")]
TEST = [("ed", "born", "amsterdam"), ("ed", "speaks", "dutch")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    family = tmp_path / "family"
    family.mkdir()
    write_triples(TRAIN, family / "train.txt")
    write_triples(VALID, family / "valid.tsv.gz")
    write_triples(TEST, family / "test.txt.zst")
    return family


def refusal(data: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(data)
    return str(caught.value)


def test_a_folder_gives_three_splits_over_one_vocabulary(folder: Path) -> None:
    data = load_dataset(folder)
    assert (data.name, data.source) == ("family", str(folder))
    assert [len(table) for table in (data.train, data.valid, data.test)] == [3, 1, 2]
    assert data.vocabulary.entities.to_list() == ["amsterdam", "dutch", "ed", "lisa"]
    assert data.vocabulary.relations.to_list() == ["born", "married", "speaks"]
    assert data.train.vocabulary is data.valid.vocabulary is data.test.vocabulary
    assert data.vocabulary.self_id == 4
    assert data.test.to_polars().rows() == TEST
    assert repr(data) == "Dataset('family': train 3, valid 1, test 2; 4 entities, 3 relations)"


def test_valid_and_test_may_be_missing(folder: Path) -> None:
    (folder / "valid.tsv.gz").unlink()
    (folder / "test.txt.zst").unlink()
    data = load_dataset(str(folder))
    assert [len(table) for table in (data.train, data.valid, data.test)] == [3, 0, 0]


def test_a_single_file_is_train(folder: Path) -> None:
    data = load_dataset(folder / "valid.tsv.gz")
    assert (data.name, len(data.train), len(data.valid), len(data.test)) == ("valid", 1, 0, 0)


def test_a_name_is_looked_up_in_the_folder_of_data_sets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    assert "no data set, folder or file 'family'" in refusal("family")
    monkeypatch.setenv("ANYBURL_DATA", str(folder.parent))
    assert load_dataset("family").source == str(folder)
    assert "nor is it in ANYBURL_DATA" in refusal("families")


def test_a_path_here_goes_before_the_folder_of_data_sets(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = folder / "here" / "family"
    other.mkdir(parents=True)
    write_triples(VALID, other / "train.txt")
    monkeypatch.setenv("ANYBURL_DATA", str(folder.parent))
    monkeypatch.chdir(other.parent)
    assert len(load_dataset("family").train) == 1


def test_geo_is_built_in() -> None:
    data = load_dataset("geo")
    assert (data.name, data.source) == ("geo", "geo")
    assert len(data.train) > len(data.valid) > 0
    assert len(data.test) > 0


def test_a_name_that_nothing_has_is_refused_with_what_there_is() -> None:
    assert refusal("goe") == "no data set, folder or file 'goe'; did you mean geo?"
    assert refusal("mine") == (
        "no data set, folder or file 'mine': `anyburl datasets` lists the names that are known; "
        "a folder contains train and, optionally, valid and test, each .txt, .tsv or .csv, "
        "also .gz or .zst, .parquet, or RDF"
    )


def test_a_folder_without_train_is_refused_with_what_it_holds(folder: Path) -> None:
    (folder / "train.txt").rename(folder / "training.txt")
    sentence = refusal(folder)
    assert "no train file, got test.txt.zst, training.txt, valid.tsv.gz; a folder contains train" in sentence
    empty = folder / "empty"
    empty.mkdir()
    assert "no train file, got an empty folder" in refusal(empty)


@pytest.mark.parametrize(
    ("split", "second"), [("train", "train.tsv"), ("train", "train.txt.gz"), ("valid", "valid.txt")]
)
def test_two_files_for_one_split_are_refused(folder: Path, split: str, second: str) -> None:
    write_triples(TRAIN, folder / second)
    sentence = refusal(folder)
    assert f"expected one {split} file, got" in sentence
    assert second in sentence


def test_what_is_wrong_with_a_file_is_said_with_its_name(folder: Path) -> None:
    (folder / "valid.tsv.gz").write_bytes(gzip.compress(b"ed\tspeaks\n"))
    assert refusal(folder) == f"{folder / 'valid.tsv.gz'}:1: expected 3 tab-separated fields, got 2: 'ed\\tspeaks'"
    (folder / "valid.tsv.gz").write_bytes(b"")
    assert refusal(folder).endswith("got an empty file")
    (folder / "valid.tsv.gz").unlink()
    (folder / "valid.txt").mkdir()
    assert refusal(folder).endswith("valid.txt: expected a file of triples, got a folder")


def test_repetitions_are_dropped_within_a_split_and_kept_across_splits(folder: Path) -> None:
    write_triples([*TRAIN, *TRAIN, TRAIN[0]], folder / "train.txt")
    data = load_dataset(folder)
    assert (len(data.train), data.train.n_duplicates) == (3, 4)
    assert (len(data.test), data.test.n_duplicates) == (2, 0)


def test_the_same_data_in_another_order_is_the_same(folder: Path) -> None:
    rng = random.Random(1)
    rows = [(f"e{rng.randrange(50)}", f"r{rng.randrange(5)}", f"e{rng.randrange(50)}") for _ in range(500)]
    write_triples(rows, folder / "train.txt")
    one = load_dataset(folder)
    rng.shuffle(rows)
    (folder / "train.txt").write_text("\r\n".join(" ".join(row) for row in [*rows, *rows[:9]]))
    other = load_dataset(folder)
    assert one.vocabulary == other.vocabulary
    assert np.array_equal(one.train.triples, other.train.triples)
    assert one.fingerprint == other.fingerprint


def test_the_fingerprint_tells_data_apart() -> None:
    variants = [
        Dataset.from_triples(TRAIN, VALID, TEST),
        Dataset.from_triples(TRAIN, TEST, VALID),
        Dataset.from_triples(TRAIN[:2], VALID, TEST),
        Dataset.from_triples([*TRAIN[:2], ("ed", "married", "dutch")], VALID, TEST),
        Dataset.from_triples([("a", "r", "bc")]),
        Dataset.from_triples([("ab", "r", "c")]),
        Dataset.from_triples([("a", "rb", "c")]),
    ]
    assert len({data.fingerprint for data in variants}) == len(variants)
    assert Dataset.from_triples(TRAIN, name="x").fingerprint == Dataset.from_triples(TRAIN, name="y").fingerprint


def test_triples_of_any_kind_make_a_data_set(folder: Path) -> None:
    loaded = load_dataset(folder)
    frame = pl.DataFrame(VALID, schema=["s", "r", "o"], orient="row")
    for train, test in ((TRAIN, np.array(TEST)), (loaded.train, TripleTable.from_frame(TEST))):
        data = Dataset.from_triples(train, frame, test, name="family")
        assert data.fingerprint == loaded.fingerprint
        assert data.source is None
    with pytest.raises(DataError, match="valid: row 0: expected"):
        Dataset.from_triples(TRAIN, [("a", "b")])


def test_triples_in_memory_are_loaded_as_train(folder: Path) -> None:
    frame = pl.DataFrame(TRAIN, schema=["subject", "relation", "object"], orient="row")
    expected = Dataset.from_triples(TRAIN)
    for train in (TRAIN, iter(TRAIN), np.array(TRAIN), frame, frame.lazy(), frame.to_pandas(), expected.train):
        data = load_dataset(train)
        assert (len(data.train), len(data.valid), len(data.test)) == (3, 0, 0)
        assert data.fingerprint == expected.fingerprint
    assert load_dataset(expected) is expected


def test_a_table_keeps_its_vocabulary(folder: Path) -> None:
    table = load_dataset(folder).valid
    assert load_dataset(table).train is table
    assert load_dataset(table).vocabulary.n_entities == 4


def test_an_array_of_ids_gives_labels_of_digits() -> None:
    assert load_dataset(np.array([[10, 0, 2], [2, 0, 7]])).vocabulary.entities.to_list() == ["10", "2", "7"]


@pytest.mark.parametrize(
    "nothing", [[], np.empty((0, 3), "U1"), pl.DataFrame(schema=["subject", "relation", "object"])]
)
def test_no_triple_at_all_is_refused(nothing: Any) -> None:
    sentence = "expected at least one triple (subject, relation, object), got none"
    assert refusal(nothing) == sentence
    with pytest.raises(DataError, match="expected at least one triple"):
        Dataset.from_triples(nothing, nothing, nothing)
    assert len(Dataset.from_triples(nothing, VALID).train) == 0


def test_an_empty_table_is_refused(folder: Path) -> None:
    words = load_dataset(folder).vocabulary
    assert "expected at least one triple" in refusal(TripleTable.from_ids(np.empty((0, 3), np.int32), words))


@pytest.mark.parametrize("data", [7, object()])
def test_what_holds_no_triples_is_refused(data: Any) -> None:
    assert refusal(data).startswith("train: expected a frame, an array or a list of triples, got ")


def test_tables_over_different_vocabularies_are_no_data_set() -> None:
    train, test = TripleTable.from_frame(TRAIN), TripleTable.from_frame(TEST)
    with pytest.raises(DataError, match="expected one vocabulary"):
        Dataset("family", train, train, test)


def test_a_split_is_found_by_its_name(folder: Path) -> None:
    data = load_dataset(folder)
    assert data.split("valid") is data.valid
    with pytest.raises(OptionError, match="split must be train, valid or test, got 'dev'"):
        data.split("dev")


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("nations", (1592, 199, 201, 14, 55)),
        ("umls", (5216, 652, 661, 135, 46)),
        ("CoDEx-S", (32888, 1827, 1828, 2034, 42)),
        ("WN18RR", (86835, 3034, 3134, 40943, 11)),
        ("FB15k-237", (272115, 17535, 20466, 14541, 237)),
        ("YAGO3-10-partial", (539921, 5000, 5000, 120695, 37)),
    ],
)
def test_benchmarks_have_the_counts_that_are_known_of_them(
    shared_data: Callable[[str], Path], name: str, counts: tuple[int, ...]
) -> None:
    data = load_dataset(shared_data(name))
    sizes = tuple(len(table) + table.n_duplicates for table in (data.train, data.valid, data.test))
    assert (*sizes, data.vocabulary.n_entities, data.vocabulary.n_relations) == counts
