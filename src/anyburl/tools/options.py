"""`ExportOptions`, `PublishOptions`, `ReportOptions`, `DoctorOptions` with the checks of `doctor`, and `ServeOptions`.

Imports neither a compiler nor a web library: the command line takes its flags from here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict, Unpack

from anyburl.base import checking
from anyburl.base.checking import Options, from_keywords, option, options_of
from anyburl.base.errors import InvalidOptionError, OptionError
from anyburl.data.options import ReadOptions
from anyburl.data.terms import IRI, OWN

LANGUAGE_SUFFIXES = {
    "sparql": (".rq", ".ru", ".sparql"),
    "sql": (".sql",),
    "cypher": (".cypher", ".cyp", ".cql"),
    "datalog": (".dl",),
    "prolog": (".pl",),
    "shacl": (".ttl", ".shacl"),
}
LANGUAGES = tuple(LANGUAGE_SUFFIXES)
UPDATE_SUFFIX = ".ru"
GRAPH_IRI = r'[A-Za-z][A-Za-z0-9+.-]*:[^\x00-\x20<>"{}|^`\\]+'
NAME = ("a name", "(?s).+")  # what is required of a name, and its pattern

_option = partial(option, panel="The other system")


def _columns(option: str, columns: Any) -> tuple[str, ...]:
    requirement = "three names: of subject, relation and object"
    names = checking.texts(option, columns, requirement)
    if len(names) != 3 or not all(names):
        raise InvalidOptionError(option, requirement, columns)
    return names


@dataclass(frozen=True, kw_only=True)
class ExportOptions(Options):
    """Options of an export, checked on creation.

    `to` is the language: sparql, sql, cypher, datalog, prolog or shacl. Under `object_identity`, every inequality that
    it requires is written out. With `insert`, predictions are inserted instead of queried: in SQL into the table
    `target` (predictions), in SPARQL into the named graph `target` (the IRI predictions below `base`), in Cypher into
    the graph itself.
    """

    to: str
    object_identity: bool = option(True, checking.flag, help=checking.OBJECT_IDENTITY, flag=None)
    insert: bool = _option(
        False,
        checking.flag,
        help="Insert predictions instead of querying them (SPARQL, SQL, Cypher).",
        flag="--insert",
        only_for=("sparql", "sql", "cypher"),
    )
    target: str | None = _option(
        None,
        checking.text,
        *NAME,
        help="Insert into this table (SQL; predictions) or graph IRI (SPARQL).",
        metavar="NAME",
        only_for=("sparql", "sql"),
    )
    base: str = _option(
        OWN,
        checking.text,
        "the start of an IRI, such as http://example.org/",
        IRI.pattern,
        help="Prefix of the IRIs for labels that are not IRIs (SPARQL, SHACL).",
        metavar="IRI",
        only_for=("sparql", "shacl"),
    )
    table: str = _option(
        "triples", checking.text, *NAME, help="The table of triples (SQL).", metavar="NAME", only_for=("sql",)
    )
    columns: Sequence[str] = _option(
        ("subject", "relation", "object"),
        _columns,
        help="The columns for subject, relation and object (SQL).",
        parse=checking.parse_texts,
        metavar="A,B,C",
        only_for=("sql",),
    )
    key: str = _option(
        "name",
        checking.text,
        *NAME,
        help="The node property that holds the label (Cypher).",
        metavar="NAME",
        only_for=("cypher",),
    )
    node_label: str | None = _option(
        None,
        checking.text,
        *NAME,
        help="The node label of all entities (Cypher).",
        metavar="NAME",
        only_for=("cypher",),
    )

    def __post_init__(self) -> None:
        checking.choice("to", self.to, LANGUAGES)
        super().__post_init__()
        for name, about in options_of(self).items():  # refuse options that would have no effect
            value, languages = getattr(self, name), about.only_for or LANGUAGES
            if self.to not in languages and value != getattr(type(self), name):
                raise InvalidOptionError(name, f"left out unless {{to}} is {' or '.join(languages)}", value)
        if self.target is not None and not self.insert:
            raise InvalidOptionError("target", "left out without {insert}", self.target)
        if self.to == "sparql" and self.target is not None and not IRI.fullmatch(self.target):
            raise InvalidOptionError("target", "the IRI of a graph", self.target)


class ExportKeywords(TypedDict, total=False):
    """The fields of `ExportOptions` as keywords, but for the language."""

    object_identity: bool
    insert: bool
    target: str | None
    base: str
    table: str
    columns: Sequence[str]
    key: str
    node_label: str | None


def options_for(
    file: str | os.PathLike[str], to: str | None = None, **options: Unpack[ExportKeywords]
) -> ExportOptions:
    """Return the options of an export to a file, whose suffix says the language if `to` does not."""
    name = os.fspath(file).lower().removesuffix(".gz")
    language = to or next((language for language, ends in LANGUAGE_SUFFIXES.items() if name.endswith(ends)), None)
    if language is None:
        suffixes = ", ".join(suffix for ends in LANGUAGE_SUFFIXES.values() for suffix in ends)
        known = f"one of {', '.join(LANGUAGES)} for a file that does not end in {suffixes}"
        raise InvalidOptionError("to", known, None)
    if language == "sparql" and name.endswith(UPDATE_SUFFIX):
        options["insert"] = True
    return from_keywords(ExportOptions, {"to": language, **options})


Progress = Callable[[int], None]
"""Called with the number of further facts written."""


@dataclass(frozen=True, kw_only=True)
class PublishOptions(Options):
    """How facts are sent."""

    graph: str | None = option(
        None,
        checking.text,
        "an IRI, such as http://example.org/predicted",
        GRAPH_IRI,
        help="The named graph to write to. Defaults to the endpoint's default graph.",
        metavar="IRI",
    )
    batch_size: int = option(1000, checking.whole, 1, help="Facts per update.", metavar="N")
    timeout: float = option(
        ReadOptions.timeout, checking.waiting, help="How long to wait for a silent server.", metavar="SECONDS"
    )


def _relation_labels(name: str, labels: object) -> tuple[str, ...]:
    return tuple(checking.texts(name, labels, "the labels of relations"))


def _comma_separated(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Options):
    """What a report holds, checked on creation."""

    relations: tuple[str, ...] = option(
        (), _relation_labels, help="Only these relations. Defaults to all.", parse=_comma_separated, metavar="A,B,..."
    )
    laws: int = option(6, checking.whole, 1, 100, help="Most laws of a relation.", metavar="N")
    sections: int = option(
        30, checking.whole, 1, help="Relations told in full, those with most facts; the others get a line.", metavar="N"
    )


CHECKS = {
    "leakage": "valid and test facts that can be read off train",
    "unseen": "entities and relations of valid and test that train lacks",
    "inverse": "relations that state the same in the other direction",
    "symmetric": "relations that hold in both directions",
    "duplicate": "relations that state the same, or nearly so",
    "reflexive": "facts that relate an entity to itself",
    "functional": "relations with one answer to nearly every question, and the facts that break this",
    "types": "facts whose subject or object does not fit the relation",
    "conflicts": "possible errors: facts that strong rules contradict, with the reasons for both sides",
    "suspects": "facts to check by hand, the most suspicious first",
    "values": "numbers and dates that contradict the order, the range or the unit of others",
    "degrees": "how many facts entities have: hubs and isolated facts",
    "literals": "relations whose objects are texts, versions, addresses or numbers rather than entities",
    "ambiguous": "labels that seem to stand for two sorts of things",
    "labels": "labels that other tools cannot read or tell apart",
}
"""The checks, in the order of the report."""
TIME_CHECKS = {
    "times": "how times are counted, and how many facts a moment has",
    "future": "facts of train and valid that are not before those of valid and test",
    "gaps": "stretches of time without any fact",
    "ending": "relations whose facts end, or end early",
    **{name: CHECKS[name] for name in ("unseen", "reflexive", "degrees", "labels")},
}
"""The checks of facts with times."""
RULES = "Rules to judge facts by"


@dataclass(frozen=True, kw_only=True)
class DoctorOptions(Options):
    """Options of an examination, checked on creation. Without given rules, rules are learned from train."""

    top: int = option(10, checking.whole, 1, help="Number of examples per finding.", metavar="N")
    per_relation: int = option(
        3, checking.whole, 1, help="Number of examples per relation of possible errors and suspects.", metavar="N"
    )
    relation: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="Look for possible errors and suspects in this relation only.",
        metavar="RELATION",
    )
    types: str | None = option(
        None,
        checking.text,
        "the label of a relation",
        help="The relation that states the types of entities. Defaults to rdf:type; without types, entities are judged "
        "by their relations.",
        metavar="RELATION",
    )
    seconds: float = option(
        5.0,
        checking.real,
        0,
        checking.MOST_SECONDS,
        help="How long to learn rules from train, without --rules.",
        panel=RULES,
    )
    threads: int | None = checking.threads_option()
    seed: int = option(0, checking.whole, 0, help="Seed of all random numbers.", metavar="N")


class DoctorKeywords(TypedDict, total=False):
    """The fields of `DoctorOptions` as keywords."""

    top: int
    per_relation: int
    relation: str | None
    types: str | None
    seconds: float
    threads: int | None
    seed: int


def check_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return the names of checks; others are refused."""
    chosen = tuple(names)
    known = {**CHECKS, **TIME_CHECKS}
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InvalidOptionError("fail_on", f"some of {', '.join(known)}", ",".join(unknown or chosen))
    return chosen


