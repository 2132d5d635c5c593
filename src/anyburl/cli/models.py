"""`anyburl prepare`, `tune`, `embed` and `calibrate`: what a run folder keeps besides its rules, made once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import DataError, OptionError, RunError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, Run, Without, command, complete_data
from anyburl.cli.events import tell
from anyburl.cli.loading import (
    AskingOptions,
    CommonOneThread,
    RulesAndData,
    load_data_argument,
    load_rules_argument,
    recorded_data,
    require_run,
)
from anyburl.cli.notes import Interrupts, PlainConsole, Slow, note_console, print_json, print_whole, result_console
from anyburl.learning.options import EmbedOptions
from anyburl.reasoning.completion.options import MISSING_HELP, check_missing, check_proposes, parse_missing

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.data.names import Names
    from anyburl.models.embedding import Epoch
    from anyburl.reasoning.completion.promises import CalibrationReport


@command(
    "prepare",
    "Example:  anyburl prepare runs/geo, then anyburl predict runs/geo France official_language '?'",
    takes_long=True,
)
def prepare_command(
    run: Run,
    *,
    common: CommonOneThread,
) -> None:
    """Prepare a run folder, so that commands that ask questions open it at once.

    The first of these commands also does this. You can still choose smoothing, weights and aggregation per command.
    """
    from anyburl.reasoning.opening import make_prepared
    from anyburl.reasoning.prepared import PREPARED, NotPreparedError, open_prepared
    from anyburl.rules.run_folder import is_finished

    require_run(run)
    notes = common.notes()
    source = RulesAndData(run, None, notes)
    if not is_finished(source.path):
        raise RunError(f"{run} is still learning, or was interrupted: continue it with --resume first")
    started = time.monotonic()
    try:
        prepared, was_ready = open_prepared(source.path), True
    except NotPreparedError:
        source.compile(explaining=True)
        started = time.monotonic()
        prepared = make_prepared(
            source.path, lambda: (load_rules_argument(run, notes), source.dataset), source.feedback()
        )
        was_ready = False
    n_bytes = sum(file.stat().st_size for file in (source.path / PREPARED).rglob("*") if file.is_file())
    summary: dict[str, Any] = {
        "run": run,
        "rules": len(prepared.rules),
        "bytes": n_bytes,
        "bytes_per_rule": round(n_bytes / max(1, len(prepared.rules)), 1),
        "seconds": round(time.monotonic() - started, 3),
        "was_ready": was_ready,
    }
    if common.json:
        print_json(summary)
    elif not common.quiet:
        size = f"{summary['rules']:,} rules, {n_bytes / 1e6:,.1f} MB, {summary['bytes_per_rule']:g} bytes per rule"
        state = "was already prepared" if was_ready else f"prepared in {summary['seconds']:.1f} s"
        result_console().say(f"{run} {state}: {size}")


@command("tune", "Example:  anyburl tune runs/geo, then anyburl evaluate runs/geo --aggregation tuned", takes_long=True)
def tune_command(
    run: Run, common: Annotated[AskingOptions, Without("names", "aggregation", "escaped", "with_scores")]
) -> None:
    """Train the tuned aggregation and keep the model in the run folder, replacing any older one.

    It learns from the valid split or, if that is small or missing, from hidden facts of train. Commands with
    --aggregation tuned and the same options and seed then use it.
    """
    from anyburl.models.tuned.observations import rule_groups
    from anyburl.reasoning.opening import tuning_of

    require_run(run)
    source = common.source(run, None)
    with source.open(common.ranking, seed=common.seed) as reasoner:
        groups = rule_groups(reasoner.rules)
        tuning = tuning_of(
            reasoner.ranker, reasoner.dataset, groups, source.feedback(), common.seed, source.path, again=True
        )
    summary: dict[str, Any] = {"run": run, **tuning.described(), "seconds": round(tuning.seconds, 3)}
    if common.json:
        print_json(summary)
    elif not common.quiet:
        choices = ", ".join(f"{name} {mrr:.4f}" for name, mrr in tuning.validation.items())
        chosen = "the model" if summary["chosen"] == "model" else summary["chosen"]
        result_console().say(f"tuned {run} in {tuning.seconds:.1f} s: chose {chosen}; MRR on held-out facts: {choices}")


@command(
    "embed",
    "Example:  anyburl embed --out runs/geo, then anyburl evaluate runs/geo --aggregation hybrid",
    takes_long=True,
)
def embed_command(
    out: Annotated[Path, typer.Option(metavar="RUN", help="The run folder to keep the embedding in.")],
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="The data to train on. Defaults to the data of the run folder.",
            autocompletion=complete_data,
        ),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted training.")] = False,
    *,
    options: EmbedOptions,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train an embedding (ComplEx) on DATA's train split and keep it in a run folder, for --aggregation hybrid."""
    notes = note_console(quiet=quiet)
    about = _train(_dataset(data, out, notes), out, options, resume, notes)
    if json:
        print_json({"run": str(out), **about})
    elif not quiet:
        mrr = "" if about["valid_mrr"] is None else f"; MRR on valid {about['valid_mrr']:.4f}"
        result_console().say(
            f"trained {about['epochs']} epochs on {about['device']} in {about['seconds']:.1f} s{mrr}; kept in {out}"
        )
    if about["stopped_by"] == "interrupt":
        raise typer.Exit(130)


