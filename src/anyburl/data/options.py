"""`ReadOptions`: how a graph is read where its files leave a choice, what is gathered, which columns hold triples."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from functools import partial
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anyburl.base import checking
from anyburl.base.checking import Options, choice, option, whole
from anyburl.base.errors import DataError, InvalidOptionError, OptionError
from anyburl.data.terms import Prefixes

if TYPE_CHECKING:
    import polars as pl

LITERALS = ("attributes", "skip", "keep", "ranges")
THREE_COLUMNS = "the names of three columns, such as head,relation,tail"
THREE_SHARES = "three shares that sum to 1, such as 0.8,0.1,0.1"
LANGUAGE = "[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*"
DUMPS = ("wikidata", "freebase")
RECOGNISED, IGNORED = "auto", "ignore"
TIME_COLUMNS = f"{RECOGNISED}, {IGNORED}, or the names of one or two columns, such as date or from,to"
GRANULARITY = "second, minute, hour, day, week, month, year or a whole number above 0"
ONE_OR_TWO_TIMES = "one or two times, such as 2014-11-01,2014-12-01"


class AttributeKind(StrEnum):
    """What the values of an attribute are."""

    NUMBER = "number"
    DATE = "date"
    BOOLEAN = "boolean"

    @property
    def example(self) -> str:
        """What a value looks like, for messages."""
        return {"number": "a number such as 12.5", "date": "a date such as 1999-12-31", "boolean": "true or false"}[
            self
        ]


ENTITY = "entity"
"""The kind of a relation whose objects look like values and are to stay entities."""

ATTRIBUTE_KINDS = (*map(str, AttributeKind), ENTITY)
ATTRIBUTES = f"names with a kind, {', '.join(ATTRIBUTE_KINDS[:-1])} or {ENTITY}, such as age=number"

_option = partial(option, panel="How DATA is read")


def _prefixes(option: str, prefixes: Any) -> dict[str, str]:
    if not isinstance(prefixes, Mapping) or not all(
        isinstance(text, str) for pair in prefixes.items() for text in pair
    ):
        raise InvalidOptionError(option, "a mapping of prefixes to IRIs", prefixes)
    return dict(prefixes)


def _columns(option: str, columns: Any) -> tuple[str, ...]:
    names = checking.texts(option, columns, THREE_COLUMNS)
    if len(names) != 3 or len({*names}) != 3 or not all(names):
        raise InvalidOptionError(option, THREE_COLUMNS, columns)
    return names


def _time(option: str, columns: Any) -> tuple[str, ...]:
    names = checking.texts(option, columns, TIME_COLUMNS)
    if len({*names}) not in (1, 2) or len(names) > 2 or not all(names) or {*names[1:]} & {RECOGNISED, IGNORED}:
        raise InvalidOptionError(option, TIME_COLUMNS, columns)
    return names


def _moments(option: str, moments: Any) -> tuple[str, ...]:
    texts = checking.texts(option, moments, ONE_OR_TWO_TIMES)
    if not 1 <= len(texts) <= 2 or not all(texts):
        raise InvalidOptionError(option, ONE_OR_TWO_TIMES, moments)
    return texts


def _shares(option: str, shares: Any) -> tuple[float, ...]:
    are_numbers = isinstance(shares, tuple | list) and all(isinstance(share, Real) for share in shares)
    if not are_numbers or len(shares) != 3 or not (shares[0] > 0 <= min(shares) and abs(sum(shares) - 1) < 1e-9):
        raise InvalidOptionError(option, THREE_SHARES, shares)
    return tuple(map(float, shares))


def parse_prefixes(texts: Sequence[str]) -> dict[str, str]:
    """Return prefixes behind texts such as ex=http://example.org/."""
    prefixes = {}
    for text in texts:
        name, equals, iri = text.partition("=")
        if not equals or not iri or ":" in name.rstrip(":"):
            raise InvalidOptionError("prefix", "a name and the start of IRIs, such as ex=http://example.org/", text)
        prefixes[name.rstrip(":")] = iri.removeprefix("<").removesuffix(">")
    return prefixes


ELSEWHERE = ("sparql", "http", "https", "postgres", "postgresql")


def _attribute(option: str, kinds: Any) -> dict[str, str]:
    if not isinstance(kinds, Mapping) or not all(
        isinstance(name, str) and name and kind in ATTRIBUTE_KINDS for name, kind in kinds.items()
    ):
        raise InvalidOptionError(option, ATTRIBUTES, kinds)
    return {name: str(kind) for name, kind in kinds.items()}


