"""Standard output and standard error, however they are found: closed, on a full disk, on a terminal that is gone.

Ctrl-C and SIGTERM during a run, and before and after it.
"""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from anyburl.cli.start import SIGNALS

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
    """Let standard output and standard error take any text; a closed one leads nowhere.

    Otherwise a file that is opened later would take its number, and a library's messages would end up in that file.
    """
    _occupy()
    sys.stdout = _prepared(sys.stdout, OUTPUT, Results)
    sys.stderr = _prepared(sys.stderr, ERROR, Remarks)


def let_go_of_output() -> None:
    """Nobody can have our output: what is still buffered must not fail again when Python ends."""
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
    """Let Python end with the exit code that it is given.

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
