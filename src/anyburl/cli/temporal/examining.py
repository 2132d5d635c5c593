"""`doctor`, `calibrate` and `serve` on facts with times."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, Run, Threads, UnusedSeed
from anyburl.cli.notes import Slow, note_console, print_json, print_whole, result_console
from anyburl.cli.temporal.opening import TimedAggregation, load_history_argument, open_history
from anyburl.data.options import ReadOptions
from anyburl.tools.options import check_names
from anyburl.web.options import ServeOptions


def examine_history(
    data: Annotated[str, typer.Argument(metavar="DATA")],
    html: Annotated[Path | None, typer.Option()] = None,
    fail_on: Annotated[str | None, typer.Option()] = None,
    top: Annotated[int, typer.Option(min=1)] = 10,
    no_rules: Annotated[bool, typer.Option("--no-rules")] = False,
    quiet: Quiet = False,
    json: Json = False,
    threads: Threads = None,
    seed: UnusedSeed = None,
    *,
    reading: ReadOptions,
) -> None:
    """Report what is odd about facts with times."""
    from anyburl.cli.doctor import finish_report
    from anyburl.cli.explain import check_page

    fatal = () if fail_on is None else check_names(name.strip() for name in fail_on.split(",") if name.strip())
    check_page(html)
    notes = note_console(quiet=quiet)
    dataset = load_history_argument(data, notes, reading)

    from anyburl.tools.doctor.times import examine_times

    with Slow(notes, "examining facts", "examined facts"):
        report = examine_times(dataset, top)
    finish_report(report, html, fatal, json=json)


def calibrate_history(
    run: Run,
    aggregation: TimedAggregation = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
) -> None:
    """Find out how likely answers are to be true, and keep the result in the run folder."""
    notes = note_console(quiet=quiet)
    reasoner = open_history(run, None, notes, aggregation=aggregation, threads=threads)
    with Slow(notes, "calibrating", "calibrated") as slow:
        report = reasoner.calibrate(lambda doing: slow.change("calibrating", "calibrated", doing))
    if json:
        print_json({"run": run, **report.to_json()})
        return
    if quiet:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("promised", "came true", "candidates"):
        table.add_column(heading, justify="right")
    for row in report.bins:
        table.add_row(f"{row['promised']:.3f}", f"{row['true']:.3f}", f"{row['candidates']:,.0f}")
    print_whole(table)
    result_console().say(str(report))


def serve_history(
    rules: Annotated[str, typer.Argument(metavar="RULES")],
    *,
    serving: ServeOptions,
    reviews: Annotated[Path | None, typer.Option()] = None,
    aggregation: TimedAggregation = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
) -> None:
    """Explore temporal rules, ask questions with a moment, see reasons on a time line and review in a browser."""
    from anyburl.cli.serve import INTERRUPTED, announce, listening, require_web

    require_web()
    notes = note_console(quiet=quiet)
    with listening(serving) as listener:
        serving = replace(serving, port=listener.getsockname()[1])
        reasoner = open_history(rules, None, notes, aggregation=aggregation, threads=threads)
        announce(rules, len(reasoner.rules), serving, notes, json={"rules": len(reasoner.rules)} if json else None)
        try:
            from anyburl.tools.review import FILE, ReviewLog
            from anyburl.web.app import serve
            from anyburl.web.history import TemporalExplorer, create_temporal_app

            folder = at_home(rules).resolve()
            explorer = TemporalExplorer(reasoner, folder.name, ReviewLog(reviews or folder / FILE))
            serve(create_temporal_app(explorer, serving), serving, listener)
        except KeyboardInterrupt:
            notes.say("stopped")
            raise typer.Exit(INTERRUPTED) from None
