"""`Attributes`: numbers, dates and booleans of entities, as columns of values beside the triples.

A value is a float whatever its kind: a date counts the days since 1970-01-01, with the time of day as a fraction, a
boolean is 0 or 1. Values are never NaN or infinite. An entity may have several values of an attribute, or none.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError, UnknownLabelError
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet, seal
from anyburl.base.writing import replacing
from anyburl.data.options import AttributeKind as AttributeKind
from anyburl.data.vocabulary import Vocabulary, similar_labels

FILE = "attributes.parquet"
"""The file of values in run folders and indexes: the columns entity, attribute, kind and value."""

NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
YEAR = r"[+-]?\d{4,}"
DATE = (
    rf"({YEAR})-(\d\d)(?:-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d(?:\.\d+)?))?(Z|[+-]\d\d:?\d\d)?)?)?(?:Z|[+-]\d\d:\d\d)?"
)
TRUTH = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
MILLISECONDS = 86_400_000  # of a day

_NUMBER, _DATE, _YEAR = re.compile(NUMBER), re.compile(DATE), re.compile(YEAR)
_SCHEMA: dict[Any, Any] = {"entity": pl.String, "attribute": pl.String, "kind": pl.String, "value": pl.Float64}


def parse_value(text: str, kind: AttributeKind) -> float | None:
    """Parse a text as a value of this kind; return None if it is no such value, or not finite."""
    text = text.strip()
    if kind is AttributeKind.BOOLEAN:
        return TRUTH.get(text.lower())
    if kind is AttributeKind.DATE:
        return _parse_date(text)
    value = float(text) if _NUMBER.fullmatch(text) else math.inf
    return value + 0.0 if math.isfinite(value) else None  # -0.0 becomes 0.0


@lru_cache(maxsize=1 << 16)
def _parse_date(text: str) -> float | None:
    if _YEAR.fullmatch(text):
        return float(_days(int(text), 1, 1))
    match = _DATE.fullmatch(text)
    if match is None:
        return None
    year, month, day = int(match[1]), int(match[2]) or 1, int(match[3] or 1) or 1  # Wikidata writes 00 for unknown
    if month > 12 or day > _month_length(year, month):
        return None
    hour, minute, second = int(match[4] or 0), int(match[5] or 0), float(match[6] or 0)
    if hour > 24 or minute > 59 or second >= 61:
        return None
    moment = round(((hour * 60 + minute) * 60 + second) * 1000) - _offset(match[7] or "Z")
    more, rest = divmod(moment, MILLISECONDS)
    return _days(year, month, day) + more + rest / MILLISECONDS


def _offset(zone: str) -> int:
    """Return the milliseconds that a time zone is ahead of UTC."""
    if zone == "Z":
        return 0
    minutes = int(zone[1:3]) * 60 + int(zone[-2:])
    return (-minutes if zone[0] == "-" else minutes) * 60_000


def _month_length(year: int, month: int) -> int:
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 28 + is_leap if month == 2 else 30 + (month in (1, 3, 5, 7, 8, 10, 12))


def _days(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date of the Gregorian calendar, of any year: `datetime` ends at 9999."""
    year -= month <= 2
    of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1  # years begin in March, so that leap days come last
    era, year = divmod(year, 400)
    return era * 146_097 + year * 365 + year // 4 - year // 100 + of_year - 719_468


