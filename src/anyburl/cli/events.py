"""`--log-json`: the events of a long command as JSON lines; and what a command says when memory or files run out.

Every line has `event` (start, progress, snapshot, saved, note, warning, error, end), `time` (UTC), `elapsed` (seconds
since the start) and `memory_mb`, plus what belongs to the event. A warning comes before memory runs out.

Libraries report a lack of memory or of file descriptors in their own ways, or not at all: Polars, if it cannot be
loaded, is imported without half of its names. So any unexpected error is put down to memory where next to none is left.
"""

from __future__ import annotations

import errno
import inspect
import json
import mmap
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Annotated, Any, TextIO

import typer

from anyburl import __version__
from anyburl.base.errors import AnyburlError, OptionError, shown_argument
from anyburl.base.files import at_home
from anyburl.base.machine import memory_left
from anyburl.cli.arguments import with_parameters
from anyburl.cli.start import NO_MEMORY, lacks_memory

NO_FILES = "too many open files: allow this process more of them (ulimit -n)"
WORDS_FOR_FILES = ("Too many open files", "TooManyOpenFiles")
LEAST = 1 << 28  # bytes of address space: less than Polars needs to be loaded


def exhausted(error: BaseException) -> str | None:
    """Return a sentence about what the system has run out of, if that is why an error was raised.

    A file that could not be opened for want of descriptors is reported as such, not as damaged.
    """
    if any(_lacks_files(one) for one in _causes(error)):
        return NO_FILES
    if isinstance(error, AnyburlError):
        return None
    if any(lacks_memory(one) for one in _causes(error)):
        return NO_MEMORY
    is_unexpected = not isinstance(error, OSError | KeyboardInterrupt | SystemExit)
    return NO_MEMORY if is_unexpected and not _has_memory() else None


def _has_memory() -> bool:
    """Whether the system would give this process some more."""
    try:
        mmap.mmap(-1, LEAST).close()
    except (OSError, MemoryError, ValueError):
        return False
    return True


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Give an error and those that it came from, each once: one that was raised again may be its own cause."""
    given: set[int] = set()
    while error is not None and id(error) not in given:
        yield error
        given.add(id(error))
        error = error.__cause__ or error.__context__


def _lacks_files(error: BaseException) -> bool:
    is_file_error = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE)
    return is_file_error or any(words in str(error) for words in WORDS_FOR_FILES)


LEAST_LEFT = 0.1  # of what there is
RESIDENT = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return the memory that this process holds; where the system does not tell, the most that it has held."""
    with suppress(OSError, ValueError, ImportError, AttributeError):
        import resource

        with suppress(OSError):
            return int(RESIDENT.read_text().split()[1]) * resource.getpagesize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return None


class MemoryWatch:
    """Warns once, when next to nothing is left."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        self._warn, self._has_warned = warn, False

    def look(self, n_rules: int) -> None:
        """Look how much is left, and name the options that help."""
        left = None if self._has_warned else memory_left()
        if left is None or left[0] >= LEAST_LEFT * left[1]:
            return
        self._has_warned = True
        room = f"{left[0] / 1e9:.1f} of {left[1] / 1e9:.1f} GB left"
        advice = f"--max-rules {max(n_rules, 1)} caps the rules, and fewer --threads need less"
        self._warn(f"memory is running out, {room}: stop with Ctrl-C, then --resume with less; {advice}")


STANDARD_OUTPUT = "-"
SECONDS_BETWEEN = 1.0  # events of progress

LogJson = Annotated[
    str | None,
    typer.Option(metavar="FILE|-", help="Append events to FILE as JSON lines; - is standard output."),
]


class EventLog:
    """Writes events, each as one line, at once."""

    def __init__(self, file: TextIO) -> None:
        self._file, self._started, self._lock = file, time.monotonic(), Lock()
        self._last_progress = float("-inf")

    def write(self, event: str, **values: Any) -> None:
        """Write one event."""
        memory, elapsed = resident_bytes(), time.monotonic() - self._started
        line = {
            "event": event,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "elapsed": round(elapsed, 3),
            "memory_mb": None if memory is None else memory // 1_000_000,
            **values,
        }
        with self._lock, suppress(OSError):  # a log that cannot be written ends no command
            self._file.write(json.dumps(line, ensure_ascii=False, default=str) + "\n")
            self._file.flush()

    def progress(self, **values: Any) -> None:
        """Write how far the command is, unless that was done a moment ago."""
        now = time.monotonic()
        if now - self._last_progress >= SECONDS_BETWEEN:
            self._last_progress = now
            self.write("progress", **values)


_current: EventLog | None = None


def tell(event: str, **values: Any) -> None:
    """Write an event to the log of this command, if it has one."""
    if _current is not None:
        _current.write(event, **values)


def tell_progress(**values: Any) -> None:
    """Write how far this command is to its log, if it has one: once a second at most."""
    if _current is not None:
        _current.progress(**values)


def logged(name: str, command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the flag --log-json."""
    own = inspect.signature(command, eval_str=True).parameters.values()
    flag = inspect.Parameter("log_json", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=LogJson)
    parameters = [*own, flag]

    def run(**given: Any) -> None:
        with _logging(given.pop("log_json"), name, given):
            command(**given)

    return with_parameters(run, command, parameters)


@contextmanager
def _logging(out: str | None, name: str, given: dict[str, Any]) -> Iterator[None]:
    """Log what is done inside, from its start to its end, however it ends."""
    global _current
    if out is None:
        yield
        return
    with _opened(out, given) as file:
        _current = EventLog(file)
        tell(
            "start",
            command=name,
            anyburl=__version__,
            process=os.getpid(),
            arguments=[*map(shown_argument, sys.argv[1:])],
        )
        try:
            yield
            tell("end", code=0)
        except BaseException as error:
            _tell_end(error)
            raise
        finally:
            _current = None


def _tell_end(error: BaseException) -> None:
    code = getattr(error, "exit_code", None)
    if code is None:
        lacking = exhausted(error)
        is_wrong_input = isinstance(error, AnyburlError | OSError) and lacking is None
        code = 130 if isinstance(error, KeyboardInterrupt) else 2 if is_wrong_input else 1
        tell("error", message="interrupted" if code == 130 else lacking or str(error) or type(error).__name__)
    tell("end", code=code)


@contextmanager
def _opened(out: str, given: dict[str, Any]) -> Iterator[TextIO]:
    if out == STANDARD_OUTPUT:
        if given.get("json") or not given.get("quiet"):
            raise OptionError(
                "--log-json - needs standard output for itself: add --quiet and drop --json, or log to a file"
            )
        yield sys.stdout
        return
    try:
        file = at_home(out).open("a", encoding="utf-8")
    except OSError as refusal:
        raise OptionError(f"{out}: the log cannot be written ({refusal.strerror or refusal})") from refusal
    with file:
        yield file


def peak_memory_mb() -> int | None:
    """Return the peak memory of this process in MB, where the system reports it."""
    peak = peak_bytes()
    return None if peak is None else peak // 1_000_000


def peak_bytes() -> int | None:
    """Return the peak memory of this process in bytes, where the system reports it."""
    try:
        import resource
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
