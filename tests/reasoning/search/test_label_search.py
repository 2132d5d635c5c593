"""Finding entities and relations by what people type."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import load_dataset
from anyburl.base.errors import InvalidOptionError
from anyburl.data.names import Names
from anyburl.reasoning.search import LabelSearch
from reference import label_search as reference

CITIES = [
    "Paris",
    "Paris_Hilton",
    "Comparison",
    "New_Paris",
    "São_Paulo",
    "Zürich",
    "Łódź",
    "Straße",
    "Київ",
    "東京都",
    "!!",
]


def search_in(*labels: str, relations: tuple[str, ...] = (), names: Names | None = None) -> LabelSearch:
    return LabelSearch.build(pl.Series(labels, dtype=pl.String), pl.Series(relations, dtype=pl.String), names)


def labels_of(search: LabelSearch, text: str, **options: object) -> list[str]:
    return [match.label for match in search.find(text, **options)]  # type: ignore[arg-type]


def test_equal_texts_come_first_then_starts_of_texts_and_words_then_other_parts() -> None:
    search = search_in(*CITIES, "Pariz")
    assert labels_of(search, "paris") == ["Paris", "Paris_Hilton", "New_Paris", "Comparison", "Pariz"]
    assert labels_of(search, "PARIS hil") == ["Paris_Hilton"]


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("sao paulo", "São_Paulo"),
        ("zurich", "Zürich"),
        ("ZÜRICH", "Zürich"),
        ("lodz", "Łódź"),
        ("strasse", "Straße"),
        ("київ", "Київ"),
        ("京都", "東京都"),
        ("pa", "Paris"),
        ("z", "Zürich"),
    ],
)
def test_case_and_accents_do_not_matter(typed: str, found: str) -> None:
    assert labels_of(search_in(*CITIES), typed)[0] == found


@pytest.mark.parametrize(
    ("typed", "found", "distance"),
    [
        ("pairs", "Paris", 1),
        ("parsi hilton", "Paris_Hilton", 1),
        ("zurcih", "Zürich", 1),
        ("comparrisen", "Comparison", 2),
    ],
)
def test_typing_errors_are_forgiven(typed: str, found: str, distance: int) -> None:
    best = search_in(*CITIES).find(typed)[0]
    assert (best.label, best.distance) == (found, distance)


def test_names_are_found_and_shown_and_a_label_is_listed_once() -> None:
    names = Names({"Q90": "Paris", "Q91": "Paris", "P17": "country", "Q1": "Q1"})
    search = search_in("Q90", "Q91", "Q1", relations=("P17", "Q90r"), names=names)
    found = search.find("paris")
    assert [(match.label, match.name, match.kind) for match in found] == [
        ("Q90", "Paris", "entity"),
        ("Q91", "Paris", "entity"),
    ]
    assert labels_of(search, "q90") == ["Q90", "Q90r", "Q91"]
    assert labels_of(search, "q90", kind="relation") == ["Q90r"]
    assert labels_of(search, "cuontry") == ["P17"]
    assert labels_of(search, "Q1") == ["Q1"]


def test_a_text_that_is_typed_exactly_comes_before_its_like() -> None:
    assert labels_of(search_in("PARIS", "Paris", "paris"), "Paris")[0] == "Paris"


def test_nothing_is_found_for_nothing_and_in_nothing() -> None:
    assert labels_of(search_in(*CITIES), "  --  ") == []
    assert labels_of(search_in(*CITIES), "") == []
    assert labels_of(search_in(), "paris") == []
    assert labels_of(search_in("a"), "x" * 100_000) == []


def test_long_labels_and_line_breaks_are_searched_as_far_as_people_read() -> None:
    search = search_in("long " * 2000, "two\nlines")
    assert labels_of(search, "two lines") == ["two\nlines"]
    assert labels_of(search, "long long") == ["long " * 2000]


def test_options_are_checked() -> None:
    with pytest.raises(InvalidOptionError, match="top must be at least 1"):
        search_in("a").find("a", top=0)
    with pytest.raises(InvalidOptionError, match="kind must be one of entity, relation"):
        search_in("a").find("a", kind="node")  # type: ignore[arg-type]


letters = st.text("abAéßøЯя東 -_/", min_size=1, max_size=8).filter(str.strip)


@given(st.lists(letters, unique=True, max_size=30), letters)
def test_what_is_found_fits_and_no_text_that_holds_the_query_is_missed(labels: list[str], typed: str) -> None:
    query = reference.fold(typed)
    found = search_in(*labels).find(typed, top=100)
    assert len({match.label for match in found}) == len(found)
    held = {label: reference.holds(reference.fold(label), query) for label in labels}
    exact = [match.label for match in found if match.distance == 0]
    if len(query) >= 3 and query.isascii():
        assert set(exact) == {label for label in labels if held[label] is not None}
    elif query:
        assert set(exact) >= {label for label in labels if held[label] in (0, 1)}
    ranks = [held[label] for label in exact]
    assert ranks == sorted(ranks, key=lambda rank: 9 if rank is None else rank)
    assert [match.distance for match in found] == sorted(match.distance for match in found)
    if query.isascii():
        for match in found:
            folded = reference.fold(match.label)
            if match.distance and folded.isascii():
                assert reference.edits_to_a_start(folded, query) == match.distance


def test_one_typing_error_in_a_word_is_found_among_many() -> None:
    rng = np.random.default_rng(1)
    syllables = [a + b for a in "bcdfghklmnprst" for b in "aeiou"]
    words = sorted({"".join(rng.choice(syllables, 4)) for _ in range(20_000)})
    search = search_in(*words)
    for word in words[::997]:
        typed = word[:4] + word[5:]
        assert word in labels_of(search, typed, top=200)


def test_the_entities_of_a_benchmark_are_found_by_name(shared_data: Callable[[str], Path]) -> None:
    vocabulary = load_dataset(shared_data("FB15k-237")).vocabulary
    search = LabelSearch.build(vocabulary.entities, vocabulary.relations)
    assert search.find("/film/film/genre")[0].label == "/film/film/genre"
    assert search.find("flim genre", kind="relation")[0].kind == "relation"
    assert search.find("/m/02mjmr")[0].label == "/m/02mjmr"
