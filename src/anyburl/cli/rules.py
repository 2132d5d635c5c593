"""`anyburl rules`: the best rules as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.cli.arguments import At, Escaped, Json, Names, Quiet, Rules, UnusedSeed, UnusedThreads
from anyburl.cli.consoles import note_console, print_json, result_console
from anyburl.cli.loading import load_rules_argument, read_names_argument
from anyburl.cli.tables import rule_rows, rules_table, table_width
from anyburl.errors import DataError, InvalidOptionError

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.names import Names as NamesByLabel
    from anyburl.triples.vocabulary import Vocabulary

NAME = "rules"
EXAMPLE = "Example:  anyburl rules runs/geo --relation official_language --type B --top 10"
ORDERS = ("confidence", "support", "value", "predictions")
SMOOTHING = 5


def command(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1, help="Number of rules to show.")] = 20,
    relation: Annotated[str | None, typer.Option(help="Rules that predict this relation.")] = None,
    type: Annotated[str | None, typer.Option(metavar="B|Uc|Ud|Z", help="Rules of this type.")] = None,
    length: Annotated[int | None, typer.Option(min=0, help="Rules with this many body atoms.")] = None,
    min_confidence: Annotated[float | None, typer.Option(min=0, max=1, help="Lowest confidence.")] = None,
    min_support: Annotated[int | None, typer.Option(min=0, help="Minimum number of correct predictions.")] = None,
    contains: Annotated[
        str | None, typer.Option(metavar="TERM", help="Rules with this entity or relation anywhere.")
    ] = None,
    sort: Annotated[
        str,
        typer.Option(metavar="|".join(ORDERS), help="What to sort by, highest first; value is support x confidence."),
    ] = ORDERS[0],
    smoothing: Annotated[
        int,
        typer.Option(
            min=0,
            help="Sort by confidence as support / (predictions + SMOOTHING), so that 500 of 510 comes before "
            "2 of 2. The confidence shown is not smoothed.",
        ),
    ] = SMOOTHING,
    names: Names = None,
    at: At = None,
    escaped: Escaped = False,
    quiet: Quiet = False,
    json: Json = False,
    threads: UnusedThreads = None,
    seed: UnusedSeed = None,
) -> None:
    """Show the best rules of RULES as a table. ~ marks estimated counts."""
    if sort not in ORDERS:
        raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", sort)
    readable = read_names_argument(names)
    everything = load_rules_argument(rules, note_console(quiet=quiet), at=at, escaped=escaped)
    vocabulary = everything.vocabulary
    chosen: dict[str, Any] = {
        "type": type,
        "relation": relation and readable.label_of(relation, vocabulary.relations, "relation"),
        "min_confidence": min_confidence,
        "min_support": min_support,
        "contains": contains and _term(contains, vocabulary, readable),
        "length": length,
    }
    matching = everything.filter(**chosen)
    best = matching.top(top, sort, smoothing=smoothing)  # type: ignore[arg-type]
    if json:
        counts = {"total": len(everything), "matching": len(matching), "sort": sort, "smoothing": smoothing}
        print_json({**counts, "rules": rule_rows(best, readable)})
        return
    _print_table(best, readable, len(matching), len(everything), _order(sort, smoothing))


def _term(text: str, vocabulary: Vocabulary, names: NamesByLabel) -> str:
    """Return the label of an entity or of a relation that someone means."""
    if max(vocabulary.encode_relations([text])[0], vocabulary.encode_entities([text])[0]) >= 0:
        return text
    relation = names.label_of(text, vocabulary.relations, "relation")
    entity = names.label_of(text, vocabulary.entities, "entity")
    if text not in (relation, entity) and relation != entity:
        raise DataError(f"{text!r} is ambiguous: it may mean the relation {relation} or the entity {entity}")
    return entity if relation == text else relation


def _order(sort: str, smoothing: int) -> str:
    words = {
        "confidence": f"support / (predictions + {smoothing})" if smoothing else "confidence",
        "value": "support x confidence",
    }
    return words.get(sort, sort)


def _print_table(best: RuleSet, names: NamesByLabel, n_matching: int, n_rules: int, order: str) -> None:
    out = result_console(least_width=table_width(best, names))
    if not len(best):
        out.say("there are no rules" if not n_rules else f"none of the {n_rules:,} rules match")
        return
    out.print(rules_table(best, names))
    of = f" (of {n_rules:,})" if n_matching < n_rules else ""
    out.say(f"{len(best):,} of {n_matching:,} rules{of}, by {order}", "dim")
