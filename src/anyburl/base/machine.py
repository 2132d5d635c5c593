"""What this process may use: memory, huge pages, cores and threads; and whether it was forked after Polars was used."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from anyburl.base.errors import AnyburlError

CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

Item = TypeVar("Item")
Result = TypeVar("Result")


def memory_left() -> tuple[int, int] | None:
    """Return free and total bytes of the machine, or of the cgroup if that has fewer free; None if unknown."""
    limits = [pair for pair in (_of_the_machine(), *map(_of_the_cgroup, CGROUPS)) if pair]
    return min(limits, default=None)


def _of_the_machine() -> tuple[int, int] | None:
    with suppress(OSError, ValueError, KeyError, IndexError):
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in MEMORY.read_text().splitlines()}
        return sizes["MemAvailable"], sizes["MemTotal"]
    return None


def _of_the_cgroup(names: tuple[str, str]) -> tuple[int, int] | None:
    """Return free and total bytes; a group without a limit has "max", or a number beyond any memory."""
    with suppress(OSError, ValueError):
        limit, used = (int((CGROUP / name).read_text()) for name in names)
        return max(limit - used, 0), limit
    return None


def has_huge_pages() -> bool:
    """Whether NumPy gets huge pages for large arrays, which need far fewer address translations."""
    with suppress(OSError):
        return "[never]" not in HUGE_PAGES.read_text()
    return False


def available_cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return the results of `work` on each item, in order; a single item, or thread, needs no pool."""
    if threads == 1 or len(items) <= 1:
        return list(map(work, items))
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, items))


_first_user: int | None = None  # the process that used Polars first


def check_not_forked() -> None:
    """Raise an error in a process forked after Polars was used: it would wait forever for threads that are gone."""
    global _first_user
    if _first_user is None:
        _first_user = os.getpid()
    elif _first_user != os.getpid():
        raise AnyburlError(
            "this process was forked from one that had used anyburl, and would wait forever: use threads, or start "
            'processes with multiprocessing.get_context("spawn")'
        )
