"""`ReadOptions`: how a graph is read where its files leave a choice.

What reading finds in a graph besides its triples.

Finds the columns of a table that hold the triples.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any

from anyburl.base import checking
from anyburl.base.errors import DataError, InvalidOptionError

LITERALS = ("skip", "keep", "ranges")
THREE_COLUMNS = "the names of three columns, such as head,relation,tail"
LANGUAGE = re.compile("[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
DUMPS = ("wikidata", "freebase")


@dataclass(frozen=True, kw_only=True)
class ReadOptions:
    """How to read a graph; run folders and indexes remember it with their data.

    `literals` of RDF are skipped, kept as entities, or turned into ranges if they are numbers or dates and skipped
    otherwise. `graphs` are the named graphs to read ("default" is the unnamed one); empty means all. `language` is the
    preferred language of readable names. `dump` names the project, Wikidata or Freebase, whose dump a file is:
    statements between entities are kept. `prefixes` shorten IRIs, in addition to those that files declare. `columns`
    names the columns that hold subject, relation and object. `query` selects triples in a database or a SPARQL
    endpoint. An endpoint returns `page_size` rows at a time and may stay silent for `timeout` seconds, which is also
    the limit for connecting to a database. `split` divides a graph without splits into train, valid and test by these
    shares, drawn with `split_seed`.
    """

    literals: str = "skip"
    dump: str | None = None
    graphs: tuple[str, ...] = ()
    language: str = "en"
    prefixes: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    query: str | None = None
    page_size: int = 20_000
    timeout: float = 60.0
    split: tuple[float, ...] | None = None
    split_seed: int = 0

    def __post_init__(self) -> None:
        checking.choice("literals", self.literals, LITERALS)
        if self.dump is not None:
            checking.choice("dump", self.dump, DUMPS)
            if self.literals != LITERALS[0]:
                raise InvalidOptionError("literals", f"{LITERALS[0]} for the dump of {self.dump}", self.literals)
        checking.texts("graphs", self.graphs, "a tuple of IRIs")
        if not isinstance(self.language, str) or not LANGUAGE.fullmatch(self.language):
            raise InvalidOptionError("language", "a language tag such as en or de-AT", self.language)
        if not isinstance(self.prefixes, Mapping) or not _are_texts(self.prefixes):
            raise InvalidOptionError("prefixes", "a mapping of prefixes to IRIs", self.prefixes)
        if self.columns is not None:
            names = checking.texts("columns", self.columns, THREE_COLUMNS)
            if len(names) != 3 or len({*names}) != 3 or not all(names):
                raise InvalidOptionError("columns", THREE_COLUMNS, self.columns)
        if self.split is not None and not _are_shares(self.split):
            raise InvalidOptionError("split", "three shares that sum to 1, such as 0.8,0.1,0.1", self.split)
        checking.whole("split_seed", self.split_seed, 0)
        if self.query is not None and not (isinstance(self.query, str) and self.query.strip()):
            raise InvalidOptionError("query", "a query, such as 'SELECT s, p, o FROM facts'", self.query)
        checking.whole("page_size", self.page_size, 1)
        checking.waiting("timeout", self.timeout)

    def changed(self, other: ReadOptions) -> ReadOptions:
        """Return these options, replaced by those in which `other` differs from the defaults."""
        return ReadOptions.from_json({**self.to_json(), **other.to_json()})

    def to_json(self) -> dict[str, Any]:
        """Return what differs from the defaults, as JSON holds it."""
        plain = asdict(ReadOptions())
        return {name: value for name, value in asdict(self).items() if value != plain[name]}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ReadOptions:
        """Return what `to_json` wrote."""
        known = {option.name for option in fields(cls)}
        if odd := sorted(stored.keys() - known):
            raise DataError(f"the data was read by another version of anyburl, with the options {', '.join(odd)}")
        values: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value for name, value in stored.items()
        }
        return cls(**values)


def _are_texts(mapping: Mapping[Any, Any]) -> bool:
    return all(isinstance(text, str) for item in mapping.items() for text in item)


def _are_shares(split: Any) -> bool:
    if not isinstance(split, tuple | list) or not all(isinstance(share, Real) for share in split):
        return False
    return len(split) == 3 and split[0] > 0 and min(split) >= 0 and abs(sum(split) - 1) < 1e-9


@dataclass
class Gathered:
    """Prefixes and readable names, and how much was left out, by what it was ("literals").

    Readers write into it, batch by batch; whoever reads all batches may rely on it afterwards. The rest is what
    readers of RDF remember from one file to the next: how good a name is, where the ranges of a relation end, how many
    nodes without a name there were.
    """

    prefixes: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)
    name_ranks: dict[str, int] = field(default_factory=dict)
    cuts: dict[tuple[str, str], list[tuple[float, str]]] = field(default_factory=dict)
    n_unnamed: int = 0


COLUMNS = ("subject", "relation", "object")
KNOWN = {
    "subject": {"subject", "head", "source", "s", "h"},
    "relation": {"relation", "predicate", "label", "p", "r"},
    "object": {"object", "tail", "target", "o", "t"},
}
MOST_LISTED = 12
CHOOSE = "choose with --columns A,B,C, or by number if there is no header"


def by_number(chosen: Sequence[str] | None) -> bool:
    """Return whether columns are chosen by their numbers, from 1 on: then a file of text has no header."""
    return chosen is not None and all(name.isdecimal() for name in chosen)


def choose_columns(found: Sequence[str], chosen: Sequence[str] | None, where: object) -> list[int]:
    """Return the positions of subject, relation and object among the columns that were found.

    They are those `chosen` or, in a table of three columns, the ones that have the usual names.
    """
    if chosen is not None:
        return [_position(found, name, where, numbered=by_number(chosen)) for name in chosen]
    if len(found) == 3 and has_usual_names(found):
        return [place[0] for place in _usual_places(found)]
    expected = "one each for subject, relation and object" if len(found) == 3 else "three columns"
    raise DataError(f"{where}: expected {expected}, got {_listed(found)}; {CHOOSE}")


def has_usual_names(found: Sequence[str]) -> bool:
    """Return whether one column each has a usual name for subject, relation and object."""
    return all(len(place) == 1 for place in _usual_places(found))


def _usual_places(found: Sequence[str]) -> list[list[int]]:
    return [[row for row, name in enumerate(found) if name.strip().lower() in KNOWN[part]] for part in COLUMNS]


def _position(found: Sequence[str], name: str, where: object, *, numbered: bool) -> int:
    if numbered:
        if not 1 <= int(name) <= len(found):
            raise DataError(f"{where}: expected a column {name}, got {len(found)} columns")
        return int(name) - 1
    for plain in (str, str.lower):
        places = [row for row, other in enumerate(found) if plain(other) == plain(name)]
        if len(places) == 1:
            return places[0]
    got = "several of that name" if places else _listed(found)
    raise DataError(f"{where}: expected a column {name!r}, got {got}")


def _listed(found: Sequence[str]) -> str:
    return "the columns " + ", ".join(found[:MOST_LISTED]) + (", ..." if len(found) > MOST_LISTED else "")
