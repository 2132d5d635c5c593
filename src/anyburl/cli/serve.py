"""`anyburl serve` and `mcp`: the explorer in a browser, and its answers as tools for agents."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import InvalidOptionError, MissingExtraError, OptionError, counted
from anyburl.base.files import at_home
from anyburl.base.machine import share_heaps
from anyburl.cli.arguments import Data, Rules, Without, command
from anyburl.cli.loading import AskingOptions, RulesAndData
from anyburl.cli.notes import PlainConsole, compile_kernels, print_json
from anyburl.ranking.options import RankOptions, parse_aggregation
from anyburl.tools.options import BACKLOG, ServeOptions

if TYPE_CHECKING:
    from anyburl.reasoning.reasoner import Reasoner
    from anyburl.web.background import Background
    from anyburl.web.explorer import Explorer


INTERRUPTED = 130
MOST_WORKERS = 256
KERNELS = ("kernel.find_facts", "kernel.find_walks", "kernel_search.near_blocks")  # compiled last, of each page

Reviews = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="File for verdicts on facts. Defaults to reviews.jsonl next to the rules."),
]


@command("serve", "Example:  anyburl serve runs/geo --port 8080")
def serve_command(
    rules: Rules,
    data: Data = None,
    *,
    serving: ServeOptions,
    workers: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            max=MOST_WORKERS,
            help="Processes that answer, for many readers at once: at most as many as there are cores.",
        ),
    ] = 1,
    reviews: Reviews = None,
    common: Annotated[AskingOptions, Without("with_scores")],
) -> None:
    """Explore rules, ask questions, see reasons and review predictions in a browser."""
    require_web()
    share_heaps()
    options, source = common.ranking, common.source(rules, data)
    check_aggregation(options)
    with listening(serving) as listener:
        serving = replace(serving, port=listener.getsockname()[1], workers=workers)
        compile_pages(source)
        with source.open(options, explaining=True, completing=True, seed=common.seed) as reasoner:
            explorer = make_explorer(reasoner, source, reviews)
            n_rules, reviewed = len(reasoner.rules), str(explorer.reviews.path)
            plain = {"rules": n_rules, "reviews": reviewed} if common.json else None
            announce(rules, n_rules, serving, common.notes(), json=plain)
            try:
                from anyburl.web.app import create_app, serve, serve_from_workers

                if workers > 1:
                    opening = partial(open_worker, rules, data, explorer.reviews.path, replace(common, quiet=True))
                    serve_from_workers(explorer, opening, serving, listener)
                else:
                    serve(create_app(explorer, serving), serving, listener)
            except KeyboardInterrupt:
                common.notes().say("stopped")
                raise typer.Exit(INTERRUPTED) from None


def check_aggregation(options: RankOptions) -> None:
    """Refuse an aggregation whose answers have no reasons."""
    if parse_aggregation(options.aggregation).needs_embedding:
        raise InvalidOptionError("aggregation", "one that ranks by rules alone, which the pages explain", "hybrid")


@contextmanager
def open_worker(
    rules: str, data: str | None, reviews: Path, common: AskingOptions, background: Background
) -> Iterator[Explorer]:
    """Open RULES in a worker as the command did."""
    source = common.source(rules, data)
    with source.open(common.ranking, explaining=True, completing=True, seed=common.seed) as reasoner:
        yield make_explorer(reasoner, source, reviews, background)


def make_explorer(
    reasoner: Reasoner, source: RulesAndData, reviews: Path | None, background: Background | None = None
) -> Explorer:
    """Return the explorer of rules, with the file of verdicts beside them or the one that is named."""
    from anyburl.web.explorer import Explorer

    rules = source.path.resolve()
    run = rules if rules.is_dir() else None
    beside = rules / "reviews.jsonl" if run else rules.with_name(f"{rules.name}.reviews.jsonl")
    named = at_home(reviews).resolve() if reviews else beside  # a link is followed only if it is given explicitly
    explorer = Explorer(reasoner, title=rules.name, run=run, reviews=named, background=background)
    explorer.reviews.latest()  # refuse at once what cannot be read
    return explorer


def require_web() -> None:
    """Refuse, before any work is done, if the libraries of the explorer are not installed."""
    if not all(map(find_spec, ("fastapi", "jinja2", "uvicorn"))):
        raise MissingExtraError("anyburl serve", "web")


def announce(
    rules: str, n_rules: int, serving: ServeOptions, notes: PlainConsole, *, json: dict[str, Any] | None
) -> None:
    """Say where the explorer is; with `json`, also as JSON, along with these."""
    if json is not None:
        print_json({"address": serving.address, **json})
    notes.say(f"{counted(n_rules, 'rule')} of {rules} at {serving.address} (Ctrl-C to stop)", "bold")


def compile_pages(source: RulesAndData) -> None:
    """Compile the kernels of all pages, if this machine has not yet."""
    from anyburl.base.jit import is_compiled

    if not all(map(is_compiled, KERNELS)):
        from anyburl.web.explorer import warm_up_explorer

        n_relations = source.dataset.vocabulary.n_relations
        compile_kernels(lambda: warm_up_explorer(n_relations), source.notes)


def listening(serving: ServeOptions) -> socket.socket:
    """Open the port before anything else is done."""
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    try:
        return socket.create_server((serving.host, serving.port), family=family, backlog=BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise OptionError(f"port {serving.port} is in use: choose another with --port") from error
        raise OptionError(
            f"cannot listen on {serving.host} port {serving.port}: {os.strerror(error.errno or 0)}"
        ) from error


PATH = "mcp"


@command(
    "mcp",
    "Example:  anyburl mcp runs/geo\n\n"
    "Over HTTP, beside the explorer:  ANYBURL_TOKEN=secret-token anyburl mcp runs/geo --http --port 8080",
)
def mcp_command(
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
    common: Annotated[AskingOptions, Without("with_scores")],
) -> None:
    """Let agents search, ask, explain, check facts, list rules and complete relations."""
    if not all(map(find_spec, ("fastapi", "jinja2", "uvicorn", "mcp"))):
        raise MissingExtraError("anyburl mcp", "mcp")
    share_heaps()
    if common.json and not http:
        raise OptionError("--json needs --http: standard output belongs to the protocol")
    if explorer is not None and http:
        raise OptionError(
            "--explorer is for standard input and output: with --http, answers link to the explorer beside it"
        )
    source = common.source(rules, data)
    check_aggregation(common.ranking)
    listener = listening(serving) if http else None
    compile_pages(source)
    with source.open(common.ranking, explaining=True, completing=True, seed=common.seed) as reasoner:
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
                    if common.json:
                        print_json({"address": f"{bound.address}{PATH}", "explorer": bound.address})
                    common.notes().say(
                        f"agents at {bound.address}{PATH}, people at {bound.address} (Ctrl-C to stop)", "bold"
                    )
                    agents = make_server(shown, bound, address=bound.address, reviews=reviews)
                    serve(create_app(shown, bound, agents), bound, listener)
        except KeyboardInterrupt:
            common.notes().say("stopped")
            raise typer.Exit(INTERRUPTED) from None
