"""Whether the system has run out of memory: libraries word it in ways of their own."""

from __future__ import annotations

import errno

NO_MEMORY = "not enough memory (or the system allows no more threads)"
WORDS = (
    "can't start new thread",
    "failed to spawn",
    "could not spawn threads",
    "failed to map segment",
    "annot allocate memory",
    "nable to allocate",
)


def lacks_memory(error: BaseException | None) -> bool:
    """Tell whether an error, or one that it came from, is for want of memory."""
    while error is not None:
        if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
            return True
        if any(words in str(error) for words in WORDS):
            return True
        error = error.__cause__ or error.__context__
    return False
