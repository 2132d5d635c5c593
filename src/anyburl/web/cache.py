"""A cache of responses by address; rules and data do not change while they are served."""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

MOST_BYTES = 48_000_000


@dataclass(frozen=True)
class Kept:
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


def keep(body: bytes, media_type: str) -> Kept:
    """Return an answer with its tag."""
    return Kept(body, media_type, f'"{hashlib.blake2b(body, digest_size=12).hexdigest()}"')


class PageCache:
    """The answers used last, up to a number of bytes; what two readers ask at once is computed once."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._bytes = most_bytes, 0
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._under_way: dict[str, asyncio.Future[Kept]] = {}

    async def get(self, key: str, compute: Callable[[], Awaitable[Kept]]) -> Kept:
        """Return the answer of an address, computed now if it is not there."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._under_way:
            task = asyncio.ensure_future(compute())
            self._under_way[key] = task
            task.add_done_callback(lambda done: self._store(key, done))
        return await asyncio.shield(self._under_way[key])

    def _store(self, key: str, done: asyncio.Future[Kept]) -> None:
        self._under_way.pop(key, None)
        if done.cancelled() or done.exception() is not None:
            return
        self._kept[key] = done.result()
        self._bytes += _size(key, done.result())
        while self._bytes > self._most and len(self._kept) > 1:
            self._bytes -= _size(*self._kept.popitem(last=False))


def _size(key: str, kept: Kept) -> int:
    return len(key) + len(kept.body)
