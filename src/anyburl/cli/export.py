"""`anyburl export`: rules in the language of another system."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.checking import OBJECT_IDENTITY
from anyburl.base.errors import OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import (
    At,
    Data,
    Escaped,
    Json,
    NamesOption,
    Quiet,
    Rules,
    Threads,
    UnusedSeed,
    one_of,
)
from anyburl.cli.loading import existing_rules, load_rules_argument, read_names_argument
from anyburl.cli.notes import PlainConsole, Slow, note_console, print_json, result_console
from anyburl.cli.rule_filters import Measuring, RuleFilters, learned_under_identity
from anyburl.tools.options import LANGUAGES, ExportOptions, options_for

if TYPE_CHECKING:
    from anyburl.rules.ruleset import RuleSet
    from anyburl.tools.exporting import ExportReport

EXAMPLE = (
    "Example:  anyburl export runs/geo rules.rq --min-confidence 0.8 --min-support 10\n\n"
    "A table of predictions:  anyburl export runs/geo rules.sql --insert --top 100"
)
STANDARD_OUTPUT = "-"


def command(
    rules: Rules,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file, also with .gz, or - for standard output.")],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LANGUAGES),
            help="The language. Defaults to the suffix: .rq (SPARQL), .ru (SPARQL that inserts), .sql, .cypher, "
            ".dl (Datalog), .pl (Prolog), .ttl (SHACL).",
            autocompletion=one_of(*LANGUAGES),
        ),
    ] = None,
    top: Annotated[int | None, typer.Option(min=1, help="Number of rules to write. Defaults to all.")] = None,
    object_identity: Annotated[
        bool | None,
        typer.Option(
            "--object-identity/--no-object-identity", help=f"{OBJECT_IDENTITY} Defaults to how the run was learned."
        ),
    ] = None,
    *,
    given: Annotated[dict[str, Any], ExportOptions],
    data: Data = None,
    names: NamesOption = None,
    at: At = None,
    escaped: Escaped = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
    wanted: RuleFilters,
) -> None:
    """Write RULES in the language of another system, best first, with all inequalities of object identity."""
    if json and file == STANDARD_OUTPUT:
        raise OptionError("--json and - both write to standard output: write to a file instead")
    existing_rules(rules)
    identity = learned_under_identity(rules) if object_identity is None else object_identity
    options = options_for(file, to, object_identity=identity, **given)
    notes = note_console(quiet=quiet)
    everything = load_rules_argument(rules, notes, at=at, escaped=escaped)
    matching = wanted.matching(everything, read_names_argument(names, rules), Measuring(rules, data, threads, notes))
    report = _write(wanted.best(matching, top), file, options, notes)
    _remark_left_out(report, notes)
    if json:
        counts = {"total": len(everything), "matching": len(matching), "rules": report.n_rules}
        print_json({**counts, "left_out": report.left_out, "to": report.to, "out": file})
    elif not quiet and file != STANDARD_OUTPUT:
        result_console().say(f"{counted(report.n_rules, 'rule')} written to {file}")


def _write(rules: RuleSet, file: str, options: ExportOptions, notes: PlainConsole) -> ExportReport:
    from anyburl.tools.exporting import open_export, write_exported_rules

    if file == STANDARD_OUTPUT:
        return write_exported_rules(rules, sys.stdout, options)
    n_rules = counted(len(rules), "rule")
    slow = Slow(notes, f"writing {n_rules}", f"wrote {n_rules}", total=len(rules))
    with open_export(at_home(file)) as out, slow:
        return write_exported_rules(rules, out, options, slow.advance)


def _remark_left_out(report: ExportReport, notes: PlainConsole) -> None:
    for reason, n in report.left_out.items():
        notes.say(f"{counted(n, 'rule')} left out: {reason}", "yellow")
