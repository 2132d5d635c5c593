"""`learn`, `rules`, `doctor`, `calibrate` and `serve` on facts with times; loads those facts and opens their runs."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import OptionError, RunError, counted
from anyburl.base.files import at_home
from anyburl.cli.arguments import Json, Quiet, Rules, Run
from anyburl.cli.events import peak_memory_mb
from anyburl.cli.loading import Common, existing_rules, read_with_progress, remark_left_out
from anyburl.cli.notes import (
    Interrupts,
    PlainConsole,
    Slow,
    compile_kernels,
    note_console,
    print_json,
    print_whole,
    result_console,
)
from anyburl.data.options import IGNORED, ReadOptions
from anyburl.learning.options import TEMPORAL_AGGREGATIONS, TEMPORAL_FORMS, TemporalOptions
from anyburl.tools.options import ServeOptions, check_names

if TYPE_CHECKING:
    from anyburl.temporal.facts import TemporalDataset
    from anyburl.temporal.reasoner import TemporalReasoner
    from anyburl.temporal.rules import TemporalRule


PANEL = "Facts with times"
KERNELS = ("kernel_pairs.share_credit", "kernel_bodies.count_hops", "kernel_answer.answer_moments")

Time = Annotated[
    str | None,
    typer.Argument(metavar="[TIME]", help="With temporal rules: the moment that is asked about, such as 2014-11-03."),
]
TimedAggregation = Annotated[
    str | None,
    typer.Option(
        "--aggregation", metavar="NAME", help=f"How candidates are ordered: {', '.join(TEMPORAL_AGGREGATIONS)}."
    ),
]


def load_history_argument(
    data: str, notes: PlainConsole, reading: ReadOptions | None = None, *, is_new: bool = True
) -> TemporalDataset:
    """Load DATA with its times and, if it `is_new` and not what a run folder remembers, say how they are counted."""
    from anyburl.temporal.facts import load_temporal_dataset

    dataset = read_with_progress(data, notes, "fact", lambda progress: load_temporal_dataset(data, reading, progress))
    if is_new:
        remark_left_out(dataset.name, dataset.left_out, dataset.reading, notes)
        chosen = "" if reading is not None and reading.time is not None else f" (--time {IGNORED} leaves them out)"
        notes.say(f"{dataset.name} has facts with times{chosen}: {dataset.words}")
        if dataset.reading.split or dataset.reading.split_at:
            notes.say(f"{dataset.name} is split by time: {sizes_of(dataset)}")
    return dataset


def sizes_of(dataset: TemporalDataset) -> str:
    """Return the sizes of the splits, and when each begins."""
    splits = {"train": dataset.train, "valid": dataset.valid, "test": dataset.test}
    parts = [
        f"{name} {len(facts):,}" + (f" from {dataset.clock.label(int(facts.times[0]))}" if len(facts) else "")
        for name, facts in splits.items()
    ]
    return ", ".join(parts)


def open_history(
    run: str, data: str | None, notes: PlainConsole, *, aggregation: str | None = None, threads: int | None = None
) -> TemporalReasoner:
    """Open a run folder with temporal rules on its own data, or on DATA, and say if its data has changed."""
    from anyburl.temporal.reasoner import TemporalReasoner

    path = existing_rules(run, temporal=True)
    compile_temporal_kernels(notes)
    given = None if data is None else load_history_argument(data, notes)
    with Slow(notes, f"opening {run}", f"opened {run}"):
        reasoner = TemporalReasoner.open(path, given, aggregation=aggregation, threads_used=threads)
    if data is None:
        from anyburl.rules.run_folder import described_run

        if described_run(path)["data"].get("fingerprint") not in (None, reasoner.dataset.fingerprint):
            notes.say(f"{reasoner.dataset.name} has changed since the rules of {run} were learned", "yellow")
    return reasoner


def apply_reviews(reasoner: TemporalReasoner, notes: PlainConsole) -> None:
    """Apply the verdicts of the run folder on facts with moments, and report how many there are."""
    from anyburl.tools.review import FILE, ReviewLog

    if reasoner.run is not None and (reasoner.run / FILE).is_file():
        accepted, rejected = ReviewLog.of_run(reasoner.run).judged(4)
        reasoner.apply_verdicts(accepted, rejected)
        notes.say(f"{len(accepted)} accepted and {len(rejected)} rejected facts count", "dim")


def compile_temporal_kernels(notes: PlainConsole) -> None:
    """Compile the kernels of temporal rules, if this machine has not yet, and report it."""
    from anyburl.base.jit import is_compiled

    if not all(map(is_compiled, KERNELS)):
        from anyburl.temporal.reasoner import warm_up_temporal

        compile_kernels(warm_up_temporal, notes)


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
        console = result_console()
        console.say(", ".join(f"{name} {n:,}" for name, n in rules.sizes.items()))
        console.say(f"{counted(len(rules), 'temporal rule')} in {seconds:.1f} s, saved in {out}")
        console.say(f"see the best:      anyburl rules {out}")
        console.say(f"in a browser:      anyburl serve {out}")
    if stop.was_interrupted:
        raise typer.Exit(130)


def show_temporal_rules(
    rules: Rules,
    top: Annotated[int, typer.Option(min=1)] = 20,
    relation: Annotated[str | None, typer.Option()] = None,
    form: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(TEMPORAL_FORMS),
            help="With temporal rules: only those of this form.",
            rich_help_panel="Filters",
        ),
    ] = None,
    *,
    common: Common,
) -> None:
    """Show the temporal rules with the most right cases, weighed by their confidence."""
    reasoner = open_history(rules, None, common.notes(), threads=common.threads)
    best = reasoner.rules.top(top, relation=relation, form=form)
    if common.json:
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


def examine_history(
    data: Annotated[str, typer.Argument(metavar="DATA")],
    html: Annotated[Path | None, typer.Option()] = None,
    fail_on: Annotated[str | None, typer.Option()] = None,
    top: Annotated[int, typer.Option(min=1)] = 10,
    no_rules: Annotated[bool, typer.Option("--no-rules")] = False,
    *,
    common: Common,
    reading: ReadOptions,
) -> None:
    """Report what is odd about facts with times."""
    from anyburl.cli.datasets import finish_report
    from anyburl.cli.predict import check_page

    fatal = () if fail_on is None else check_names(name.strip() for name in fail_on.split(",") if name.strip())
    check_page(html)
    notes = common.notes()
    dataset = load_history_argument(data, notes, reading)

    from anyburl.tools.doctor.values import examine_times

    with Slow(notes, "examining facts", "examined facts"):
        report = examine_times(dataset, top)
    finish_report(report, html, fatal, json=common.json)


def calibrate_history(
    run: Run,
    aggregation: TimedAggregation = None,
    *,
    common: Common,
) -> None:
    """Find out how likely answers are to be true, and keep the result in the run folder."""
    notes = common.notes()
    reasoner = open_history(run, None, notes, aggregation=aggregation, threads=common.threads)
    with Slow(notes, "calibrating", "calibrated") as slow:
        report = reasoner.calibrate(lambda doing: slow.change("calibrating", "calibrated", doing))
    if common.json:
        print_json({"run": run, **report.to_json()})
        return
    if common.quiet:
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("promised", "came true", "candidates"):
        table.add_column(heading, justify="right")
    for row in report.bins:
        table.add_row(f"{row['promised']:.3f}", f"{row['true']:.3f}", f"{row['candidates']:,.0f}")
    print_whole(table)
    result_console().say(str(report))


def serve_history(
    rules: Annotated[str, typer.Argument(metavar="RULES")],
    *,
    serving: ServeOptions,
    reviews: Annotated[Path | None, typer.Option()] = None,
    aggregation: TimedAggregation = None,
    common: Common,
) -> None:
    """Explore temporal rules, ask questions with a moment, see reasons on a time line and review in a browser."""
    from anyburl.cli.serve import INTERRUPTED, announce, listening, require_web

    require_web()
    notes = common.notes()
    with listening(serving) as listener:
        serving = replace(serving, port=listener.getsockname()[1])
        reasoner = open_history(rules, None, notes, aggregation=aggregation, threads=common.threads)
        announce(
            rules, len(reasoner.rules), serving, notes, json={"rules": len(reasoner.rules)} if common.json else None
        )
        try:
            from anyburl.tools.review import FILE, ReviewLog
            from anyburl.web.app import serve
            from anyburl.web.history import TemporalExplorer, create_temporal_app

            folder = at_home(rules).resolve()
            explorer = TemporalExplorer(reasoner, folder.name, ReviewLog(reviews or folder / FILE))
            serve(create_temporal_app(explorer, serving), serving, listener)
        except KeyboardInterrupt:
            notes.say("stopped")
            raise typer.Exit(INTERRUPTED) from None
