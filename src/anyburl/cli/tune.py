"""`anyburl tune`: train the tuned aggregation and keep it in the run folder."""

from __future__ import annotations

from typing import Annotated, Any

from anyburl.cli.arguments import Run, Without
from anyburl.cli.asking import AskingOptions
from anyburl.cli.loading import require_run
from anyburl.cli.notes import print_json, result_console

EXAMPLE = "Example:  anyburl tune runs/geo, then anyburl evaluate runs/geo --aggregation tuned"


def command(
    run: Run, asked: Annotated[AskingOptions, Without("names", "aggregation", "escaped", "with_scores")]
) -> None:
    """Train the tuned aggregation and keep the model in the run folder, replacing any older one.

    It learns from the valid split or, if that is small or missing, from hidden facts of train. Commands with
    --aggregation tuned and the same options and seed then use it.
    """
    from anyburl.models.tuned.observations import rule_groups
    from anyburl.reasoning.opening import tuning_of

    require_run(run)
    source = asked.source(run, None)
    with source.open(asked.ranking, seed=asked.seed) as reasoner:
        groups = rule_groups(reasoner.rules)
        tuning = tuning_of(
            reasoner.ranker, reasoner.dataset, groups, source.front(), asked.seed, source.path, again=True
        )
    told: dict[str, Any] = {"run": run, **tuning.described(), "seconds": round(tuning.seconds, 3)}
    if asked.json:
        print_json(told)
    elif not asked.quiet:
        choices = ", ".join(f"{name} {mrr:.4f}" for name, mrr in tuning.validation.items())
        chosen = "the model" if told["chosen"] == "model" else told["chosen"]
        result_console().say(f"tuned {run} in {tuning.seconds:.1f} s: chose {chosen}; MRR on held-out facts: {choices}")
