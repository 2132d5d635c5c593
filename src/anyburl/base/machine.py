"""What this process may use: memory, huge pages, cores and threads; and whether it was forked after Polars was used."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import Generic, TypeVar

from anyburl.base.errors import AnyburlError

CGROUPS = (("memory.max", "memory.current"), ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"))
MEMORY = Path("/proc/meminfo")
CGROUP = Path("/sys/fs/cgroup")
HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")

M_ARENA_MAX = -8  # of glibc's malloc.h

ITEMS_AHEAD = 4  # for each thread: those under way, and those that wait for the ones before them

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


def share_heaps() -> None:
    """Let the threads of this process share a heap: for processes that run for long and start threads all the time.

    glibc gives new threads one of up to eight heaps a core, and what is free in one is of no use in another: free
    memory piled up in them, 30 MB in 10,000 calls of agents. With one heap, it stays the same after some thousand.
    """
    with suppress(OSError, AttributeError, TypeError):  # other C libraries have other heaps
        ctypes.CDLL(None).mallopt(M_ARENA_MAX, 1)


def stream_from_threads(
    work: Callable[[Item], Result], items: Iterable[Item], threads: int
) -> Generator[Result, None, None]:
    """Yield the results of `work` on each item, in order, computed by `threads` threads a few items ahead.

    When it is closed, what is under way ends and what is waiting is dropped. Callers that can be interrupted use
    `contextlib.closing`: a traceback would keep the generator open.
    """
    if threads == 1:
        yield from map(work, items)
        return
    waiting: deque[Future[Result]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="anyburl")
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > ITEMS_AHEAD * threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)


def map_in_threads(work: Callable[[Item], Result], items: Sequence[Item], threads: int) -> list[Result]:
    """Return the results of `work` on each item, in order; a single item needs no thread."""
    return list(stream_from_threads(work, items, 1 if len(items) <= 1 else threads))


class Spare(Generic[Item]):
    """Buffers that threads share: each takes one and puts it back. At most `most` are made, when they are needed."""

    def __init__(self, make: Callable[[], Item], most: int) -> None:
        self._make = make
        self._idle: SimpleQueue[Item | None] = SimpleQueue()
        for _ in range(most):
            self._idle.put(None)

    def take(self) -> Item:
        """Return an idle buffer; wait for one if all are in use."""
        idle = self._idle.get()
        if idle is not None:
            return idle
        try:
            return self._make()
        except BaseException:  # no memory: another thread may try again
            self._idle.put(None)
            raise

    def put(self, buffer: Item) -> None:
        """Give a buffer back, or a larger one that replaces it."""
        self._idle.put(buffer)


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
