"""`create_app`: the explorer as an ASGI application; errors become a page or JSON, never a traceback."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, ExceptionHandler

from anyburl import __version__
from anyburl.base.errors import AnyburlError, UnknownLabelError, printable
from anyburl.reasoning.search import Match
from anyburl.web import api, ask, browse, door, review, run
from anyburl.web.explorer import BusyError, Explorer
from anyburl.web.guard import Guard, path_of
from anyburl.web.options import ServeOptions
from anyburl.web.schemas import LONGEST_SEARCH
from anyburl.web.site import JSON, E, Explored, Site, to_json
from anyburl.web.templating import make_environment

log = logging.getLogger("anyburl.web")

TITLES = {
    400: "Bad request",
    401: "Token required",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    413: "Request too large",
    422: "Invalid request",
    500: "Something went wrong",
    503: "Busy right now",
}
SECONDS_TO_RETRY, N_SUGGESTIONS = 3, 6


def _error(request: Request, status: int, sentence: str, matches: Sequence[Match] = ()) -> Response:
    if path_of(request).startswith("/api/"):
        document = {"error": sentence, "suggestions": [match.label for match in matches]}
        return Response(to_json(document), status, media_type=JSON)
    site: Site[Explored] = request.app.state.site
    context = {
        "path": path_of(request),
        "title": TITLES.get(status, "That does not work"),
        "sentence": sentence,
        "status": status,
        "matches": matches,
    }
    return site.send("error.html", context, status)


def _unknown(request: Request, error: Exception) -> Response:
    """Suggest entities and relations with similar labels or names."""
    assert isinstance(error, UnknownLabelError)
    explorer = request.app.state.site.explorer
    matches = explorer.search.find(error.label[:LONGEST_SEARCH], top=N_SUGGESTIONS) if explorer.can_search else ()
    return _error(request, 404, printable(error.without_hint) if matches else str(error), matches)


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    field = ".".join(str(step) for step in first["loc"][1:])
    return _error(request, 422, f"{field}: {first['msg']}" if field else str(first["msg"]))


def _busy(request: Request, error: Exception) -> Response:
    response = _error(request, 503, f"{error}: please try again in a moment")
    response.headers["Retry-After"] = str(SECONDS_TO_RETRY)
    return response


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    sentence = "this page does not exist" if error.status_code == 404 else str(error.detail)
    response = _error(request, error.status_code, sentence)
    response.headers.update(error.headers or {})
    return response


def _bug(request: Request, error: Exception) -> Response:
    log.error("%s %s", request.method, printable(path_of(request)), exc_info=error)
    return _error(request, 500, "this is a bug in anyburl: the terminal that serves this page has the details")


ERROR_HANDLERS: dict[type[Exception], ExceptionHandler] = {
    UnknownLabelError: _unknown,
    AnyburlError: lambda request, error: _error(request, 422, str(error)),
    RequestValidationError: _invalid,
    BusyError: _busy,
    HTTPException: _http,
    ClientDisconnect: lambda request, error: _error(request, 400, "this request broke off"),
    Exception: _bug,
}


def create_app(explorer: Explorer, options: ServeOptions | None = None) -> ASGIApp:
    """Return the application: pages, and the API under /api."""
    chosen = options or ServeOptions()
    has_run = explorer.run is not None
    environment = make_environment(explorer.reasoner.rules, explorer.names, title=explorer.title, has_run=has_run)
    app = make_app(Site(explorer, chosen, environment), explorer.title)
    for page in (browse, ask, run, review):
        app.include_router(page.router, include_in_schema=False)
    app.include_router(api.page_router, include_in_schema=False)
    app.include_router(api.router)
    return Guard(app, chosen)


def make_app(site: Site[E], title: str) -> FastAPI:
    """Return an application with what all have in common: style sheets, the login, the search and the error pages."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        site.slow.begin(site.explorer.warm_up)
        yield
        site.close()

    app = FastAPI(
        title="anyburl explorer",
        version=__version__,
        description=f"Questions about {title}, their answers and reasons.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        redirect_slashes=False,  # it would put the Host header into an address
        lifespan=lifespan,
    )
    app.state.site = site
    for error, handler in ERROR_HANDLERS.items():
        app.add_exception_handler(error, handler)
    app.include_router(door.router, include_in_schema=False)
    return app
