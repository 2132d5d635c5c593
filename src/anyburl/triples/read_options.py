"""`ReadOptions`: how a graph is read where its files leave a choice."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from numbers import Real
from typing import Any

from anyburl import checking
from anyburl.errors import DataError, InvalidOptionError

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
