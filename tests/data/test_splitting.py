"""A graph without splits, divided into train, valid and test."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import DataError, InvalidOptionError
from anyburl.data import SPLITS, Dataset, TripleTable, load_dataset, write_triples
from anyburl.data.dataset import load_recorded, split_rows
from anyburl.data.options import ReadOptions
from anyburl.graph.stored import build_index
from reference import splitting as reference

EIGHTY = ReadOptions(split=(0.8, 0.1, 0.1), split_seed=3)
DENSE = [(f"e{a}", f"r{(a + b) % 3}", f"e{b}") for a in range(20) for b in range(20)]

small = st.integers(0, 5)
triples_of_six = st.lists(st.tuples(small, st.integers(0, 2), small), unique=True, max_size=40)
shares_of_one = st.tuples(st.integers(1, 10), st.integers(0, 10), st.integers(0, 10)).map(
    lambda parts: tuple(part / sum(parts) for part in parts)
)


@given(triples_of_six, shares_of_one, st.randoms(use_true_random=False))
def test_triples_are_divided_as_by_hand(
    triples: list[tuple[int, int, int]], shares: tuple[float, ...], chance: random.Random
) -> None:
    order = list(range(len(triples)))
    chance.shuffle(order)
    parts = split_rows(np.array(triples, np.int32).reshape(-1, 3), np.array(order, np.int64), shares)
    found = [{triples[row] for row in np.flatnonzero(parts == part)} for part in range(3)]
    assert found == reference.divide([triples[row] for row in order], shares)


@given(triples_of_six.filter(bool), st.integers(0, 3), st.randoms(use_true_random=False))
def test_a_split_does_not_depend_on_the_order_and_train_has_every_label(
    triples: list[tuple[int, int, int]], seed: int, chance: random.Random
) -> None:
    rows = [tuple(map(str, triple)) for triple in triples]
    options = ReadOptions(split=(0.5, 0.25, 0.25), split_seed=seed)
    first = load_dataset(rows, options)
    chance.shuffle(rows)
    second = load_dataset(rows, options)
    for split in SPLITS:
        assert first.split(split).to_polars().equals(second.split(split).to_polars())
    assert {*np.unique(first.train.triples[:, [0, 2]])} == {*range(first.vocabulary.n_entities)}
    assert {*np.unique(first.train.triples[:, 1])} == {*range(first.vocabulary.n_relations)}
    assert sum(len(first.split(split)) for split in SPLITS) == len(triples)


def test_shares_are_reached_where_the_graph_allows_it() -> None:
    split = load_dataset(DENSE, EIGHTY)
    assert [len(split.split(name)) for name in SPLITS] == [320, 40, 40]
    other = load_dataset(DENSE, ReadOptions(split=(0.8, 0.1, 0.1), split_seed=4))
    assert other.fingerprint != split.fingerprint


def test_a_graph_in_which_no_triple_can_be_spared_stays_whole() -> None:
    split = load_dataset([("a", "r", "b"), ("c", "r", "d")], EIGHTY)
    assert [len(split.split(name)) for name in SPLITS] == [2, 0, 0]


def test_files_tables_and_indexes_are_split_alike(tmp_path: Path) -> None:
    write_triples(DENSE, tmp_path / "all.tsv")
    from_file = load_dataset(tmp_path / "all.tsv", EIGHTY)
    from_rows = Dataset.from_triples(DENSE, options=EIGHTY)
    from_table = load_dataset(TripleTable.from_frame(DENSE), EIGHTY)
    from_index = build_index(tmp_path / "all.tsv", tmp_path / "index", options=EIGHTY)
    assert {d.fingerprint for d in (from_file, from_rows, from_table, from_index)} == {from_file.fingerprint}
    assert sorted(path.name for path in (tmp_path / "index").glob("*.npy")) == ["test.npy", "train.npy", "valid.npy"]
    recorded = load_recorded({"source": from_file.source, "reading": from_file.reading.to_json()})
    assert recorded.fingerprint == from_file.fingerprint


def test_what_is_split_already_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"geo already has splits \(valid.txt.gz, test.txt.gz\): drop --split"):
        load_dataset("geo", EIGHTY)
    with pytest.raises(DataError, match="geo already has splits"):
        build_index("geo", tmp_path / "geo", options=EIGHTY)
    build_index("geo", tmp_path / "index")
    with pytest.raises(DataError, match="is an index, which has its splits: pass --split to `anyburl index`"):
        load_dataset(tmp_path / "index", EIGHTY)
    with pytest.raises(DataError, match="the data already has valid or test"):
        Dataset.from_triples(DENSE, DENSE[:3], options=EIGHTY)


@pytest.mark.parametrize("split", [(0.8, 0.2), (0.8, 0.1, 0.2), (1.1, -0.1, 0.0), (0.0, 0.5, 0.5)])
def test_shares_that_are_none_are_refused(split: tuple[float, ...]) -> None:
    with pytest.raises(InvalidOptionError, match=r"split must be three shares that sum to 1, such as 0.8,0.1,0.1"):
        ReadOptions(split=split)
