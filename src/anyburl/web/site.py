"""`Site`: what every page is rendered with, and how responses are sent."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends
from starlette.requests import Request
from starlette.responses import Response

from anyburl.web.cache import Kept, PageCache, keep
from anyburl.web.explorer import Explorer
from anyburl.web.guard import address_of, path_of
from anyburl.web.lanes import Lane, Lanes
from anyburl.web.options import ServeOptions
from anyburl.web.templating import make_environment

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

        def compute() -> Kept:
            return keep(self.render(template, {"path": path_of(request), **make()}), HTML)

        return await self._kept(request, compute, lane)

    async def answer(self, request: Request, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is the same as long as its address is."""
        return await self._kept(request, lambda: keep(to_json(make()), JSON), lane)

    async def answer_once(self, make: Callable[[], Any], lane: Lane | None = None) -> Response:
        """Return JSON that is computed on every request."""
        return Response(await (lane or self.lanes.quick).run(lambda: to_json(make())), media_type=JSON)

    async def _kept(self, request: Request, compute: Callable[[], Kept], lane: Lane | None) -> Response:
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
