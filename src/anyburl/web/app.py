"""`create_app`: the explorer as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.types import ASGIApp

from anyburl import __version__
from anyburl.web.errors import add_error_pages
from anyburl.web.explorer import Explorer
from anyburl.web.guard import Guard
from anyburl.web.options import ServeOptions
from anyburl.web.routes import (
    api,
    api_page,
    api_rules,
    ask,
    assets,
    entity,
    home,
    login,
    relation,
    review,
    rules,
    run,
    why,
)
from anyburl.web.site import Site

PAGES = (home, entity, relation, ask, why, rules, run, review, login, api_page, assets)


def create_app(explorer: Explorer, options: ServeOptions | None = None) -> ASGIApp:
    """Return the application: pages, and the API under /api."""
    chosen = options or ServeOptions()
    site = Site(explorer, chosen)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        site.lanes.slow.begin(explorer.warm_up)
        yield
        site.close()

    app = FastAPI(
        title="anyburl explorer",
        version=__version__,
        description=f"Questions about {explorer.title}, their answers and reasons.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,  # it would put the Host header into an address
        lifespan=lifespan,
    )
    app.state.site = site
    add_error_pages(app)
    for page in PAGES:
        app.include_router(page.router, include_in_schema=False)
    app.include_router(api.router)
    app.include_router(api_rules.router)
    return Guard(app, chosen)
