"""`anyburl evaluate`: how well rules answer questions with known answers."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.checking import parse_texts
from anyburl.base.errors import DataError, InvalidOptionError, OptionError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Address, Data, Engine, Rules, command, flag_of
from anyburl.cli.loading import AskingOptions, RulesAndData
from anyburl.cli.notes import Slow, print_json, print_whole, result_console
from anyburl.cli.tables import metrics_table, protocol_line, results_table, seconds_line, tuning_line
from anyburl.ranking.options import PROTOCOLS, RankOptions

if TYPE_CHECKING:
    from anyburl.data.names import Names as NamesByLabel
    from anyburl.reasoning.metrics import Metrics
    from anyburl.reasoning.reasoner import Reasoner

RANKED_IN = "the best candidates of every query are in"
SPLIT_HINT = "`anyburl learn DATA --split 0.8,0.1,0.1` divides a graph that has no splits"


@command(
    "evaluate",
    "Example:  anyburl evaluate runs/geo --aggregation noisy-or-top:5\n\n"
    "Quality over time:  anyburl evaluate runs/geo --at 10,50,100",
    takes_long=True,
)
def evaluate_command(
    rules: Rules,
    data: Data = None,
    split: Annotated[str, typer.Option(metavar="test|valid|train", help="The split to rank.")] = "test",
    at: Annotated[
        str | None, typer.Option(metavar="10,50,100", help="Evaluate the run's snapshots taken after these seconds.")
    ] = None,
    relations: Annotated[
        str | None,
        typer.Option(
            metavar="A,B",
            help="Rank triples of these relations only; by default all, or those that the run was learned for.",
        ),
    ] = None,
    sample: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Rank so many triples, drawn at random with --seed.")
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            metavar="|".join(PROTOCOLS),
            help="Rank answers against all entities, or against 49 drawn at random as GraIL does (sampled). "
            "estimated computes the average sampled figures from the ranks against all.",
        ),
    ] = PROTOCOLS[0],
    rankings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the best candidates of every query to a .parquet file, or as text in AnyBURL's format "
            "(also .gz).",
        ),
    ] = None,
    values: Annotated[
        bool,
        typer.Option(
            "--values",
            help="Estimate the values of attributes that the split holds out, instead of ranking triples, and report "
            "the mean absolute error beside that of the attribute's median.",
        ),
    ] = False,
    top_k: Annotated[int, flag_of(RankOptions, "top_k")] = RankOptions.top_k,
    engine: Engine = "threads",
    address: Address = None,
    *,
    common: AskingOptions,
) -> None:
    """Ask RULES for the subject and the object of every test triple, and report how the right answers rank."""
    options = replace(common.ranking, top_k=top_k)
    moments = parse_moments(at)
    _check_rankings(rankings, moments)
    _check_snapshots(rules, moments)
    source = common.source(rules, data, engine=engine, address=address)
    if values:
        _judge_estimates(source, split, as_json=common.json)
        return
    snapshots: list[float | None] = [*moments] or [None]
    if protocol not in PROTOCOLS:
        raise InvalidOptionError("protocol", f"one of {', '.join(PROTOCOLS)}", protocol)
    how = _How(split, protocol, None if relations is None else parse_texts(relations), sample, common.seed)
    results = [_evaluate(source, options, how, moment, rankings) for moment in snapshots]
    if protocol != "sampled" and not {"relations", "sample"} & results[0][0].protocol.keys():
        _keep(source, [metrics for metrics, _ in results], snapshots)
    if common.json:
        _print_json(results, moments, source.names)
    elif moments:
        _print_snapshots([metrics for metrics, _ in results], moments)
    else:
        _print_metrics(*results[0], source.names, rankings, quiet=common.quiet)


def _judge_estimates(source: RulesAndData, split: str, *, as_json: bool) -> None:
    """Estimate the values of a split and report the errors."""
    from anyburl.reasoning.estimation import Estimator

    with Slow(source.notes, "estimating values", "estimated values"):
        errors = Estimator(source.dataset, names=source.names).evaluate(split)
    better = errors.filter(errors["mean_absolute_error"] < errors["median_error"]).height
    if as_json:
        print_json({"split": split, "better": better, "attributes": errors.to_dicts()})
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("attribute", overflow="fold")
    for heading in ("values", "mean absolute error", "of the median", "within the range"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, kind, n_values, error, usual, covered in errors.iter_rows():
        unit = " days" if kind == "date" else ""
        shown = [f"{figure:,.4g}{unit}" for figure in (error, usual)]
        table.add_row(source.names.get(name), f"{n_values:,}", *shown, f"{covered:.0%}")
    print_whole(table)
    result_console().say(f"better than the median for {better} of {counted(errors.height, 'attribute')} of {split}")


@dataclass(frozen=True)
class _How:
    """Which triples are ranked, and against what."""

    split: str
    protocol: str = "all"
    relations: tuple[str, ...] | None = None
    sample: int | None = None
    seed: int = 0


def parse_moments(text: str | None) -> list[float]:
    """Return the seconds of snapshots behind a text such as 10,50,100."""
    if text is None:
        return []
    try:
        moments = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        moments = []
    if not moments:
        raise OptionError(f"--at takes seconds of snapshots such as 10,50,100, got {text!r}")
    return moments


def _check_snapshots(rules: str, moments: list[float]) -> None:
    """Refuse moments without a snapshot before the first one is evaluated."""
    from anyburl.learning.run import RunDirectory

    path = at_home(rules)
    if not moments or not path.exists():
        return
    if not path.is_dir():
        raise OptionError(f"--at needs a run folder with snapshots, got the file {rules!r}")
    run = RunDirectory.open(path)
    for name in (f"{moment:g}" for moment in moments):
        if not (path / f"rules-{name}.parquet").is_file():
            run.load_rules(name)  # of a run that was killed, or says that there is none


def _check_rankings(rankings: Path | None, moments: list[float]) -> None:
    """Refuse, before any work is done, a file that rankings cannot be written to."""
    if rankings is None:
        return
    if len(moments) > 1:
        raise OptionError(f"--rankings writes one file: pass a single snapshot to --at, got {len(moments)}")
    check_rankings_file(rankings)


def check_rankings_file(rankings: Path) -> None:
    """Refuse a file that rankings cannot be written to."""
    if rankings.is_dir():
        raise DataError(f"{rankings} is a folder: expected a file for the rankings")
    if not rankings.parent.is_dir():
        raise DataError(f"{rankings}: the folder {rankings.parent} does not exist")
    if not os.access(rankings.parent, os.W_OK):
        raise DataError(f"{rankings}: the folder {rankings.parent} is not writable")


def _evaluate(
    source: RulesAndData,
    options: RankOptions,
    how: _How,
    at: float | None,
    rankings: Path | None,
) -> tuple[Metrics, dict[str, float]]:
    """Evaluate the rules, or one snapshot, showing progress; return the metrics and how long everything took."""
    from anyburl.data.dataset import SPLITS

    if how.split not in SPLITS:
        raise InvalidOptionError("split", f"one of {', '.join(SPLITS)}", how.split)
    with source.open(options, at, seed=how.seed) as reasoner:
        if not len(reasoner.dataset.split(how.split)):
            raise DataError(f"{reasoner.dataset.name} has no triples in its {how.split} split: {SPLIT_HINT}")
        metrics = rank_with_progress(source, reasoner, how)
        if rankings is not None:
            _write_rankings(rankings, source, reasoner, how.split)
    return metrics, {"load": round(source.seconds_loading, 3), **metrics.seconds}


def _keep(source: RulesAndData, results: list[Metrics], snapshots: list[float | None]) -> None:
    """Keep the metrics of a run on its own data in its folder, where the explorer looks for them."""
    from anyburl.reasoning.metrics import keep_metrics

    if source.path.is_dir() and source.data is None and source.prepare:
        with suppress(OSError):  # a read-only folder can still be used
            for metrics, at in zip(results, snapshots, strict=True):
                keep_metrics(source.path, metrics, at)


def rank_with_progress(source: RulesAndData, reasoner: Reasoner, how: _How) -> Metrics:
    """Evaluate with a progress bar."""
    from anyburl.ranking.queries import make_queries
    from anyburl.reasoning.evaluation import choose_triples

    relations = reasoner.evaluated_relations(how.relations)
    if relations is not None and how.relations is None:
        source.notes.say(
            "the run was learned for some relations only: no others are ranked (see --relations)", "yellow"
        )
    triples, _ = choose_triples(reasoner.dataset, how.split, relations, how.sample, how.seed)
    n_questions = len(make_queries(triples, [], reasoner.vocabulary.n_relations)[0].entities)
    done = f"answered {counted(n_questions, 'different question')}"
    with Slow(source.notes, "answering questions", done, total=n_questions) as bar:
        return reasoner.evaluate(
            how.split, relations=how.relations, sample=how.sample, protocol=how.protocol, progress=bar.advance
        )


def _write_rankings(path: Path, source: RulesAndData, reasoner: Reasoner, split: str) -> None:
    total = len(reasoner.dataset.split(split))
    with Slow(source.notes, f"writing {path}", f"wrote {path}", total=total) as bar:
        reasoner.save_rankings(path, split, progress=bar.advance)


def _print_json(results: list[tuple[Metrics, dict[str, float]]], moments: list[float], names: NamesByLabel) -> None:
    objects: list[dict[str, Any]] = [{**metrics.to_json(), "seconds": seconds} for metrics, seconds in results]
    for result in objects if names else ():
        result["by_relation"] = [{**row, "name": names.get(row["relation"])} for row in result["by_relation"]]
    if not moments:
        print_json(objects[0])
        return
    print_json(
        [
            {"at": int(moment) if moment.is_integer() else moment, **result}
            for moment, result in zip(moments, objects, strict=True)
        ]
    )


def _print_metrics(
    metrics: Metrics, seconds: dict[str, float], names: NamesByLabel, rankings: Path | None, *, quiet: bool
) -> None:
    print_whole(metrics_table(metrics, names))
    out = result_console()
    out.say(protocol_line(metrics))
    if tuned := tuning_line(metrics):
        out.say(tuned)
    if quiet:
        return
    out.say(seconds_line(seconds, metrics.protocol["queries"]), "dim")
    if rankings is not None:
        out.say(f"{RANKED_IN} {rankings}", "dim")


def _print_snapshots(results: list[Metrics], moments: list[float]) -> None:
    print_whole(results_table([(f"{m:g}", metrics) for m, metrics in zip(moments, results, strict=True)], "seconds"))
    result_console().say(protocol_line(results[-1], with_rules=False))
