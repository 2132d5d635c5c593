"""How much memory is left on this machine, and whether huge pages are available."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


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


def has_huge_pages() -> bool:
    """Whether NumPy gets huge pages for large arrays: the processor then finds far more of them without a look-up."""
    with suppress(OSError):
        return "[never]" not in HUGE_PAGES.read_text()
    return False