LOOPBACK = ("127.0.0.1", "localhost", "::1")
SHORTEST_TOKEN = 8
BACKLOG = 2048  # connections that wait to be accepted


@dataclass(frozen=True, kw_only=True)
class ServeOptions(Options):
    """Where the explorer listens, who may use it, and the limits of each reader; checked on creation."""

    port: int = option(
        8000,
        checking.whole,
        0,
        65535,
        help="The port to listen on; 0 picks a free one.",
        shown={"min": 0, "max": 65535},
    )
    host: str = option(
        "127.0.0.1",
        checking.text,
        "the address of a machine",
        help="The address to listen on; any but the local machine needs a token.",
        metavar="ADDRESS",
    )
    token: str | None = option(
        None,
        checking.text,
        "text",
        help="The token that readers need.",
        parse=lambda text: text or None,
        metavar="TEXT",
        shown={"envvar": "ANYBURL_TOKEN", "show_default": False},
    )

    longest_text: int = 20_000
    """Characters of one label or note in a request."""
    largest_body: int = 4_000_000
    """Bytes of a request's body."""
    largest_head: int = 1 << 18
    """Bytes of a request's first lines: its address and headers."""
    seconds_to_send: float = 30.0
    """How long the head of a request may take to arrive, and its body; then the connection is closed."""
    largest_page: int = 200
    """Rows of a page."""
    deepest_row: int = 5_000
    """How far down a list can be paged."""
    largest_batch: int = 1_000
    """Questions in one request."""
    seconds: float = 20.0
    """Seconds after which a request is refused, since it takes too long."""
    most_waiting: int = 200
    """Requests that may wait for a free thread; those beyond get status 503."""
    workers: int = 1
    """Processes that answer, which share cores and waiting requests."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.token is not None and len(self.token) < SHORTEST_TOKEN:
            raise OptionError(f"--token must have at least {SHORTEST_TOKEN} characters")
        if not self.is_local and self.token is None:
            raise OptionError(
                f"--host {self.host} lets others in: set a --token, or the environment variable ANYBURL_TOKEN"
            )

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach it."""
        return self.host in LOOPBACK

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]", "::1": "[::1]"}.get(self.host, self.host)
        return f"http://{host}:{self.port}/"