def _dataset(data: str | None, out: Path, notes: PlainConsole) -> Dataset:
    if data is not None:
        return load_data_argument(data, notes)
    if not (out / "options.json").is_file():
        raise OptionError(f"DATA is missing: {out} is not a run folder that records its data")
    from anyburl.rules.run_folder import described_run

    described = described_run(out)["data"]
    source, reading = recorded_data(described, f"{out} does not record where its data came from: pass DATA")
    return load_data_argument(source, notes, reading, is_new=False)


def _train(dataset: Dataset, out: Path, options: EmbedOptions, resume: bool, notes: PlainConsole) -> dict[str, Any]:
    from anyburl.models.embedding import train_embedding

    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with (
        Interrupts(lambda: None) as interrupts,
        Progress(*columns, console=notes, transient=True, disable=not notes.is_terminal) as progress,
    ):
        task = progress.add_task("training", total=options.epochs)

        def show(epoch: Epoch) -> None:
            tell("progress", doing="training", done=epoch.number, total=options.epochs, loss=epoch.loss, mrr=epoch.mrr)
            mrr = "" if epoch.mrr is None else f", MRR on valid {epoch.mrr:.4f}"
            progress.update(task, completed=epoch.number, description=f"training: loss {epoch.loss:.3f}{mrr}")

        return train_embedding(
            dataset, at_home(out), options, resume=resume, on_epoch=show, stop=lambda: interrupts.was_interrupted
        )[1]


@command("calibrate", "Example:  anyburl calibrate runs/geo --plot geo.png", takes_long=True)
def calibrate_command(
    run: Run,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Plot promises and what became of them to .png, .svg or .pdf.")
    ] = None,
    top: Annotated[
        int, typer.Option(min=0, help="Number of relations to show, those with the most new facts first.")
    ] = 10,
    missing: Annotated[str | None, typer.Option(metavar="SHARE", help=MISSING_HELP)] = None,
    *,
    common: Annotated[AskingOptions, Without("escaped", "with_scores")],
) -> None:
    """Find out how likely proposed facts are to be true, and keep the result in the run folder.

    The facts of the valid split, or some of train, are hidden, everything is proposed from the rest, and what comes
    back tells. That is checked on the test split; without one, each half of the facts is checked by the other.
    """
    from anyburl.rules.run_folder import is_finished

    require_run(run)
    _check_plot(plot)
    share = None if missing is None else check_missing("missing", parse_missing(missing))
    options, source = common.ranking, common.source(run, None)
    check_proposes(options.aggregation)
    if not is_finished(source.path):
        raise RunError(f"{run} is still learning, or was interrupted: continue it with --resume first")
    with source.open(options, completing=True, seed=common.seed) as reasoner:
        total = len(reasoner.vocabulary.entities)
        with Slow(source.notes, "proposing hidden facts", "proposed hidden facts", total=total) as bar:
            report = reasoner.calibrate(missing=share, progress=bar.advance)
    if plot is not None:
        _draw(report, plot)
    if common.json:
        print_json({"run": run, **_named(report, source.names)})
    elif not common.quiet:
        _print_calibrate(report, top, source.names)


def _check_plot(plot: Path | None) -> None:
    """Refuse, before any work is done, what a picture cannot be written to."""
    from anyburl.tools.plotting import PLOT_SUFFIXES, new_figure

    if plot is None:
        return
    new_figure()
    if plot.suffix.lower() not in PLOT_SUFFIXES:
        raise DataError(f"{plot}: expected a file that ends in one of {', '.join(PLOT_SUFFIXES)}")
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


def _print_calibrate(report: CalibrationReport, top: int, names: Names) -> None:
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
    table = _calibrate_table(
        "probability from", "new facts", "promised", "checked", "their promise", "came back", "by chance"
    )
    for name, promise in report.promises.items():
        error = "" if promise.sampling_error is None else f"± {promise.sampling_error:.3f}"
        shares = (_figure(share) for share in (promise.expected, promise.came_back))
        table.add_row(name, f"{promise.facts:,}", _figure(promise.promised), f"{promise.checked:,}", *shares, error)
    return table


def _relations_table(report: CalibrationReport, top: int, names: Names) -> Table:
    first, second = list(report.promises)[:2]
    table = _calibrate_table(
        "relation", f"from {first}", "promised", "came back", f"from {second}", "promised", "came back"
    )
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


def _calibrate_table(first: str, *others: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for name in others:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
