"""One learning run from the command line, shared by `learn` and `demo`: compile, learn, show progress, save.

Progress is a live display on a terminal, otherwise one line per time span.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from anyburl.base.errors import counted
from anyburl.cli.events import MemoryWatch, peak_memory_mb, resident_bytes, tell, tell_progress
from anyburl.cli.notes import Interrupts, PlainConsole, Slow, compile_kernels, starting
from anyburl.cli.tables import counts_table
from anyburl.learning.options import ALL, DISTILLED
from anyburl.rules.types import RuleType

if TYPE_CHECKING:
    from anyburl.data.dataset import Dataset
    from anyburl.learning.learner import Learner, Span
    from anyburl.learning.options import LearnOptions
    from anyburl.learning.policy import ProfileSpan
    from anyburl.learning.recorder import KeepRules, Recorder
    from anyburl.rules.ruleset import RuleSet
    from anyburl.rules.types import PathProfile

HEADING = f"{'span':>5} {'elapsed':>9} {'paths/s':>10} {'rules':>12} {'new':>10} {'saturated':>9}  cores by profile"


class Display(Protocol):
    """Shows a run."""

    def __enter__(self) -> Display: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def show(self, span: Span) -> None:
        """Show a span that has ended."""
        ...


def make_display(learner: Learner, console: PlainConsole, title: str) -> Display:
    """Return the display that suits the console."""
    if console.quiet:
        return NoDisplay()
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveDisplay(learner, console, title)
    return LineDisplay(console, title)


class NoDisplay:
    """Shows nothing."""

    def __enter__(self) -> NoDisplay:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def show(self, span: Span) -> None:
        """Do nothing."""


class LineDisplay(NoDisplay):
    """Prints one line per span."""

    def __init__(self, console: PlainConsole, title: str) -> None:
        self._console, self._title = console, title

    def __enter__(self) -> LineDisplay:
        self._console.say(self._title)
        self._console.say(HEADING)
        return self

    def show(self, span: Span) -> None:
        """Print the span's line."""
        _say_notes(span, self._console)
        self._console.say(span_line(span))


class LiveDisplay:
    """Redraws one picture of the run several times a second."""

    def __init__(self, learner: Learner, console: PlainConsole, title: str) -> None:
        self._title, self._options, self._console = title, learner.options, console
        self._counts = Counter(learner.store.rules().counts_by_length())
        self._profiles: dict[PathProfile, ProfileSpan] = {}
        self._span: Span | None = None
        self._elapsed_before = learner.elapsed
        self._moment = time.monotonic()
        self._live = Live(console=console, get_renderable=self._draw, refresh_per_second=4, transient=True)

    def __enter__(self) -> LiveDisplay:
        self._moment = time.monotonic()
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._moment = float("inf")  # stops the clock
        self._live.stop()

    def show(self, span: Span) -> None:
        """Add the span to the picture; notes about workers stay above it."""
        _say_notes(span, self._console)
        for rules in span.learned:
            self._counts.update(rules.counts_by_length())
        self._profiles |= {entry.profile: entry for entry in span.profiles if entry.cores or entry.paths}
        self._span, self._elapsed_before, self._moment = span, span.elapsed, time.monotonic()

    def _draw(self) -> RenderableType:
        parts: list[RenderableType] = [Text(self._title, "bold"), self._draw_clock()]
        if self._span is not None:
            parts += [self._draw_totals(self._span), counts_table(self._counts), self._draw_profiles(self._span)]
        return Group(*parts)

    def _draw_clock(self) -> RenderableType:
        elapsed = self._elapsed_before + max(0.0, time.monotonic() - self._moment)
        if self._options.seconds is not None:
            done, budget, words = elapsed, self._options.seconds, f"{elapsed:.1f} of {self._options.seconds:g} s"
        else:
            done, budget = self._span.n_paths if self._span else 0, self._options.paths or 1
            words = f"{elapsed:.1f} s, {done:,} of {budget:,} paths"
        grid = Table.grid(padding=(0, 2))
        grid.add_row(ProgressBar(total=max(budget, 1e-9), completed=min(done, budget), width=40), words)
        return grid

    def _draw_totals(self, span: Span) -> RenderableType:
        dropped = f"   dropped {span.n_dropped:,}" if span.n_dropped else ""
        memory = resident_bytes()
        held = f"   memory {memory / 1e9:.2f} GB" if memory else ""
        return Text(
            f"rules {span.n_rules:,} (+{span.new_rules:,})   bodies {span.n_bodies:,}   "
            f"paths/s {span.paths_per_second:,.0f}   saturation {span.saturation:.1%}{dropped}{held}"
        )

    def _draw_profiles(self, span: Span) -> RenderableType:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        table.add_column("paths")
        for name in ("cores", "sampled", "new bodies", "new rules", "saturation", "reward", "value"):
            table.add_column(name, justify="right")
        for profile in self._options.profiles:
            entry = self._profiles.get(profile)
            if entry is None:
                table.add_row(str(profile), "-", style="dim")
                continue
            is_current = entry in span.profiles
            table.add_row(*_profile_cells(entry, is_current), style="" if is_current else "dim")
        return table


