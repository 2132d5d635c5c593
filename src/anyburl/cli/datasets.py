"""`anyburl datasets`: list data sets, and download them."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import OptionError
from anyburl.cli.arguments import Json, Quiet, UnusedSeed, UnusedThreads, complete_data, one_of
from anyburl.cli.loading import download_data_argument, load_data_argument
from anyburl.cli.notes import PlainConsole, note_console, print_json, print_whole, result_console
from anyburl.cli.temporal_runs import load_history_argument
from anyburl.data.options import ReadOptions

if TYPE_CHECKING:
    from anyburl.data.catalogue import DatasetEntry

EXAMPLE = "Example:  anyburl datasets get WN18RR\n\nYour own folder of data sets:  ANYBURL_DATA=~/data anyburl datasets"
ACTIONS = ("list", "get")
COLUMNS = ("name", "state", "train", "valid", "test", "entities", "relations", "licence", "description")
DROPPED = ("licence", "relations", "entities", "valid", "test")  # where a terminal is narrow, in this order
LEAST_ABOUT, GAP = 36, 3


def command(
    action: Annotated[
        str,
        typer.Argument(
            metavar="[list|get]", help="List data sets, or download one of them.", autocompletion=one_of(*ACTIONS)
        ),
    ] = "list",
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="The data set to download.", autocompletion=complete_data)
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """List the data sets available by name, or download one in advance."""
    if action not in ACTIONS:
        raise OptionError(
            f"expected `anyburl datasets`, `anyburl datasets list` or `anyburl datasets get NAME`, got {action!r}"
        )
    if (action == "get") != (name is not None):
        raise OptionError("name one data set: anyburl datasets get NAME")
    if name is not None:
        _get(name, note_console(quiet=quiet), json=json, quiet=quiet)
    else:
        _list(json=json, quiet=quiet)


def _list(*, json: bool, quiet: bool) -> None:
    from anyburl.data.catalogue import data_home, download_folder

    rows = [(entry, *_place(entry)) for entry in _entries()]
    home, cache = data_home(), download_folder()
    if json:
        listed = [{**_described(entry), "state": state, "path": path and str(path)} for entry, state, path in rows]
        print_json({"datasets": listed, "folder": home and str(home), "downloads": str(cache)})
        return
    out = result_console(quiet=quiet)
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


def _place(entry: DatasetEntry) -> tuple[str, Path | None]:
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
    return [entry.name for entry in _entries() if _place(entry)[0] != "to add"]


def _described(entry: DatasetEntry) -> dict[str, Any]:
    fields = asdict(entry)
    triples = dict(zip(("train", "valid", "test"), entry.triples, strict=True)) if entry.triples else None
    return {**fields, "triples": triples}


def fitting_table(rows: list[tuple[DatasetEntry, str, Path | None]], width: int | None) -> Table:
    """Return what is known of data sets, without the columns that a terminal of this width has no room for."""
    wide = PlainConsole(width=100_000)
    for n_dropped in range(len(DROPPED) + 1):
        columns = [name for name in COLUMNS if name not in DROPPED[:n_dropped]]
        rest = Measurement.get(wide, wide.options, _table(rows, columns[:-1])).maximum
        if width is None or rest + LEAST_ABOUT <= width:
            break
    table = _table(rows, columns)
    table.columns[-1].max_width = None if width is None else max(1, width - rest - GAP)
    return table


def _table(rows: list[tuple[DatasetEntry, str, Path | None]], columns: list[str]) -> Table:
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


def _get(name: str, notes: PlainConsole, *, json: bool, quiet: bool) -> None:
    """Download a data set if need be, load it once, and say where it is."""
    from anyburl.data.catalogue import find_entry
    from anyburl.data.dataset import SPLITS
    from anyburl.temporal.facts import recognise_times

    download_data_argument(name, notes)
    data = (load_history_argument if recognise_times(name, ReadOptions()) else load_data_argument)(name, notes)
    entry = find_entry(name)
    counts = {split: len(data.split(split)) for split in SPLITS}
    words = {"entities": data.vocabulary.n_entities, "relations": data.vocabulary.n_relations}
    if json:
        print_json({"name": data.name, "path": data.source, **counts, **words, "fingerprint": data.fingerprint})
        return
    out = result_console(quiet=quiet)
    sizes = ", ".join(f"{split} {n:,}" for split, n in counts.items())
    out.say(f"{data.name}: {sizes}; {words['entities']:,} entities, {words['relations']:,} relations")
    out.say("it is built in" if data.source == data.name else f"it is in {data.source}")
    if entry and entry.citation:
        out.say(f"cite: {entry.citation}", "dim")
    if entry and entry.licence:
        out.say(f"licence: {entry.licence}", "dim")
    out.say(f"learn from it:  anyburl learn {name} --out runs/{data.name}")