def _date(days: int) -> tuple[int, int, int]:
    """Return the year, month and day of a date: the inverse of `_days`."""
    era, day = divmod(days + 719_468, 146_097)
    year = (day - day // 1_460 + day // 36_524 - day // 146_096) // 365
    day -= 365 * year + year // 4 - year // 100
    month = (5 * day + 2) // 153
    day -= (153 * month + 2) // 5 - 1
    month = month + 3 if month < 10 else month - 9
    return era * 400 + year + (month <= 2), month, day


def format_value(value: float, kind: AttributeKind) -> str:
    """Return the text of a value, from which `parse_value` returns it again."""
    value = float(value)  # NumPy writes its own floats in another way
    if kind is AttributeKind.BOOLEAN:
        return "true" if value == 1 else "false" if value == 0 else format_value(value, AttributeKind.NUMBER)
    if kind is AttributeKind.NUMBER:
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    days = math.floor(value)
    moment = round((value - days) * MILLISECONDS)
    days, moment = days + moment // MILLISECONDS, moment % MILLISECONDS
    year, month, day = _date(days)
    date = f"{'-' if year < 0 else ''}{abs(year):04}-{month:02}-{day:02}"
    if not moment:
        return date
    seconds, milliseconds = divmod(moment, 1000)
    time = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{date}T{time}" + (f".{milliseconds:03}" if milliseconds else "")


def parse_values(texts: pl.Series, kind: AttributeKind) -> pl.Series:
    """Return the values that texts stand for, null where a text is none of this kind."""
    if kind is AttributeKind.NUMBER:
        texts = texts.str.strip_chars()
        numbers = texts.set(~texts.str.contains(f"^{NUMBER}$"), None).cast(pl.Float64, strict=False) + 0.0
        return numbers.set(numbers.is_infinite(), None)
    known = texts.unique().drop_nulls().to_list()
    return texts.replace_strict(
        known, [parse_value(text, kind) for text in known], default=None, return_dtype=pl.Float64
    )


@dataclass(frozen=True, eq=False)
class Attribute:
    """The values of one attribute: `values[i]` is one of `entities[i]`.

    Sorted by value, then by entity; distinct. Entities are ids of the vocabulary of the data set.
    """

    name: str
    kind: AttributeKind
    entities: NDArray[np.int32] = field(repr=False)
    values: NDArray[np.float64] = field(repr=False)

    @classmethod
    def of(cls, name: str, kind: AttributeKind, entities: NDArray[Any], values: NDArray[Any]) -> Attribute:
        """Make an attribute from values in any order; repetitions are dropped."""
        values, entities = np.asarray(values, np.float64) + 0.0, np.asarray(entities, np.int32)
        if not np.isfinite(values).all():
            raise DataError(f"expected finite values of {name}, got {values[~np.isfinite(values)][0]}")
        order = np.lexsort((entities, values))
        values, entities = values[order], entities[order]
        is_new = np.ones(len(values), np.bool_)
        is_new[1:] = (values[1:] != values[:-1]) | (entities[1:] != entities[:-1])
        values, entities = values[is_new], entities[is_new]
        for array in (values, entities):
            array.setflags(write=False)
        return cls(name, AttributeKind(kind), entities, values)

    def __len__(self) -> int:
        return len(self.values)

    def format(self, value: float) -> str:
        """Return a value as text: 102400, 0.5, 1900-01-01, true."""
        return format_value(value, self.kind)

    def parse(self, text: str) -> float:
        """Parse a text as a value; raise an error if it is none."""
        value = parse_value(text, self.kind)
        if value is None:
            raise DataError(f"expected {self.kind.example} for {self.name}, got {text!r}")
        return value

    @cached_property
    def by_entity(self) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The entities and their values, sorted by entity, then by value."""
        order = np.argsort(self.entities, kind="stable")
        return self.entities[order], self.values[order]

    def values_of(self, entity: int) -> NDArray[np.float64]:
        """Return the values of one entity, ascending."""
        entities, values = self.by_entity
        first, last = np.searchsorted(entities, [entity, entity + 1])
        return values[first:last]


@dataclass(frozen=True, eq=False)
class Attributes(Mapping[str, Attribute]):
    """The attributes of a data set by name, sorted by name."""

    by_name: Mapping[str, Attribute] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", dict(sorted(self.by_name.items())))

    @classmethod
    def of(cls, attributes: Iterable[Attribute]) -> Attributes:
        """Return attributes, without those that have no values."""
        return cls({attribute.name: attribute for attribute in attributes if len(attribute)})

    def __getitem__(self, name: str) -> Attribute:
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    @property
    def empty(self) -> bool:
        """Whether there are none."""
        return not self.by_name

    @property
    def n_values(self) -> int:
        return sum(map(len, self.values()))

    def find(self, name: str) -> Attribute:
        """Return an attribute by its name; if there is none, the error suggests similar ones."""
        if name not in self.by_name:
            raise UnknownLabelError("attribute", name, similar_labels(pl.Series(list(self), dtype=pl.String), name))
        return self.by_name[name]

    def values_of(self, entity: int) -> dict[str, list[float]]:
        """Return the values of one entity by attribute, ascending."""
        by_name = {name: attribute.values_of(entity).tolist() for name, attribute in self.items()}
        return {name: values for name, values in by_name.items() if values}

    def select(self, names: Iterable[str]) -> Attributes:
        """Return some of the attributes."""
        return Attributes({name: self.find(name) for name in names})

    def reencode(self, ids: NDArray[np.integer]) -> Attributes:
        """Return the values over another vocabulary: `ids` has the new id of each entity, -1 if it is left out."""
        moved = []
        for attribute in self.values():
            entities = ids[attribute.entities]
            kept = entities >= 0
            moved.append(Attribute.of(attribute.name, attribute.kind, entities[kept], attribute.values[kept]))
        return Attributes.of(moved)

    def joined(self, fingerprint: str) -> str:
        """Return a fingerprint of triples joined with the digest of all values; unchanged if there are none."""
        if self.empty:
            return fingerprint
        digest = hashlib.blake2b(fingerprint.encode(), digest_size=16)
        for name, attribute in self.items():
            digest.update(f"\0{name}\0{attribute.kind}\0{len(attribute)}\0".encode())
            digest.update(attribute.entities.astype("<i4", copy=False).tobytes())
            digest.update(attribute.values.astype("<f8", copy=False).tobytes())
        return digest.hexdigest()

    def to_polars(self, vocabulary: Vocabulary) -> pl.DataFrame:
        """Return the columns entity, attribute, kind and value, sorted by attribute, value and entity."""
        frames = [
            pl.DataFrame(
                {
                    "entity": vocabulary.decode_entities(attribute.entities),
                    "attribute": pl.repeat(name, len(attribute), dtype=pl.String, eager=True),
                    "kind": pl.repeat(str(attribute.kind), len(attribute), dtype=pl.String, eager=True),
                    "value": attribute.values,
                }
            )
            for name, attribute in self.items()
        ]
        return pl.concat([pl.DataFrame(schema=_SCHEMA), *frames])

    @classmethod
    def from_polars(cls, rows: pl.DataFrame, vocabulary: Vocabulary) -> Attributes:
        """Return the values of what `to_polars` returned; entities that the vocabulary does not have are left out."""
        attributes = []
        for (name, kind), group in rows.group_by("attribute", "kind"):
            entities = vocabulary.encode_entities(group["entity"])
            kept = entities >= 0
            values = group["value"].to_numpy()[kept]
            attributes.append(Attribute.of(str(name), AttributeKind(str(kind)), entities[kept], values))
        return cls.of(attributes)

    def save(self, folder: str | os.PathLike[str], vocabulary: Vocabulary) -> None:
        """Write the file of values into a folder, all or nothing, unless there are none."""
        if not self.empty:
            with replacing(Path(folder) / FILE) as unfinished:
                self.to_polars(vocabulary).write_parquet(unfinished)
                seal(unfinished)

    @classmethod
    def load(cls, folder: str | os.PathLike[str], vocabulary: Vocabulary) -> Attributes:
        """Read the file of values in a folder; without one, there are none."""
        path = Path(folder) / FILE
        if not path.exists():
            return cls()
        try:
            return cls.from_polars(scan_parquet(path).select(list(_SCHEMA)).cast(_SCHEMA).collect(), vocabulary)
        except (*UNREADABLE, ValueError) as error:
            reason = " ".join(str(error).split())[:120]
            raise DataError(f"{path}: expected the values of attributes as anyburl writes them ({reason})") from error

    def __repr__(self) -> str:
        return f"Attributes({', '.join(f'{name}: {len(one)} {one.kind}s' for name, one in self.items())})"


def attributes_of(vocabulary: Vocabulary) -> Attributes:
    """Return the values that the entities of a vocabulary have."""
    return vocabulary.values if isinstance(vocabulary.values, Attributes) else Attributes()
