"""`anyburl datasets`, `index` and `doctor`: data sets by name, a large one as an index, and what is odd about one."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.measure import Measurement
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, command, complete_data, one_of
from anyburl.cli.complete import FAILED, check_target, write_table
from anyburl.cli.events import peak_bytes, tell_progress
from anyburl.cli.loading import (
    Common,
    CommonOneThread,
    download_data_argument,
    load_data_argument,
    load_rules_argument,
    remark_left_out,
    unlock,
)
from anyburl.cli.notes import (
    SECONDS_UNTIL_SAID,
    PlainConsole,
    Slow,
    compile_kernels,
    note_console,
    print_json,
    print_whole,
    result_console,
)
from anyburl.cli.predict import check_page
from anyburl.cli.temporal_runs import load_history_argument
from anyburl.data.options import ReadOptions
from anyburl.tools.options import CHECKS, RULES, TIME_CHECKS, DoctorOptions, check_names

if TYPE_CHECKING:
    from anyburl.data.catalogue import DatasetEntry
    from anyburl.data.stored import IndexCard
    from anyburl.tools.doctor.findings import Report


ACTIONS = ("list", "get")
COLUMNS = ("name", "state", "train", "valid", "test", "entities", "relations", "licence", "description")
DROPPED = ("licence", "relations", "entities", "valid", "test")  # where a terminal is narrow, in this order
LEAST_ABOUT, GAP = 36, 3


@command(
    "datasets",
    "Example:  anyburl datasets get WN18RR\n\nYour own folder of data sets:  ANYBURL_DATA=~/data anyburl datasets",
)
def datasets_command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="[list|get]", help="List data sets, or download one of them.", autocompletion=one_of(*ACTIONS)
        ),
    ] = "list",
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The data set to download.", autocompletion=complete_data)
    ] = None,
    *,
    common: CommonOneThread,
) -> None:
    """List the data sets available by name, or download one in advance."""
    if action not in ACTIONS:
        raise OptionError(
            f"expected `anyburl datasets`, `anyburl datasets list` or `anyburl datasets get NAME`, got {action!r}"
        )
    if (action == "get") != (name is not None):
        raise OptionError("name one data set: anyburl datasets get NAME")
    if name is not None:
        _get(name, common)
    else:
        _list(common)


def _list(common: Common) -> None:
    from anyburl.data.catalogue import data_home, download_folder

    rows = [(entry, *_availability(entry)) for entry in _entries()]
    home, cache = data_home(), download_folder()
    if common.json:
        listed = [{**_described(entry), "state": state, "path": path and str(path)} for entry, state, path in rows]
        print_json({"datasets": listed, "folder": home and str(home), "downloads": str(cache)})
        return
    out = result_console(quiet=common.quiet)
    print_whole(fitting_table(rows, out.width if out.is_terminal else None))
    out.say(f"to download: on first use, or with anyburl datasets get NAME, to {cache}", "dim")
    out.say("to add: anyburl cannot download it; put train, valid and test into $ANYBURL_DATA/NAME", "dim")
    out.say(f"ANYBURL_DATA is {home}" if home else "set ANYBURL_DATA to a folder with your own data sets", "dim")


def _entries() -> list[DatasetEntry]:
    """Return the data sets that have an entry, then the other ones in $ANYBURL_DATA."""
    from anyburl.data.catalogue import DatasetEntry, data_home, has_train, plain_name, registry

    entries = list(registry().values())
    known, home = {plain_name(entry.name) for entry in entries}, data_home()
    folders = sorted(home.iterdir()) if home and home.is_dir() else []
    others = [folder.name for folder in folders if has_train(folder) and plain_name(folder.name) not in known]
    return entries + [DatasetEntry(name=name) for name in others]


def _availability(entry: DatasetEntry) -> tuple[str, Path | None]:
    """Return in a word whether a data set can be loaded, and the folder that it is in."""
    from anyburl.data.catalogue import download_folder, find_folder, is_downloaded

    if entry.source == "built in":
        return "built in", None
    if folder := find_folder(entry.name, downloaded=not entry.files):
        return "here", folder
    if entry.files and is_downloaded(entry):
        return "here", download_folder() / entry.name
    return ("to download" if entry.files else "to add"), None


def loadable_names() -> list[str]:
    """Return the names of data sets that are here or can be downloaded."""
    return [entry.name for entry in _entries() if _availability(entry)[0] != "to add"]


def _described(entry: DatasetEntry) -> dict[str, Any]:
    fields = asdict(entry)
    triples = dict(zip(("train", "valid", "test"), entry.triples, strict=True)) if entry.triples else None
    return {**fields, "triples": triples}


def fitting_table(rows: list[tuple[DatasetEntry, str, Path | None]], width: int | None) -> Table:
    """Return what is known of data sets, without the columns that a terminal of this width has no room for."""
    wide = PlainConsole(width=100_000)
    for n_dropped in range(len(DROPPED) + 1):
        columns = [name for name in COLUMNS if name not in DROPPED[:n_dropped]]
        rest = Measurement.get(wide, wide.options, _datasets_table(rows, columns[:-1])).maximum
        if width is None or rest + LEAST_ABOUT <= width:
            break
    table = _datasets_table(rows, columns)
    table.columns[-1].max_width = None if width is None else max(1, width - rest - GAP)
    return table


def _datasets_table(rows: list[tuple[DatasetEntry, str, Path | None]], columns: list[str]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in columns:
        is_number = heading in COLUMNS[2:7]
        table.add_column(heading, justify="right" if is_number else "left", no_wrap=True, overflow="ellipsis")
    styles = {"built in": "green", "here": "green", "to download": "cyan", "to add": "dim"}
    for entry, state, _ in rows:
        counts = (*(entry.triples or (None,) * 3), entry.entities, entry.relations)
        shown = ("" if n is None else f"{n:,}" for n in counts)
        cells: list[Text | str] = [Text(entry.name, "bold"), Text(state, styles[state]), *shown]
        cells += [entry.licence or "", entry.about]
        table.add_row(*(cell for name, cell in zip(COLUMNS, cells, strict=True) if name in columns))
    return table


def _get(name: str, common: Common) -> None:
    """Download a data set if need be, load it once, and say where it is."""
    from anyburl.data.catalogue import find_entry
    from anyburl.data.dataset import SPLITS
    from anyburl.data.sources import recognise_times

    notes = common.notes()
    download_data_argument(name, notes)
    data = (load_history_argument if recognise_times(name, ReadOptions()) else load_data_argument)(name, notes)
    entry = find_entry(name)
    counts = {split: len(data.split(split)) for split in SPLITS}
    words = {"entities": data.vocabulary.n_entities, "relations": data.vocabulary.n_relations}
    if common.json:
        print_json({"name": data.name, "path": data.source, **counts, **words, "fingerprint": data.fingerprint})
        return
    out = result_console(quiet=common.quiet)
    sizes = ", ".join(f"{split} {n:,}" for split, n in counts.items())
    out.say(f"{data.name}: {sizes}; {words['entities']:,} entities, {words['relations']:,} relations")
    out.say("it is built in" if data.source == data.name else f"it is in {data.source}")
    if entry and entry.citation:
        out.say(f"cite: {entry.citation}", "dim")
    if entry and entry.licence:
        out.say(f"licence: {entry.licence}", "dim")
    out.say(f"learn from it:  anyburl learn {name} --out runs/{data.name}")


@command(
    "index",
    "Example:  anyburl index big.tsv.gz --out big.index, then anyburl learn big.index --out runs/big",
    takes_long=True,
)
def index_command(
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
    *,
    common: CommonOneThread,
    reading: ReadOptions,
) -> None:
    """Index DATA once, so that every other command can open INDEX as its DATA at once."""
    from anyburl.graph.stored import check_index_output, write_index

    notes = common.notes()
    check_index_output(at_home(out))
    download_data_argument(data, notes)
    unlock(data)
    started = time.monotonic()
    with Steps(notes) as steps:
        card = write_index(data, out, steps.show, reading)
    remark_left_out(card.name, card.left_out, reading, notes)
    summary = _index_text(card, out, time.monotonic() - started)
    if common.json:
        print_json(summary)
    elif not common.quiet:
        _print_index(summary, out)


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
        message = f"{doing}: {n:,}"
        tell_progress(doing=doing, done=n)
        self._spinner.update(self._task, description=message)
        is_slow = time.monotonic() - self._started >= SECONDS_UNTIL_SAID
        if doing != self._step and is_slow and not self._console.is_terminal:
            self._step = doing
            self._console.say(f"{message} ...")


def _index_text(card: IndexCard, out: Path, seconds: float) -> dict[str, Any]:
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


def _print_index(summary: dict[str, Any], out: Path) -> None:
    console = result_console()
    splits = ", ".join(f"{split} {summary[split]:,}" for split in ("train", "valid", "test"))
    repeated = f" ({counted(summary['duplicates'], 'duplicate')} dropped)" if summary["duplicates"] else ""
    console.say(
        f"{summary['name']}: {splits}{repeated}; {summary['entities']:,} entities, {summary['relations']:,} relations"
    )
    peak = f", {summary['peak_bytes'] / 1e9:.1f} GB of memory" if summary["peak_bytes"] else ""
    size = f"{summary['bytes'] / 1e6:,.1f} MB, {summary['bytes_per_triple']:g} bytes per triple"
    console.say(f"index in {out}: {size}; {summary['seconds']:.1f} s{peak}")
    console.say(f"learn from it:  anyburl learn {out} --out RUN")


@command(
    "doctor",
    "Example:  anyburl doctor geo --html report.html\n\n"
    "In a pipeline:  anyburl doctor data/mine --no-rules --quiet --fail-on leakage,unseen",
    takes_long=True,
)
def doctor_command(
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA",
            help="A data set name (see `anyburl datasets`), a folder with train, valid and test, a file, an index, "
            "or an address (see `anyburl learn --help`).",
            autocompletion=complete_data,
        ),
    ],
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")] = None,
    suspects: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write all suspects with their reasons as a table (.csv, .tsv, .jsonl, .parquet).",
            rich_help_panel=RULES,
        ),
    ] = None,
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="CHECK,...",
            help=f"Exit with code {FAILED} if one of these checks reports a problem or a warning: "
            f"{', '.join({**CHECKS, **TIME_CHECKS})}.",
        ),
    ] = None,
    rules: Annotated[
        str | None,
        typer.Option(metavar="RULES", help="Use the rules of this run folder or rule file.", rich_help_panel=RULES),
    ] = None,
    *,
    options: DoctorOptions,
    no_rules: Annotated[
        bool, typer.Option("--no-rules", help="Learn no rules: judge facts by counting.", rich_help_panel=RULES)
    ] = False,
    quiet: Quiet = False,
    json: Json = False,
    reading: ReadOptions,
) -> None:
    """Report what is odd about DATA: leakage, inverse and duplicate relations, facts that look wrong, and more."""
    if no_rules and rules is not None:
        raise OptionError("--rules and --no-rules contradict each other: use one of them")
    options = replace(options, seconds=0.0) if no_rules else options
    fatal = () if fail_on is None else check_names(name.strip() for name in fail_on.split(",") if name.strip())
    check_page(html)
    check_target(suspects)
    notes = note_console(quiet=quiet)
    report = _examine(data, reading, rules, options, notes)
    if suspects is not None:
        rows = report.all_suspects()
        write_table(rows, at_home(suspects))
        notes.say(f"{counted(len(rows), 'suspect')} written to {suspects}")
    finish_report(report, html, fatal, json=json)


def finish_report(report: Report, html: Path | None, fatal: tuple[str, ...], *, json: bool) -> None:
    """Print or write a report; exit with a code of its own if one of the `fatal` checks found something."""
    if html is not None:
        report.write_html(html)
    failed = report.failed(fatal) if fatal else ()
    if json:
        print_json({**report.to_json(), "failed": list(failed)})
    else:
        _print_doctor(report, html, failed)
    if failed:
        raise typer.Exit(FAILED)


def _examine(data: str, reading: ReadOptions, rules: str | None, options: DoctorOptions, notes: PlainConsole) -> Report:
    from anyburl.tools.doctor.examine import Shows, examine, warm_up_doctor
    from anyburl.tools.doctor.labels import examine_columns, is_row_per_thing

    path = at_home(data)
    if reading.columns is None and path.is_file() and is_row_per_thing(path):
        return examine_columns(path)
    dataset = load_data_argument(data, notes, reading)
    known = None if rules is None else load_rules_argument(rules, notes)
    if known is not None or options.seconds:
        learning = known is None
        compile_kernels(lambda: warm_up_doctor(options, dataset.vocabulary, learning=learning), notes)

    def watch(doing: str, done: str, total: int | None) -> AbstractContextManager[Shows | None]:
        return Slow(notes, doing, done, total=total)

    return examine(dataset, known, options, watch=watch)


def _print_doctor(report: Report, html: Path | None, failed: tuple[str, ...]) -> None:
    print_whole(report)
    out = result_console()
    if html is not None:
        out.say(f"page written to {html}", "dim")
    if failed:
        out.say(f"failed: {', '.join(failed)}", "bold red")
