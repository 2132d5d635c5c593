"""`anyburl complete` and `check`: every missing fact, and which facts from elsewhere rules support or contradict."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.base.checking import share
from anyburl.base.errors import DataError, OptionError, counted
from anyburl.base.files import at_home, lines_of
from anyburl.cli.arguments import Address, Data, Engine, Rules, Without, command, one_of
from anyburl.cli.loading import AskingOptions
from anyburl.cli.notes import Interrupts, Slow, print_json, print_whole, result_console
from anyburl.reasoning.completion.options import PROVENANCES, CompleteOptions, check_proposes

if TYPE_CHECKING:
    import polars as pl

    from anyburl.data.names import Names
    from anyburl.reasoning.completion.files import FactFile, FactStream
    from anyburl.reasoning.reasoner import Reasoner


N_RELATIONS_SHOWN = 15  # relations


@command(
    "complete",
    "Example:  anyburl complete runs/geo --out missing.tsv --min-score 0.5 --reasons\n\n"
    "The best of each relation:  anyburl complete runs/geo --out missing.parquet --top 10",
    takes_long=True,
)
def complete_command(
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
    common: Annotated[AskingOptions, Without("with_scores")],
) -> None:
    """Write every new fact that RULES imply with a high enough score."""
    from anyburl.reasoning.completion.files import STANDARD_OUTPUT, open_facts

    if common.json and out == STANDARD_OUTPUT:
        raise OptionError("--json and --out - both write to standard output: write to a file instead")
    about = _read_subjects(given["subjects"]) if "subjects" in given else {}
    chosen = CompleteOptions(**{**given, "subjects": [*about.values()] or None})
    chosen = replace(chosen, reasons=chosen.reasons or provenance != PROVENANCES[0])
    check_proposes(common.ranking.aggregation)
    options, target = common.ranking, open_facts(out, provenance)
    source = common.source(rules, data, engine=engine, address=address)
    with source.open(options, explaining=chosen.reasons, completing=True, seed=common.seed) as reasoner:
        if reasoner.calibration is None and (needing := chosen.about_probabilities):
            flag = f"--{needing.replace('_', '-')}"
            raise OptionError(
                f"{flag} needs calibrated scores: first run `anyburl calibrate {rules}` with the same options"
            )
        _check_subjects(given.get("subjects"), about, reasoner)
        source.apply_reviews(reasoner)
        summary, target.prefixes = _Summary(reasoner, out), reasoner.names.prefixes
        total = len(reasoner.vocabulary.entities) if chosen.top is None or chosen.per != "relation" else None
        with target, Slow(source.notes, "finding missing facts", "found missing facts", total=total) as bar:
            summary.write(chosen, target, bar)
    if common.json:
        print_json(summary.to_json())
    elif out != STANDARD_OUTPUT and not common.quiet:
        summary.show(source.names, chosen)


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


class _Summary:
    """The facts by relation, counted while they are written."""

    def __init__(self, reasoner: Reasoner, out: str) -> None:
        self._reasoner, self._out = reasoner, out
        self._counts: Counter[str] = Counter()
        self._best: dict[str, float] = {}
        self._started, self._seconds = time.monotonic(), 0.0

    def write(self, options: CompleteOptions, target: FactFile | FactStream, bar: Slow) -> None:
        """Find facts and hand them on."""
        import polars as pl

        def advance(n: int) -> None:
            bar.advance(n)
            if interrupts.was_interrupted:  # here nothing is half done
                raise KeyboardInterrupt

        with Interrupts(lambda: None) as interrupts:
            for facts in self._reasoner.complete(options, progress=advance):
                target.add(facts)
                self._count(facts.group_by("relation", maintain_order=True).agg(pl.len(), pl.max("score")))
        self._seconds = time.monotonic() - self._started

    def _count(self, facts: pl.DataFrame) -> None:
        for relation, n, score in facts.iter_rows():
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

    def _why_none(self, options: CompleteOptions) -> str:
        """Return why there are no facts, and which option would change that."""
        with_conflicts = replace(options, conflicts=True, reasons=False)
        contradicted = sum(len(facts) for facts in self._reasoner.complete(with_conflicts))
        if contradicted and not options.conflicts:
            what = counted(contradicted, "implied fact is", "implied facts are")
            return f"{what} contradicted by stated facts: see them with --conflicts"
        if options.min_probability is not None:
            return "no fact is so likely: lower --min-probability or drop some filters"
        return "no fact scores high enough: lower --min-score or drop some filters"

    def show(self, names: Names, options: CompleteOptions) -> None:
        """Print how many facts there are, by relation."""
        console = result_console()
        console.say(f"{counted(self._counts.total(), 'missing fact')} in {self._out}, in {self._seconds:.1f} s")
        if not self._counts:
            console.say(self._why_none(options))
            return
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("relation", overflow="fold")
        table.add_column("facts", justify="right", no_wrap=True)
        table.add_column("highest score", justify="right", no_wrap=True)
        for relation, n in self._counts.most_common(N_RELATIONS_SHOWN):
            table.add_row(names.get(relation), f"{n:,}", f"{self._best[relation]:.3f}")
        print_whole(table)
        if len(self._counts) > N_RELATIONS_SHOWN:
            console.say(f"and {counted(len(self._counts) - N_RELATIONS_SHOWN, 'more relation')}", "dim")


FAILED = 3  # the exit code of a failed --fail-below or --fail-on
CHECKED_SUFFIXES = (".tsv", ".csv", ".parquet", ".jsonl")
N_SHOWN = 50
STYLES = {"stated": "green", "supported": "green", "contradicted": "red", "unknown": "yellow"}


@command(
    "check",
    "Example:  anyburl check extracted.tsv --run runs/geo --out checked.csv\n\n"
    "In a pipeline:  anyburl check extracted.tsv --run runs/geo --quiet --fail-below 0.5",
)
def check_command(
    facts: Annotated[
        str,
        typer.Argument(
            metavar="FACTS", help="Facts to check: text, CSV, Parquet, JSON lines, RDF, or whatever DATA may be."
        ),
    ],
    run: Annotated[str, typer.Option("--run", metavar="RUN", help="The run folder, or a file of rules.")],
    data: Data = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help=f"Write the results to a file: {', '.join(CHECKED_SUFFIXES)}.")
    ] = None,
    min_probability: Annotated[
        float, typer.Option(metavar="CHANCE", help="From this probability on, facts are supported.")
    ] = 0.5,
    fail_below: Annotated[
        float | None,
        typer.Option(
            metavar="CHANCE",
            help=f"Exit with code {FAILED} if a fact that is not stated is less likely than this, or contradicted.",
        ),
    ] = None,
    known_false: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Facts that are known to be false: probabilities are learned from these and from known true ones.",
        ),
    ] = None,
    known_true: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Facts that are known to be true, beside --known-false. [default: valid]"),
    ] = None,
    as_if_unstated: Annotated[
        bool,
        typer.Option(
            "--as-if-unstated", help="Judge facts of valid and test by train alone, as if nobody stated them."
        ),
    ] = False,
    *,
    common: AskingOptions,
) -> None:
    """Judge facts from elsewhere, such as those that a language model extracted: stated, supported, contradicted or
    unknown, with the reasons for and against.
    """
    share("min_probability", min_probability)
    if fail_below is not None:
        share("fail_below", fail_below)
    check_target(out)
    if known_true is not None and known_false is None:
        raise OptionError("--known-true needs --known-false: facts that are known to be false")
    given = _read(facts)
    judged = {"known_false": known_false, "known_true": known_true}
    learned_from = {name: _read(path) for name, path in judged.items() if path is not None}
    source = common.source(run, data)
    with source.open(common.ranking, explaining=True, completing=True, seed=common.seed) as reasoner:
        source.apply_reviews(reasoner)
        if reasoner.calibration is None and not learned_from and not common.quiet:
            for_probabilities = f"run `anyburl calibrate {run}`"
            if common.ranking.aggregation == "hybrid":
                for_probabilities = "use another --aggregation, or --known-false,"
            source.notes.say(f"scores are not calibrated: {for_probabilities} for probabilities", "yellow")
        with Slow(source.notes, "checking facts", "checked facts", total=len(given)) as bar:
            checked = reasoner.check(
                given,
                min_probability=min_probability,
                as_if_unstated=as_if_unstated,
                progress=bar.advance,
                **learned_from,
            )
        likely = "score" if reasoner.calibration is None and not learned_from else "probability"
    if out is not None:
        write_table(checked, at_home(out))
    if common.json:
        print_json(checked.to_dicts())
    elif not common.quiet:
        _print_check(checked, source.names, out)
    if fail_below is not None and _n_failing(checked, likely, fail_below):
        raise typer.Exit(FAILED)


def check_target(out: Path | None) -> None:
    """Refuse, before any work is done, what results cannot be written to."""
    if out is None:
        return
    if out.suffix.lower() not in CHECKED_SUFFIXES:
        raise DataError(f"{out}: expected a file that ends in one of {', '.join(CHECKED_SUFFIXES)}")
    if not at_home(out).parent.is_dir():
        raise DataError(f"{out}: the folder {out.parent} does not exist")


def _read(facts: str) -> pl.DataFrame:
    """Return the labels of facts, in order."""
    import polars as pl

    from anyburl.data.dataset import facts_in_order

    path = at_home(facts)
    if path.suffix.lower() in (".jsonl", ".ndjson"):
        if not path.is_file():
            raise DataError(f"{facts}: no such file")
        try:
            frame = pl.read_ndjson(path, infer_schema_length=None)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(f"{facts}: cannot read JSON lines ({' '.join(str(error).split())[:200]})") from error
        if missing := [name for name in ("subject", "relation", "object") if name not in frame.columns]:
            raise DataError(f"{facts}: expected objects with subject, relation and object, got none with {missing[0]}")
        return frame
    return facts_in_order(facts)


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a frame by the suffix of the file; in text, triples and lists of triples are written out."""
    import polars as pl

    from anyburl.base.writing import replacing

    with replacing(path) as unfinished:
        if path.suffix.lower() == ".parquet":
            frame.write_parquet(unfinished)
        elif path.suffix.lower() == ".jsonl":
            frame.write_ndjson(unfinished)
        else:
            fact, facts = pl.List(pl.String), pl.List(pl.List(pl.String))
            flat = frame.with_columns(
                *(pl.col(name).list.join(" ") for name, kind in frame.schema.items() if kind == fact),
                *(
                    pl.col(name).list.eval(pl.element().list.join(" ")).list.join("; ")
                    for name, kind in frame.schema.items()
                    if kind == facts
                ),
            )
            flat.write_csv(unfinished, separator="," if path.suffix.lower() == ".csv" else "\t")


