"""Turns RDF numbers and dates into ranges: the values of each relation are cut at every tenth."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from urllib.parse import quote

import polars as pl

from anyburl.rdf_terms import OWN
from anyburl.triples.frames import COLUMNS
from anyburl.triples.gathered import Gathered
from anyburl.triples.prefixes import XSD

N_RANGES = 10  # at most, of a relation
AT_A_TIME = 1 << 18  # statements
RANGE = f"{OWN}range:"
"""How the datatype of a range starts; what follows is the relation, for 3 metres are not 3 kilograms."""

NUMBER, DATE = "number", "date"
_NUMBERS = (
    "integer decimal double float int long short byte nonNegativeInteger positiveInteger nonPositiveInteger "
    "negativeInteger unsignedInt unsignedLong unsignedShort unsignedByte"
)
_DATES = "date dateTime dateTimeStamp gYear gYearMonth"
KINDS = {**{XSD + name: NUMBER for name in _NUMBERS.split()}, **{XSD + name: DATE for name in _DATES.split()}}

_DATE = r"^(-?\d{4,})(?:-(\d\d))?(?:-(\d\d))?(?:T(\d\d):(\d\d):(\d\d))?"
_SMALLEST = 1, 1, 1, 0, 0, 0
_RADIX = 0, 12, 31, 24, 60, 60
_COLUMNS = dict.fromkeys(("subject", "relation", "kind", "text"), pl.String)

Cut = tuple[float, str]
"""Where a range begins, as a number and in writing."""


class Values:
    """The numbers and dates of a file, which wait for their ranges until all of them are known."""

    def __init__(self) -> None:
        self._rows: list[tuple[str, str, str, str]] = []
        self._frames: list[pl.DataFrame] = []

    def add(self, subject: str, relation: str, kind: str, text: str) -> None:
        """Keep one statement with a number or a date."""
        self._rows.append((subject, relation, kind, text))
        if len(self._rows) == AT_A_TIME:
            self._pack()

    def _pack(self) -> None:
        """Put rows into a frame, which takes a fraction of their memory."""
        self._frames.append(pl.DataFrame(self._rows, schema=_COLUMNS, orient="row"))
        self._rows.clear()

    def __bool__(self) -> bool:
        return bool(self._rows or self._frames)

    def triples(self, gathered: Gathered) -> pl.DataFrame:
        """Return the statements with ranges for objects. What no number can be made of is left out.

        A relation that an earlier file has values of keeps the ranges it had there.
        """
        self._pack()
        rows = pl.concat(self._frames).with_columns(value=_value())
        known = rows.filter(pl.col("value").is_finite())
        gathered.left_out += Counter({"literals": rows.height - known.height, "exact numbers and dates": known.height})
        parts = [_cut(group, gathered) for group in known.partition_by("relation", "kind", maintain_order=True)]
        return pl.concat([pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String)), *parts])


def _value() -> pl.Expr:
    """Return the number behind the text of a number or a date; months and days count as equally long."""
    parts = [pl.col("text").str.extract(_DATE, place + 1).cast(pl.Float64) for place in range(len(_RADIX))]
    date = parts[0]
    for part, smallest, radix in list(zip(parts, _SMALLEST, _RADIX, strict=True))[1:]:
        date = date * radix + part.fill_null(smallest) - smallest
    number = pl.col("text").str.strip_chars().cast(pl.Float64, strict=False)
    return pl.when(pl.col("kind") == DATE).then(date).otherwise(number)


def _cut(group: pl.DataFrame, gathered: Gathered) -> pl.DataFrame:
    relation, kind = group["relation"][0], group["kind"][0]
    cuts = gathered.cuts.get((relation, kind))
    if cuts is None:
        cuts = gathered.cuts[relation, kind] = _cuts(group.sort("value", "text"), kind)
    words = _words(cuts)
    labels = [f'"{text}"^^<{RANGE}{quote(relation, safe="")}>' for text in words]
    gathered.names.update(zip(labels, words, strict=True))
    starts = [start for start, _ in cuts]
    objects = pl.Series([labels[bisect_right(starts, value)] for value in group["value"]], dtype=pl.String)
    return group.select("subject", "relation", object=objects)


def _cuts(values: pl.DataFrame, kind: str) -> list[Cut]:
    """Return where ranges begin: at values that a tenth, two tenths and so on of all values lie below."""
    places = [values.height * number // N_RANGES for number in range(1, N_RANGES)]
    starts = {values["value"][place]: values["text"][place] for place in reversed(places)}
    if len(starts) > 1:
        starts.pop(values["value"][0], None)  # nothing lies below
    return [(start, _text(start) if kind == NUMBER else starts[start].strip()) for start in sorted(starts)]


def _words(cuts: Sequence[Cut]) -> list[str]:
    texts = [text for _, text in cuts]
    between = [f"[{start}, {end})" for start, end in pairwise(texts)]
    return [f"< {texts[0]}", *between, f">= {texts[-1]}"]


def _text(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
