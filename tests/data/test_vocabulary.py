"""Labels and ids."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.base.errors import DataError, UnknownLabelError
from anyburl.data import SELF_TOKEN, Vocabulary

characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
labels = st.text(characters, min_size=1, max_size=6).filter(str.strip)

LETTERS = "abcdefghijklmnopqrstuvwxyz"


@pytest.fixture
def people() -> Vocabulary:
    return Vocabulary.from_labels(["lisa", "ed", "dutch", "ed"], ["speaks", "born", "speaks"])


def test_ids_follow_the_sorted_labels_and_not_the_order_given(people: Vocabulary) -> None:
    assert people.entities.to_list() == ["dutch", "ed", "lisa"]
    assert people.relations.to_list() == ["born", "speaks"]
    assert (people.n_entities, people.n_relations) == (3, 2)
    assert people.entity_id("ed") == 1
    assert people.relation_id("speaks") == 1


@given(st.lists(labels), st.lists(labels))
def test_the_order_is_the_one_of_python_strings_and_decoding_undoes_encoding(
    entities: list[str], relations: list[str]
) -> None:
    vocabulary = Vocabulary.from_labels(entities, relations)
    assert vocabulary.entities.to_list() == sorted(set(entities))
    assert vocabulary.decode_entities(vocabulary.encode_entities(entities)).to_list() == entities
    assert vocabulary.decode_relations(vocabulary.encode_relations(relations)).to_list() == relations
    assert [vocabulary.entity_label(vocabulary.entity_id(label)) for label in entities] == entities


@pytest.mark.parametrize("n", [1, 254, 255, 256, 257, 65535, 65536, 65537])
def test_ids_are_right_at_the_sizes_where_polars_changes_its_integers(n: int) -> None:
    names = [f"{number:06d}" for number in range(n)]
    vocabulary = Vocabulary.from_labels(names, ["r"])
    ids = vocabulary.encode_entities([*names, "unknown"])
    assert ids.dtype == np.int32
    assert ids.tolist() == [*range(n), -1]


def test_unknown_labels_are_encoded_as_minus_one_and_decoded_as_null(people: Vocabulary) -> None:
    assert people.encode_entities(["ed", "zoe"]).tolist() == [1, -1]
    assert people.encode_relations(pl.Series(["likes", "born"])).tolist() == [-1, 0]
    assert people.decode_entities([1, -1]).to_list() == ["ed", None]
    assert people.encode_entities([]).tolist() == []


@given(st.lists(labels, max_size=8), st.lists(labels | st.none(), max_size=8))
def test_few_labels_are_searched_for_and_found_as_many_are(known: list[str], asked: list[str | None]) -> None:
    vocabulary = Vocabulary.from_labels([*known, *map(str, range(100))], ["r"])
    few = pl.Series(asked, dtype=pl.String)
    many = pl.concat([few, vocabulary.entities])
    ids = vocabulary.encode_entities(few)
    assert ids.dtype == np.int32
    assert ids.tolist() == vocabulary.encode_entities(many)[: len(few)].tolist()
    assert "_entity_type" in vars(vocabulary)


def test_few_labels_are_searched_for_without_listing_all() -> None:
    vocabulary = Vocabulary.from_labels(map(str, range(100)), ["r"])
    assert vocabulary.encode_entities(["7", "77", "777"]).tolist() == [67, 75, -1]
    assert "_entity_type" not in vars(vocabulary)


def test_self_has_the_id_after_the_last_entity_and_is_written_as_its_token(people: Vocabulary) -> None:
    assert people.self_id == 3
    assert people.entity_label(people.self_id) == SELF_TOKEN
    assert people.decode_entities(np.array([3, 0], dtype=np.int32)).to_list() == [SELF_TOKEN, "dutch"]
    assert people.encode_entities([SELF_TOKEN]).tolist() == [-1]


def test_an_entity_that_is_called_like_the_token_is_another_one() -> None:
    vocabulary = Vocabulary.from_labels([SELF_TOKEN, "ed"], ["r"])
    assert vocabulary.entity_id(SELF_TOKEN) == 1
    assert vocabulary.self_id == 2


def test_an_unknown_label_is_refused_with_labels_like_it(people: Vocabulary) -> None:
    with pytest.raises(UnknownLabelError, match=r"unknown entity 'dutsh'; did you mean 'dutch'\?") as caught:
        people.entity_id("dutsh")
    assert caught.value.suggestions == ("dutch",)
    with pytest.raises(UnknownLabelError, match=r"unknown relation 'SPEAKS'; did you mean 'speaks'\?"):
        people.relation_id("SPEAKS")
    with pytest.raises(UnknownLabelError, match=r"unknown relation 'quite different'$"):
        people.relation_id("quite different")


def test_suggestions_are_found_among_many_labels() -> None:
    vocabulary = Vocabulary.from_labels([*(f"/m/{number:05d}" for number in range(20_000)), "Germany"], ["r"])
    with pytest.raises(UnknownLabelError, match="Germany"):
        vocabulary.entity_id("Gemany")


@pytest.mark.parametrize("typed", ["python3-numpyy", "pyhton3-numpy", "ython3-numpy"])
def test_a_typing_error_is_understood_whatever_stands_before_it(typed: str) -> None:
    """Of many packages that begin alike, the suggestions are not taken from the first ones only."""
    others = [f"python3-{first}{second}{third}" for first in LETTERS for second in LETTERS for third in LETTERS]
    vocabulary = Vocabulary.from_labels([*others, "python3-numpy"], ["r"])
    with pytest.raises(UnknownLabelError, match="did you mean 'python3-numpy'"):
        vocabulary.entity_id(typed)


@pytest.mark.parametrize("row", [-1, 4])
def test_ids_that_nothing_has_are_refused(people: Vocabulary, row: int) -> None:
    with pytest.raises(DataError, match=f"expected the id of an entity, 0 to 2, got {row}"):
        people.entity_label(row)
    with pytest.raises(DataError, match=f"expected the id of a relation, 0 to 1, got {row}"):
        people.relation_label(row)
    with pytest.raises(DataError, match="expected entity ids from -1 to 3, got 5"):
        people.decode_entities([5])


@pytest.mark.parametrize(("label", "reason"), [("", "an empty one"), ("a\0b", "one with a NUL character: 'a\\\\x00b'")])
def test_labels_that_no_file_could_hold_are_refused(label: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"expected entity labels.*, got {reason}"):
        Vocabulary.from_labels(["x", label], ["r"])
    with pytest.raises(DataError, match=f"expected relation labels.*, got {reason}"):
        Vocabulary.from_labels(["x"], [label])


def test_missing_labels_are_refused() -> None:
    with pytest.raises(DataError, match="got a missing one"):
        Vocabulary.from_labels(pl.Series(["x", None]), ["r"])


def test_vocabularies_are_equal_by_content(people: Vocabulary) -> None:
    same = Vocabulary.from_labels(iter(["dutch", "ed", "lisa"]), pl.Series(["born", "speaks"]))
    other = Vocabulary.from_labels(["dutch", "ed", "lis"], ["born", "speaks"])
    assert people == same
    assert hash(people) == hash(same)
    assert people != other
    assert people != "people"


def test_a_vocabulary_survives_the_way_to_another_process(people: Vocabulary) -> None:
    people.encode_entities(["ed"])
    copy = pickle.loads(pickle.dumps(people))
    assert copy == people
    assert copy.encode_entities(["ed", "zoe"]).tolist() == [1, -1]
    assert repr(copy) == "Vocabulary(n_entities=3, n_relations=2)"


def test_labels_that_should_be_sorted_are_checked() -> None:
    right = pl.Series(["a", "b"])
    assert Vocabulary.from_sorted(right, right) == Vocabulary.from_labels(["b", "a"], ["a", "b"])
    for wrong in (["b", "a"], ["a", "a"], [None, "a"], ["", "a"]):
        with pytest.raises(DataError, match="expected relation labels"):
            Vocabulary.from_sorted(right, pl.Series(wrong))


@pytest.mark.parametrize("wrong", [["a", "b"], pl.Series([1, 2]), None])
def test_a_vocabulary_is_made_of_series_of_text(wrong: Any) -> None:
    with pytest.raises(DataError, match=r"use Vocabulary\.from_labels"):
        Vocabulary(wrong, pl.Series(["r"]))


@pytest.mark.parametrize("blank", [" ", "\t ", "\u00a0", "\u2003\n"])
def test_a_blank_is_no_label(blank: str) -> None:
    with pytest.raises(DataError, match="expected entity labels, got one of spaces only"):
        Vocabulary.from_labels(["a", blank], ["r"])
    with pytest.raises(DataError, match="expected relation labels, got one of spaces only"):
        Vocabulary.from_labels(["a"], [blank])
