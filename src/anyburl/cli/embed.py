"""`anyburl embed`: train an embedding to complement the rules."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from anyburl.base.errors import OptionError
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, complete_data
from anyburl.cli.events import tell
from anyburl.cli.loading import load_data_argument, recorded_data
from anyburl.cli.notes import Interrupts, PlainConsole, note_console, print_json, result_console
from anyburl.models.options import EmbedOptions

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.models.embedding import Epoch

EXAMPLE = "Example:  anyburl embed --out runs/geo, then anyburl evaluate runs/geo --aggregation hybrid"


def command(
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
    from anyburl.rules.files.run_folder import described_run

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
