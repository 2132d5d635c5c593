"""`anyburl rules`: the best rules as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.cli.arguments import At, Escaped, Json, Quiet, Rules, UnusedSeed, UnusedThreads
from anyburl.cli.consoles import note_console, print_json, result_console
from anyburl.cli.loading import load_rules_argument
from anyburl.cli.tables import rule_rows, rules_table, table_width
from anyburl.errors import InvalidOptionError

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet

NAME = "rules"
EXAMPLE = "Example:  anyburl rules runs/geo --relation official_language --type B --top 10"
ORDERS = ("confidence", "support", "value", "predictions")
SMOOTHING = 5


def command(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1, help="How many rules to show.")] = 20,
    relation: Annotated[str | None, typer.Option(help="Rules that predict this relation.")] = None,
    type: Annotated[str | None, typer.Option(metavar="B|Uc|Ud|Z", help="Rules of this type.")] = None,
    length: Annotated[int | None, typer.Option(min=0, help="Rules with so many body atoms.")] = None,
    min_confidence: Annotated[float | None, typer.Option(min=0, max=1, help="Least confidence.")] = None,
    min_support: Annotated[int | None, typer.Option(min=0, help="Least number of correct predictions.")] = None,
    contains: Annotated[
        str | None, typer.Option(metavar="TERM", help="Rules with this entity or relation anywhere.")
    ] = None,
    sort: Annotated[
        str,
        typer.Option(metavar="|".join(ORDERS), help="What the best rules have most of; value is support x confidence."),
    ] = ORDERS[0],
    smoothing: Annotated[
        int,
        typer.Option(
            min=0,
            help="Sorting by confidence takes support / (predictions + SMOOTHING), so that 500 of 510 comes before "
            "2 of 2. The confidence shown is not smoothed.",
        ),
    ] = SMOOTHING,
    at: At = None,
    escaped: Escaped = False,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Show the best rules of RULES as a table. ~ marks counts that are estimates."""
    if sort not in ORDERS:
        raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", sort)
    everything = load_rules_argument(rules, note_console(quiet=quiet), at=at, escaped=escaped)
    chosen: dict[str, Any] = {
        "type": type,
        "relation": relation,
        "min_confidence": min_confidence,
        "min_support": min_support,
        "contains": contains,
        "length": length,
    }
    matching = everything.filter(**chosen)
    best = matching.top(top, sort, smoothing=smoothing)  # type: ignore[arg-type]
    if json:
        counts = {"total": len(everything), "matching": len(matching), "sort": sort, "smoothing": smoothing}
        print_json({**counts, "rules": rule_rows(best)})
        return
    _print_table(best, len(matching), len(everything), _order(sort, smoothing))


def _order(sort: str, smoothing: int) -> str:
    words = {
        "confidence": f"support / (predictions + {smoothing})" if smoothing else "confidence",
        "value": "support x confidence",
    }
    return words.get(sort, sort)


def _print_table(best: RuleSet, n_matching: int, n_rules: int, order: str) -> None:
    out = result_console(least_width=table_width(best))
    if not len(best):
        out.say("there are no rules" if not n_rules else f"none of the {n_rules:,} rules matches")
        return
    out.print(rules_table(best))
    of = f" (of {n_rules:,})" if n_matching < n_rules else ""
    out.say(f"{len(best):,} of {n_matching:,} rules{of}, by {order}", "dim")
