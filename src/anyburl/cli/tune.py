"""`anyburl tune`: train the tuned aggregation and keep it in the run folder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from anyburl.cli.arguments import (
    DEFAULTS,
    BlockConnected,
    Json,
    Prepare,
    Quiet,
    RankingIdentity,
    Run,
    Smoothing,
    Threads,
    Weights,
)
from anyburl.cli.consoles import note_console, print_json, result_console
from anyburl.cli.reasoning import Source, rank_options
from anyburl.errors import DataError, MissingExtraError, RunError

NAME = "tune"
EXAMPLE = "Example:  anyburl tune runs/geo, then anyburl evaluate runs/geo --aggregation tuned"


def command(
    run: Run,
    smoothing: Smoothing = DEFAULTS.smoothing,
    weights: Weights = "",
    block_connected: BlockConnected = DEFAULTS.block_connected,
    object_identity: RankingIdentity = DEFAULTS.object_identity,
    prepare: Prepare = True,
    threads: Threads = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Random seed for training.")] = 0,
    quiet: Quiet = False,
    json: Json = False,
) -> None:
    """Train the tuned aggregation on the valid split and keep the model in the run folder, replacing an older one.

    Commands with --aggregation tuned and the same options and seed then use it.
    """
    from importlib.util import find_spec

    from anyburl.reasoning.opening import tuning_of
    from anyburl.tuning.evidence import rule_groups

    options = rank_options(
        smoothing=smoothing,
        weights=weights,
        block_connected=block_connected,
        object_identity=object_identity,
        threads=threads,
    )
    source = Source(run, None, note_console(quiet=quiet), prepare=prepare)
    if not source.path.is_dir():
        raise RunError(f"{run} is not a run folder: the model is kept in the run folder")
    if find_spec("lightgbm") is None:
        raise MissingExtraError("anyburl tune", "tuned")
    with source.open(options, seed=seed) as reasoner:
        if not len(reasoner.dataset.valid):
            raise DataError(f"tuning learns from the valid split, and {reasoner.dataset.name} has none")
        groups = rule_groups(reasoner.rules)
        tuning = tuning_of(reasoner.ranker, reasoner.dataset, groups, source.front(), seed, source.path, again=True)
    told: dict[str, Any] = {"run": run, **tuning.described(), "seconds": round(tuning.seconds, 3)}
    if json:
        print_json(told)
    elif not quiet:
        choices = ", ".join(f"{name} {mrr:.4f}" for name, mrr in tuning.validation.items())
        chosen = "the model" if told["chosen"] == "model" else told["chosen"]
        result_console().say(f"tuned {run} in {tuning.seconds:.1f} s: chose {chosen}; MRR on valid: {choices}")
