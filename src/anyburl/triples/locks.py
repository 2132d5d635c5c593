"""One process at a time."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_LOCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Wait until no other process is in here with the same path; the system lets go of it whatever happens.

    A file system without locks lets everybody in.
    """
    with path.open("ab") as stream:
        with suppress(OSError):
            _lock(stream.fileno())
        yield
