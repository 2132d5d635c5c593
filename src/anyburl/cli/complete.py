"""`anyburl complete`: every missing fact that the rules imply."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.errors import DataError, OptionError, counted
from anyburl.base.files import lines_of
from anyburl.cli.arguments import Address, Data, Engine, Rules, Without, one_of
from anyburl.cli.asking import AskingOptions
from anyburl.cli.notes import Interrupts, Slow, print_json, print_whole, result_console
from anyburl.reasoning.completion.options import PROVENANCES, CompleteOptions, check_proposes

if TYPE_CHECKING:
    import polars as pl

    from anyburl.data.names import Names
    from anyburl.reasoning.completion.files import FactFile, FactStream
    from anyburl.reasoning.reasoner import Reasoner

EXAMPLE = (
    "Example:  anyburl complete runs/geo --out missing.tsv --min-score 0.5 --reasons\n\n"
    "The best of each relation:  anyburl complete runs/geo --out missing.parquet --top 10"
)
N_SHOWN = 15  # relations


def command(
    rules: Rules,
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Output file: .parquet, .tsv, .csv, .jsonl, .nt, .ttl, .nq, .trig (text also with .gz), "
            "or - for standard output.",
        ),
    ],
    data: Data = None,
    *,
    given: Annotated[dict[str, Any], CompleteOptions],
    provenance: Annotated[
        str,
        typer.Option(
            metavar="|".join(PROVENANCES),
            help="How RDF states the score, rule and premises of each fact; none writes them as comments.",
            autocompletion=one_of(*PROVENANCES),
        ),
    ] = PROVENANCES[0],
    engine: Engine = "threads",
    address: Address = None,
    asked: Annotated[AskingOptions, Without("with_scores")],
) -> None:
    """Write every new fact that RULES imply with a high enough score."""
    from anyburl.reasoning.completion.files import STANDARD_OUTPUT, open_facts

    if asked.json and out == STANDARD_OUTPUT:
        raise OptionError("--json and --out - both write to standard output: write to a file instead")
    about = _read_subjects(given["subjects"]) if "subjects" in given else {}
    wanted = CompleteOptions(**{**given, "subjects": [*about.values()] or None})
    wanted = replace(wanted, reasons=wanted.reasons or provenance != PROVENANCES[0])
    check_proposes(asked.ranking.aggregation)
    options, target = asked.ranking, open_facts(out, provenance)
    source = asked.source(rules, data, engine=engine, address=address)
    with source.open(options, explaining=wanted.reasons, completing=True, seed=asked.seed) as reasoner:
        if reasoner.calibration is None and (needing := wanted.about_probabilities):
            flag = f"--{needing.replace('_', '-')}"
            raise OptionError(
                f"{flag} needs calibrated scores: first run `anyburl calibrate {rules}` with the same options"
            )
        _check_subjects(given.get("subjects"), about, reasoner)
        source.apply_reviews(reasoner)
        found, target.prefixes = _Found(reasoner, out), reasoner.names.prefixes
        total = len(reasoner.vocabulary.entities) if wanted.top is None or wanted.per != "relation" else None
        with target, Slow(source.notes, "finding missing facts", "found missing facts", total=total) as bar:
            found.write(wanted, target, bar)
    if asked.json:
        print_json(found.to_json())
    elif out != STANDARD_OUTPUT and not asked.quiet:
        found.show(source.names, wanted)


def _read_subjects(path: Path) -> dict[int, str]:
    """Return the labels in a file, one in a line, by the number of the line."""
    labels = lines_of(path, "subjects", DataError)
    if not labels:
        raise DataError(f"{path}: expected one subject per line, got an empty file")
    return labels


def _check_subjects(path: Path | None, labels: dict[int, str], reasoner: Reasoner) -> None:
    """Refuse labels that are not in the data; the error names the line."""
    vocabulary = reasoner.vocabulary
    for number, label in labels.items():
        try:
            reasoner.names.entity_id(label, vocabulary)
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from error


class _Found:
    """What was found, counted while it is written."""

    def __init__(self, reasoner: Reasoner, out: str) -> None:
        self._reasoner, self._out = reasoner, out
        self._counts: Counter[str] = Counter()
        self._best: dict[str, float] = {}
        self._started, self._seconds = time.monotonic(), 0.0

    def write(self, wanted: CompleteOptions, target: FactFile | FactStream, bar: Slow) -> None:
        """Find facts and hand them on."""
        import polars as pl

        def advance(n: int) -> None:
            bar.advance(n)
            if interrupts.was_interrupted:  # here nothing is half done
                raise KeyboardInterrupt

        with Interrupts(lambda: None) as interrupts:
            for facts in self._reasoner.complete(wanted, progress=advance):
                target.add(facts)
                self._count(facts.group_by("relation").agg(pl.len(), pl.max("score")))
        self._seconds = time.monotonic() - self._started

    def _count(self, told: pl.DataFrame) -> None:
        for relation, n, score in told.iter_rows():
            self._counts[relation] += n
            self._best[relation] = max(self._best.get(relation, 0.0), score)

    def to_json(self) -> dict[str, Any]:
        return {
            "facts": self._counts.total(),
            "seconds": round(self._seconds, 3),
            "out": self._out,
            "by_relation": [
                {"relation": relation, "facts": n, "highest_score": self._best[relation]}
                for relation, n in self._counts.most_common()
            ],
        }

    def _why_none(self, wanted: CompleteOptions) -> str:
        """Return why there are no facts, and which option would change that."""
        with_conflicts = replace(wanted, conflicts=True, reasons=False)
        contradicted = sum(len(facts) for facts in self._reasoner.complete(with_conflicts))
        if contradicted and not wanted.conflicts:
            what = counted(contradicted, "implied fact is", "implied facts are")
            return f"{what} contradicted by stated facts: see them with --conflicts"
        if wanted.min_probability is not None:
            return "no fact is so likely: lower --min-probability or drop some filters"
        return "no fact scores high enough: lower --min-score or drop some filters"

    def show(self, names: Names, wanted: CompleteOptions) -> None:
        """Print how many facts there are, by relation."""
        console = result_console()
        console.say(f"{counted(self._counts.total(), 'missing fact')} in {self._out}, in {self._seconds:.1f} s")
        if not self._counts:
            console.say(self._why_none(wanted))
            return
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("relation", overflow="fold")
        table.add_column("facts", justify="right", no_wrap=True)
        table.add_column("highest score", justify="right", no_wrap=True)
        for relation, n in self._counts.most_common(N_SHOWN):
            table.add_row(names.get(relation), f"{n:,}", f"{self._best[relation]:.3f}")
        print_whole(table)
        if len(self._counts) > N_SHOWN:
            console.say(f"and {counted(len(self._counts) - N_SHOWN, 'more relation')}", "dim")
