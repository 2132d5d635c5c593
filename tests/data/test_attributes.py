"""Values of attributes: texts and back, their order, other vocabularies, files."""

from __future__ import annotations

import datetime
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import DataError, load_dataset
from anyburl.data.attributes import (
    FILE,
    Attribute,
    AttributeKind,
    Attributes,
    format_value,
    parse_value,
    parse_values,
)
from anyburl.data.vocabulary import Vocabulary
from kernels import examples

WORDS = Vocabulary.from_labels(["Ann", "Bob", "Cy", "Dee"], ["knows"])
ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([-1.5, 0.0, -0.0, 2.0, 3e9])), max_size=12)


def height(rows: list[tuple[int, float]]) -> Attribute:
    entities, values = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    return Attribute.of("height", AttributeKind.NUMBER, entities, values)


@settings(max_examples=examples(100))
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_is_what_its_text_says(number: float) -> None:
    text = format_value(number, AttributeKind.NUMBER)
    assert parse_value(text, AttributeKind.NUMBER) == number
    assert parse_values(pl.Series([text, None]), AttributeKind.NUMBER).to_list() == [number, None]


@settings(max_examples=examples(100))
@given(st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)))
def test_dates_count_days_as_python_does_and_come_back(moment: datetime.datetime) -> None:
    moment = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    days = parse_value(moment.isoformat(), AttributeKind.DATE)
    assert days == pytest.approx((moment - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1), abs=1e-9)
    assert days is not None
    assert parse_value(format_value(days, AttributeKind.DATE), AttributeKind.DATE) == days


@pytest.mark.parametrize(
    ("text", "kind", "written"),
    [
        ("102400.0", "number", "102400"),
        (" +.5 ", "number", "0.5"),
        ("-0", "number", "0"),
        ("1e22", "number", "1e+22"),
        ("1900", "date", "1900-01-01"),
        ("-0044-03-15", "date", "-0044-03-15"),
        ("+1953-00-00T00:00:00Z", "date", "1953-01-01"),
        ("2000-01-01T00:30:00+02:00", "date", "1999-12-31T22:30:00"),
        ("1969-12-31T23:59:59.5", "date", "1969-12-31T23:59:59.500"),
        ("12000-02-29", "date", "12000-02-29"),
        ("TRUE", "boolean", "true"),
        ("0", "boolean", "false"),
    ],
)
def test_texts_of_values(text: str, kind: str, written: str) -> None:
    value = parse_value(text, AttributeKind(kind))
    assert value is not None
    assert format_value(value, AttributeKind(kind)) == written


@pytest.mark.parametrize(
    ("text", "kind"),
    [(text, "number") for text in ("12 kg", "1,000", "nan", "inf", "1e999", "", "0x10", "1_0")]
    + [(text, "date") for text in ("2001-02-29", "2001-13-01", "today", "99", "2001-01-01T25:00")]
    + [("maybe", "boolean")],
)
def test_what_is_no_value_is_refused_in_a_sentence(text: str, kind: str) -> None:
    nothing = np.empty(0)
    attribute = Attribute.of("age", AttributeKind(kind), nothing, nothing)
    assert parse_values(pl.Series([text]), attribute.kind).to_list() == [None]
    with pytest.raises(DataError, match=f"for age, got {text!r}"):
        attribute.parse(text)


@settings(max_examples=examples(60))
@given(ROWS)
def test_values_are_sorted_and_distinct_and_found_by_entity(rows: list[tuple[int, float]]) -> None:
    attribute = height(rows)
    expected = sorted({(value, entity) for entity, value in rows})
    assert list(zip(attribute.values.tolist(), attribute.entities.tolist(), strict=True)) == expected
    attributes = Attributes.of([attribute])
    assert attributes.empty == (not rows)
    assert attributes.n_values == len(expected)
    for entity in range(4):
        own = sorted({value for of, value in rows if of == entity})
        assert attributes.values_of(entity) == ({"height": own} if own else {})


@settings(max_examples=examples(30))
@given(ROWS)
def test_values_survive_frames_and_another_vocabulary(rows: list[tuple[int, float]]) -> None:
    attributes = Attributes.of([height(rows)])
    same = Attributes.from_polars(attributes.to_polars(WORDS), WORDS)
    assert same.joined("x") == attributes.joined("x")
    fewer = attributes.reencode(np.array([2, -1, 0, 1]))
    moved = {(value, (2, -1, 0, 1)[entity]) for entity, value in rows}
    expected = sorted(pair for pair in moved if pair[1] >= 0)
    found = [*zip(fewer["height"].values.tolist(), fewer["height"].entities.tolist(), strict=True)] if fewer else []
    assert found == expected


def test_what_is_not_finite_is_no_value() -> None:
    with pytest.raises(DataError, match="expected finite values of height, got nan"):
        height([(0, 1.0), (1, float("nan"))])


def test_a_file_of_values_comes_back_and_a_damaged_one_is_refused(tmp_path: Path) -> None:
    attributes = Attributes.of([height([(0, 1.5), (0, 2.5), (3, -1.0)])])
    attributes.save(tmp_path, WORDS)
    read = Attributes.load(tmp_path, WORDS)
    assert read.joined("") == attributes.joined("")
    assert read["height"].kind is AttributeKind.NUMBER
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:-20])
    with pytest.raises(DataError, match="expected the values of attributes"):
        Attributes.load(tmp_path, WORDS)


def test_nothing_is_written_and_the_fingerprint_stays_without_attributes(tmp_path: Path) -> None:
    Attributes().save(tmp_path, WORDS)
    assert not list(tmp_path.iterdir())
    geo = load_dataset("geo")
    assert geo.attributes.empty
    some = replace(geo, attributes=Attributes.of([height([(0, 1.0)])]))
    assert some.fingerprint != geo.fingerprint
    with pytest.raises(DataError, match=r"attribute 'heigth'.*height"):
        some.attributes.find("heigth")
