"""`anyburl rules`: the best rules as a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.base.files import at_home
from anyburl.cli.arguments import At, Data, Escaped, Json, NamesOption, Quiet, Rules, Threads, UnusedSeed
from anyburl.cli.loading import load_rules_argument, read_names_argument
from anyburl.cli.notes import PlainConsole, note_console, print_json, result_console
from anyburl.cli.rule_filters import MEASURED, Measuring, RuleFilters
from anyburl.cli.tables import rule_rows, rules_table, table_width

if TYPE_CHECKING:
    from anyburl.data.names import Names as NamesByLabel
    from anyburl.rules.ruleset import RuleSet

EXAMPLE = "Example:  anyburl rules runs/geo --relation official_language --type B --top 10"
LOOKED_AT = 4  # rules for each that is shown, to find those that say nearly the same
MOST_FOLDED = 250  # rules shown: longer lists are for machines


def command(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1, help="Number of rules to show.")] = 20,
    fold: Annotated[
        bool | None,
        typer.Option(
            "--fold/--no-fold",
            help="Show one of several rules that predict nearly the same facts. Defaults to doing so unless --sort or "
            "--measures is given.",
        ),
    ] = None,
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
    readable, notes = read_names_argument(names, rules), note_console(quiet=quiet)
    measuring = Measuring(rules, data, threads, notes)
    fold = wanted.sort is None and not measures if fold is None else fold
    folds = fold and top <= MOST_FOLDED and measuring.has_data
    n_looked_at = LOOKED_AT * top if folds else top
    found = _kept(rules, wanted, n_looked_at, readable, at) if data is None else None
    found = found or _read(rules, wanted, n_looked_at, readable, measuring, notes, at=at, escaped=escaped)
    best, alike = (found.best.slice(0, top), None)
    if folds and found.sort != "worth" and len(best):
        first = found.alike or measuring.representatives(found.best)
        best, alike = _folded(found.best, first, top)
    if measures or any(name in best.measures for name in wanted.least):
        best = measuring.add(best, wanted.least)
    if json:
        counts = {"total": found.n_rules, "matching": found.n_matching, "sort": found.sort}
        rows = rule_rows(best, readable)
        told = rows if alike is None else [{**row, "like_it": n} for row, n in zip(rows, alike, strict=True)]
        print_json({**counts, "smoothing": wanted.smoothing, "rules": told})
        return
    if wanted.sort != "surprise" and best.surprise is not None:
        best = best.replace(surprise=None)
    _print_table(best, alike, readable, found, _order(found.sort, wanted.smoothing))


@dataclass(frozen=True)
class ShownRules:
    """The best rules that match, best first, of how many; and what they are sorted by.

    `alike` are the rows of the first that say nearly the same as each, if that was kept.
    """

    best: RuleSet
    n_matching: int
    n_rules: int
    sort: str
    alike: tuple[int, ...] = ()


def _kept(rules: str, wanted: RuleFilters, n: int, names: NamesByLabel, at: float | None) -> ShownRules | None:
    """Return the best rules of a large run from the small file that holds them, if they can be told from that."""
    from anyburl.rules.files.best import read_best
    from anyburl.rules.ruleset import RuleSet

    others = [value for name, value in vars(wanted).items() if name not in ("relation", "sort", "smoothing")]
    folder = at_home(rules)
    if at is not None or any(value is not None for value in others) or not folder.is_dir():
        return None
    kept = read_best(folder)
    if kept is None or not kept.can_tell(wanted.sort, n, wanted.smoothing, of_relation=wanted.relation is not None):
        return None
    part, n_matching = RuleSet.of(kept.rules), kept.n_rules
    if wanted.relation is not None:
        label = names.label_of(wanted.relation, part.vocabulary.relations, "relation")
        part, n_matching = part.filter(relation=label), kept.by_relation.get(label, 0)
    sort = wanted.sort or kept.default_order
    best = part.top(n, sort)
    alike = kept.alike[: len(best)] if sort == kept.default_order and wanted.relation is None else ()
    best = best if sort == "surprise" else best.replace(surprise=None)
    return ShownRules(best, n_matching, kept.n_rules, sort, alike)


def _read(
    rules: str,
    wanted: RuleFilters,
    n: int,
    names: NamesByLabel,
    measuring: Measuring,
    notes: PlainConsole,
    *,
    at: float | None,
    escaped: bool,
) -> ShownRules:
    """Return the best of all rules; those of a large run are kept for the next time."""
    everything = load_rules_argument(rules, notes, at=at, escaped=escaped)
    if at is None:
        measuring.write_best(everything)
    matching = wanted.matching(everything, names, measuring)
    sort = wanted.sort
    if sort is None and "worth" in matching.measures:
        sort = "worth"
    if sort is None:
        sort = "surprise" if measuring.has_data or matching.surprise is not None else "confidence"
    if sort == "surprise" and matching.surprise is None:
        return ShownRules(measuring.most_surprising(matching, n), len(matching), len(everything), sort)
    return ShownRules(matching.top(n, sort, smoothing=wanted.smoothing), len(matching), len(everything), sort)


def _folded(best: RuleSet, first: Sequence[int], top: int) -> tuple[RuleSet, list[int]]:
    """Return the first rules that do not say nearly the same as an earlier one, and how many others each stands for.

    `first` has for each rule the row of the first that says nearly the same.
    """
    counts = Counter(first)
    rows = [row for row in range(len(best)) if first[row] == row][:top]
    return best.take(rows), [counts[row] - 1 for row in rows]


def _order(sort: str, smoothing: float) -> str:
    words = {
        "surprise": "surprise: how far the confidence is above the base rate",
        "confidence": f"support / (predictions + {smoothing})" if smoothing else "confidence",
        "value": "support x confidence",
        "pca-confidence": "PCA confidence",
        "head-coverage": "head coverage",
        "stands-for": "the rules they stand for",
    }
    return words.get(sort, sort)


def _print_table(best: RuleSet, alike: list[int] | None, names: NamesByLabel, found: ShownRules, order: str) -> None:
    out = result_console(least_width=table_width(best, names))
    if not len(best):
        out.say("no rules" if not found.n_rules else f"none of the {found.n_rules:,} rules match")
        return
    out.print(rules_table(best, names, alike))
    of = f" (of {found.n_rules:,})" if found.n_matching < found.n_rules else ""
    out.say(f"{len(best):,} of {found.n_matching:,} rules{of}, by {order}", "dim")
    if alike and any(alike):
        out.say("like it: rules below that predict nearly the same facts; --no-fold shows them", "dim")
