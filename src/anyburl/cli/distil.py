"""`anyburl distil`: the rules that matter, as a run folder."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from anyburl.base.errors import RunError
from anyburl.cli.arguments import Run, Without
from anyburl.cli.asking import AskingOptions
from anyburl.cli.loading import require_run
from anyburl.cli.notes import compile_kernels, print_json, result_console
from anyburl.models.distilling.options import DistilOptions
from anyburl.ranking.options import parse_aggregation

if TYPE_CHECKING:
    from anyburl.models.distilling.distil import Distilled

FOR_MODELS = "noisy-or-top:10"
"""Whose rules a model is given: it looks at several of each answer."""
EXAMPLE = "Example:  anyburl distil runs/geo --out runs/small --rules 100, then anyburl rules runs/small --sort worth"


def command(
    run: Run,
    out: Annotated[Path, typer.Option(metavar="SMALL", help="The run folder to write.")],
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw the curve as .png, .svg or .pdf.")] = None,
    *,
    chosen: DistilOptions,
    asked: Annotated[AskingOptions, Without("names", "escaped", "with_scores", "seed", "top_k")],
) -> None:
    """Keep the rules of RUN that rank held-out facts best, and write them as a run folder that every command takes.

    Rules are chosen for an aggregation, by facts of the valid and train splits; test is never read. The table shows
    what other numbers of rules would be worth.
    """
    from anyburl.learning.run import RunDirectory
    from anyburl.models.distilling.saving import check_out, save_distilled
    from anyburl.reasoning.warmup import warm_up_distilling

    require_run(run)
    source, notes = asked.source(run, None), asked.notes()
    check_out(source.path, out)
    started = time.monotonic()
    dataset = source.dataset
    compile_kernels(lambda: warm_up_distilling(dataset.vocabulary.n_relations), notes)
    ranking = asked.ranking
    if parse_aggregation(ranking.aggregation).needs_model:
        ranking = replace(ranking, aggregation=FOR_MODELS)
    with source.open(ranking, seed=chosen.seed) as reasoner:
        if not len(reasoner.rules):
            raise RunError(f"{run} has no rules to distil")
        distilled = reasoner.distil(options=chosen, watch=source.front().watch)
    save_distilled(out, distilled, reasoner.dataset, RunDirectory.open(source.path).options(), str(source.path))
    if plot is not None:
        from anyburl.tools.plotting import plot_distilled

        plot_distilled(distilled, plot)
    if asked.json:
        print_json({**distilled.to_json(), "run": str(out), "seconds": round(time.monotonic() - started, 3)})
    elif not asked.quiet:
        _print(distilled, out)


def _print(distilled: Distilled, out: Path) -> None:
    console = result_console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("rules", justify="right")
    table.add_column("share of the MRR", justify="right")
    for n_rules, share in distilled.curve:
        table.add_row(f"{n_rules:,}", f"{share:.1%}")
    table.add_row(f"{distilled.n_rules:,} (all)", "100.0%")
    console.print(table)
    console.say(f"measured on {distilled.judged_by}, held back until the last step")
    console.say(
        f"kept {len(distilled.rules):,} of {distilled.n_rules:,} rules ({distilled.quality:.1%} of the MRR), "
        f"chosen by {distilled.n_facts:,} facts, in {out}"
    )
    console.say(f"see the best:      anyburl rules {out} --sort worth")
