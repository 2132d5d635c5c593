"""The flags that say how DATA is read, written once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from anyburl.cli.completion import one_of
from anyburl.cli.flags import with_flags
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
            f"ranges: {', '.join(LITERALS)}.",
            autocompletion=one_of(*LITERALS),
            rich_help_panel=PANEL,
        ),
    ] = DEFAULTS.literals
    query: Annotated[
        str | None,
        typer.Option(
            metavar="QUERY",
            help="What to ask a database (three columns) or a SPARQL endpoint (?s ?p ?o) instead of reading all of it.",
            rich_help_panel=PANEL,
        ),
    ] = None
    page_size: Annotated[
        int, typer.Option(metavar="N", help="Triples in one answer of a SPARQL endpoint.", rich_help_panel=PANEL)
    ] = DEFAULTS.page_size
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            help="How long a SPARQL endpoint may be silent, or a database take to accept a connection.",
            rich_help_panel=PANEL,
        ),
    ] = DEFAULTS.timeout

    def options(self) -> ReadOptions:
        """Return how DATA is read."""
        return ReadOptions(literals=self.literals, query=self.query, page_size=self.page_size, timeout=self.timeout)


reading = with_flags(Reading, "reading")
"""Add the fields of `Reading` as flags to a command; it takes them as its argument `reading`."""
