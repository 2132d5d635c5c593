"""`anyburl rules`: the best rules as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.cli.arguments import At, Data, Escaped, Json, NamesOption, Quiet, Rules, Threads, UnusedSeed
from anyburl.cli.choosing import MEASURED, Measuring, RuleFilters
from anyburl.cli.loading import load_rules_argument, read_names_argument
from anyburl.cli.notes import note_console, print_json, result_console
from anyburl.cli.tables import rule_rows, rules_table, table_width

if TYPE_CHECKING:
    from anyburl.data.names import Names as NamesByLabel
    from anyburl.rules.ruleset import RuleSet

NAME = "rules"
EXAMPLE = "Example:  anyburl rules runs/geo --relation official_language --type B --top 10"


def command(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1, help="Number of rules to show.")] = 20,
    measures: Annotated[
        bool,
        typer.Option("--measures", help="Show PCA confidence, head coverage and lift.", rich_help_panel=MEASURED),
    ] = False,
    data: Data = None,
    names: NamesOption = None,
    at: At = None,
    escaped: Escaped = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
    *,
    wanted: RuleFilters,
) -> None:
    """Show the best rules of RULES as a table. ~ marks estimated counts."""
    readable = read_names_argument(names, rules)
    notes = note_console(quiet=quiet)
    everything = load_rules_argument(rules, notes, at=at, escaped=escaped)
    measuring = Measuring(rules, data, threads, notes)
    matching = wanted.matching(everything, readable, measuring)
    best = wanted.best(matching, top)
    if measures or any(name in best.measures for name in wanted.least):
        best = measuring.add(best, wanted.least)
    if json:
        counts = {
            "total": len(everything),
            "matching": len(matching),
            "sort": wanted.sort,
            "smoothing": wanted.smoothing,
        }
        print_json({**counts, "rules": rule_rows(best, readable)})
        return
    _print_table(best, readable, len(matching), len(everything), _order(wanted))


def _order(wanted: RuleFilters) -> str:
    smoothing = wanted.smoothing
    words = {
        "confidence": f"support / (predictions + {smoothing})" if smoothing else "confidence",
        "value": "support x confidence",
        "pca-confidence": "PCA confidence",
        "head-coverage": "head coverage",
    }
    return words.get(wanted.sort, wanted.sort)


def _print_table(best: RuleSet, names: NamesByLabel, n_matching: int, n_rules: int, order: str) -> None:
    out = result_console(least_width=table_width(best, names))
    if not len(best):
        out.say("no rules" if not n_rules else f"none of the {n_rules:,} rules match")
        return
    out.print(rules_table(best, names))
    of = f" (of {n_rules:,})" if n_matching < n_rules else ""
    out.say(f"{len(best):,} of {n_matching:,} rules{of}, by {order}", "dim")
