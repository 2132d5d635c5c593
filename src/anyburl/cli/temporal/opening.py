"""Loads facts with times and opens runs with temporal rules, for the commands on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from anyburl.cli.loading import existing_rules, read_in_sight, remark_left_out
from anyburl.cli.notes import PlainConsole, Slow
from anyburl.cli.session import compile_kernels
from anyburl.data.options import IGNORED, ReadOptions
from anyburl.temporal.options import AGGREGATIONS

if TYPE_CHECKING:
    from anyburl.temporal.facts import TemporalDataset
    from anyburl.temporal.reasoner import TemporalReasoner

PANEL = "Facts with times"
KERNELS = ("kernel_pairs.share_credit", "kernel_bodies.count_hops", "kernel_answer.answer_moments")

Time = Annotated[
    str | None,
    typer.Argument(metavar="[TIME]", help="With temporal rules: the moment that is asked about, such as 2014-11-03."),
]
TimedAggregation = Annotated[
    str | None,
    typer.Option("--aggregation", metavar="NAME", help=f"How candidates are ordered: {', '.join(AGGREGATIONS)}."),
]


def load_history_argument(
    data: str, notes: PlainConsole, reading: ReadOptions | None = None, *, is_new: bool = True
) -> TemporalDataset:
    """Load DATA with its times and, if it `is_new` and not what a run folder remembers, say how they are counted."""
    from anyburl.temporal.facts import load_temporal_dataset

    dataset = read_in_sight(data, notes, "fact", lambda progress: load_temporal_dataset(data, reading, progress))
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
        from anyburl.rules.files.run_folder import described_run

        if described_run(path)["data"].get("fingerprint") not in (None, reasoner.dataset.fingerprint):
            notes.say(f"{reasoner.dataset.name} has changed since the rules of {run} were learned", "yellow")
    return reasoner


def apply_reviews(reasoner: TemporalReasoner, notes: PlainConsole) -> None:
    """Let the verdicts of the run folder on facts with moments count, and say so."""
    from anyburl.tools.review import FILE, ReviewLog

    if reasoner.run is not None and (reasoner.run / FILE).is_file():
        accepted, rejected = ReviewLog.of_run(reasoner.run).judged(4)
        reasoner.apply_verdicts(accepted, rejected)
        notes.say(f"{len(accepted)} accepted and {len(rejected)} rejected facts count", "dim")


def compile_temporal_kernels(notes: PlainConsole) -> None:
    """Compile the kernels of temporal rules, if this machine has not yet, and report it."""
    from anyburl.base.jit import is_compiled

    if not all(map(is_compiled, KERNELS)):
        from anyburl.temporal.warmup import warm_up_temporal

        compile_kernels(warm_up_temporal, notes)
