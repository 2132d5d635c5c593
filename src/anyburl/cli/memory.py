"""How much memory this process holds, and a warning before it runs out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from anyburl.memory import memory_left

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