def _path(option: str, path: Any) -> str:
    """Return an absolute path, since a run folder may be used from another working directory."""
    if not isinstance(path, str | os.PathLike) or not os.fspath(path):
        raise InvalidOptionError(option, "the path of a file or folder", path)
    kind, colon, rest = os.fspath(path).partition(":")
    if kind.lower() in ELSEWHERE:
        raise OptionError("values are read from a file or folder, sqlite:PATH#TABLE or duckdb:PATH#TABLE, no server")
    if kind.lower() not in ("sqlite", "duckdb"):
        kind, colon, rest = "", "", os.fspath(path)
    return kind + colon + os.path.abspath(os.path.expanduser(rest))


def parse_kinds(texts: Sequence[str]) -> dict[str, str]:
    """Return the kinds of attributes behind texts such as age=number or born=date,size=number."""
    kinds = {}
    for text in (part for one in texts for part in one.split(",")):
        name, equals, kind = text.strip().rpartition("=")
        if not equals or not name or kind not in ATTRIBUTE_KINDS:
            raise InvalidOptionError("attribute", ATTRIBUTES, text)
        kinds[name] = kind
    return kinds


@dataclass(frozen=True, kw_only=True)
class ReadOptions(Options):
    """How to read a graph; run folders and indexes remember it with their data."""

    literals: str = _option(
        "attributes",
        choice,
        LITERALS,
        help="How to treat RDF literals: read numbers, dates and booleans as attributes and skip text, skip them all, "
        "keep them as entities, or turn numbers and dates into ranges and skip the rest",
    )
    attribute: Mapping[str, str] = _option(
        {},
        _attribute,
        help="Read the objects of this relation, or a column of --attributes, as values: number, date or boolean; "
        "`entity` keeps as entities what would be recognised as values.",
        flag_help="May be repeated, or separated by commas.",
        parse=parse_kinds,
        repeated=True,
        metavar="NAME=KIND",
    )
    attribute_file: str | None = _option(
        None,
        _path,
        help="Read values of attributes from this file, in addition to those in DATA: lines of entity, attribute and "
        "value, or a table with a row per entity (also sqlite:PATH#TABLE, duckdb:PATH#TABLE); or from a folder with "
        "such files, also of values held out.",
        flag="--attributes",
        metavar="FILE",
    )
    dump: str | None = _option(
        None,
        choice,
        DUMPS,
        help="Read DATA as the dump published by this project, keeping statements between entities and counting the "
        "others by kind",
    )
    query: str | None = _option(
        None,
        checking.text,
        "a query, such as 'SELECT s, p, o FROM facts'",
        r"(?s).*\S.*",
        help="Query for triples in a database (three columns) or a SPARQL endpoint (?s ?p ?o), instead of reading "
        "everything.",
        metavar="QUERY",
    )
    page_size: int = _option(20_000, whole, 1, help="Triples per request to a SPARQL endpoint.", metavar="N")
    timeout: float = _option(
        60.0,
        checking.waiting,
        help="How long to wait for a silent SPARQL endpoint, or for a database connection.",
        metavar="SECONDS",
    )
    columns: tuple[str, ...] | None = _option(
        None,
        _columns,
        help="The columns that hold subject, relation and object, by name as in the first line, or by number from 1 if "
        "there is no such line.",
        parse=checking.parse_texts,
        metavar="A,B,C",
    )
    skip_bad: bool = _option(
        False,
        checking.flag,
        help="Leave out lines of text and CSV that hold no fact, and report them, instead of refusing the file.",
        flag="--skip-bad",
    )
    split: tuple[float, ...] | None = _option(
        None,
        _shares,
        help="Split a graph at random by these shares, such as 0.8,0.1,0.1; every entity and relation stays in train.",
        parse=checking.parse_numbers("split", THREE_SHARES),
        metavar="TRAIN,VALID,TEST",
    )
    split_seed: int = _option(0, whole, 0, help="Random seed for --split.", metavar="N", shown={"min": 0})
    time: tuple[str, ...] | None = _option(
        None,
        _time,
        help="The column that holds the time of each fact, or two that hold its begin and its end, by name or by "
        f"number; `{RECOGNISED}` finds them, `{IGNORED}` reads the facts without their times. Facts with times are "
        "split in the order of time.",
        parse=checking.parse_texts,
        metavar="COLUMN",
    )
    granularity: str | None = _option(
        None,
        checking.text,
        GRANULARITY,
        r"second|minute|hour|day|week|month|year|[1-9]\d{0,14}",
        help="How long a step of time is: second, minute, hour, day, week, month, year, or a number where times are "
        "numbers. Defaults to what tells all times apart.",
        metavar="UNIT",
    )
    split_at: tuple[str, ...] | None = _option(
        None,
        _moments,
        help="Split facts with times where valid begins and where test begins, or where test begins.",
        parse=checking.parse_texts,
        metavar="TIME[,TIME]",
    )
    graphs: tuple[str, ...] = _option(
        (),
        checking.texts,
        "a tuple of IRIs",
        help="Read only this named RDF graph, or `default` for the unnamed one.",
        flag_help="May be repeated.",
        flag="--graph",
        parse=tuple,
        repeated=True,
        metavar="IRI",
    )
    language: str = _option(
        "en",
        checking.text,
        "a language tag such as en or de-AT",
        LANGUAGE,
        help="Preferred language of RDF names.",
        metavar="TAG",
    )
    prefixes: Mapping[str, str] = _option(
        {},
        _prefixes,
        help="Shorten IRIs that start with this, in addition to well-known prefixes and those of DATA.",
        flag_help="May be repeated.",
        flag="--prefix",
        parse=parse_prefixes,
        repeated=True,
        metavar="NAME=IRI",
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.dump is not None and self.literals not in LITERALS[:2]:
            raise InvalidOptionError("literals", f"{LITERALS[1]} for the dump of {self.dump}", self.literals)
        if self.has_times and self.names_attributes:
            raise OptionError("attributes go with facts without times: drop attribute and attribute_file, or time")
        if self.split is not None and self.split_at is not None:
            raise OptionError("pass either split or split_at, not both")

    @property
    def attribute_kinds(self) -> dict[str, str]:
        """The kinds of attributes by label: prefixed names stand for IRIs."""
        if not self.attribute:
            return {}
        prefixes = Prefixes(self.prefixes)
        return {prefixes.expand(name): kind for name, kind in self.attribute.items()}

    @property
    def names_attributes(self) -> bool:
        """Whether values of attributes are named, in DATA or elsewhere."""
        return bool(self.attribute) or self.attribute_file is not None

    @property
    def has_times(self) -> bool:
        """Whether the times of facts are read."""
        return self.time is not None and self.time != (IGNORED,)

    def check_timeless(self) -> None:
        """Raise an error if facts are to be read with their times, which only rules with times have a use for."""
        if self.has_times:
            raise InvalidOptionError(
                "time", f"{IGNORED} where triples are read; load_temporal_dataset reads times", self.time
            )
        if self.split_at is not None:
            raise OptionError("only facts with times are split at a time: pass split, or the column with times as time")

    def changed(self, other: ReadOptions) -> ReadOptions:
        """Return these options, replaced by those in which `other` differs from the defaults."""
        return ReadOptions.from_json({**self.to_json(), **other.to_json()})

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults, as JSON holds it."""
        plain = Options.to_json(ReadOptions())
        return {name: value for name, value in super().to_json().items() if value != plain[name]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ReadOptions:
        """Return what `to_json` wrote."""
        known = {option.name for option in fields(cls)}
        if odd := sorted(stored.keys() - known):
            raise DataError(f"the data was read by another version of anyburl, with the options {', '.join(odd)}")
        return cls(**stored)


MOST_REMEMBERED = 3


@dataclass
class SkippedLines:
    """Lines of a file that hold no fact: refused one by one, or counted and the first ones remembered."""

    path: Path
    are_skipped: bool
    n_lines: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, number: int, sentence: str) -> None:
        """Raise an error for a line or, if such lines are skipped, count it."""
        if not self.are_skipped:
            hint = "; --skip-bad leaves such lines out" if number > 2 else ""  # else all may be: a wrong format
            raise DataError(f"{self.path}:{number}: {sentence}{hint}")
        self.n_lines += 1
        if len(self.first) < MOST_REMEMBERED:
            self.first.append(f"line {number}: {sentence}")

    def report(self, gathered: Gathered) -> None:
        """Note what was left out of the file."""
        if self.n_lines:
            more = "; ..." if self.n_lines > len(self.first) else ""
            gathered.left_out[f"bad lines of {self.path} ({'; '.join(self.first)}{more})"] += self.n_lines


@dataclass
class Gathered:
    """Prefixes and readable names, and how much was left out, by what it was ("literals").

    Readers write into it, batch by batch; whoever reads all batches may rely on it afterwards. `values` are those of
    attributes, as texts, each frame with the `split` that was being read (`data/values.py`). The rest is what
    readers of RDF remember from one file to the next: how good a name is, where the ranges of a relation end, how many
    nodes without a name there were.
    """

    prefixes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    values: list[tuple[str, pl.DataFrame]] = field(default_factory=list)
    split: str = "train"
    name_ranks: dict[str, int] = field(default_factory=dict)
    cuts: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=dict)
    n_unnamed: int = 0


COLUMNS = ("subject", "relation", "object")
PARTS = (*COLUMNS, "time", "end")
"""The columns of facts with times; readers return the first three, four or five of them."""

KNOWN = {
    "subject": {"subject", "head", "source", "s", "h"},
    "relation": {"relation", "predicate", "label", "p", "r"},
    "object": {"object", "tail", "target", "o", "t"},
    "time": {
        "time",
        "timestamp",
        "date",
        "datetime",
        "day",
        "month",
        "year",
        "when",
        "start",
        "begin",
        "from",
        "since",
    },
    "end": {"end", "until", "to"},
}
MOST_LISTED = 12
CHOOSE = "choose with --columns A,B,C, or by number if there is no header"
TIMED = f"--time {RECOGNISED} reads the fourth column as times, --time {IGNORED} leaves them out"


def by_number(chosen: Sequence[str] | None) -> bool:
    """Return whether columns are chosen by their numbers, from 1 on: then a file of text has no header."""
    return chosen is not None and all(name.isdecimal() for name in chosen)


def choose_columns(
    header: Sequence[str], chosen: Sequence[str] | None, where: object, time: Sequence[str] | None = None
) -> list[int]:
    """Return the positions of subject, relation and object among the columns of the `header`, then those of times.

    They are those `chosen` or, in a table of three columns besides those of times, the ones that have the usual names.
    """
    times = [] if time is None else time_positions(header, time, where)
    kept = [] if time is not None and tuple(time) == (IGNORED,) else times
    if chosen is not None:
        return [_position(header, name, where, numbered=by_number(chosen)) for name in chosen] + kept
    others = [position for position in range(len(header)) if position not in times]
    names = [header[position] for position in others]
    if len(others) == 3 and has_usual_names(names):
        return [others[columns[0]] for columns in _usual_columns(names)] + kept
    expected = "one each for subject, relation and object" if len(others) == 3 else "three columns"
    expected += " and those of times" if times else ""
    if time is None and len(header) in (4, 5) and usual_times(header):
        raise DataError(f"{where}: expected three columns, got {_listed(header)}; {TIMED}; or {CHOOSE}")
    row_per_thing = "; of a table with a row for each thing, `anyburl doctor` tells how to make facts"
    raise DataError(
        f"{where}: expected {expected}, got {_listed(header)}; {CHOOSE}{row_per_thing if len(others) > 4 else ''}"
    )


def time_positions(header: Sequence[str], time: Sequence[str], where: object) -> list[int]:
    """Return the position of the column with the times of facts and, if there is one, of that with their ends."""
    if time[0] not in (RECOGNISED, IGNORED):
        return [_position(header, name, where, numbered=by_number(time)) for name in time]
    if usual := usual_times(header):
        return usual
    if time[0] == IGNORED:
        return []
    raise DataError(f"{where}: expected a column with times, got {_listed(header)}; name it with --time")


def usual_times(header: Sequence[str]) -> list[int]:
    """Return the positions of columns with a usual name for times: one column, perhaps another for ends."""
    begins, ends = (
        [row for row, name in enumerate(header) if name.strip().lower() in KNOWN[part]] for part in PARTS[3:]
    )
    return [*begins, *(ends if len(ends) == 1 else [])] if len(begins) == 1 else []


def has_usual_names(header: Sequence[str]) -> bool:
    """Return whether one column each has a usual name for subject, relation and object."""
    return all(len(columns) == 1 for columns in _usual_columns(header))


def _usual_columns(header: Sequence[str]) -> list[list[int]]:
    return [[row for row, name in enumerate(header) if name.strip().lower() in KNOWN[part]] for part in COLUMNS]


def _position(header: Sequence[str], name: str, where: object, *, numbered: bool) -> int:
    if numbered:
        if not 1 <= int(name) <= len(header):
            raise DataError(f"{where}: expected a column {name}, got {len(header)} columns")
        return int(name) - 1
    for plain in (str, str.lower):
        positions = [row for row, other in enumerate(header) if plain(other) == plain(name)]
        if len(positions) == 1:
            return positions[0]
    got = "several of that name" if positions else _listed(header)
    raise DataError(f"{where}: expected a column {name!r}, got {got}")


def _listed(header: Sequence[str]) -> str:
    return "the columns " + ", ".join(header[:MOST_LISTED]) + (", ..." if len(header) > MOST_LISTED else "")
