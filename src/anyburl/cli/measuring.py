"""Measures that need the data, counted only for the rules that need them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from anyburl.cli.consoles import PlainConsole
from anyburl.cli.loading import load_data_of_rules
from anyburl.cli.notes import Slow
from anyburl.cli.session import compile_kernels
from anyburl.errors import DataError, counted
from anyburl.learning.options import LearnOptions
from anyburl.reading import at_home

if TYPE_CHECKING:
    from anyburl.ruleset.ruleset import RuleSet
    from anyburl.triples.table import TripleTable


class Measuring:
    """Adds measures to rules of RULES, which a Parquet file may have; the data are read when they are needed."""

    def __init__(self, rules: str, data: str | None, threads: int | None, notes: PlainConsole) -> None:
        self._rules, self._data, self._notes = rules, data, notes
        self._threads = threads
        self._table: TripleTable | None = None

    def add(self, rules: RuleSet, names: Iterable[str]) -> RuleSet:
        """Return rules with the measures of these names; only PCA confidence takes a while."""
        from anyburl.ruleset.combine import match_triples
        from anyburl.ruleset.rescore import measure

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

    def _train(self) -> TripleTable:
        if self._table is None:
            dataset = load_data_of_rules(self._rules, self._data, self._notes)
            if not len(dataset.train):
                raise DataError(f"{dataset.source} has no triples to count on")
            self._table = dataset.train
        return self._table


def learned_under_identity(rules: str) -> bool:
    """Whether RULES were learned under object identity: a run folder says so."""
    from anyburl.ruleset.files.run_folder import described_run

    folder = at_home(rules)
    options = described_run(folder)["options"] if folder.is_dir() else {}
    return bool(options.get("object_identity", LearnOptions.object_identity))
