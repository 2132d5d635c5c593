"""`learn` and `rules` on facts with times."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import OptionError, RunError, counted
from anyburl.cli.arguments import Json, Quiet, Rules, Threads, UnusedSeed
from anyburl.cli.notes import Slow, note_console, print_json, print_whole, result_console
from anyburl.cli.session import peak_memory_mb
from anyburl.cli.streams import Interrupts
from anyburl.cli.temporal.opening import compile_temporal_kernels, load_history_argument, open_history, sizes_of
from anyburl.data.options import ReadOptions
from anyburl.temporal.options import FORMS, TemporalOptions

if TYPE_CHECKING:
    from anyburl.temporal.rules import TemporalRule


def learn_history(
    out: Annotated[Path, typer.Option(metavar="RUN")],
    data: Annotated[str | None, typer.Argument(metavar="DATA")] = None,
    *,
    given: Annotated[dict[str, Any], TemporalOptions],
    quiet: Quiet = False,
    json: Json = False,
    reading: ReadOptions,
) -> None:
    """Learn temporal rules from DATA's train and valid splits into a run folder; if stopped, what is done is saved."""
    if data is None:
        raise OptionError("DATA is missing: name a data set with times (such as history), a folder or a file")
    if (out / "options.json").exists():
        raise RunError(f"{out} already contains a run: choose another folder")
    options, notes = TemporalOptions(**given), note_console(quiet=quiet)
    dataset = load_history_argument(data, notes, reading)
    compile_temporal_kernels(notes)

    from anyburl.temporal.learner import TemporalLearner
    from anyburl.temporal.reasoner import TemporalReasoner

    notes.say(f"learning on {dataset.name}: {sizes_of(dataset)}")
    started = time.monotonic()
    words, learner = ("learning temporal rules", "learned temporal rules"), TemporalLearner(dataset, options)
    with Slow(notes, *words) as slow, Interrupts(lambda: notes.say("stopping, saving what is done")) as stop:
        rules = learner.learn(lambda doing: slow.change(*words, doing), lambda: stop.was_interrupted)
    TemporalReasoner(rules, dataset).save(out)
    seconds = time.monotonic() - started
    if json:
        print_json(
            {
                "run": str(out),
                "sort": "temporal",
                "seconds": round(seconds, 3),
                "rules": len(rules),
                "rules_by_type": rules.sizes,
                "facts": {"train": len(dataset.train), "valid": len(dataset.valid), "test": len(dataset.test)},
                "clock": dataset.clock.to_json(),
                "peak_memory_mb": peak_memory_mb(),
                "stopped_by": learner.stopped_by,
            }
        )
    elif not quiet:
        said = result_console()
        said.say(", ".join(f"{name} {n:,}" for name, n in rules.sizes.items()))
        said.say(f"{counted(len(rules), 'temporal rule')} in {seconds:.1f} s, saved in {out}")
        said.say(f"see the best:      anyburl rules {out}")
        said.say(f"in a browser:      anyburl serve {out}")
    if stop.was_interrupted:
        raise typer.Exit(130)


def show_temporal_rules(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1)] = 20,
    relation: Annotated[str | None, typer.Option()] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(FORMS),
            help="With temporal rules: only those of this form.",
            rich_help_panel="Filters",
        ),
    ] = None,
    quiet: Quiet = False,
    json: Json = False,
    threads: Threads = None,
    seed: UnusedSeed = None,
) -> None:
    """Show the temporal rules with the most right cases, weighed by their confidence."""
    reasoner = open_history(rules, None, note_console(quiet=quiet), threads=threads)
    best = reasoner.rules.top(top, relation=relation, form=form)
    if json:
        print_json({"total": len(reasoner.rules), "rules": [_rule_json(rule) for rule in best]})
        return
    if not best:
        result_console().say(f"none of the {len(reasoner.rules):,} rules match")
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("right", "cases", "confidence"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("rule", overflow="fold")
    for rule in best:
        cells = (f"{rule.right:,}", f"{rule.cases:,}", f"{rule.confidence:.3f}")
        table.add_row(*cells, Text.assemble((rule.rule, "bold"), f"  [{rule.figures}]"))
    print_whole(table)
    result_console().say(f"{len(best):,} of {len(reasoner.rules):,} temporal rules, by right cases x confidence", "dim")


def _rule_json(rule: TemporalRule) -> dict[str, Any]:
    """Return a rule as plain values."""
    return {
        "number": rule.number,
        "form": rule.form,
        "rule": rule.rule,
        "figures": rule.figures,
        "head": rule.head,
        "body": list(rule.body),
        "confidence": rule.confidence,
        "right": rule.right,
        "cases": rule.cases,
        "curve": list(rule.curve),
    }
