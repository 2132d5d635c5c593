"""`Site`: what every page is rendered with, and how responses are sent.

A cache of responses by address; rules and data do not change while they are served.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from anyburl.web.explorer import Explorer
from anyburl.web.guard import address_of, path_of
from anyburl.web.lanes import Lane, Lanes
from anyburl.web.options import ServeOptions
from anyburl.web.templating import make_environment

MOST_BYTES = 48_000_000


@dataclass(frozen=True)
class CachedResponse:
    """One answer, ready to be sent."""

    body: bytes
    media_type: str
    tag: str

    def response(self, request: Request) -> Response:
        """Return it, or only that the browser has it already."""
        headers = {"ETag": self.tag, "Cache-Control": "private, no-cache"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.body, media_type=self.media_type, headers=headers)


def tagged_response(body: bytes, media_type: str) -> CachedResponse:
    """Return an answer with its tag."""
    return CachedResponse(body, media_type, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


class PageCache:
    """The answers used last, up to a number of bytes; what two readers ask at once is computed once."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, CachedResponse] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[CachedResponse]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[CachedResponse]]) -> CachedResponse:
        """Return the answer of an address, computed now if it is not there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            task = asyncio.ensure_future(compute())
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(self._under_way[key])

    def _store(self, key: str, done: asyncio.Future[CachedResponse]) -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = done.result()
        self._bytes += _size(key, done.result())
        while self._bytes > self._most and len(self._kept) > 1:
            self._bytes -= _size(*self._kept.popitem(last=False))


def _size(key: str, kept: CachedResponse) -> int:
    return len(key) + len(kept.body)


HTML, JSON = "text/html; charset=utf-8", "application/json"

Context = dict[str, Any]


class Site:
    """The explorer, its templates, threads and finished pages."""

    def __init__(self, explorer: Explorer, options: ServeOptions) -> None:
        self.explorer, self.options = explorer, options
        self.lanes = Lanes(options.most_waiting, options.seconds)
        self._cache, self._environment = PageCache(), make_environment(explorer)

    def render(self, template: str, context: Context) -> bytes:
        """Return a page."""
        return self._environment.get_template(template).render(context).encode()

    def send(self, template: str, context: Context, status: int = 200) -> Response:
        """Return a page that is rendered on every request."""
        return Response(self.render(template, context), status, media_type=HTML)

    async def page(
        self, request: Request, template: str, make: Callable[[], Context], lane: Lane | None = None
    ) -> Response:
        """Return a page that is the same as long as its address is; `make` computes what it shows, in a thread."""

        def compute() -> CachedResponse:
            return tagged_response(self.render(template, {"path": path_of(request), **make()}), HTML)

        return await self._kept(request, compute, lane)

    async def answer(self, request: Request, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is the same as long as its address is."""
        return await self._kept(request, lambda: tagged_response(to_json(make()), JSON), lane)

    async def answer_once(self, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is computed on every request."""
        return Response(await (lane or self.lanes.quick).run(lambda: to_json(make())), media_type=JSON)

    async def _kept(self, request: Request, compute: Callable[[], CachedResponse], lane: Lane | None) -> Response:
        kept = await self._cache.get(address_of(request), lambda: (lane or self.lanes.quick).run(compute))
        return kept.response(request)

    def close(self) -> None:
        """End the threads."""
        self.lanes.close()
        self.explorer.desk.close()


def to_json(value: Any) -> bytes:
    """Return JSON in UTF-8; what is not a number becomes null."""
    return json.dumps(_finite(value), ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


async def _site(request: Request) -> Site:
    site: Site = request.app.state.site
    return site


CurrentSite = Annotated[Site, Depends(_site)]