def _profile_cells(entry: ProfileSpan, is_current: bool) -> list[str]:
    name = f"{entry.profile}{' (complete)' if entry.exhausted else ''}"
    return [
        name,
        str(entry.cores) if is_current else "-",
        f"{entry.paths:,}",
        f"{entry.new_bodies:,}",
        f"{entry.new_rules:,}",
        f"{entry.saturation:.1%}",
        f"{entry.reward:,.1f}",
        f"{entry.value:,.1f}",
    ]


def _say_notes(span: Span, console: PlainConsole) -> None:
    for note in span.notes:
        console.say(note, "yellow")


def span_line(span: Span) -> str:
    """Return a span as one line of text."""
    cores = ", ".join(f"{entry.profile}: {entry.cores} ({entry.value:,.1f})" for entry in span.profiles if entry.cores)
    return (
        f"{span.number:>5} {span.elapsed:>8.1f}s {span.paths_per_second:>10,.0f} {span.n_rules:>12,} "
        f"{span.new_rules:>10,} {span.saturation:>9.1%}  {cores}"
    )


Start = Callable[[], "tuple[Learner, Recorder]"]


@dataclass(frozen=True)
class Session:
    """A finished run and its rules, which are saved."""

    learner: Learner
    recorder: Recorder
    rules: RuleSet

    @property
    def was_interrupted(self) -> bool:
        """Whether Ctrl-C or SIGTERM ended it."""
        return self.learner.stopped_by == "interrupt"

    def to_json(self) -> dict[str, Any]:
        """Return what `learn --json` prints."""
        by_type, update = self.rules.counts_by_type(), self.recorder.update
        return {
            "run": str(self.recorder.run.path),
            "seconds": round(self.learner.elapsed, 3),
            "rules": len(self.rules),
            "rules_by_type": {name: n for name, n in by_type.items() if n or RuleType(name).form.is_learned},
            "rules_by_length": self.rules.counts_by_length(),
            "paths": self.learner.n_paths,
            "bodies": self.learner.n_bodies,
            "peak_memory_mb": peak_memory_mb(),
            "stopped_by": self.learner.stopped_by,
            "found": self.learner.store.n_rules,
            "dropped": self.learner.store.n_dropped,
            "threads": self.learner.threads,
            "outlook": [entry.to_json() for entry in self.learner.outlook()],
            **({"update": update.to_json()} if update else {}),
        }


def run_session(
    dataset: Dataset, options: LearnOptions, start: Start, notes: PlainConsole, *, replacing: str | None = None
) -> Session:
    """Learn: `start` makes the learner and its recorder once the kernels are there.

    If the run is learned anew, `replacing` is its folder, which stays as it was if that is interrupted.
    """
    from anyburl.cli.rules import Measuring  # which imports this module
    from anyburl.learning.threads import warm_up_learning
    from anyburl.reasoning.explanation.relatives import MANY

    n_relations, has_values = dataset.vocabulary.n_relations, not dataset.attributes.empty
    compile_kernels(lambda: warm_up_learning(options, n_relations, has_values=has_values), notes)
    with starting(options.engine, notes):
        learner, recorder = start()
    _learn(learner, recorder, notes, describe(dataset, learner))
    if replacing and learner.stopped_by == "interrupt":
        recorder.close()
        notes.say(f"interrupted after {learner.elapsed:.1f} s: {replacing} is as it was before", "yellow")
        raise KeyboardInterrupt
    rules = _finish(learner, recorder, notes, replacing, _keeping(dataset, learner, notes))
    if len(rules) >= MANY:
        Measuring(str(recorder.run.path), None, options.threads, notes).write_best(rules)
    session = Session(learner, recorder, rules)
    tell("saved", run=str(recorder.run.path), rules=len(rules), stopped_by=learner.stopped_by)
    _remark_end(session, notes)
    return session


