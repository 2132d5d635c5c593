"""Whether the system has run out of memory or of file descriptors: libraries word it in ways of their own.

Some say nothing at all: Polars, if it cannot be loaded, is imported without half of its names. So the reason of any
unexpected error is want of memory where next to nothing is left of it.
"""

from __future__ import annotations

import errno
import mmap
from collections.abc import Iterator

from anyburl.cli.early import NO_MEMORY, lacks_memory
from anyburl.errors import AnyburlError

NO_FILES = "too many open files: allow this process more of them (ulimit -n)"
FEWEST_FILES = 16
WORDS_FOR_FILES = ("Too many open files", "TooManyOpenFiles")
LEAST = 1 << 28  # bytes of address space: less than Polars needs to be loaded


def lacks_descriptors() -> str | None:
    """Return a sentence if this process may open so few files that libraries would fail in ways of their own."""
    try:
        import resource
    except ImportError:  # the system has no such limit
        return None
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= allowed < FEWEST_FILES:
        return f"this process may open {allowed} files: allow it at least {FEWEST_FILES} (ulimit -n)"
    return None


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
    is_told = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE)
    return is_told or any(words in str(error) for words in WORDS_FOR_FILES)
