"""Ctrl-C and SIGTERM during a run, and before and after it."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

from anyburl.cli.early import SIGNALS


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
