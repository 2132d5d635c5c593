"""The flags that say how DATA is read, written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from anyburl.cli.completion import one_of
from anyburl.cli.flags import with_flags
from anyburl.errors import InvalidOptionError
from anyburl.triples.read_options import LITERALS, ReadOptions

PANEL = "How DATA is read"
DEFAULTS = ReadOptions()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a command was told about reading; a field is a flag, with the default of the flag."""

    literals: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What becomes of literals in RDF: skip them, keep them as entities, or keep numbers and dates as "
            f"ranges and skip the others: {', '.join(LITERALS)}.",
            autocompletion=one_of(*LITERALS),
            rich_help_panel=PANEL,
        ),
    ] = DEFAULTS.literals
    graph: Annotated[
        list[str] | None,
        typer.Option(
            metavar="IRI",
            help="Read this named graph of RDF only, or `default` for the one without a name; repeat it for more.",
            rich_help_panel=PANEL,
        ),
    ] = None
    language: Annotated[
        str,
        typer.Option(metavar="TAG", help="The language of names in RDF, if there is a choice.", rich_help_panel=PANEL),
    ] = DEFAULTS.language
    prefix: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=IRI",
            help="Shorten IRIs that start so, besides the prefixes of DATA and well-known ones; repeat it for more.",
            rich_help_panel=PANEL,
        ),
    ] = None

    def options(self) -> ReadOptions:
        """Return how DATA is read."""
        return ReadOptions(
            literals=self.literals,
            graphs=tuple(self.graph or ()),
            language=self.language,
            prefixes=dict(map(_prefix, self.prefix or ())),
        )


def _prefix(text: str) -> tuple[str, str]:
    name, equals, iri = text.partition("=")
    if not equals or not iri or ":" in name.rstrip(":"):
        raise InvalidOptionError("prefix", "a name and the start of IRIs, such as ex=http://example.org/", text)
    return name.rstrip(":"), iri.removeprefix("<").removesuffix(">")


reading = with_flags(Reading, "reading")
"""Add the fields of `Reading` as flags to a command; it takes them as its argument `reading`."""
