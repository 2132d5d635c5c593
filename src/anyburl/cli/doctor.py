"""`anyburl doctor`: what is odd about a data set."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.base.errors import OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, complete_data
from anyburl.cli.check import FAILED, check_target, write_table
from anyburl.cli.explain import check_page
from anyburl.cli.loading import load_data_argument, load_rules_argument
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, note_console, print_json, print_whole, result_console
from anyburl.data.options import ReadOptions
from anyburl.tools.options import CHECKS, RULES, TIME_CHECKS, DoctorOptions, check_names

if TYPE_CHECKING:
    from anyburl.tools.doctor.findings import Report

EXAMPLE = (
    "Example:  anyburl doctor geo --html report.html\n\n"
    "In a pipeline:  anyburl doctor data/mine --no-rules --quiet --fail-on leakage,unseen"
)


def command(
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
        found = report.all_suspects()
        write_table(found, at_home(suspects))
        notes.say(f"{counted(len(found), 'suspect')} written to {suspects}")
    finish_report(report, html, fatal, json=json)


def finish_report(report: Report, html: Path | None, fatal: tuple[str, ...], *, json: bool) -> None:
    """Print or write a report; exit with a code of its own if one of the `fatal` checks found something."""
    if html is not None:
        report.write_html(html)
    failed = report.failed(fatal) if fatal else ()
    if json:
        print_json({**report.to_json(), "failed": list(failed)})
    else:
        _print(report, html, failed)
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


def _print(report: Report, html: Path | None, failed: tuple[str, ...]) -> None:
    print_whole(report)
    out = result_console()
    if html is not None:
        out.say(f"page written to {html}", "dim")
    if failed:
        out.say(f"failed: {', '.join(failed)}", "bold red")
