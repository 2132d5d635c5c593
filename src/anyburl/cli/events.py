"""`--log-json`: the events of a long command, as JSON lines that a program can follow.

Every line has `event` (start, progress, snapshot, saved, note, warning, error, end), `time` (UTC), `elapsed` (seconds
since the start) and `memory_mb`, plus what belongs to the event.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from threading import Lock
from typing import Annotated, Any, TextIO

import typer

from anyburl import __version__
from anyburl.cli.exhausted import exhausted
from anyburl.cli.memory import resident_bytes
from anyburl.errors import AnyburlError, OptionError
from anyburl.reading import at_home

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

    run.__name__, run.__doc__, run.__module__ = command.__name__, command.__doc__, command.__module__
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    )
    return run


@contextmanager
def _logging(out: str | None, name: str, given: dict[str, Any]) -> Iterator[None]:
    """Log what is done inside, from its start to its end, however it ends."""
    global _current
    if out is None:
        yield
        return
    from anyburl.triples.remote.addresses import shown_argument

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
