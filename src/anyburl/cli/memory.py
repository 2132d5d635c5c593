"""How much memory this process holds, how much is left, and a warning before it runs out."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

LEAST_LEFT = 0.1  # of what there is
CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
RESIDENT = Path("/proc/self/statm")


def resident_bytes() -> int | None:
    """Return the memory that this process holds; where the system does not tell, the most that it has held."""
    with suppress(OSError, ValueError, ImportError, AttributeError):
        import resource

        with suppress(OSError):
            return int(RESIDENT.read_text().split()[1]) * resource.getpagesize()
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    return None


def memory_left() -> tuple[int, int] | None:
    """Return how many bytes are left, and of how many: of the machine, or of the cgroup if that has fewer left."""
    found = [pair for pair in (_of_the_machine(), *map(_of_the_cgroup, CGROUPS)) if pair]
    return min(found, default=None)


def _of_the_machine() -> tuple[int, int] | None:
    with suppress(OSError, ValueError, KeyError, IndexError):
        told = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in MEMORY.read_text().splitlines()}
        return told["MemAvailable"], told["MemTotal"]
    return None


def _of_the_cgroup(names: tuple[str, str]) -> tuple[int, int] | None:
    """A group without a limit says "max", or a number beyond any memory."""
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / name).read_text()) for name in names)
        return max(limit - used, 0), limit
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
        advice = f"--max-rules {max(n_rules, 1)} keeps the rules from growing, fewer --threads need less"
        self._warn(f"memory runs out, {room}: stop with Ctrl-C and --resume with less; {advice}")
