"""`Clock`: turns the times of a data set, written as numbers, dates, or dates and times, into whole steps and back.

A year may be negative, as ISO 8601 counts it: -0043 is 44 BC. Times with a zone are counted in UTC.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, InvalidOptionError

Steps = NDArray[np.int64]

STEP = "step"
"""The unit of times that are plain numbers."""

NO_TIME, NUMBER, MONTH, DAY, TIME, ZONED = range(6)
"""How exactly a text states a time. A number of four digits may be a year."""

EXACT_ENOUGH = {"year": NUMBER, "month": MONTH, "week": DAY, "day": DAY, "hour": TIME, "minute": TIME, "second": TIME}
"""The units of calendars, and how exactly a text has to state a time to be counted in them."""

SECONDS = {"second": 1, "minute": 60, "hour": 3600, "day": 86_400}
SHOWN = {
    NUMBER: "a number",
    MONTH: "a month",
    DAY: "a date",
    TIME: "a date and time",
    ZONED: "a date and time with a zone",
}
EXAMPLES = {
    STEP: "17",
    "year": "2014",
    "month": "2014-11",
    "week": "2014-11-03",
    "day": "2014-11-03",
    "hour": "2014-11-03T15:00",
    "minute": "2014-11-03T15:30",
    "second": "2014-11-03T15:30:00",
}
EXPECTED = "a time (a whole number, a date such as 2014-11-03, or a date and time such as 2014-11-03T15:30)"
MOST_NUMBER = 10**15
MOST_YEAR = 10**6
EPOCH = 1970

_WHOLE = r"^[+-]?\d{1,15}(?:\.0*)?$"
_COMPACT = r"^(1\d{3}|2\d{3})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"
_CALENDAR = (
    r"^(?P<year>[+-]?\d{4,6})-(?P<month>\d\d?)(?:-(?P<day>\d\d?)(?:[T ](?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:[.,]\d+)?)?\s*(?P<zone>Z|UTC|[+-]\d\d:?\d\d)?)?)?$"
)
_PARTS = ("year", "month", "day", "hour", "minute", "second")


@dataclass(frozen=True, kw_only=True)
class Clock:
    """Counts time in steps of `size` units, from the step 0 at `origin`.

    The unit is one of a calendar, from second to year, or `step` for times that are plain numbers. `origin` is counted
    in units since 1970 (for years and numbers since 0); labels of a `zoned` clock end in Z, since it counts in UTC.
    """

    unit: str
    origin: int = 0
    size: int = 1
    zoned: bool = False

    def step(self, text: str) -> int:
        """Return the step of a time; raise an error if the text is no time, or not exact enough for this clock."""
        if not isinstance(text, str):
            text = str(text)
        moments = Moments.of(pl.Series([text], dtype=pl.String))
        if moments.exactness[0] == NO_TIME:
            raise DataError(f"expected a time such as {self.example}, got {text!r}")
        if row := self.first_inexact(moments):
            raise DataError(f"expected a time such as {self.example}, got {SHOWN[int(row[1])]}: {text!r}")
        return int(self.steps(moments)[0])

    def label(self, step: int) -> str:
        """Return the time at which a step begins, as text that `step` reads."""
        ticks = self.origin + int(step) * self.size
        match self.unit:
            case "step":
                return str(ticks)
            case "year":
                return _year(ticks)
            case "month":
                year, month = divmod(ticks, 12)
                return f"{_year(year + EPOCH)}-{month + 1:02d}"
            case "week" | "day":
                return _date(ticks if self.unit == "day" else ticks * 7 - 3)
        days, seconds = divmod(ticks * SECONDS[self.unit], SECONDS["day"])
        written = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}"
        written += f":{seconds % 60:02d}" if self.unit == "second" else ""
        return f"{_date(days)}T{written}{'Z' if self.zoned else ''}"

    def duration(self, n_steps: int) -> str:
        """Return a number of steps in words: 1 day, 3 days."""
        n_units = n_steps if self.unit == STEP else n_steps * self.size
        return f"{n_units:,} {self.unit}{'s' * (n_units != 1)}"

    @property
    def example(self) -> str:
        """A time as this clock reads it."""
        return EXAMPLES[self.unit]

    @property
    def words(self) -> str:
        """How times are counted: in days."""
        if self.unit == STEP:
            return "in whole numbers" + (f", {self.size} a step" if self.size != 1 else "")
        return f"in {self.unit}s" + (", UTC" if self.zoned else "")

    def first_inexact(self, moments: Moments) -> tuple[int, int] | None:
        """Return the row and the exactness of the first time that is not exact enough to be counted, if there is one.

        So is a date where the clock counts numbers, and a time without a zone where others have one.
        """
        exactness = moments.exactness
        if self.unit == STEP:
            wrong = exactness != NUMBER
        else:
            wrong = exactness < EXACT_ENOUGH[self.unit]
            if self.unit not in ("year", "month", "week", "day"):
                wrong |= (exactness == ZONED) != self.zoned
        rows = np.flatnonzero(wrong)
        return (int(rows[0]), int(exactness[rows[0]])) if len(rows) else None

    def steps(self, moments: Moments) -> Steps:
        """Return the step of each time, all of which are exact enough."""
        return (self._ticks(moments) - self.origin) // self.size

    def _ticks(self, moments: Moments) -> Steps:
        if self.unit == STEP:
            return moments.numbers
        if self.unit == "year":
            return np.where(moments.exactness == NUMBER, moments.numbers, moments.months // 12 + EPOCH)
        if self.unit == "month":
            return moments.months
        days = moments.seconds // SECONDS["day"]
        return (days + 3) // 7 if self.unit == "week" else moments.seconds // SECONDS[self.unit]

    def starting_at(self, moments: Moments) -> Clock:
        """Return the same clock with its step 0 at the first of some times."""
        ticks = self._ticks(moments)
        return Clock(**{**asdict(self), "origin": int(ticks.min(initial=ticks[0]) if len(ticks) else 0)})

    def to_json(self) -> dict[str, Any]:
        """Return what `Clock(**...)` takes."""
        return asdict(self)


@dataclass(frozen=True)
class Moments:
    """What texts say as times: how exactly each states it, and its number, or its month and second since 1970."""

    exactness: NDArray[np.int8]
    numbers: Steps
    months: Steps
    seconds: Steps

    @classmethod
    def of(cls, texts: pl.Series) -> Moments:
        """Read texts; what is no time has the exactness NO_TIME."""
        frame = texts.rename("text").to_frame().with_columns(pl.col("text").fill_null("").str.strip_chars())
        text = pl.col("text")
        numbers = pl.when(text.str.contains(_WHOLE)).then(text.str.replace(r"\.0*$", "")).otherwise(None)
        read = frame.select(
            text.str.extract_groups(_CALENDAR).alias("parts"), numbers.cast(pl.Int64, strict=False).alias("number")
        ).unnest("parts")
        is_number = read["number"].is_not_null().to_numpy()
        parts = {name: read[name].cast(pl.Int64, strict=False) for name in _PARTS}
        has = {name: column.is_not_null().to_numpy() for name, column in parts.items()}
        year, month, day, hour, minute, second = (
            parts[name].fill_null(1 if name in ("month", "day") else 0).to_numpy() for name in _PARTS
        )
        months = (year - EPOCH) * 12 + month - 1
        first, after = _first_day(months), _first_day(months + 1)
        is_valid = has["month"] & (month >= 1) & (month <= 12) & (day >= 1) & (day <= after - first)
        is_valid &= (hour <= 23) & (minute <= 59) & (second <= 59) & (np.abs(year) <= MOST_YEAR)
        offset, has_zone = _offsets(read["zone"])
        seconds = (first + day - 1) * SECONDS["day"] + hour * 3600 + minute * 60 + second - offset
        months = np.where(has_zone, _month_of(seconds // SECONDS["day"]), months)
        exactness = np.where(is_valid, MONTH + has["day"] + has["hour"] + has_zone, NO_TIME)
        exactness = np.where(is_number, NUMBER, exactness).astype(np.int8)
        return cls(exactness, read["number"].fill_null(0).to_numpy(), months, seconds)

    def take(self, rows: NDArray[Any]) -> Moments:
        """Return some of the times."""
        return Moments(self.exactness[rows], self.numbers[rows], self.months[rows], self.seconds[rows])


def infer_clock(texts: pl.Series, moments: Moments) -> Clock:
    """Return the clock with the longest step that tells all these times apart; they are stated equally exactly.

    Dates are counted in days, in months if all are the first of a month, in years if all are the first of January;
    times of the day in hours, minutes or seconds; numbers of four digits in years, and other numbers in steps of their
    greatest common divisor.
    """
    exactness = int(moments.exactness[0]) if len(moments.exactness) else NUMBER
    several = len(texts) > 1
    if exactness == NUMBER:
        if texts.str.contains(r"^[+-]?[012]\d{3}$").all():
            return Clock(unit="year").starting_at(moments)
        origin = int(moments.numbers.min(initial=MOST_NUMBER)) if len(texts) else 0
        size = int(np.gcd.reduce(moments.numbers - origin)) if len(texts) else 0
        return Clock(unit=STEP, origin=origin, size=size or 1)
    if exactness >= DAY:
        zoned = exactness == ZONED
        for unit in ("minute", "hour", "day"):
            if (moments.seconds % SECONDS[unit]).any():
                finer = {"minute": "second", "hour": "minute", "day": "hour"}[unit]
                return Clock(unit=finer, zoned=zoned).starting_at(moments)
        if not several or (moments.seconds // SECONDS["day"] != _first_day(moments.months)).any():
            return Clock(unit="day").starting_at(moments)
    january = several and not (moments.months % 12).any()
    return Clock(unit="year" if january and exactness >= DAY else "month").starting_at(moments)


def chosen_clock(granularity: str, moments: Moments) -> Clock:
    """Return the clock of a chosen granularity: a unit of the calendar or, where times are numbers, a whole number."""
    numbers = not len(moments.exactness) or bool((moments.exactness == NUMBER).all())
    if granularity.isdecimal():
        if not numbers:
            raise InvalidOptionError(
                "granularity", f"one of {', '.join(EXACT_ENOUGH)} where times are dates", granularity
            )
        size = int(granularity)
        return Clock(unit=STEP, origin=int(moments.numbers.min()) // size * size, size=size)
    if numbers and granularity != "year":
        raise InvalidOptionError("granularity", "a whole number where times are numbers", granularity)
    clock = Clock(unit=granularity, zoned=bool((moments.exactness == ZONED).any()))
    return clock.starting_at(moments)


def read_compact_dates(texts: pl.Series) -> pl.Series:
    """Return dates written as 20141103 as 2014-11-03, if all texts are such dates; else the texts."""
    if not len(texts) or not texts.str.contains(_COMPACT).all():
        return texts
    written = texts.str.replace(_COMPACT, "$1-$2-$3")
    return written if (Moments.of(written).exactness == DAY).all() else texts


def _first_day(months: Steps) -> Steps:
    """Return the day on which months begin, counted from 1970."""
    bounded = np.clip(months, -12 * MOST_YEAR, 12 * MOST_YEAR)
    return bounded.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)


def _month_of(days: Steps) -> Steps:
    return days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)


def _offsets(zones: pl.Series) -> tuple[Steps, NDArray[np.bool_]]:
    """Return how many seconds zones are ahead of UTC, and whether there is a zone."""
    signs = zones.str.starts_with("-").fill_null(False).to_numpy() * -2 + 1
    hours, minutes = (
        zones.str.extract(r"^[+-](\d\d):?(\d\d)$", group).cast(pl.Int64).fill_null(0).to_numpy() for group in (1, 2)
    )
    return signs * (hours * 3600 + minutes * 60), zones.is_not_null().to_numpy()


def _year(year: int) -> str:
    return f"{year:04d}" if year >= 0 else f"-{-year:04d}"


def _date(days: int) -> str:
    year, month, day = str(np.datetime64(days, "D")).rsplit("-", 2)
    return f"{_year(int(year))}-{month}-{day}"
