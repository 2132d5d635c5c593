"""`anyburl calibrate`: which score means which precision."""

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
from anyburl.cli.notes import print_json, print_whole, result_console

if TYPE_CHECKING:
    from anyburl.data.names import Names
    from anyburl.models.calibration.report import CalibrationReport

NAME = "calibrate"
EXAMPLE = "Example:  anyburl calibrate runs/geo --plot geo.png"


def command(
    run: Run,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot the calibration to a .png, .svg or .pdf file.")
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="Number of relations to show, those with the most new facts first.")
    ] = 10,
    *,
    asked: Annotated[AskingOptions, Without("escaped", "with_scores")],
) -> None:
    """Find out which score means which precision, and keep the result in the run folder.

    Scores are calibrated on the valid split, or on facts held out of train, and checked on the test split. Without a
    test split, each half of the facts is checked with a map fitted to the other half.
    """
    from anyburl.reasoning.prepared import can_prepare

    require_run(run)
    _check_plot(plot)
    options, source = asked.ranking, asked.source(run, None)
    if not can_prepare(source.path):
        raise RunError(f"{run} is still learning, or was interrupted: continue it with --resume first")
    with source.open(options, seed=asked.seed) as reasoner:
        report = reasoner.calibrate(front=source.front())
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
    told = report.to_json()
    if names:
        told["by_relation"] = [{**row, "name": names.get(row["relation"])} for row in told["by_relation"]]
    return told


def _print(report: CalibrationReport, top: int, names: Names) -> None:
    out = result_console()
    print_whole(_thresholds_table(report))
    if top:
        print_whole(_relations_table(report, top, names))
    fitted, checked = report.calibrated_on, report.checked_on
    out.say(
        f"expected calibration error {_figure(report.expected_calibration_error)}, "
        f"{_figure(report.uncalibrated_error)} without calibration"
    )
    how = "each half with a map fitted to the other" if checked.get("cross_fitted") else _answers(checked)
    out.say(f"calibrated on {_answers(fitted)}; checked on {how}", "dim")


def _answers(held_out: dict[str, Any]) -> str:
    return f"{counted(held_out['answers'], 'answer')} to the questions of {held_out['split']}"


def _thresholds_table(report: CalibrationReport) -> Table:
    table = _table("precision", "lowest score", "new facts", f"measured on {report.checked_on['split']}", "by chance")
    for name, found in report.thresholds.items():
        error = "" if found.sampling_error is None else f"± {found.sampling_error:.3f}"
        table.add_row(name, _figure(found.score), _count(found.facts), _figure(found.precision), error)
    return table


def _relations_table(report: CalibrationReport, top: int, names: Names) -> Table:
    promises = list(report.thresholds)
    table = _table("relation", *(f"score for {name}" for name in promises), f"facts from {promises[0]}", "stated")
    for row in report.by_relation[:top]:
        label = names.get(row["relation"]) or row["relation"]
        found = row["thresholds"]
        scores = (_figure(found[name]["score"]) for name in promises)
        facts = _count(found[promises[0]]["facts"])
        table.add_row(Text(label, overflow="ellipsis", no_wrap=True), *scores, facts, f"{row['stated']:,}")
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
    return "-" if value is None else f"{value:.4f}"


def _count(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
