"""`Site`: renders pages and JSON in threads, and caches them until somebody records a verdict.

Rules and data do not change while they are served.
"""

from __future__ import annotations

import asyncio
import contextvars
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Event
from typing import Annotated, Any, Generic, ParamSpec, Protocol, TypeVar, cast

from fastapi import Depends
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import Response

from anyburl.base.machine import available_cores
from anyburl.reasoning.search import LabelSearch
from anyburl.tools.options import ServeOptions
from anyburl.tools.review import Edition
from anyburl.web.background import BusyError
from anyburl.web.explorer import Explorer
from anyburl.web.guard import address_of, path_of

HTML, JSON = "text/html; charset=utf-8", "application/json"
MOST_BYTES = 48_000_000
UNFINISHED = "is_unfinished"
"""The name in a context that says that a page shows first results, and asks for itself again."""

P = ParamSpec("P")
R = TypeVar("R")
Context = dict[str, Any]


class Lane:
    """A thread pool with a bounded queue and a time limit per request.

    A thread cannot be stopped, so work counts until its thread is done, also after its request has timed out.
    anyio's `CapacityLimiter` would free the slot at the time-out, and threads would pile up.
    """

    def __init__(self, name: str, threads: int, most_waiting: int, seconds: float) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"anyburl-{name}")
        self._most, self._seconds, self._under_way = threads + most_waiting, seconds, 0

    async def run(self, work: Callable[P, R], *args: P.args, **keywords: P.kwargs) -> R:
        """Return what `work` returns; raise `BusyError` if the queue is full or the time is up."""
        if self._under_way >= self._most:
            raise BusyError("too many readers are waiting")
        has_gone = Event()
        call = partial(contextvars.copy_context().run, partial(work, *args, **keywords))
        future = self.begin(lambda: None if has_gone.is_set() else call())
        try:
            return cast("R", await asyncio.wait_for(asyncio.shield(future), self._seconds))
        except TimeoutError as error:
            raise BusyError(f"this took longer than {self._seconds:g} seconds") from error
        finally:
            has_gone.set()

    def begin(self, work: Callable[[], R]) -> asyncio.Future[R]:
        """Queue work, whatever the length of the queue."""
        self._under_way += 1
        future = asyncio.get_running_loop().run_in_executor(self._pool, work)
        future.add_done_callback(self._count_down)
        return future

    def _count_down(self, future: asyncio.Future[R]) -> None:
        self._under_way -= 1
        if not future.cancelled():
            future.exception()  # marks it as retrieved, though the request may have timed out

    def close(self) -> None:
        """Cancel work that has not begun."""
        self._pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class CachedResponse:
    """The body of a response, with its ETag."""

    body: bytes
    media_type: str
    tag: str
    is_whole: bool = True  # a page with the first results is not kept

    def response(self, request: Request) -> Response:
        """Return the response, or 304 if the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def tagged_response(body: bytes, media_type: str) -> CachedResponse:
    """Return a response with its ETag."""
    return CachedResponse(body, media_type, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


class PageCache:
    """The responses used last, up to a number of bytes; two requests for the same address compute it once."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, CachedResponse] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[CachedResponse]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[CachedResponse]]) -> CachedResponse:
        """Return the response of an address, computed if it is not cached."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            task = asyncio.ensure_future(compute())
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(self._under_way[key])

    def clear(self) -> None:
        """Forget all responses."""
        self._kept.clear()
        self._bytes = 0

    def _store(self, key: str, done: asyncio.Future[CachedResponse]) -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None or not done.result().is_whole:
            return
        self._kept[key] = done.result()
        self._bytes += len(key) + len(done.result().body)
        while self._bytes > self._most and len(self._kept) > 1:
            oldest, response = self._kept.popitem(last=False)
            self._bytes -= len(oldest) + len(response.body)


class Changing(Protocol):
    """What readers can change: `edition` differs after every verdict, and `catch_up` lets verdicts count."""

    def edition(self) -> Edition: ...
    def catch_up(self, edition: Edition) -> None: ...


class Explored(Protocol):
    """What a site needs to know of what it shows: labels to search for, and work to do at its start and end."""

    @property
    def search(self) -> LabelSearch: ...
    @property
    def can_search(self) -> bool: ...
    def warm_up(self) -> None: ...
    def close(self) -> None: ...


E = TypeVar("E", bound=Explored)


class Site(Generic[E]):
    """The explorer, its templates, the cache, and threads for work of milliseconds (`quick`) and seconds (`slow`)."""

    def __init__(
        self, explorer: E, options: ServeOptions, environment: Environment, reviewed: Changing | None = None
    ) -> None:
        self.explorer, self.options, self._environment = explorer, options, environment
        cores = -(-available_cores() // options.workers)
        waiting = -(-options.most_waiting // options.workers)
        self.quick = Lane("quick", cores + 2, waiting, options.seconds)
        self.slow = Lane("slow", cores + 1, max(1, waiting // 4), options.seconds)
        self._cache = PageCache()
        self._reviewed, self._edition = reviewed, None if reviewed is None else reviewed.edition()

    def render(self, template: str, context: Context) -> bytes:
        """Return a page."""
        return self._environment.get_template(template).render(context).encode()

    def send(self, template: str, context: Context, status: int = 200) -> Response:
        """Return a page that is rendered on every request."""
        return Response(self.render(template, context), status, media_type=HTML)

    async def page(
        self, request: Request, template: str, make: Callable[[], Context], lane: Lane | None = None
    ) -> Response:
        """Return a page, cached by its address; `make` computes its context in a thread."""

        def compute() -> CachedResponse:
            context = make()
            body = self.render(template, {"path": path_of(request), **context})
            return replace(tagged_response(body, HTML), is_whole=not context.get(UNFINISHED))

        return await self._cached(request, compute, lane)

    async def answer(self, request: Request, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON, cached by its address."""
        return await self._cached(request, lambda: tagged_response(to_json(make()), JSON), lane)

    async def answer_once(self, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is computed on every request."""
        return Response(await (lane or self.quick).run(lambda: to_json(make())), media_type=JSON)

    async def _cached(self, request: Request, compute: Callable[[], CachedResponse], lane: Lane | None) -> Response:
        edition = None if self._reviewed is None else self._reviewed.edition()
        if edition != self._edition:  # another process may have recorded the verdict
            self._cache.clear()
            self._edition = edition

        def caught_up() -> CachedResponse:
            if self._reviewed is not None:
                self._reviewed.catch_up(edition)
            return compute()

        # With its edition in the key, what was computed before a verdict is not kept for after it.
        key = f"{edition} {address_of(request)}"
        cached = await self._cache.get(key, lambda: (lane or self.quick).run(caught_up))
        return cached.response(request)

    def close(self) -> None:
        """End the threads."""
        self.quick.close()
        self.slow.close()
        self.explorer.close()


def to_json(value: Any) -> bytes:
    """Return JSON in UTF-8; NaN and infinities become null."""
    return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


async def current_site(request: Request) -> Any:
    """Return the site of an application."""
    return request.app.state.site


CurrentSite = Annotated[Site[Explorer], Depends(current_site)]
AnySite = Annotated[Site[Explored], Depends(current_site)]
