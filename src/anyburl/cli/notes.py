"""Progress notes for slow steps.

Where commands write: results to standard output, everything else to standard error.
"""

from __future__ import annotations

import json
import sys
import time
from threading import Lock, Timer
from types import TracebackType
from typing import Any, Self

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.text import Text

from anyburl.cli.events import tell, tell_progress


class PlainConsole(Console):
    """A console that takes text as it is (labels may look like markup), and leaves a closed pipe to the caller."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False, width: int | None = None) -> None:
        super().__init__(stderr=stderr, quiet=quiet, width=width, markup=False, emoji=False, highlight=False)

    def on_broken_pipe(self) -> None:
        """Rich would end the program with code 1."""
        raise BrokenPipeError

    def say(self, text: str, style: str = "") -> None:
        """Print a line; only the terminal breaks it. Remarks go to the log of the command, too."""
        if self.stderr:
            tell("warning" if style == "yellow" else "note", message=text)
        self.print(Text(text, style=style), soft_wrap=True)


def result_console(*, quiet: bool = False, least_width: int | None = None) -> PlainConsole:
    """Return the console of standard output; where that is no terminal, lines may be as long as they need."""
    console = PlainConsole(quiet=quiet)
    if least_width is not None and not console.is_terminal:
        return PlainConsole(quiet=quiet, width=max(least_width, 80))
    return console


def print_whole(renderable: RenderableType) -> None:
    """Print a result; where standard output is no terminal, no line is broken."""
    console = PlainConsole()
    if not console.is_terminal:
        wide = PlainConsole(width=100_000)
        console.width = max(80, Measurement.get(wide, wide.options, renderable).maximum)
    console.print(renderable)


def note_console(*, quiet: bool = False) -> PlainConsole:
    """Return the console of standard error: progress and remarks."""
    return PlainConsole(stderr=True, quiet=quiet)


def print_error(sentence: str) -> None:
    """Say what was wrong."""
    PlainConsole(stderr=True).print(Text.assemble(("error: ", "bold red"), sentence), soft_wrap=True)


def print_json(result: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Print one JSON object, or a list of them, on standard output."""
    sys.stdout.write(json.dumps(result, ensure_ascii=False, indent=2) + "\n")
    sys.stdout.flush()


SECONDS_UNTIL_SAID = 2.0
LEAST_DONE = 0.02  # of the work; before that, nobody can tell how long the rest takes
SECONDS_BETWEEN_LINES = 10.0  # of what is no terminal: it shows lines in place of a bar


class Slow:
    """Says what is being done if it takes more than a moment, and at the end how long it took.

    With a `total`, `advance` tells how much of it is done. A terminal shows that and the time left as a bar; elsewhere,
    a line says it every few seconds.
    """

    def __init__(
        self,
        console: PlainConsole,
        doing: str,
        done: str,
        after: float | None = None,
        *,
        total: int | None = None,
    ) -> None:
        self._console, self._doing, self._done = console, doing, done
        self._after = SECONDS_UNTIL_SAID if after is None else after
        self._total, self._n_done = total, 0
        self._lock = Lock()
        self._timer = Timer(self._after, self._show)
        self._timer.daemon = True
        self._spinner: Progress | None = None
        self._is_shown = self._is_over = False
        self._started = self._last_line = time.monotonic()
        self._detail = ""

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        if self._after <= 0:
            self._show()
        else:
            self._timer.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self._is_over = True
        if self._spinner is not None:
            self._spinner.stop()
        if self._is_shown and error is None:
            self._console.say(f"{self._done} in {time.monotonic() - self._started:.1f} s")

    def advance(self, n: int) -> None:
        """Take note that `n` more are done."""
        with self._lock:
            self._n_done += n
            tell_progress(doing=self._doing, done=self._n_done, total=self._total)
            if self._spinner is not None:
                self._spinner.advance(self._spinner.task_ids[0], n)
            elif self._is_shown:
                self._say_progress()

    def _say_progress(self) -> None:
        """Say how much is done and how long the rest will take, if the last line was some time ago."""
        now = time.monotonic()
        if self._total and 0 < self._n_done < self._total and now - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = now
            rest = (now - self._started) * (self._total - self._n_done) / self._n_done
            left = f", about {rest:.0f} s left" if self._n_done >= LEAST_DONE * self._total else ""
            self._console.say(f"{self._doing}: {self._n_done:,} of {self._total:,}{left}")

    def change(self, doing: str, done: str, detail: str) -> None:
        """Take note that something else is being done; only a terminal shows the detail."""
        with self._lock:
            self._doing, self._done, self._detail = doing, done, detail
            if self._spinner is not None:
                self._spinner.update(self._spinner.task_ids[0], description=self._description())

    def _description(self) -> str:
        return f"{self._doing}: {self._detail}" if self._detail else self._doing

    def _show(self) -> None:
        with self._lock:
            if self._is_over:
                return
            self._is_shown, self._last_line = True, time.monotonic()
            if not self._console.is_terminal or self._console.quiet:
                self._console.say(f"{self._doing} ...")
                return
            self._spinner = Progress(*self._columns(), console=self._console, transient=True, speed_estimate_period=300)
            self._spinner.add_task(self._description(), total=self._total, completed=self._n_done)
            self._spinner.start()

    def _columns(self) -> list[ProgressColumn]:
        if self._total is None:
            return [SpinnerColumn(), TextColumn("{task.description} ..."), TimeElapsedColumn()]
        return [TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()]


class SlowDownload(Slow):
    """Says so if a download takes more than a moment; a terminal shows how much of which file is there."""

    def reach(self, file: str, n_bytes: int, total: int | None) -> None:
        """Take note that `n_bytes` of a file are there."""
        with self._lock:
            self._n_done, self._total = n_bytes, total
            if self._spinner is not None:
                self._spinner.update(self._spinner.task_ids[0], description=file, completed=n_bytes, total=total)

    def _columns(self) -> list[ProgressColumn]:
        bar, speed = BarColumn(bar_width=16), TransferSpeedColumn()
        return [TextColumn("{task.description}"), bar, DownloadColumn(), speed, TimeRemainingColumn()]
