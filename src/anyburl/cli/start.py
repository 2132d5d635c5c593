"""The entry point `anyburl`; handles Ctrl-C, SIGTERM and want of memory while modules are imported.

This module comes first: before it, Python answers an interrupt with a traceback. It imports only what is there when
Python starts, hence `_signal`: `signal` would first turn all its constants into enums.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import errno
import gc
import os

TYPE_CHECKING = False  # typing's takes longer to import than all the rest
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

SIGNALS: tuple[int, ...] = (_signal.SIGINT, _signal.SIGTERM)
STANDARD_ERROR = 2
NO_MEMORY = "not enough memory (or the system allows no more threads)"
WORDS = (
    "can't start new thread",
    "failed to spawn",
    "could not spawn threads",
    "failed to map segment",
    "annot allocate memory",
    "nable to allocate",
)
"""How libraries say that they got no memory, for which they have no error of their own."""


OBJECTS_BEFORE_GARBAGE = 200_000
"""Made since garbage was last looked for. Commands import thousands of modules, none of which becomes garbage: with
Python's default of 700, looking for it takes a seventh of the time of a short command."""


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


def lacks_memory(error: BaseException) -> bool:
    """Whether an error says that there is no memory, or no thread."""
    is_memory_error = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return is_memory_error or any(words in str(error) for words in WORDS)


def leave_without_memory() -> None:
    """End the process with a sentence, for which nothing needs to be allocated that is not there."""
    try:
        os.write(STANDARD_ERROR, b"error: %b\n" % NO_MEMORY.encode())
    finally:
        os._exit(1)


def main() -> None:
    """Run the command line. While modules are being imported, an interrupt just ends the process, and so does want of
    memory; after a success, an interrupt changes nothing.
    """
    handle_signals(leave)
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE)
    try:
        from anyburl.cli.app import main as run

        run()
    except SystemExit as end:
        if not end.code:
            ignore_signals()
        gc.freeze()  # Python looks for garbage once more before it ends
        raise
    except Exception as error:  # before a command has begun, or after it has ended
        if not lacks_memory(error):
            raise
        leave_without_memory()
