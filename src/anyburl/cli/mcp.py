"""`anyburl mcp`: rules and their answers as tools for agents, over the Model Context Protocol."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from typing import Annotated

import typer

from anyburl.base.errors import MissingExtraError, OptionError
from anyburl.base.machine import share_heaps
from anyburl.cli.arguments import Data, Rules, Without
from anyburl.cli.asking import AskingOptions
from anyburl.cli.notes import print_json
from anyburl.cli.serve import INTERRUPTED, check_aggregation, compile_pages, listening, make_explorer
from anyburl.web.options import ServeOptions

EXAMPLE = (
    "Example:  anyburl mcp runs/geo\n\n"
    "Over HTTP, beside the explorer:  ANYBURL_TOKEN=secret-token anyburl mcp runs/geo --http --port 8080"
)
PATH = "mcp"


def command(
    rules: Rules,
    data: Data = None,
    http: Annotated[
        bool,
        typer.Option(
            "--http", help=f"Serve over HTTP, at /{PATH} of an explorer, instead of standard input and output."
        ),
    ] = False,
    reviews: Annotated[
        bool, typer.Option("--reviews", help="Let agents record verdicts on facts; otherwise they can only read.")
    ] = False,
    explorer: Annotated[
        str | None,
        typer.Option(metavar="ADDRESS", help="The address of a running explorer that answers link to."),
    ] = None,
    *,
    serving: ServeOptions,
    asked: Annotated[AskingOptions, Without("with_scores")],
) -> None:
    """Let agents search, ask, explain, check facts, list rules and complete relations."""
    if not all(map(find_spec, ("fastapi", "jinja2", "uvicorn", "mcp"))):
        raise MissingExtraError("anyburl mcp", "mcp")
    share_heaps()
    if asked.json and not http:
        raise OptionError("--json needs --http: standard output belongs to the protocol")
    if explorer is not None and http:
        raise OptionError(
            "--explorer is for standard input and output: with --http, answers link to the explorer beside it"
        )
    source = asked.source(rules, data)
    check_aggregation(asked.ranking)
    listener = listening(serving) if http else None
    compile_pages(source)
    with source.open(asked.ranking, explaining=True, completing=True, seed=asked.seed) as reasoner:
        shown = make_explorer(reasoner, source, None)
        source.apply_reviews(reasoner)
        from anyburl.web.agents import make_server
        from anyburl.web.app import create_app, serve

        try:
            if listener is None:
                make_server(shown, serving, address=explorer, reviews=reviews).run("stdio")
            else:
                with listener:
                    bound = replace(serving, port=listener.getsockname()[1])
                    if asked.json:
                        print_json({"address": f"{bound.address}{PATH}", "explorer": bound.address})
                    asked.notes().say(
                        f"agents at {bound.address}{PATH}, people at {bound.address} (Ctrl-C to stop)", "bold"
                    )
                    agents = make_server(shown, bound, address=bound.address, reviews=reviews)
                    serve(create_app(shown, bound, agents), bound, listener)
        except KeyboardInterrupt:
            asked.notes().say("stopped")
            raise typer.Exit(INTERRUPTED) from None
