"""`anyburl diff`: how two rule sets differ."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.errors import OptionError, RuleError
from anyburl.cli.arguments import Escaped, Json, Quiet, UnusedSeed, UnusedThreads
from anyburl.cli.loading import load_rules_argument, read_names_argument
from anyburl.cli.notes import PlainConsole, Slow, note_console, print_json, print_whole, result_console
from anyburl.cli.tables import bold_rule

if TYPE_CHECKING:
    import polars as pl

    from anyburl.data.names import Names
    from anyburl.rules.difference import RuleDifference

EXAMPLE = "Example:  anyburl diff yesterday runs/geo --top 10"
HEADINGS = {
    "gone": "rules gone, the most valuable",
    "new": "new rules, the most valuable",
    "changed": "rules whose confidence changed most",
}


def command(
    rules1: Annotated[str, typer.Argument(metavar="RULES1", help="A run folder, a .parquet file, or a text file.")],
    rules2: Annotated[str, typer.Argument(metavar="RULES2", help="The rules to compare with.")],
    top: Annotated[int, typer.Option(min=0, help="Number of gone, new and changed rules to show.")] = 20,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write all differences to this .parquet or .tsv file.")
    ] = None,
    escaped: Escaped = False,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Compare two rule sets: gone, new and changed rules."""
    _check_output(out)
    notes = note_console(quiet=quiet)
    first, second = (load_rules_argument(rules, notes, escaped=escaped) for rules in (rules1, rules2))

    from anyburl.rules.difference import RuleDifference

    with Slow(notes, "comparing rules", "compared rules"):
        difference = RuleDifference(first, second)
    if out is not None:
        _write(difference, out, notes)
    if json:
        print_json(difference.to_json(top))
    elif not quiet:
        _print_difference(difference, top, read_names_argument(None, rules1, rules2))


def _check_output(out: Path | None) -> None:
    """Refuse, before any work is done, a file that cannot be written."""
    if out is None:
        return
    if out.suffix not in (".parquet", ".tsv"):
        raise OptionError(f"--out must end in .parquet or .tsv, got {out}")
    if not out.parent.is_dir():
        raise OptionError(f"{out}: the folder {out.parent} does not exist")


def _write(difference: RuleDifference, out: Path, notes: PlainConsole) -> None:
    from anyburl.base.writing import replacing

    with Slow(notes, f"writing {out}", f"wrote {out}"), replacing(out) as unfinished:
        rows = difference.to_polars()
        if out.suffix == ".parquet":
            rows.write_parquet(unfinished)
        else:
            rows.write_csv(unfinished, separator="\t")


def _print_difference(difference: RuleDifference, top: int, names: Names) -> None:
    import polars as pl

    rows = difference.to_polars(top)
    if names:
        rows = rows.with_columns(rule=pl.Series([_named(rule, names) for rule in rows["rule"]], dtype=pl.String))
    for change, heading in HEADINGS.items():
        part = rows.filter(pl.col("change") == change)
        if len(part):
            print_whole(_table(heading, part))
    out = result_console()
    out.say("rules: " + ", ".join(f"{n:,} {name}" for name, n in difference.counts().items()))


def _named(rule: str, names: Names) -> str:
    """Return a rule in readable names."""
    from anyburl.reasoning.explanation import render as words
    from anyburl.rules.rule import parse_rule

    try:
        return words.rule_text(parse_rule(rule), names)
    except RuleError:  # a text that can be read in two ways
        return rule


def _table(heading: str, rows: pl.DataFrame) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=heading, title_justify="left")
    for name in ("confidence", "support", "predictions"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold", ratio=1)
    for row in rows.iter_rows(named=True):
        counts = [
            _step(row["confidence_before"], row["confidence_after"], ".4f"),
            _step(row["support_before"], row["support_after"], ","),
            _step(row["predictions_before"], row["predictions_after"], ","),
        ]
        table.add_row(*counts, bold_rule(row["rule"]))
    return table


def _step(before: float | None, after: float | None, form: str) -> str:
    """Return a number, or the numbers before and after if there are two that differ."""
    shown = [format(number, form) for number in (before, after) if number is not None]
    return shown[0] if len(set(shown)) == 1 else " → ".join(shown)