def _learn(learner: Learner, recorder: Recorder, notes: PlainConsole, title: str) -> None:
    from anyburl.learning.recorder import run_learner

    try:
        with Interrupts(learner.stop), make_display(learner, notes, title) as display:
            run_learner(learner, recorder, watched(display, notes))
    except BaseException:
        with suppress(Exception):
            recorder.close()
        raise


def watched(display: Display, notes: PlainConsole) -> Callable[[Span], None]:
    """Return a function that shows and logs a span, and warns if memory is short."""
    memory = MemoryWatch(lambda warning: notes.say(warning, "yellow"))

    def show(span: Span) -> None:
        display.show(span)
        counts = {"rules": span.n_rules, "new_rules": span.new_rules, "paths": span.n_paths, "bodies": span.n_bodies}
        record = {"span": span.number, "seconds": round(span.elapsed, 3), **counts, "dropped": span.n_dropped}
        tell_progress(doing="learning", **record)
        if span.snapshot is not None:
            tell("snapshot", name=span.snapshot, **record)
        memory.look(span.n_rules)

    return show


def _keeping(dataset: Dataset, learner: Learner, notes: PlainConsole) -> KeepRules | None:
    """Return the function that chooses the rules to keep; compile its kernels if there is much to choose from."""
    from anyburl.models.distilling.distil import MANY_RULES
    from anyburl.models.distilling.keeping import rules_to_keep
    from anyburl.reasoning.shortcuts import warm_up_distilling

    n_rules, options = learner.store.n_rules, learner.options
    if options.keep == ALL or not n_rules or (n_rules <= MANY_RULES and options.keep != DISTILLED):
        return None
    compile_kernels(lambda: warm_up_distilling(dataset.vocabulary.n_relations), notes)
    return rules_to_keep(dataset, options, lambda doing, done: Slow(notes, doing, done))


def _finish(
    learner: Learner, recorder: Recorder, notes: PlainConsole, replacing: str | None, keep: KeepRules | None
) -> RuleSet:
    """Save the rules. If that is interrupted, they stay in the parts of the run; a run to be replaced stays."""
    try:
        return recorder.finish(learner, keep)
    except KeyboardInterrupt:
        recorder.close()
        if replacing is None:
            rules = counted(learner.store.n_rules, "rule")
            notes.say(
                f"interrupted while saving: {rules} kept in {recorder.run.path}, which can still be opened", "yellow"
            )
        raise


def _remark_end(session: Session, notes: PlainConsole) -> None:
    learner, n_rules = session.learner, counted(len(session.rules), "rule")
    if learner.store.n_dropped:
        dropped = counted(learner.store.n_dropped, "rule")
        notes.say(f"dropped the {dropped} with the least support x confidence; {n_rules} kept", "yellow")
    if (reduced := session.recorder.reduced) is not None:
        notes.say(f"kept {n_rules} of {learner.store.n_rules:,}: {reduced.which}")
        notes.say(_sizes(session))
    if session.was_interrupted:
        notes.say(f"interrupted after {learner.elapsed:.1f} s: {n_rules} saved", "yellow")
    elif learner.stopped_by == "complete":
        notes.say(f"complete after {learner.elapsed:.1f} s: no bodies left to explore")


PREPARED_BYTES = 57  # for each rule: Debian's 56 million rules take 3.2 GB


def _sizes(session: Session) -> str:
    """Return how large the run folder is, and how large it would be with all rules."""
    path, n_kept, n_all = session.recorder.run.path, max(1, len(session.rules)), session.learner.store.n_rules
    size = sum(file.stat().st_size for file in path.iterdir() if file.is_file())
    rules = (path / "rules.parquet").stat().st_size
    whole = size + rules * (n_all / n_kept - 1)
    sizes = (size, size + n_kept * PREPARED_BYTES, whole, whole + n_all * PREPARED_BYTES)
    now, ready, then, then_ready = (f"{n_bytes / 1e6:,.0f} MB" for n_bytes in sizes)
    return f"{path} takes {now}, about {ready} once prepared; with --keep all about {then} and {then_ready}"


def describe(dataset: Dataset, learner: Learner) -> str:
    """Return one line about the data and how it is learned from."""
    words, train = dataset.vocabulary, dataset.train
    worker = "thread" if learner.options.engine == "threads" else "Ray worker"
    duplicates = f" ({counted(train.n_duplicates, 'duplicate')} dropped)" if train.n_duplicates else ""
    return (
        f"learning on {dataset.name}: {counted(len(train), 'triple')}{duplicates}, "
        f"{counted(words.n_entities, 'entity', 'entities')}, {counted(words.n_relations, 'relation')}; "
        f"{counted(learner.threads, worker)}, policy {learner.options.policy}"
    )
