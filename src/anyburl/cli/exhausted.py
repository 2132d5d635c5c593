"""Whether the system has run out of memory or of file descriptors: libraries word it in ways of their own."""

from __future__ import annotations

import errno
from collections.abc import Iterator

from anyburl.errors import AnyburlError

NO_MEMORY = "not enough memory (or the system allows no more threads)"
NO_FILES = "too many open files: allow this process more of them (ulimit -n)"
FEWEST_FILES = 16
WORDS = (
    "can't start new thread",
    "failed to spawn",
    "could not spawn threads",
    "failed to map segment",
    "annot allocate memory",
    "nable to allocate",
)
WORDS_FOR_FILES = ("Too many open files", "TooManyOpenFiles")


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
    if not isinstance(error, AnyburlError) and any(_lacks_memory(one) for one in _causes(error)):
        return NO_MEMORY
    return None


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


def _lacks_memory(error: BaseException) -> bool:
    is_told = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    return is_told or any(words in str(error) for words in WORDS)
