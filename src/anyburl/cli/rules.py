"""`anyburl rules`: the best rules as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.cli.arguments import At, Data, Escaped, Json, Names, Quiet, Rules, Threads, UnusedSeed
from anyburl.cli.consoles import note_console, print_json, result_console
from anyburl.cli.loading import load_rules_argument, read_names_argument
from anyburl.cli.measuring import Measuring
from anyburl.cli.tables import rule_rows, rules_table, table_width
from anyburl.errors import DataError, InvalidOptionError

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.names import Names as NamesByLabel
    from anyburl.triples.vocabulary import Vocabulary

NAME = "rules"
EXAMPLE = "Example:  anyburl rules runs/geo --relation official_language --type B --top 10"
MEASURES = ("pca-confidence", "head-coverage", "lift")
ORDERS = ("confidence", "support", "value", "predictions", *MEASURES)
SMOOTHING = 5
MEASURED = "Measures that take the data"


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
    measures: Annotated[
        bool,
        typer.Option("--measures", help="Show PCA confidence, head coverage and lift.", rich_help_panel=MEASURED),
    ] = False,
    min_pca_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Lowest PCA confidence.", rich_help_panel=MEASURED)
    ] = None,
    min_head_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Lowest head coverage; AMIE's default is 0.01.", rich_help_panel=MEASURED),
    ] = None,
    min_lift: Annotated[float | None, typer.Option(min=0, help="Lowest lift.", rich_help_panel=MEASURED)] = None,
    data: Data = None,
    names: Names = None,
    at: At = None,
    escaped: Escaped = False,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: UnusedSeed = None,
) -> None:
    """Show the best rules of RULES as a table. ~ marks estimated counts."""
    if sort not in ORDERS:
        raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", sort)
    readable = read_names_argument(names)
    notes = note_console(quiet=quiet)
    everything = load_rules_argument(rules, notes, at=at, escaped=escaped)
    vocabulary = everything.vocabulary
    chosen: dict[str, Any] = {
        "type": type,
        "relation": relation and readable.label_of(relation, vocabulary.relations, "relation"),
        "min_confidence": min_confidence,
        "min_support": min_support,
        "contains": contains and _term(contains, vocabulary, readable),
        "length": length,
    }
    least = {"head_coverage": min_head_coverage, "lift": min_lift, "pca_confidence": min_pca_confidence}
    measuring = Measuring(rules, data, threads, notes)
    matching = _above(everything.filter(**chosen), least, sort, measuring)
    best = matching.top(top, sort, smoothing=smoothing)  # type: ignore[arg-type]
    if measures or best.measures:
        best = measuring.add(best, least)
    if json:
        counts = {"total": len(everything), "matching": len(matching), "sort": sort, "smoothing": smoothing}
        print_json({**counts, "rules": rule_rows(best, readable)})
        return
    _print_table(best, readable, len(matching), len(everything), _order(sort, smoothing))


def _above(rules: RuleSet, least: dict[str, float | None], sort: str, measuring: Measuring) -> RuleSet:
    """Return the rules with at least so much of each measure, measured by what they are sorted by as well.

    PCA confidence comes last: it is counted, for as few rules as possible.
    """
    for name, value in least.items():
        if value is not None or sort == name.replace("_", "-"):
            rules = measuring.add(rules, [name]).filter(**{f"min_{name}": value})  # type: ignore[arg-type]
    return rules


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
        "pca-confidence": "PCA confidence",
        "head-coverage": "head coverage",
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
