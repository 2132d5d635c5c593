"""`anyburl rules`: rules as a table; and the filters of rules that several commands have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.checking import Options, choice, option
from anyburl.base.errors import AnyburlError, DataError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import At, Data, Escaped, NamesOption, Rules, command
from anyburl.cli.loading import Common, load_data_of_rules, load_rules_argument, read_names_argument
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels, print_json, result_console
from anyburl.cli.tables import rule_rows, rules_table, table_width
from anyburl.learning.options import LearnOptions
from anyburl.rules.types import SMOOTHING

if TYPE_CHECKING:
    from anyburl.data.names import Names
    from anyburl.data.names import Names as NamesByLabel
    from anyburl.data.table import TripleTable
    from anyburl.data.vocabulary import Vocabulary
    from anyburl.rules.ruleset import RuleSet


class Measuring:
    """Adds measures to rules of RULES, which a Parquet file may have; the data are read when they are needed."""

    def __init__(self, rules: str, data: str | None, threads: int | None, notes: PlainConsole) -> None:
        self._rules, self._data, self._notes = rules, data, notes
        self._threads = threads
        self._table: TripleTable | None = None

    def add(self, rules: RuleSet, names: Iterable[str]) -> RuleSet:
        """Return rules with the measures of these names; only PCA confidence takes a while."""
        from anyburl.bodies.rescore import measure
        from anyburl.rules.combine import match_triples

        missing = [name for name in names if name not in rules.measures]
        if not missing or not len(rules):
            return rules.replace(**{name: [] for name in missing})
        matched, table, _ = match_triples(rules, self._train())
        options: dict[str, Any] = {
            "object_identity": learned_under_identity(self._rules),
            "budget": LearnOptions.budget,
        }
        counts = "pca_confidence" in missing
        if counts:
            few = table.from_ids(table.triples[:1], table.vocabulary)
            compile_kernels(lambda: measure(matched.slice(0, 1), few, only=["pca_confidence"], **options), self._notes)
        n_rules = counted(len(rules), "rule")
        words = f"measuring {n_rules}", f"measured {n_rules}"
        with Slow(self._notes, *words, total=len(rules) if counts else None) as slow:
            measured = measure(matched, table, only=missing, **options, threads=self._threads, progress=slow.advance)
        return rules.replace(**{name: getattr(measured, name) for name in missing})

    @property
    def has_data(self) -> bool:
        """Whether the data are known: they were given, or RULES is a run folder."""
        return self._data is not None or at_home(self._rules).is_dir()

    def most_surprising(self, rules: RuleSet, top: int) -> RuleSet:
        """Return the rules that are furthest above the base rate of their heads, with that measure."""
        from anyburl.bodies.rescore import most_surprising

        if not len(rules):
            return rules.replace(surprise=[])
        with Slow(self._notes, f"sorting {counted(len(rules), 'rule')}", f"sorted {counted(len(rules), 'rule')}"):
            return most_surprising(rules, self._train(), top)

    def write_best(self, rules: RuleSet) -> None:
        """Keep the best rules of a large run in its folder, if that can be written."""
        from anyburl.reasoning.explanation.relatives import MANY, write_best

        folder = at_home(self._rules)
        if self._data is None and len(rules) >= MANY and folder.is_dir():
            doing = "keeping the best rules, so that they are shown at once next time", "kept the best rules"
            with suppress(AnyburlError, OSError), Slow(self._notes, *doing):
                write_best(folder, rules, self._train(), self.representatives)

    def representatives(self, rules: RuleSet) -> list[int]:
        """Return for each rule, best first, the row of the first that says nearly the same."""
        from anyburl.graph.build import with_loops
        from anyburl.graph.stored import graph_of
        from anyburl.reasoning.explanation.relatives import find_first_alike, warm_up_coverage
        from anyburl.rules.combine import match_triples

        matched, table, _ = match_triples(rules, self._train())
        compile_kernels(lambda: warm_up_coverage(table.vocabulary.n_relations), self._notes)
        identity, graph = learned_under_identity(self._rules), graph_of(table)
        first_rows = find_first_alike(graph if identity else with_loops(graph), matched, object_identity=identity)
        return [int(row) for row in first_rows]

    def _train(self) -> TripleTable:
        """Return the triples that rules are counted on: a run folder holds those that its rules were learned from."""
        from anyburl.rules.run_folder import read_train

        if self._table is None and self._data is None and at_home(self._rules).is_dir():
            self._table = read_train(at_home(self._rules))
        if self._table is None:
            dataset = load_data_of_rules(self._rules, self._data, self._notes)
            if not len(dataset.train):
                raise DataError(f"{dataset.source} has no triples to count on")
            self._table = dataset.train
        return self._table


def learned_under_identity(rules: str) -> bool:
    """Whether RULES were learned under object identity, which the options of a run folder say."""
    from anyburl.rules.run_folder import described_run

    folder = at_home(rules)
    options = described_run(folder)["options"] if folder.is_dir() else {}
    return bool(options.get("object_identity", LearnOptions.object_identity))


MEASURES = ("pca-confidence", "head-coverage", "lift")
DISTILLED = ("worth", "decides", "only", "stands-for")
ORDERS = ("surprise", "confidence", "support", "value", "predictions", *MEASURES, *DISTILLED)
MEASURED = "Measures that need the data"


@dataclass(frozen=True, kw_only=True)
class RuleFilters(Options):
    """Which rules to select and how to sort them; each field is an option with its default."""

    relation: Annotated[str | None, typer.Option(help="Only rules that predict this relation.")] = None
    type: Annotated[str | None, typer.Option(metavar="B|Uc|Ud|Z", help="Only rules of this type.")] = None
    length: Annotated[int | None, typer.Option(min=0, help="Only rules with this many body atoms.")] = None
    min_confidence: Annotated[float | None, typer.Option(min=0, max=1, help="Minimum confidence.")] = None
    min_support: Annotated[int | None, typer.Option(min=0, help="Minimum number of correct predictions.")] = None
    contains: Annotated[
        str | None,
        typer.Option(metavar="TERM", help="Only rules that mention this entity or relation."),
    ] = None
    sort: str | None = option(
        None,
        choice,
        ORDERS,
        help="Sort by this, highest first. value is support x confidence; distilled runs also have "
        f"{', '.join(DISTILLED)}. Defaults to worth in distilled runs, else to surprise (how far the confidence is "
        "above the base rate of the head), or to confidence where the data are not known.",
        metavar="|".join(ORDERS),
    )
    smoothing: Annotated[
        int,
        typer.Option(
            min=0,
            help="When sorting by confidence, use support / (predictions + SMOOTHING), so that 500 of 510 comes "
            "before 2 of 2. The confidence shown is not smoothed.",
        ),
    ] = SMOOTHING
    min_pca_confidence: Annotated[
        float | None, typer.Option(min=0, max=1, help="Minimum PCA confidence.", rich_help_panel=MEASURED)
    ] = None
    min_head_coverage: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Minimum head coverage; AMIE's default is 0.01.", rich_help_panel=MEASURED),
    ] = None
    min_lift: Annotated[float | None, typer.Option(min=0, help="Minimum lift.", rich_help_panel=MEASURED)] = None

    @property
    def least(self) -> dict[str, float | None]:
        """Lowest values of measures; PCA confidence comes last: it is counted, for as few rules as possible."""
        return {
            "head_coverage": self.min_head_coverage,
            "lift": self.min_lift,
            "pca_confidence": self.min_pca_confidence,
        }

    def matching(self, rules: RuleSet, names: Names, measuring: Measuring) -> RuleSet:
        """Return the rules that pass, with the measures that this took."""
        vocabulary = rules.vocabulary
        chosen: dict[str, Any] = {
            "type": self.type,
            "relation": self.relation and names.label_of(self.relation, vocabulary.relations, "relation"),
            "min_confidence": self.min_confidence,
            "min_support": self.min_support,
            "contains": self.contains and _term(self.contains, vocabulary, names),
            "length": self.length,
        }
        passing = rules.filter(**chosen)
        for name, value in self.least.items():
            if value is not None or (self.sort or "").replace("-", "_") == name:
                passing = measuring.add(passing, [name]).filter(**{f"min_{name}": value})  # type: ignore[arg-type]
        return passing

    def best(self, matching: RuleSet, top: int | None) -> RuleSet:
        """Return the best of rules that pass, or all of them, best first."""
        n_rules = len(matching) if top is None else top
        return matching.top(n_rules, self.sort, smoothing=self.smoothing)


def _term(text: str, vocabulary: Vocabulary, names: Names) -> str:
    """Return the label of an entity or of a relation that someone means."""
    if max(vocabulary.encode_relations([text])[0], vocabulary.encode_entities([text])[0]) >= 0:
        return text
    relation = names.label_of(text, vocabulary.relations, "relation")
    entity = names.label_of(text, vocabulary.entities, "entity")
    if text not in (relation, entity) and relation != entity:
        raise DataError(f"{text!r} is ambiguous: it could be the relation {relation} or the entity {entity}")
    return entity if relation == text else relation


LOOKED_AT = 4  # rules for each that is shown, to find those that say nearly the same
MOST_FOLDED = 250  # rules shown: longer lists are for machines


@command("rules", "Example:  anyburl rules runs/geo --relation official_language --type B --top 10")
def rules_command(
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
    *,
    common: Common,
    filters: RuleFilters,
) -> None:
    """Show the best rules of RULES as a table. ~ marks estimated counts."""
    readable, notes = read_names_argument(names, rules), common.notes()
    measuring = Measuring(rules, data, common.threads, notes)
    fold = filters.sort is None and not measures if fold is None else fold
    folds = fold and top <= MOST_FOLDED and measuring.has_data
    n_looked_at = LOOKED_AT * top if folds else top
    kept = _kept(rules, filters, n_looked_at, readable, at) if data is None else None
    kept = kept or _read(rules, filters, n_looked_at, readable, measuring, notes, at=at, escaped=escaped)
    best, alike = (kept.best.slice(0, top), None)
    if folds and kept.sort != "worth" and len(best):
        first = kept.alike or measuring.representatives(kept.best)
        best, alike = _folded(kept.best, first, top)
    if measures or any(name in best.measures for name in filters.least):
        best = measuring.add(best, filters.least)
    if common.json:
        counts = {"total": kept.n_rules, "matching": kept.n_matching, "sort": kept.sort}
        rows = rule_rows(best, readable)
        shown = rows if alike is None else [{**row, "like_it": n} for row, n in zip(rows, alike, strict=True)]
        print_json({**counts, "smoothing": filters.smoothing, "rules": shown})
        return
    if filters.sort != "surprise" and best.surprise is not None:
        best = best.replace(surprise=None)
    _print_table(best, alike, readable, kept, _order(kept.sort, filters.smoothing))


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


def _kept(rules: str, filters: RuleFilters, n: int, names: NamesByLabel, at: float | None) -> ShownRules | None:
    """Return the best rules of a large run from the small file that holds them, if the filters allow it."""
    from anyburl.rules.ruleset import RuleSet
    from anyburl.rules.run_folder import read_best

    others = [value for name, value in vars(filters).items() if name not in ("relation", "sort", "smoothing")]
    folder = at_home(rules)
    if at is not None or any(value is not None for value in others) or not folder.is_dir():
        return None
    kept = read_best(folder)
    if kept is None or not kept.can_tell(filters.sort, n, filters.smoothing, of_relation=filters.relation is not None):
        return None
    part, n_matching = RuleSet.of(kept.rules), kept.n_rules
    if filters.relation is not None:
        label = names.label_of(filters.relation, part.vocabulary.relations, "relation")
        part, n_matching = part.filter(relation=label), kept.by_relation.get(label, 0)
    sort = filters.sort or kept.default_order
    best = part.top(n, sort)
    alike = kept.alike[: len(best)] if sort == kept.default_order and filters.relation is None else ()
    best = best if sort == "surprise" else best.replace(surprise=None)
    return ShownRules(best, n_matching, kept.n_rules, sort, alike)


def _read(
    rules: str,
    filters: RuleFilters,
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
    matching = filters.matching(everything, names, measuring)
    sort = filters.sort
    if sort is None and "worth" in matching.measures:
        sort = "worth"
    if sort is None:
        sort = "surprise" if measuring.has_data or matching.surprise is not None else "confidence"
    if sort == "surprise" and matching.surprise is None:
        return ShownRules(measuring.most_surprising(matching, n), len(matching), len(everything), sort)
    return ShownRules(matching.top(n, sort, smoothing=filters.smoothing), len(matching), len(everything), sort)


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


def _print_table(best: RuleSet, alike: list[int] | None, names: NamesByLabel, shown: ShownRules, order: str) -> None:
    out = result_console(least_width=table_width(best, names))
    if not len(best):
        out.say("no rules" if not shown.n_rules else f"none of the {shown.n_rules:,} rules match")
        return
    out.print(rules_table(best, names, alike))
    of = f" (of {shown.n_rules:,})" if shown.n_matching < shown.n_rules else ""
    out.say(f"{len(best):,} of {shown.n_matching:,} rules{of}, by {order}", "dim")
    if alike and any(alike):
        out.say("like it: rules below that predict nearly the same facts; --no-fold shows them", "dim")