def _n_failing(checked: pl.DataFrame, likely: str, least: float) -> int:
    import polars as pl

    bad = (pl.col("verdict") != "stated") & (
        (pl.col("verdict") == "contradicted") | (pl.col(likely).fill_null(0.0) < least)
    )
    return checked.filter(bad).height


def _print_check(checked: pl.DataFrame, names: Names, out: Path | None) -> None:
    """Print how many facts there are of each verdict, and what is wrong with the doubtful ones."""
    console, counts = result_console(), dict(checked["verdict"].value_counts().iter_rows())
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("fact", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    table.add_column("likely", justify="right", no_wrap=True)
    table.add_column("because", overflow="fold")
    for row in checked.head(N_SHOWN).iter_rows(named=True):
        likely = "" if row["probability"] is None else f"{row['probability']:.0%}"
        fact = _worded([row["subject"], row["relation"], row["object"]], names)
        table.add_row(fact, Text(row["verdict"], STYLES[row["verdict"]]), likely, _because(row, names))
    print_whole(table)
    if len(checked) > N_SHOWN:
        console.say(f"and {counted(len(checked) - N_SHOWN, 'more fact')}", "dim")
    console.say(", ".join(f"{counts.get(name, 0):,} {name}" for name in STYLES))
    if out is not None:
        console.say(f"written to {out}", "dim")


def _because(row: dict[str, Any], names: Names) -> str:
    """Return the reason for a verdict in a few words."""
    if row["conflict"]:
        return f"stated: {_worded(row['conflict'], names)}"
    if row["note"]:
        return str(row["note"])
    reasons = "; ".join(_worded(fact, names) for fact in row["facts"])
    instead = row["instead"]
    return reasons if instead is None else f"rules prefer {names.get(instead) or instead} ({reasons})"


def _worded(fact: list[str], names: Names) -> str:
    return " ".join(names.get(label) or label for label in fact)
