"""Tables of triples, and what they are made from."""

from __future__ import annotations

import pickle
import random
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import DataError, UnknownLabelError
from anyburl.data import TripleTable, Vocabulary
from anyburl.data.table import find_keys, sorted_unique

FACTS = [
    ("lisa", "speaks", "dutch"),
    ("ed", "speaks", "dutch"),
    ("ed", "married", "lisa"),
    ("ed", "likes", "ed"),
]
SORTED = [
    ("ed", "likes", "ed"),
    ("ed", "married", "lisa"),
    ("ed", "speaks", "dutch"),
    ("lisa", "speaks", "dutch"),
]

small = st.integers(0, 5)
id_triples = st.lists(st.tuples(small, st.integers(0, 2), small))


def test_triples_are_sorted_distinct_and_read_only() -> None:
    table = TripleTable.from_frame([*FACTS, FACTS[0], FACTS[0]])
    assert table.to_polars().rows() == SORTED
    assert table.triples.tolist() == [[1, 0, 1], [1, 1, 2], [1, 2, 0], [2, 2, 0]]
    assert table.n_duplicates == 2
    assert len(table) == 4
    assert table.triples.dtype == np.int32
    assert table.triples.flags.c_contiguous
    assert not table.triples.flags.writeable


def test_a_triple_from_an_entity_to_itself_is_kept() -> None:
    assert TripleTable.from_frame(FACTS).to_polars().row(0) == ("ed", "likes", "ed")


@given(id_triples)
def test_sorting_and_counting_agree_with_a_set(ids: list[tuple[int, int, int]]) -> None:
    vocabulary = Vocabulary.from_labels(range(6), range(3))
    table = TripleTable.from_ids(np.array(ids, dtype=np.int64).reshape(-1, 3), vocabulary)
    assert [tuple(row) for row in table.triples.tolist()] == sorted(set(ids))
    assert table.n_duplicates == len(ids) - len(set(ids))


@given(id_triples)
def test_vocabularies_too_large_for_one_integer_a_triple_sort_alike(ids: list[tuple[int, int, int]]) -> None:
    columns = list(np.array(ids, dtype=np.int32).reshape(-1, 3).T)
    large = sorted_unique(columns, 2**31 - 1, 2**20)
    assert np.array_equal(large, sorted_unique(columns, 6, 3))
    assert large.dtype == np.int32
    assert large.flags.c_contiguous


@given(id_triples, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(ids: list[tuple[int, int, int]], rng: random.Random) -> None:
    shuffled = list(ids)
    rng.shuffle(shuffled)
    one, other = TripleTable.from_frame(ids), TripleTable.from_frame(shuffled)
    assert one.vocabulary == other.vocabulary
    assert np.array_equal(one.triples, other.triples)


def pandas_frame(columns: dict[str, Any]) -> Any:
    return pytest.importorskip("pandas").DataFrame(columns)


@pytest.mark.parametrize("make", [pl.DataFrame, pl.LazyFrame, pandas_frame])
def test_frames_give_named_columns_or_else_the_three_they_have(make: Any) -> None:
    subjects, relations, objects = (list(column) for column in zip(*FACTS, strict=True))
    by_name = make({"relation": relations, "n": [1, 2, 3, 4], "object": objects, "subject": subjects})
    by_usual_name = make({"tail": objects, "Head": subjects, "r": relations})
    by_place = make({"a": subjects, "b": relations, "c": objects})
    assert TripleTable.from_frame(by_name).to_polars().rows() == SORTED
    assert TripleTable.from_frame(by_usual_name).to_polars().rows() == SORTED
    assert TripleTable.from_frame(by_place).to_polars().rows() == SORTED


@pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame])
def test_a_fourth_column_is_not_guessed(make: Any) -> None:
    frame = make({"head": ["a"], "r": ["b"], "tail": ["c"], "weight": [0.5]})
    with pytest.raises(DataError, match="expected three columns, got the columns head, r, tail, weight; choose with"):
        TripleTable.from_frame(frame)


@pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame])
def test_frames_of_numbers_become_labels(make: Any) -> None:
    frame = make({"s": [10, 9], "r": [0, 0], "o": ["x", "y"]})
    assert TripleTable.from_frame(frame).to_polars().rows() == [("10", "0", "x"), ("9", "0", "y")]


@pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame])
@pytest.mark.parametrize("gap", [None, ""])
def test_a_frame_with_a_gap_is_refused_with_the_row(make: Any, gap: str | None) -> None:
    frame = make({"s": ["a", "b", "c"], "r": ["r", "r", "r"], "o": ["x", gap, gap]})
    with pytest.raises(DataError, match="row 1: expected a label, got an empty object"):
        TripleTable.from_frame(frame)


@pytest.mark.parametrize("make", [pl.DataFrame, pandas_frame])
def test_not_a_number_is_a_gap(make: Any) -> None:
    with pytest.raises(DataError, match="row 1: expected a label, got an empty subject"):
        TripleTable.from_frame(make({"s": [1.5, float("nan")], "r": ["r", "r"], "o": ["x", "y"]}))


def test_categories_of_pandas_become_labels() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(FACTS, columns=["s", "p", "o"]).astype("category")
    assert TripleTable.from_frame(frame).to_polars().rows() == SORTED


@pytest.mark.parametrize(
    "array",
    [np.array(FACTS), np.array(FACTS, dtype=object), np.array(FACTS, dtype=np.dtypes.StringDType())],
    ids=["fixed width", "objects", "variable width"],
)
def test_arrays_of_strings_become_labels(array: Any) -> None:
    assert TripleTable.from_array(array).to_polars().rows() == SORTED


def test_arrays_of_integers_become_labels_of_their_digits() -> None:
    table = TripleTable.from_array(np.array([[10, 0, 9], [9, 0, 10]], dtype=np.uint16))
    assert table.to_polars().rows() == [("10", "0", "9"), ("9", "0", "10")]


@pytest.mark.parametrize(
    ("triples", "reason"),
    [
        (np.zeros((4, 2), dtype=int), r"expected an array of shape \(n, 3\), got \(4, 2\)"),
        (np.zeros((4, 3)), "expected an array of strings or integers, got float64"),
        ([("a", "r", "b"), ("a", "r")], r"row 1: expected \(subject, relation, object\), got \('a', 'r'\)"),
        (["abc"], r"row 0: expected \(subject, relation, object\), got 'abc'"),
        ([("a", None, "b")], "row 0: expected a label, got an empty relation"),
        ("train.txt", "expected a frame, an array or a list of triples, got 'train.txt'"),
        (7, "expected a frame, an array or a list of triples, got 7"),
        (pl.DataFrame({"s": ["a"], "o": ["b"]}), r"got the columns \['s', 'o'\]"),
        (
            pl.DataFrame({"s": ["a"], "r": ["r"], "o": [[1]]}),
            "expected labels in the column 'o', got values",
        ),
    ],
)
def test_what_is_no_triples_is_refused_with_what_was_expected(triples: Any, reason: str) -> None:
    with pytest.raises(DataError, match=reason):
        TripleTable.from_frame(triples)


def test_columns_of_labels_make_a_table() -> None:
    subjects, relations, objects = zip(*FACTS, strict=True)
    assert TripleTable.from_labels(subjects, pl.Series(relations), iter(objects)).to_polars().rows() == SORTED
    assert TripleTable.from_labels([1], [2], [3]).to_polars().rows() == [("1", "2", "3")]
    with pytest.raises(DataError, match=r"as many subjects as relations and objects, got \[4, 4, 1\]"):
        TripleTable.from_labels(subjects, relations, ["x"])


def test_a_given_vocabulary_is_used_and_must_know_every_label() -> None:
    vocabulary = Vocabulary.from_labels(["a", "b", "unused"], ["r", "s"])
    table = TripleTable.from_labels(["b"], ["s"], ["a"], vocabulary)
    assert table.vocabulary is vocabulary
    assert table.triples.tolist() == [[1, 1, 0]]
    with pytest.raises(UnknownLabelError, match="unknown relation 't'"):
        TripleTable.from_labels(["b"], ["t"], ["a"], vocabulary)
    with pytest.raises(UnknownLabelError, match="unknown entity 'c'"):
        TripleTable.from_labels(["b"], ["s"], ["c"], vocabulary)


