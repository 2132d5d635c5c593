"""Where commands write and what they say while they work: results, notes on slow steps, compiling, interrupts.

Results go to standard output, everything else to standard error, however those are found: closed, on a full disk, on a
terminal that is gone.
"""

from __future__ import annotations

import _thread
import io
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from importlib.util import find_spec
from threading import Lock, Thread, Timer
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

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

from anyburl.base.errors import MissingExtraError
from anyburl.cli.events import tell, tell_progress
from anyburl.cli.start import SIGNALS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
LEAST_DONE = 0.02  # of the work; before that, the time left cannot be estimated
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
        """Add `n` to the number that are done."""
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
        """Change the words for what is being done; only a terminal shows the detail."""
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
    """Reports a download that takes more than a moment; a terminal shows the progress of each file."""

    def reach(self, file: str, n_bytes: int, total: int | None) -> None:
        """Set the number of bytes of a file that have arrived."""
        with self._lock:
            self._n_done, self._total = n_bytes, total
            if self._spinner is not None:
                self._spinner.update(self._spinner.task_ids[0], description=file, completed=n_bytes, total=total)

    def _columns(self) -> list[ProgressColumn]:
        bar, speed = BarColumn(bar_width=16), TransferSpeedColumn()
        return [TextColumn("{task.description}"), bar, DownloadColumn(), speed, TimeRemainingColumn()]


OUTPUT, ERROR = 1, 2
STANDARD_OUTPUT = "standard output"


class Results(io.FileIO):
    """Standard output: an error says that this is what cannot be written."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OSError(error.errno, error.strerror, STANDARD_OUTPUT) from error


class Remarks(io.FileIO):
    """Standard error: remarks that cannot be written end no command, and are dropped."""

    def write(self, data: ReadableBuffer, /) -> int:
        """Write some bytes, if that is possible."""
        try:
            return super().write(data)
        except BrokenPipeError:
            raise
        except OSError:
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Make standard output and standard error take any text; replace a closed one by the null device.

    Otherwise a file that is opened later would take its number, and a library's messages would end up in that file.
    """
    _occupy()
    sys.stdout = _prepared(sys.stdout, OUTPUT, Results)
    sys.stderr = _prepared(sys.stderr, ERROR, Remarks)


def let_go_of_output() -> None:
    """Send buffered output to the null device, since flushing it when Python ends would fail again."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, OUTPUT)
    os.close(nowhere)


def _occupy() -> None:
    """Open what is closed of the first three descriptors."""
    for number in range(ERROR + 1):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number, which is this one


def _prepared(stream: Any, number: int, kind: type[io.FileIO]) -> TextIO:
    if stream is not None and (sys.platform == "win32" or stream.fileno() != number):
        stream.reconfigure(errors="backslashreplace")
        return stream  # type: ignore[no-any-return]
    file = io.BufferedWriter(kind(number, "w", closefd=False))
    by_line = stream is not None and stream.line_buffering
    encoding = "utf-8" if stream is None else stream.encoding
    return io.TextIOWrapper(file, encoding, "backslashreplace", line_buffering=by_line)


def raise_again(lost: sys.UnraisableHookArgs) -> None:
    """Raise an interrupt again a moment later that came where Python drops exceptions, such as in a finaliser."""
    if isinstance(lost.exc_value, KeyboardInterrupt):
        threading.Timer(0.01, _thread.interrupt_main).start()
    else:
        sys.__unraisablehook__(lost)


def forget_interrupt() -> None:
    """Make Python end with the exit code that it is given.

    Where code of `exec`, such as that of a dataclass, was interrupted, Python ends itself by SIGINT afterwards, even if
    the interrupt was caught. Only code that runs to its end makes it forget.
    """
    exec("")


class Interrupts:
    """Calls `stop` at the first Ctrl-C or SIGTERM; the next one raises KeyboardInterrupt at once."""

    def __init__(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        self._before: dict[int, Any] = {}
        self.was_interrupted = False

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._handle) for number in SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.was_interrupted:
            raise KeyboardInterrupt
        self.was_interrupted = True
        self._stop()


def compile_kernels(work: Callable[[], object], notes: PlainConsole) -> None:
    """Do `work`, which compiles kernels that are new to this machine, and report that.

    Each command compiles what it needs; after the first one, most kernels are only loaded.

    The compiler cannot be interrupted, and Python would wait for its thread, so an interrupt ends the process. Nothing
    is lost.
    """
    from anyburl.base.jit import compiling, is_compiled, not_kept

    words = "compiling kernels (each once on this machine)", "compiled kernels"
    slow = Slow(notes, *words, after=0.0)
    if is_compiled():
        slow = Slow(notes, "loading kernels (compiling those that are new to this machine)", "loaded kernels")
    try:
        with slow:
            _do_beside(lambda: compiling(work, lambda stage: slow.change(*words, stage)))
    except KeyboardInterrupt:
        print_error("interrupted")
        sys.stderr.flush()
        os._exit(130)
    if remark := not_kept():
        notes.say(remark)


def _do_beside(work: Callable[[], object]) -> None:
    """Do `work` in another thread so that this one can be interrupted."""
    done: Future[object] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    Thread(target=run, name="anyburl-compiling", daemon=True).start()
    # An interrupt is recorded, then raised here: raised just anywhere, for example in a finaliser, it might be lost.
    with Interrupts(lambda: None) as interrupts:
        while not done.done():
            wait([done], timeout=0.1)
            if interrupts.was_interrupted:
                raise KeyboardInterrupt
    done.result()


def require_engine(engine: str) -> None:
    """Refuse, before any work is done, an engine whose extra is not installed."""
    if engine == "ray" and find_spec("ray") is None:
        raise MissingExtraError("--engine ray", "ray")


def silence_engine(engine: str) -> None:
    """Keep Ray from printing."""
    if engine == "ray":
        from anyburl.base.cluster import silence

        silence()


def starting(engine: str, notes: PlainConsole) -> Slow:
    """Report that an engine is starting if that takes a while; Ray itself is silenced."""
    silence_engine(engine)
    return Slow(notes, f"starting {engine}", f"started {engine}")
