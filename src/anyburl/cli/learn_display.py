"""The progress of a run: a live display on a terminal, otherwise one line per time span."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from anyburl.cli.events import resident_bytes
from anyburl.cli.notes import PlainConsole
from anyburl.cli.tables import counts_table

if TYPE_CHECKING:
    from anyburl.learning.learner import Learner, Span
    from anyburl.learning.policy import ProfileSpan
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
        for rules in span.found:
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
