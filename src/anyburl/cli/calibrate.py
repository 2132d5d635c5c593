"""`anyburl calibrate`: how likely proposed facts are to be true."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import DataError, RunError, counted
from anyburl.cli.arguments import Run, Without
from anyburl.cli.asking import AskingOptions
from anyburl.cli.loading import require_run
from anyburl.cli.notes import Slow, print_json, print_whole, result_console
from anyburl.reasoning.completion.options import MISSING_HELP, check_missing, check_proposes, parse_missing

if TYPE_CHECKING:
    from anyburl.data.names import Names
    from anyburl.reasoning.completion.promises import CalibrationReport

EXAMPLE = "Example:  anyburl calibrate runs/geo --plot geo.png"


def command(
    run: Run,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot promises and what became of them to .png, .svg or .pdf.")
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="Number of relations to show, those with the most new facts first.")
    ] = 10,
    missing: Annotated[str | None, typer.Option(metavar="SHARE", help=MISSING_HELP)] = None,
    *,
    asked: Annotated[AskingOptions, Without("escaped", "with_scores")],
) -> None:
    """Find out how likely proposed facts are to be true, and keep the result in the run folder.

    The facts of the valid split, or some of train, are hidden, everything is proposed from the rest, and what comes
    back tells. That is checked on the test split; without one, each half of the facts is checked by the other.
    """
    from anyburl.reasoning.prepared import can_prepare

    require_run(run)
    _check_plot(plot)
    share = None if missing is None else check_missing("missing", parse_missing(missing))
    options, source = asked.ranking, asked.source(run, None)
    check_proposes(options.aggregation)
    if not can_prepare(source.path):
        raise RunError(f"{run} is still learning, or was interrupted: continue it with --resume first")
    with source.open(options, completing=True, seed=asked.seed) as reasoner:
        total = len(reasoner.vocabulary.entities)
        with Slow(source.notes, "proposing hidden facts", "proposed hidden facts", total=total) as bar:
            report = reasoner.calibrate(missing=share, progress=bar.advance)
    if plot is not None:
        _draw(report, plot)
    if asked.json:
        print_json({"run": run, **_named(report, source.names)})
    elif not asked.quiet:
        _print(report, top, source.names)


def _check_plot(plot: Path | None) -> None:
    """Refuse, before any work is done, what a picture cannot be written to."""
    from anyburl.tools.plotting import SUFFIXES, new_figure

    if plot is None:
        return
    new_figure()
    if plot.suffix.lower() not in SUFFIXES:
        raise DataError(f"{plot}: expected a file that ends in one of {', '.join(SUFFIXES)}")
    if not plot.parent.is_dir():
        raise DataError(f"{plot}: the folder {plot.parent} does not exist")


def _draw(report: CalibrationReport, path: Path) -> None:
    from anyburl.tools.plotting import new_figure, plot_reliability, save

    figure: Any = new_figure()
    plot_reliability(report, axes=figure.add_subplot())
    save(figure, path)


def _named(report: CalibrationReport, names: Names) -> dict[str, Any]:
    plain = report.to_json()
    if names:
        plain["by_relation"] = [{**row, "name": names.get(row["relation"])} for row in plain["by_relation"]]
    return plain


def _print(report: CalibrationReport, top: int, names: Names) -> None:
    out = result_console()
    print_whole(_promises_table(report))
    if top:
        print_whole(_relations_table(report, top, names))
    missing, hidden, checked = report.missing, report.calibrated_on, report.checked_on
    out.say(f"if {missing['share']:.1%} of the true facts are missing ({missing['because']}): --missing sets it")
    out.say(
        f"hidden: {counted(hidden['facts'], 'fact')} of {hidden['split']}, of which {hidden['came_back']:,} came back; "
        f"checked on {checked['split']}",
        "dim",
    )


def _promises_table(report: CalibrationReport) -> Table:
    table = _table("probability from", "new facts", "promised", "checked", "their promise", "came back", "by chance")
    for name, promise in report.promises.items():
        error = "" if promise.sampling_error is None else f"± {promise.sampling_error:.3f}"
        shares = (_figure(share) for share in (promise.expected, promise.came_back))
        table.add_row(name, f"{promise.facts:,}", _figure(promise.promised), f"{promise.checked:,}", *shares, error)
    return table


def _relations_table(report: CalibrationReport, top: int, names: Names) -> Table:
    first, second = list(report.promises)[:2]
    table = _table("relation", f"from {first}", "promised", "came back", f"from {second}", "promised", "came back")
    for row in report.by_relation[:top]:
        cells = []
        for name in (first, second):
            promise = row["promises"][name]
            cells += [f"{promise['facts']:,}", _figure(promise["promised"]), _figure(promise["came_back"])]
        label = names.get(row["relation"]) or row["relation"]
        table.add_row(Text(label, overflow="ellipsis", no_wrap=True), *cells)
    if rest := report.by_relation[top:]:
        table.add_row(Text(counted(len(rest), "more relation"), "dim"))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
