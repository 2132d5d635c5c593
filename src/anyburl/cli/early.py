"""Handles Ctrl-C and SIGTERM while modules are imported.

This module comes first: before it, Python answers an interrupt with a traceback. It imports only what is there when
Python starts, hence `_signal`: `signal` would first turn all its constants into enums.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import os

TYPE_CHECKING = False  # typing's takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SIGNALS: tuple[int, ...] = (_signal.SIGINT, _signal.SIGTERM)
STANDARD_ERROR = 2


def handle_signals(handler: Callable[[int, FrameType | None], object]) -> None:
    """Let `handler` be called for each of the signals."""
    for number in SIGNALS:
        _signal.signal(number, handler)


def ignore_signals() -> None:
    """Let the process end as it is, when all is done: while Python shuts down, a signal would look like a failure."""
    for number in SIGNALS:
        _signal.signal(number, _signal.SIG_IGN)


def leave(number: int, frame: FrameType | None) -> None:
    """End the process at once: for moments when nothing is under way that could be lost, and no handler would catch an
    exception.
    """
    try:
        os.write(STANDARD_ERROR, b"error: interrupted\n")
    finally:  # also where standard error is closed, or on a full disk
        os._exit(130)