def test_ids_out_of_range_are_refused() -> None:
    vocabulary = Vocabulary.from_labels(["a", "b"], ["r"])
    for wrong in ([0, 1, 0], [2, 0, 0], [0, 0, -1]):
        with pytest.raises(DataError, match=r"expected ids from 0 to below \[2, 1, 2\]"):
            TripleTable.from_ids([wrong], vocabulary)


@pytest.mark.parametrize("nothing", [[], np.empty((0, 3), dtype=str), pl.DataFrame(schema=["s", "r", "o"])])
def test_a_table_may_be_empty(nothing: Any) -> None:
    table = TripleTable.from_frame(nothing)
    assert table.triples.shape == (0, 3)
    assert table.to_polars().columns == ["subject", "relation", "object"]
    assert repr(table) == "TripleTable(0 triples, Vocabulary(n_entities=0, n_relations=0))"


def test_a_table_stays_read_only_on_the_way_to_another_process() -> None:
    table = TripleTable.from_frame(FACTS)
    copy = pickle.loads(pickle.dumps(table))
    assert np.array_equal(copy.triples, table.triples)
    assert not copy.triples.flags.writeable


WORDS = Vocabulary.from_labels(["a", "b"], ["r"])


@pytest.mark.parametrize("make", [TripleTable.from_ids, lambda ids, words: TripleTable(words, ids)])
@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.array([[0, 0, 2**32 + 1]]), r"ids from 0 to below \[2, 1, 2\], got \[0, 0, 4294967297\]"),
        (np.array([[0, 0, 2]]), r"got \[0, 0, 2\]"),
        (np.array([[0, 1, 1]]), r"got \[0, 1, 1\]"),
        (np.array([[0, 0, 1], [-1, 0, 1]]), r"got \[-1, 0, 1\]"),
        (np.array([[0, 0, 1.5]]), r"an \(n, 3\) array of whole numbers as ids, got float64 of shape \(1, 3\)"),
        (np.array([[0, 0, np.nan]]), "got float64"),
        (np.array([["a", "r", "b"]]), "an .n, 3. array of whole numbers"),
        (np.array([[0, 0], [1, 1], [0, 0]]), r"got int64 of shape \(3, 2\)"),
        (np.array([0, 0, 1]), r"got int64 of shape \(3,\)"),
        (np.array([[0, 0, 2**63]], np.uint64), "got .0, 0, 9223372036854775808."),
    ],
)
def test_what_is_no_table_of_ids_is_refused(make: Any, ids: Any, expected: str) -> None:
    with pytest.raises(DataError, match=expected):
        make(ids, WORDS)


@pytest.mark.parametrize("ids", [[[1, 0, 1], [0, 0, 1]], [[0, 0, 1], [0, 0, 1]], [[0, 0, 1], [0, 0, 0]]])
def test_the_constructor_takes_sorted_and_distinct_triples(ids: list[list[int]]) -> None:
    with pytest.raises(DataError, match=r"sorted and distinct: use TripleTable\.from_ids"):
        TripleTable(WORDS, np.array(ids, np.int32))
    assert np.array_equal(TripleTable(WORDS, TripleTable.from_ids(ids, WORDS).triples).triples, np.unique(ids, axis=0))


@given(id_triples)
def test_the_constructor_knows_what_is_sorted(ids: list[tuple[int, int, int]]) -> None:
    words = Vocabulary.from_labels(range(6), range(3))
    array = np.array(ids, np.int32).reshape(-1, 3)
    if ids == sorted(set(ids)):
        assert TripleTable(words, array).triples.tolist() == [list(triple) for triple in ids]
    else:
        with pytest.raises(DataError, match="sorted and distinct"):
            TripleTable(words, array)


def test_a_table_does_not_change_with_its_array() -> None:
    ids = np.array([[0, 0, 1]], np.int32)
    table = TripleTable(WORDS, ids)
    ids[:] = 9
    assert table.triples.tolist() == [[0, 0, 1]]
    assert ids.flags.writeable


@given(st.lists(st.integers(-5, 5)), st.lists(st.integers(-5, 5)))
def test_keys_are_found_where_they_first_stand(keys: list[int], others: list[int]) -> None:
    ordered = sorted(others)
    rows = find_keys(np.array(keys, np.int64), np.array(ordered, np.int64))
    assert rows.tolist() == [ordered.index(key) if key in ordered else -1 for key in keys]
