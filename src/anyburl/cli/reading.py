"""The options that control how DATA is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from anyburl.base.errors import InvalidOptionError
from anyburl.cli.arguments import with_flags
from anyburl.cli.shell_completion import one_of
from anyburl.data.options import DUMPS, LITERALS, ReadOptions

PANEL = "How DATA is read"
DEFAULTS = ReadOptions()
SPLIT_HINT = "`anyburl learn DATA --split 0.8,0.1,0.1` divides a graph that has no splits"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a command was told about reading; a field is a flag, with the default of the flag."""

    literals: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="How to treat RDF literals: skip them, keep them as entities, or turn numbers and dates into "
            f"ranges and skip the rest: {', '.join(LITERALS)}.",
            autocompletion=one_of(*LITERALS),
            rich_help_panel=PANEL,
        ),
    ] = DEFAULTS.literals
    dump: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Read DATA as the dump published by this project, keeping statements between entities and "
            f"counting the others by kind: {', '.join(DUMPS)}.",
            autocompletion=one_of(*DUMPS),
            rich_help_panel=PANEL,
        ),
    ] = None
    query: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="Query for triples in a database (three columns) or a SPARQL endpoint (?s ?p ?o), instead of "
            "reading everything.",
            rich_help_panel=PANEL,
        ),
    ] = None
    page_size: Annotated[
        int, typer.Option(metavar="N", help="Triples per request to a SPARQL endpoint.", rich_help_panel=PANEL)
    ] = DEFAULTS.page_size
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="How long to wait for a silent SPARQL endpoint, or for a database connection.",
            rich_help_panel=PANEL,
        ),
    ] = DEFAULTS.timeout

    columns: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,C",
            help="The columns that hold subject, relation and object, by name as in the first line, or by number "
            "from 1 if there is no such line.",
            rich_help_panel=PANEL,
        ),
    ] = None
    split: Annotated[
        str | None,
        typer.Option(
            metavar="TRAIN,VALID,TEST",
            help="Split a graph at random by these shares, such as 0.8,0.1,0.1; every entity and relation stays in "
            "train.",
            rich_help_panel=PANEL,
        ),
    ] = None
    split_seed: Annotated[
        int, typer.Option(metavar="N", min=0, help="Random seed for --split.", rich_help_panel=PANEL)
    ] = DEFAULTS.split_seed
    graph: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI",
            help="Read only this named RDF graph, or `default` for the unnamed one. May be repeated.",
            rich_help_panel=PANEL,
        ),
    ] = None
    language: Annotated[
        str,
        typer.Option(metavar="TAG", help="Preferred language of RDF names.", rich_help_panel=PANEL),
    ] = DEFAULTS.language
    prefix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=IRI",
            help="Shorten IRIs that start with this, in addition to well-known prefixes and those of DATA. May be "
            "repeated.",
            rich_help_panel=PANEL,
        ),
    ] = None

    def options(self) -> ReadOptions:
        """Return how DATA is read."""
        return ReadOptions(
            literals=self.literals,
            dump=self.dump,
            graphs=tuple(self.graph or ()),
            language=self.language,
            prefixes=dict(map(_prefix, self.prefix or ())),
            query=self.query,
            page_size=self.page_size,
            timeout=self.timeout,
            columns=None if self.columns is None else tuple(name.strip() for name in self.columns.split(",")),
            split=None if self.split is None else _shares(self.split),
            split_seed=self.split_seed,
        )


def _prefix(text: str) -> tuple[str, str]:
    name, equals, iri = text.partition("=")
    if not equals or not iri or ":" in name.rstrip(":"):
        raise InvalidOptionError("prefix", "a name and the start of IRIs, such as ex=http://example.org/", text)
    return name.rstrip(":"), iri.removeprefix("<").removesuffix(">")


def _shares(text: str) -> tuple[float, ...]:
    try:
        return tuple(float(share) for share in text.split(","))
    except ValueError:
        raise InvalidOptionError("split", "three shares that sum to 1, such as 0.8,0.1,0.1", text) from None


reading = with_flags(Reading, "reading")
"""Add the fields of `Reading` as flags to a command; it takes them as its argument `reading`."""
