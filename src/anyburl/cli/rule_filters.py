"""The filters of `anyburl rules`, which other commands take as well, and the measures that need the data.

Measures are counted only for the rules that need them.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.base.checking import Options, choice, option
from anyburl.base.errors import AnyburlError, DataError, counted
from anyburl.base.files import at_home
from anyburl.cli.loading import load_data_of_rules
from anyburl.cli.notes import PlainConsole, Slow, compile_kernels
from anyburl.learning.options import LearnOptions

if TYPE_CHECKING:
    from anyburl.data.names import Names
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
        from anyburl.learning.best import MANY, write_best

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
        found = find_first_alike(graph if identity else with_loops(graph), matched, object_identity=identity)
        return [int(row) for row in found]

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
    """Whether RULES were learned under object identity: a run folder says so."""
    from anyburl.rules.run_folder import described_run

    folder = at_home(rules)
    options = described_run(folder)["options"] if folder.is_dir() else {}
    return bool(options.get("object_identity", LearnOptions.object_identity))


MEASURES = ("pca-confidence", "head-coverage", "lift")
DISTILLED = ("worth", "decides", "only", "stands-for")
ORDERS = ("surprise", "confidence", "support", "value", "predictions", *MEASURES, *DISTILLED)
SMOOTHING = 5
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
