"""Times as text become steps of a clock, and steps become text again."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import Clock, DataError
from anyburl.data.clock import NO_TIME, Moments, infer_clock


def clock_of(*texts: str) -> Clock:
    times = pl.Series(texts)
    return infer_clock(times, Moments.of(times))


@pytest.mark.parametrize(
    ("texts", "unit"),
    [
        (["2014-01-01", "2014-02-17"], "day"),
        (["2014-01-01", "2014-02-01"], "month"),
        (["2014-01-01", "2016-01-01"], "year"),
        (["2014-01", "2014-07"], "month"),
        (["1999", "2004"], "year"),
        (["0", "24", "72"], "step"),
        (["2014-01-01T10:00", "2014-01-01T13:00"], "hour"),
        (["2014-01-01 10:00:00", "2014-01-01 13:20:00"], "minute"),
        (["2014-01-01T10:00:01", "2014-01-01T13:20:00"], "second"),
        (["2014-01-01T00:00:00Z", "2014-01-01T01:00:00+02:00"], "hour"),
        (["-0043-03-15", "0014-08-19"], "day"),
    ],
)
def test_the_longest_step_that_tells_times_apart_is_inferred(texts: list[str], unit: str) -> None:
    clock = clock_of(*texts)
    assert clock.unit == unit
    assert len({clock.step(text) for text in texts}) == len(texts)


def test_numbers_are_counted_in_steps_of_their_greatest_common_divisor() -> None:
    clock = clock_of("0", "24", "72")
    assert (clock.size, [clock.step(text) for text in ("0", "24", "72")], clock.label(2)) == (24, [0, 1, 3], "48")


def test_zones_are_counted_in_utc() -> None:
    clock = clock_of("2014-01-01T12:00:00Z", "2014-01-01T12:30:00+02:30")
    assert clock.label(clock.step("2014-01-01T12:30+02:30")) == "2014-01-01T10:00Z"


@given(
    st.sampled_from(["second", "minute", "hour", "day", "week", "month", "year", "step"]), st.integers(-(10**6), 10**6)
)
def test_a_label_is_read_as_its_step(unit: str, step: int) -> None:
    clock = Clock(unit=unit, origin=17 if unit != "year" else 1000)
    if unit != "year" or 0 <= clock.origin + step <= 9999:
        assert clock.step(clock.label(step)) == step


@pytest.mark.parametrize(
    "text", ["", "soon", "2014-13-01", "2014-02-30", "44 BC", "1.5", "2014-01-01T25:00", "03/04/2014"]
)
def test_what_is_no_time_is_none(text: str) -> None:
    assert Moments.of(pl.Series([text])).exactness.tolist() == [NO_TIME]


@pytest.mark.parametrize("text", ["2014", "2014-11", "soon", "17"])
def test_a_question_needs_a_time_as_exact_as_the_clock(text: str) -> None:
    with pytest.raises(DataError, match="expected a time such as 2014-11-03, got"):
        clock_of("2014-01-01", "2014-02-17").step(text)
