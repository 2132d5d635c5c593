"""`anyburl explain`: why a triple is predicted, or which fact is missing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.base.errors import DataError, OptionError
from anyburl.cli.arguments import Data, Rules
from anyburl.cli.asking import AskingOptions
from anyburl.cli.notes import print_json, print_whole, result_console

if TYPE_CHECKING:
    from anyburl.data.names import Names as NamesByLabel
    from anyburl.reasoning.explanation.explain import Explanation

EXAMPLE = "Example:  anyburl explain runs/geo Aalborg time_zone Europe/Copenhagen --html why.html"


def command(
    rules: Rules,
    subject: Annotated[str, typer.Argument(metavar="SUBJECT", help="An entity.")],
    relation: Annotated[str, typer.Argument(metavar="RELATION", help="A relation.")],
    object: Annotated[str, typer.Argument(metavar="OBJECT", help="An entity.")],
    data: Data = None,
    top: Annotated[int, typer.Option(min=1, help="Number of rules to show.")] = 5,
    groundings: Annotated[int, typer.Option(min=0, help="Number of groundings to show per rule.")] = 3,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write an HTML page with the proofs drawn as graphs.")
    ] = None,
    *,
    asked: AskingOptions,
) -> None:
    """Show the rules that predict a triple, true or not, with the facts that make them fire."""
    if "?" in (subject, object):
        raise OptionError("explain takes a complete triple; use predict to ask for answers")
    check_page(html)
    source = asked.source(rules, data)
    with source.open(asked.ranking, explaining=True, seed=asked.seed) as reasoner:
        found = reasoner.explain((subject, relation, object), top=top, groundings=groundings)
    if html is not None:
        from anyburl.reasoning.explanation.page import write_html

        write_html(found, html, source.names)
    if asked.json:
        print_json(found.to_json(source.names))
    else:
        _print_tree(found, source.names, html)


def check_page(html: Path | None) -> None:
    """Refuse, before any work is done, a file that a page cannot be written to."""
    if html is None:
        return
    if html.is_dir():
        raise DataError(f"{html} is a folder: expected a file for the page")
    if not html.parent.is_dir():
        raise DataError(f"{html}: the folder {html.parent} does not exist")


def _print_tree(found: Explanation, names: NamesByLabel, html: Path | None) -> None:
    from anyburl.reasoning.explanation.render import to_tree

    out = result_console()
    print_whole(to_tree(found, names))
    if not found.n_reasons and found.near_miss is None:
        out.say("no rule lacks only one fact, either")
    if html is not None:
        out.say(f"page written to {html}", "dim")
