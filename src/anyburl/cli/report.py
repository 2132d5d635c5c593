"""`anyburl report`: what the graph knows, for people."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.base.errors import DataError
from anyburl.cli.arguments import Data, Escaped, Json, NamesOption, Quiet, Rules, UnusedSeed, UnusedThreads
from anyburl.cli.explain import check_page
from anyburl.cli.loading import load_data_of_rules, load_rules_argument, read_names_argument
from anyburl.cli.notes import Slow, compile_kernels, note_console, print_json, result_console
from anyburl.cli.rule_filters import learned_under_identity
from anyburl.tools.options import ReportOptions

if TYPE_CHECKING:
    from anyburl.tools.report.record import Theory

EXAMPLE = "Example:  anyburl report runs/geo --html theory.html"


def command(
    rules: Rules,
    html: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as an HTML page.")] = None,
    markdown: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the report as Markdown.")] = None,
    *,
    options: ReportOptions,
    data: Data = None,
    names: NamesOption = None,
    escaped: Escaped = False,
    threads: UnusedThreads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
) -> None:
    """Tell what the graph knows: a few laws for each relation, in plain words, with examples and exceptions."""
    for file in (html, markdown):
        check_page(file)
    if html is not None and html == markdown:
        raise DataError(f"{html} cannot be both the page and the Markdown file")
    theory = _make(rules, data, options, names, escaped=escaped, quiet=quiet)
    written = _write(theory, html, markdown)
    if json:
        print_json(theory.to_json())
    else:
        _print(theory, written)


def _make(
    rules: str, data: str | None, options: ReportOptions, names: Path | None, *, escaped: bool, quiet: bool
) -> Theory:
    from anyburl.tools.report.theory import make_theory, warm_up_report

    notes, given = note_console(quiet=quiet), read_names_argument(names, rules)
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


def _write(theory: Theory, html: Path | None, markdown: Path | None) -> list[Path]:
    """Write the files that were asked for; return them."""
    from anyburl.base.writing import replace_text
    from anyburl.tools.report.files import theory_markdown
    from anyburl.tools.report.page import theory_html

    texts = [(path, write) for path, write in ((html, theory_html), (markdown, theory_markdown)) if path is not None]
    for path, write in texts:
        replace_text(path, write(theory))
    return [path for path, _ in texts]


def _print(theory: Theory, written: list[Path]) -> None:
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
