"""`anyburl export`, `publish` and `report`: rules in other languages, facts sent to a database, and rules in words."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.checking import OBJECT_IDENTITY
from anyburl.base.errors import DataError, OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import At, Data, Escaped, NamesOption, Rules, command, one_of
from anyburl.cli.loading import (
    Common,
    CommonOneThread,
    existing_rules,
    load_data_of_rules,
    load_rules_argument,
    read_names_argument,
    unlock,
)
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, print_json, result_console
from anyburl.cli.predict import check_page
from anyburl.cli.rules import Measuring, RuleFilters, learned_under_identity
from anyburl.tools.options import (
    LANGUAGE_SUFFIXES,
    LANGUAGES,
    UPDATE_SUFFIX,
    ExportOptions,
    PublishOptions,
    ReportOptions,
    options_for,
)

if TYPE_CHECKING:
    from anyburl.rules.ruleset import RuleSet
    from anyburl.tools.publishing import ExportReport, Plan
    from anyburl.tools.report.record import Theory


STANDARD_OUTPUT = "-"


@command(
    "export",
    "Example:  anyburl export runs/geo rules.rq --min-confidence 0.8 --min-support 10\n\n"
    "A table of predictions:  anyburl export runs/geo rules.sql --insert --top 100",
)
def export_command(
    rules: Rules,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Output file, also with .gz, or - for standard output.")],
    to: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(LANGUAGES),
            help="The language. Defaults to the suffix: "
            + ", ".join(f"{', '.join(ends)} ({language})" for language, ends in LANGUAGE_SUFFIXES.items())
            + f"; {UPDATE_SUFFIX} inserts.",
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
    common: Common,
    filters: RuleFilters,
) -> None:
    """Write RULES in the language of another system, best first, with all inequalities of object identity."""
    if common.json and file == STANDARD_OUTPUT:
        raise OptionError("--json and - both write to standard output: write to a file instead")
    existing_rules(rules)
    identity = learned_under_identity(rules) if object_identity is None else object_identity
    options = options_for(file, to, object_identity=identity, **given)
    notes = common.notes()
    everything = load_rules_argument(rules, notes, at=at, escaped=escaped)
    matching = filters.matching(
        everything, read_names_argument(names, rules), Measuring(rules, data, common.threads, notes)
    )
    report = _write_export(filters.best(matching, top), file, options, notes)
    _remark_left_out(report, notes)
    if common.json:
        counts = {"total": len(everything), "matching": len(matching), "rules": report.n_rules}
        print_json({**counts, "left_out": report.left_out, "to": report.to, "out": file})
    elif not common.quiet and file != STANDARD_OUTPUT:
        result_console().say(f"{counted(report.n_rules, 'rule')} written to {file}")


def _write_export(rules: RuleSet, file: str, options: ExportOptions, notes: PlainConsole) -> ExportReport:
    from anyburl.tools.publishing import open_export, write_exported_rules

    if file == STANDARD_OUTPUT:
        return write_exported_rules(rules, sys.stdout, options)
    n_rules = counted(len(rules), "rule")
    slow = Slow(notes, f"writing {n_rules}", f"wrote {n_rules}", total=len(rules))
    with open_export(at_home(file)) as out, slow:
        return write_exported_rules(rules, out, options, slow.advance)


def _remark_left_out(report: ExportReport, notes: PlainConsole) -> None:
    for reason, n in report.left_out.items():
        notes.say(f"{counted(n, 'rule')} left out: {reason}", "yellow")


@command(
    "publish",
    "Example:  anyburl publish missing.tsv sparql:http://localhost:3030/graph/update --graph http://example.org/new\n\n"
    "Into a table:  anyburl publish missing.parquet postgresql://localhost/graphs#predicted --write\n\n"
    "Accepted in the explorer:  anyburl publish accepted.tsv sqlite:facts.db#accepted --write",
)
def publish_command(
    facts: Annotated[
        Path,
        typer.Argument(metavar="FACTS", help="A file of `anyburl complete`, or of facts accepted in the explorer."),
    ],
    destination: Annotated[
        str,
        typer.Argument(
            metavar="ADDRESS",
            help="The destination: sparql:http://HOST/PATH (an endpoint for updates), postgresql://HOST/DB#TABLE, "
            "duckdb:PATH#TABLE or sqlite:PATH#TABLE.",
        ),
    ],
    write: Annotated[
        bool, typer.Option("--write", help="Send the facts; without this, only show what would be done.")
    ] = False,
    *,
    options: PublishOptions,
    common: CommonOneThread,
) -> None:
    """Send FACTS to a SPARQL endpoint or a database table. Without --write, only show what would be done."""
    from anyburl.tools.publishing import plan_publishing

    notes = common.notes()
    if write:
        unlock(destination, options.timeout, writing=True)
    plan = plan_publishing(facts, destination, options)
    summary = _write_publish(plan, notes) if write else {"written": None, "seconds": 0.0}
    if common.json:
        described = {"destination": plan.address.text, "facts": plan.n_facts, "left_out": plan.n_left_out}
        print_json({**described, **summary})
    elif not common.quiet:
        _print_publish(plan, summary)


def _write_publish(plan: Plan, notes: PlainConsole) -> dict[str, Any]:
    started = time.monotonic()
    address = plan.address.text
    n_in = 0

    def advance(n_facts: int) -> None:
        nonlocal n_in
        n_in += n_facts
        bar.advance(n_facts)

    try:
        with Slow(notes, f"writing to {address}", f"wrote to {address}", total=plan.n_facts) as bar:
            n_written = plan.write(advance)
    except KeyboardInterrupt:
        notes.say(f"{n_in:,} of {plan.n_facts:,} facts were written; send the file again: no fact is written twice")
        raise
    return {"written": n_written, "seconds": round(time.monotonic() - started, 3)}


def _print_publish(plan: Plan, summary: dict[str, Any]) -> None:
    console = result_console()
    if summary["written"] is None:
        for line in plan.summary:
            console.say(line)
        console.say("nothing was sent: add --write to send the facts")
        return
    n_known = plan.n_facts - summary["written"]
    known = f"; {n_known:,} were there before" if n_known else ""
    left_out = f"; {plan.n_left_out:,} with a blank node left out" if plan.n_left_out else ""
    console.say(f"{counted(summary['written'], 'fact')} written to {plan.address.text}{known}{left_out}")


@command("report", "Example:  anyburl report runs/geo --html theory.html", takes_long=True)
def report_command(
    rules: Rules,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    *,
    options: ReportOptions,
    data: Data = None,
    names: NamesOption = None,
    escaped: Escaped = False,
    common: CommonOneThread,
) -> None:
    """Tell what the graph knows: a few laws for each relation, in plain words, with examples and exceptions."""
    for file in (html, markdown):
        check_page(file)
    if html is not None and html == markdown:
        raise DataError(f"{html} cannot be both the page and the Markdown file")
    theory = _make(rules, data, options, names, common.notes(), escaped=escaped)
    written = _write_report(theory, html, markdown)
    if common.json:
        print_json(theory.to_json())
    else:
        _print_report(theory, written)


def _make(
    rules: str, data: str | None, options: ReportOptions, names: Path | None, notes: PlainConsole, *, escaped: bool
) -> Theory:
    from anyburl.tools.report.theory import make_theory, warm_up_report

    given = read_names_argument(names, rules)
    known = load_rules_argument(rules, notes, escaped=escaped)
    dataset = load_data_of_rules(rules, data, notes)
    readable, vocabulary = given or dataset.names, dataset.vocabulary
    labels = tuple(readable.label_of(text, vocabulary.relations, "relation") for text in options.relations)
    compile_kernels(lambda: warm_up_report(vocabulary.n_relations), notes)
    total = 2 * len(labels or vocabulary.relations)
    with Slow(notes, "choosing laws", "chose laws", total=total) as slow:
        return make_theory(
            known,
            dataset,
            replace(options, relations=labels),
            names=readable,
            object_identity=learned_under_identity(rules),
            progress=slow.advance,
        )


def _write_report(theory: Theory, html: Path | None, markdown: Path | None) -> list[Path]:
    """Write the files of --html, --markdown and --out; return their paths."""
    from anyburl.base.writing import replace_text
    from anyburl.tools.report.files import theory_markdown
    from anyburl.tools.report.page import theory_html

    texts = [(path, write) for path, write in ((html, theory_html), (markdown, theory_markdown)) if path is not None]
    for path, write in texts:
        replace_text(path, write(theory))
    return [path for path, _ in texts]


def _print_report(theory: Theory, written: list[Path]) -> None:
    """Print the beginning of the report, and where the whole of it is."""
    from anyburl.tools.report.record import front_parts, opening_text
    from anyburl.tools.report.words import plain_text

    out = result_console()
    out.say(f"{theory.name}: {opening_text(theory)}", "bold")
    for title, lines in front_parts(theory):
        out.say(f"\n{title}", "bold")
        for line in lines:
            held = f" ({line.law.chance})" if line.law else ""
            out.say(f"- {plain_text(line.words)}{held}")
            if line.remark:
                out.say(f"  {plain_text(line.remark)}", "dim")
    for path in written:
        out.say(f"report written to {path}", "dim")
    if not written:
        out.say("\nthe whole report: --html FILE or --markdown FILE", "dim")
