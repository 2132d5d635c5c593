"""`anyburl publish`: send facts to a database or an endpoint."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.errors import counted
from anyburl.cli.arguments import Json, Quiet, UnusedSeed, UnusedThreads
from anyburl.cli.loading import unlock
from anyburl.cli.notes import PlainConsole, Slow, note_console, print_json, result_console
from anyburl.tools.options import PublishOptions

if TYPE_CHECKING:
    from anyburl.tools.publishing import Plan

EXAMPLE = (
    "Example:  anyburl publish missing.tsv sparql:http://localhost:3030/graph/update --graph http://example.org/new\n\n"
    "Into a table:  anyburl publish missing.parquet postgresql://localhost/graphs#predicted --write\n\n"
    "Accepted in the explorer:  anyburl publish accepted.tsv sqlite:facts.db#accepted --write"
)


def command(
    facts: Annotated[
        Path,
        typer.Argument(metavar="FACTS", help="A file of `anyburl complete`, or of facts accepted in the explorer."),
    ],
    destination: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The destination: sparql:http://HOST/PATH (an endpoint for updates), postgresql://HOST/DB#TABLE, "
            "duckdb:PATH#TABLE or sqlite:PATH#TABLE.",
        ),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Send the facts; without this, only show what would be done.")
    ] = False,
    *,
    options: PublishOptions,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Send FACTS to a SPARQL endpoint or a database table. Without --write, only show what would be done."""
    from anyburl.tools.publishing import plan_publishing

    notes = note_console(quiet=quiet)
    if write:
        unlock(destination, options.timeout, writing=True)
    plan = plan_publishing(facts, destination, options)
    told = _write(plan, notes) if write else {"written": None, "seconds": 0.0}
    if json:
        described = {"destination": plan.address.text, "facts": plan.n_facts, "left_out": plan.n_left_out}
        print_json({**described, **told})
    elif not quiet:
        _print(plan, told)


def _write(plan: Plan, notes: PlainConsole) -> dict[str, Any]:
    started = time.monotonic()
    place = plan.address.text
    n_in = 0

    def advance(n_facts: int) -> None:
        nonlocal n_in
        n_in += n_facts
        bar.advance(n_facts)

    try:
        with Slow(notes, f"writing to {place}", f"wrote to {place}", total=plan.n_facts) as bar:
            n_written = plan.write(advance)
    except KeyboardInterrupt:
        notes.say(f"{n_in:,} of {plan.n_facts:,} facts were written; send the file again: no fact is written twice")
        raise
    return {"written": n_written, "seconds": round(time.monotonic() - started, 3)}


def _print(plan: Plan, told: dict[str, Any]) -> None:
    console = result_console()
    if told["written"] is None:
        for line in plan.summary:
            console.say(line)
        console.say("nothing was sent: add --write to send the facts")
        return
    n_known = plan.n_facts - told["written"]
    known = f"; {n_known:,} were there before" if n_known else ""
    left_out = f"; {plan.n_left_out:,} with a blank node left out" if plan.n_left_out else ""
    console.say(f"{counted(told['written'], 'fact')} written to {plan.address.text}{known}{left_out}")
