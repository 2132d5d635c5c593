"""`anyburl evaluate`: how well rules answer queries whose answer is known."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from anyburl.cli.arguments import (
    AGGREGATION,
    BLOCK_CONNECTED,
    SMOOTHING,
    TOP_K,
    Aggregation,
    BlockConnected,
    Data,
    Escaped,
    Json,
    Quiet,
    RankingIdentity,
    Rules,
    Smoothing,
    Threads,
    TuningSeed,
    Weights,
)
from anyburl.cli.completion import one_of
from anyburl.cli.consoles import counted, note_console, print_json, print_whole, result_console
from anyburl.cli.metrics import metrics_table, protocol_line, results_table, seconds_line, tuning_line
from anyburl.cli.notes import Slow
from anyburl.cli.ranking import Source, rank_options
from anyburl.cli.session import require_engine, starting
from anyburl.errors import DataError, OptionError
from anyburl.learning.options import ENGINES

if TYPE_CHECKING:
    from anyburl.evaluation.metrics import Metrics
    from anyburl.ranking.options import RankOptions
    from anyburl.ranking.ranker import Ranker

NAME = "evaluate"
EXAMPLE = (
    "Example:  anyburl evaluate runs/geo --aggregation noisy-or-top:5\n\n"
    "Quality over time:  anyburl evaluate runs/geo --at 10,50,100"
)


def command(
    rules: Rules,
    data: Data = None,
    split: Annotated[str, typer.Option(metavar="test|valid|train", help="The triples to ask for.")] = "test",
    at: Annotated[
        str | None, typer.Option(metavar="10,50,100", help="The run's snapshots after so many seconds.")
    ] = None,
    rankings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the best candidates of every query: .parquet, else text in AnyBURL's format, also .gz.",
        ),
    ] = None,
    top_k: Annotated[
        int,
        typer.Option(help="Candidates in --rankings; and the rank beyond which the MRR's lower bound counts nothing."),
    ] = TOP_K,
    aggregation: Aggregation = AGGREGATION,
    smoothing: Smoothing = SMOOTHING,
    weights: Weights = "",
    block_connected: BlockConnected = BLOCK_CONNECTED,
    object_identity: RankingIdentity = True,
    escaped: Escaped = False,
    engine: Annotated[
        str,
        typer.Option(metavar="NAME", help="What answers: threads, or ray.", autocompletion=one_of(*ENGINES)),
    ] = "threads",
    address: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="The Ray cluster to run on; this machine if left out.")
    ] = None,
    threads: Threads = None,
    quiet: Quiet = False,
    json: Json = False,
    seed: TuningSeed = None,
) -> None:
    """Ask for the subject and the object of every test triple and report where RULES rank the right answer."""
    notes = note_console(quiet=quiet)
    options = rank_options(
        aggregation=aggregation,
        smoothing=smoothing,
        weights=weights,
        block_connected=block_connected,
        object_identity=object_identity,
        top_k=top_k,
        threads=threads,
    )
    _check_engine(engine, address)
    moments = parse_moments(at)
    _check_rankings(rankings, options, moments)
    _check_snapshots(rules, moments)
    source = Source(rules, data, notes, escaped=escaped)
    _check_split(source, split)
    snapshots: list[float | None] = [*moments] or [None]
    where = (engine, address)
    results = [_evaluate(source, options, split, moment, rankings, seed, where) for moment in snapshots]
    if json:
        _print_json(results, moments)
    elif moments:
        _print_snapshots([metrics for metrics, _ in results], moments)
    else:
        _print_metrics(*results[0], rankings, quiet=quiet)


def parse_moments(text: str | None) -> list[float]:
    """Return the seconds of snapshots behind a text such as 10,50,100."""
    if text is None:
        return []
    try:
        moments = [float(part) for part in text.split(",") if part.strip()]
    except ValueError:
        moments = []
    if not moments:
        raise OptionError(f"--at takes the seconds of snapshots such as 10,50,100, got {text!r}")
    return moments


def _check_snapshots(rules: str, moments: list[float]) -> None:
    """Refuse moments without a snapshot before the first one is evaluated."""
    from anyburl.learning.run import RunDirectory

    path = Path(rules).expanduser()
    if not moments or not path.exists():
        return
    if not path.is_dir():
        raise OptionError(f"--at asks for snapshots of a run folder, got the file {rules!r}")
    run = RunDirectory.open(path)
    for name in (f"{moment:g}" for moment in moments):
        if not (path / f"rules-{name}.parquet").is_file():
            run.load_rules(name)  # of a run that was killed, or says that there is none


def _check_engine(engine: str, address: str | None) -> None:
    """Refuse, before any work is done, an engine that there is not."""
    if engine not in ENGINES:
        raise OptionError(f"--engine takes {' or '.join(ENGINES)}, got {engine!r}")
    if address is not None and engine != "ray":
        raise OptionError(f"--address is for the engine ray, got engine {engine!r}")
    require_engine(engine)


def _check_rankings(rankings: Path | None, options: RankOptions, moments: list[float]) -> None:
    """Refuse, before any work is done, a file that rankings cannot be written to."""
    if rankings is None:
        return
    if len(moments) > 1:
        raise OptionError(f"--rankings writes one file: give one moment with --at, got {len(moments)}")
    if rankings.is_dir():
        raise DataError(f"{rankings}: rankings are written to a file, and this is a folder")
    if not rankings.parent.is_dir():
        raise DataError(f"{rankings}: there is no folder {rankings.parent}")
    if not os.access(rankings.parent, os.W_OK):
        raise DataError(f"{rankings}: the folder {rankings.parent} cannot be written to")


def _check_split(source: Source, split: str) -> None:
    from anyburl.triples.dataset import SPLITS

    if split not in SPLITS:
        raise OptionError(f"--split takes train, valid or test, got {split!r}")
    if not len(source.dataset.split(split)):
        raise DataError(f"{source.dataset.name} has no triples in its {split} split")


def _evaluate(
    source: Source,
    options: RankOptions,
    split: str,
    at: float | None,
    rankings: Path | None,
    seed: int | None,
    where: tuple[str, str | None],
) -> tuple[Metrics, dict[str, float]]:
    """Evaluate the rules, or one snapshot, in sight; return the metrics and how long everything took."""
    from anyburl.evaluation.evaluate import distributed

    with ExitStack() as stack:

        def spread(ranker: Ranker) -> Ranker:
            with starting(where[0], source.notes):
                return stack.enter_context(distributed(ranker, *where, lambda note: source.notes.say(note, "yellow")))

        ranker = source.make_ranker(options, at, seed=seed, spread=spread)
        metrics = rank_in_sight(source, ranker, split)
        if rankings is not None:
            _write_rankings(rankings, source, ranker, split)
    return metrics, {"load": round(source.seconds_loading, 3), **metrics.seconds}


def rank_in_sight(source: Source, ranker: Ranker, split: str) -> Metrics:
    """Evaluate with a progress bar."""
    from anyburl.evaluation.evaluate import evaluate
    from anyburl.ranking.queries import make_queries

    dataset = source.dataset
    triples = dataset.split(split).triples
    n_questions = len(make_queries(triples, [], dataset.vocabulary.n_relations)[0].entities)
    done = f"answered {counted(n_questions, 'different question')}"
    with Slow(source.notes, "answering questions", done, total=n_questions) as bar:
        return evaluate(ranker.rules, dataset, split=split, ranker=ranker, progress=bar.advance)


def _write_rankings(path: Path, source: Source, ranker: Ranker, split: str) -> None:
    from anyburl.evaluation.rankings import write_rankings

    total = len(source.dataset.split(split))
    with Slow(source.notes, f"writing {path}", f"wrote {path}", total=total) as bar:
        write_rankings(path, ranker, source.dataset, split=split, progress=bar.advance)


def _print_json(results: list[tuple[Metrics, dict[str, float]]], moments: list[float]) -> None:
    objects: list[dict[str, Any]] = [{**metrics.to_json(), "seconds": seconds} for metrics, seconds in results]
    if not moments:
        print_json(objects[0])
        return
    print_json(
        [
            {"at": int(moment) if moment.is_integer() else moment, **result}
            for moment, result in zip(moments, objects, strict=True)
        ]
    )


def _print_metrics(metrics: Metrics, seconds: dict[str, float], rankings: Path | None, *, quiet: bool) -> None:
    print_whole(metrics_table(metrics))
    out = result_console()
    out.say(protocol_line(metrics))
    if tuned := tuning_line(metrics):
        out.say(tuned)
    if quiet:
        return
    out.say(seconds_line(seconds, metrics.protocol["queries"]), "dim")
    if rankings is not None:
        out.say(f"the best candidates of every query are in {rankings}", "dim")


def _print_snapshots(results: list[Metrics], moments: list[float]) -> None:
    print_whole(results_table([(f"{m:g}", metrics) for m, metrics in zip(moments, results, strict=True)], "seconds"))
    result_console().say(protocol_line(results[-1], with_rules=False))
