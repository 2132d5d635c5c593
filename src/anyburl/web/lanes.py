"""Threads for slow work, so that one heavy question does not block the others."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Event
from typing import ParamSpec, TypeVar, cast

from anyburl.base.machine import available_cores

P = ParamSpec("P")
R = TypeVar("R")


class BusyError(Exception):
    """There is no thread free, or none was within the time that a reader waits."""


class Lane:
    """A few threads; what does not get through in time is refused rather than queued forever.

    Work counts as under way until its thread is done with it, also where its reader was told that it takes too long:
    a thread cannot be stopped, and what waits for one holds its place in the queue.
    """

    def __init__(self, name: str, threads: int, most_waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"anyburl-{name}")
        self._most, self._seconds, self._under_way = threads + most_waiting, seconds, 0

    async def run(self, work: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Return what `work` returns; raise `BusyError` where that takes too long. What has begun is not stopped."""
        if self._under_way >= self._most:
            raise BusyError("too many readers are waiting")
        has_gone = Event()
        call = partial(contextvars.copy_context().run, partial(work, *args, **keywords))
        future = self._submit(lambda: None if has_gone.is_set() else call())
        try:
            return cast("R", await asyncio.wait_for(asyncio.shield(future), self._seconds))
        except TimeoutError as error:
            raise BusyError(f"this took longer than {self._seconds:g} seconds") from error
        finally:
            has_gone.set()

    def begin(self, work: Callable[[], object]) -> None:
        """Have something done for which nobody waits."""
        self._submit(work)

    def _submit(self, call: Callable[[], R]) -> asyncio.Future[R]:
        self._under_way += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, call)
        future.add_done_callback(self._count_down)
        return future

    def _count_down(self, future: asyncio.Future[R]) -> None:
        self._under_way -= 1
        if not future.cancelled():
            future.exception()  # seen, though the reader may have gone

    def close(self) -> None:
        """Drop what is waiting."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Lanes:
    """One lane for questions of milliseconds, one for those that may take seconds."""

    def __init__(self, most_waiting: int, seconds: float) -> None:
        self.quick = Lane("quick", available_cores() + 2, most_waiting, seconds)
        self.slow = Lane("slow", available_cores() + 1, max(1, most_waiting // 4), seconds)

    def close(self) -> None:
        """End both."""
        self.quick.close()
        self.slow.close()
