"""`anyburl index`: index a large data set once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from anyburl.base.errors import counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, UnusedSeed, UnusedThreads, complete_data
from anyburl.cli.events import peak_bytes, tell_progress
from anyburl.cli.loading import download_data_argument, remark_left_out, unlock
from anyburl.cli.notes import SECONDS_UNTIL_SAID, PlainConsole, note_console, print_json, result_console
from anyburl.data.options import ReadOptions

if TYPE_CHECKING:
    from anyburl.data.stored import IndexCard

EXAMPLE = "Example:  anyburl index big.tsv.gz --out big.index, then anyburl learn big.index --out runs/big"


def command(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A data set name (see `anyburl datasets`), a folder with train, valid and test, a file, or an "
            "address (see `anyburl learn --help`).",
            autocompletion=complete_data,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="INDEX", help="The folder to write; it must be new or empty.")],
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
    *,
    reading: ReadOptions,
) -> None:
    """Index DATA once, so that every other command can open INDEX as its DATA at once."""
    from anyburl.graph.stored import check_index_output, write_index

    notes = note_console(quiet=quiet)
    check_index_output(at_home(out))
    download_data_argument(data, notes)
    unlock(data)
    started = time.monotonic()
    with Steps(notes) as steps:
        card = write_index(data, out, steps.show, reading)
    remark_left_out(card.name, card.left_out, reading, notes)
    told = _described(card, out, time.monotonic() - started)
    if json:
        print_json(told)
    elif not quiet:
        _print(told, out)


class Steps:
    """Shows progress: live on a terminal, elsewhere one line per step once it has taken a while."""

    def __init__(self, console: PlainConsole) -> None:
        self._console, self._step = console, ""
        columns = SpinnerColumn(), TextColumn("{task.description} ..."), TimeElapsedColumn()
        self._spinner = Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
        self._started = time.monotonic()

    def __enter__(self) -> Steps:
        self._spinner.start()
        self._task = self._spinner.add_task("opening")
        return self

    def __exit__(self, *error: object) -> None:
        self._spinner.stop()

    def show(self, doing: str, n: int) -> None:
        """Show a new step, or how far the current one is."""
        said = f"{doing}: {n:,}"
        tell_progress(doing=doing, done=n)
        self._spinner.update(self._task, description=said)
        is_slow = time.monotonic() - self._started >= SECONDS_UNTIL_SAID
        if doing != self._step and is_slow and not self._console.is_terminal:
            self._step = doing
            self._console.say(f"{said} ...")


def _described(card: IndexCard, out: Path, seconds: float) -> dict[str, Any]:
    n_bytes = sum(file.stat().st_size for file in at_home(out).rglob("*") if file.is_file())
    return {
        "out": str(out),
        "name": card.name,
        **card.triples,
        "duplicates": sum(card.duplicates.values()),
        "entities": card.entities,
        "relations": card.relations,
        "fingerprint": card.fingerprint,
        "left_out": card.left_out,
        "bytes": n_bytes,
        "bytes_per_triple": round(n_bytes / max(1, sum(card.triples.values())), 1),
        "seconds": round(seconds, 2),
        "peak_bytes": peak_bytes(),
    }


def _print(told: dict[str, Any], out: Path) -> None:
    console = result_console()
    splits = ", ".join(f"{split} {told[split]:,}" for split in ("train", "valid", "test"))
    repeated = f" ({counted(told['duplicates'], 'duplicate')} dropped)" if told["duplicates"] else ""
    console.say(f"{told['name']}: {splits}{repeated}; {told['entities']:,} entities, {told['relations']:,} relations")
    peak = f", {told['peak_bytes'] / 1e9:.1f} GB of memory" if told["peak_bytes"] else ""
    size = f"{told['bytes'] / 1e6:,.1f} MB, {told['bytes_per_triple']:g} bytes per triple"
    console.say(f"index in {out}: {size}; {told['seconds']:.1f} s{peak}")
    console.say(f"learn from it:  anyburl learn {out} --out RUN")
