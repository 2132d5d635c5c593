"""`create_app`: the explorer as an ASGI application; errors become a page or JSON, never a traceback.

It is served by uvicorn with h11, with limits on the size and duration of requests, which hold without a token as well.
What every site has is here, too: style sheets, the search for labels, and the form for the token.

`serve_from_workers` answers requests to one port in several processes, over one memory-mapped run: Python runs one
thread of a process at a time, so one process uses little more than one core. Workers open the run themselves: what is
mapped is in memory once. They accept connections from one socket, whoever is free first. What takes long and is needed
once (the facts that wait for a verdict, the report) stays in the process that started them, and workers ask for it.
Verdicts are appended to one file under its lock by any of them, and all notice that it grew.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import multiprocessing
import os
import secrets
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from multiprocessing.connection import wait
from multiprocessing.context import SpawnProcess
from multiprocessing.managers import BaseManager
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any

import h11
import uvicorn
from fastapi import APIRouter, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, ExceptionHandler
from uvicorn.protocols.http.h11_impl import H11Protocol

from anyburl import __version__
from anyburl.base.errors import AnyburlError, RunError, UnknownLabelError, printable
from anyburl.base.machine import share_heaps
from anyburl.reasoning.search import Match
from anyburl.tools.options import BACKLOG, ServeOptions
from anyburl.tools.report.page import THEORY_STYLE
from anyburl.web import api, pages, run
from anyburl.web.background import Background, BusyError
from anyburl.web.explorer import Explorer
from anyburl.web.guard import (
    OPEN_PATH,
    TOKEN_COOKIE,
    Guard,
    form_token,
    inside,
    path_of,
    read_form,
    set_form_token,
    token_digest,
)
from anyburl.web.schemas import LIMITS, LONGEST_SEARCH, Text
from anyburl.web.site import (
    FOLDER,
    JSON,
    AnySite,
    CachedResponse,
    Context,
    E,
    Explored,
    Site,
    make_environment,
    tagged_response,
    to_json,
    url,
)

if TYPE_CHECKING:
    from mcp.server import MCPServer


N_MATCHES = 40
SECONDS_LOGGED_IN = 30 * 24 * 3600
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FILES: dict[str, CachedResponse] = {  # read at the start: no other file can be reached
    file.name: tagged_response(file.read_bytes(), MEDIA_TYPES[file.suffix])
    for file in sorted((FOLDER / "static").iterdir())
} | {"theory.css": tagged_response(THEORY_STYLE.encode(), MEDIA_TYPES[".css"])}

shared_pages = APIRouter()


@shared_pages.get("/search")
async def search_page(request: Request, site: AnySite, q: Text = "") -> Response:
    """List the entities and relations whose labels or names match."""

    def make() -> Context:
        return {"q": q, "matches": site.explorer.search.find(q, top=N_MATCHES) if q.strip() else []}

    return await site.page(request, "search.html", make, None if site.explorer.can_search else site.slow)


@shared_pages.get("/static/{name}")
async def asset(request: Request, name: str) -> Response:
    """Return a style sheet, a script or the icon."""
    if name not in FILES:
        raise HTTPException(404)
    return FILES[name].response(request)


@shared_pages.get("/favicon.ico")
async def icon(request: Request) -> Response:
    """Return the icon; browsers request it here by default."""
    return FILES["icon.svg"].response(request)


@shared_pages.get(OPEN_PATH)
async def login(
    request: Request, site: AnySite, next: Annotated[str, Query(max_length=LIMITS.longest_text)] = "/"
) -> Response:
    """Show the form for the token."""
    return _login_form(request, site, next)


@shared_pages.post(OPEN_PATH)
async def check_token(request: Request, site: AnySite) -> Response:
    """Set the cookie with the token's digest, if the token is right."""
    fields = await read_form(request)
    target, token = fields.get("next", "/"), site.options.token
    if token is None:
        return RedirectResponse("/", 303)
    if not hmac.compare_digest(fields.get("token", "").encode(), token.encode()):
        return _login_form(request, site, target, wrong=True)
    response = RedirectResponse(inside(target), 303)
    response.set_cookie(
        TOKEN_COOKIE, token_digest(token), max_age=SECONDS_LOGGED_IN, httponly=True, samesite="strict", path="/"
    )
    return response


def _login_form(request: Request, site: Site[Explored], target: str, *, wrong: bool = False) -> Response:
    token = form_token(request)
    context = {"path": OPEN_PATH, "next": inside(target), "wrong": wrong, "form_token": token}
    return set_form_token(site.send("login.html", context, 401 if wrong else 200), token)


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


PARTS = {"entity": ("subject", "object", "label", "contains"), "relation": ("relation", "contains")}
"""The parameters of an address that name an entity or a relation."""


def _corrected(request: Request, matches: Sequence[Match], label: str) -> dict[Match, str]:
    """Return the address of the same question for each label that could stand for an unknown one."""
    given = dict(request.query_params)
    return {
        match: url(path_of(request), **{**given, name: match.label})
        for match in matches
        for name in PARTS[match.kind]
        if given.get(name) == label
    }


def _error(
    request: Request, status: int, sentence: str, matches: Sequence[Match] = (), label: str | None = None
) -> Response:
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
        "corrected": _corrected(request, matches, label) if label else {},
    }
    return site.send("error.html", context, status)


def _unknown(request: Request, error: Exception) -> Response:
    """Suggest entities and relations with similar labels or names."""
    assert isinstance(error, UnknownLabelError)
    explorer = request.app.state.site.explorer
    matches = explorer.search.find(error.label[:LONGEST_SEARCH], top=N_SUGGESTIONS) if explorer.can_search else ()
    return _error(request, 404, printable(error.without_hint) if matches else str(error), matches, error.label)


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


def create_app(
    explorer: Explorer, options: ServeOptions | None = None, agents: MCPServer[Any] | None = None
) -> ASGIApp:
    """Return the application: pages, the API under /api and, if there is a server for agents, that under /mcp."""
    chosen = options or ServeOptions()
    has_run = explorer.run is not None
    environment = make_environment(explorer.reasoner.rules, explorer.names, title=explorer.title, has_run=has_run)
    environment.globals["verdict_on"] = explorer.reviews.verdict_on
    all_pages = APIRouter(include_in_schema=False)
    for page in (pages.router, run.router, api.page_router):
        all_pages.include_router(page)
    site = Site(explorer, chosen, environment, explorer)
    return Guard(make_app(site, explorer.title, [all_pages, api.router], agents), chosen)


def make_app(site: Site[E], title: str, routers: Sequence[APIRouter], agents: MCPServer[Any] | None = None) -> FastAPI:
    """Return an application of some pages, and what all have: style sheets, the login, the search and error pages."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        site.slow.begin(site.explorer.warm_up)
        async with agents.session_manager.run() if agents else nullcontext():
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
    for router in routers:
        app.include_router(router)
    app.include_router(shared_pages, include_in_schema=False)
    if agents:  # each request stands for itself: nothing is kept for clients that went away
        app.router.routes.extend(agents.streamable_http_app(stateless_http=True, json_response=True).routes)
    return app


SECONDS_IDLE = 75  # between two requests of one connection
SECONDS_TO_END = 3
TOO_SLOW = b"This request was not sent to its end in time.\n"
TIMED_OUT = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (
    len(TOO_SLOW),
    TOO_SLOW,
)


def serve(app: ASGIApp, options: ServeOptions, listener: socket.socket) -> None:
    """Answer requests to an application, such as `create_app` returns, until interrupted."""

    class Connection(TimedConnection):
        seconds = options.seconds_to_send

    config = uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        proxy_headers=False,
        log_level="warning",
        access_log=False,
        server_header=False,
        h11_max_incomplete_event_size=options.largest_head,
        timeout_keep_alive=SECONDS_IDLE,
        timeout_graceful_shutdown=SECONDS_TO_END,
        backlog=1,
    )
    Server(config).run(sockets=[listener])


class Server(uvicorn.Server):
    """Takes one new connection at a time, so that processes which share a socket get their parts."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen; asyncio takes as many connections at once as the backlog that it is given."""
        await super().startup(sockets)
        for shared in sockets or ():
            shared.listen(BACKLOG)


class TimedConnection(H11Protocol):
    """A connection that is closed if the client does not finish a request, or does not read the response.

    uvicorn closes connections that are idle after a response, but waits without end for the first byte of a connection,
    for the rest of a request and for a client that reads nothing. The head and the body of a request have `seconds`
    each, counted from their first byte, however slowly the rest arrives.
    """

    seconds = 0.0
    _awaited: tuple[object, ...] | None = None
    _sending: asyncio.TimerHandle | None = None  # when the request has to be complete
    _taking: asyncio.TimerHandle | None = None  # when the client has to have read the response

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def handle_events(self) -> None:
        """Process received bytes; called with every piece, and after each response."""
        super().handle_events()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        for timer in (self._sending, self._taking):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._taking = self.loop.call_later(self.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        if self._taking is not None:
            self._taking.cancel()
        super().resume_writing()

    def _watch(self) -> None:
        """Start a timer when the client has to send something, and cancel it when that has arrived."""
        awaited = None
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY) and not self.transport.is_closing():
            awaited = (self.conn.their_state, self._is_half_sent, self.cycle)
        if awaited == self._awaited:
            return
        self._awaited = awaited
        if self._sending is not None:
            self._sending.cancel()
        if awaited is not None:
            is_between = self.cycle is not None and not self._is_half_sent
            seconds = self.timeout_keep_alive if is_between else self.seconds
            self._sending = self.loop.call_later(seconds, self._give_up)

    @property
    def _is_half_sent(self) -> bool:
        return self.conn.their_state is h11.SEND_BODY or bool(self.conn.trailing_data[0])

    def _give_up(self) -> None:
        """Close the connection, with a sentence if the client is in the middle of a request without a response."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
            return
        if self._is_half_sent and self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            self.transport.write(TIMED_OUT)
        self.transport.close()


MOST_RESTARTS, SECONDS_STABLE = 3, 60.0
OpenExplorer = Callable[[Background], AbstractContextManager[Explorer]]
"""Opens the explorer of a worker. It is sent to another process, so it is a function of a module."""


class Shared(BaseManager):
    """What workers ask the process for that started them."""


def serve_from_workers(
    explorer: Explorer, open_explorer: OpenExplorer, options: ServeOptions, listener: socket.socket
) -> None:
    """Answer requests in `options.workers` processes until interrupted; `explorer` does what they share."""
    Shared.register("desk", callable=lambda: explorer.background.desk, exposed=("waiting", "possible_errors"))
    Shared.register("reporter", callable=lambda: explorer.background.reporter, exposed=("theory",))
    key = secrets.token_bytes(32)
    server = Shared(authkey=key).get_server()
    Thread(target=server.serve_forever, name="anyburl-shared", daemon=True).start()
    context = multiprocessing.get_context("spawn")  # a fork would inherit the locks of threads, but not the threads

    def start() -> SpawnProcess:
        given = (open_explorer, options, listener, server.address, key)
        process = context.Process(target=_work, args=given, name="anyburl-worker", daemon=True)
        process.start()
        return process

    workers = [start() for _ in range(options.workers)]
    try:
        _watch(workers, start)
    finally:
        _end(workers)
        explorer.close()


def _watch(workers: list[SpawnProcess], start: Callable[[], SpawnProcess]) -> None:
    """Replace workers that end, unless they keep on ending."""
    ended: list[float] = []
    while True:
        wait([worker.sentinel for worker in workers])
        for number, worker in enumerate(workers):
            if worker.is_alive():
                continue
            now = time.monotonic()
            ended = [*(moment for moment in ended if now - moment < SECONDS_STABLE), now]
            if len(ended) > MOST_RESTARTS:
                raise RunError(f"workers of the explorer keep on ending (the last with code {worker.exitcode})")
            workers[number] = start()


def _end(workers: list[SpawnProcess]) -> None:
    for worker in workers:
        worker.terminate()
    end = time.monotonic() + SECONDS_TO_END + 1
    for worker in workers:
        worker.join(max(0.1, end - time.monotonic()))
        if worker.is_alive():
            worker.kill()


def _work(
    open_explorer: OpenExplorer, options: ServeOptions, listener: socket.socket, address: Any, key: bytes
) -> None:
    """Be a worker, until the process that started it ends it, or is gone."""
    share_heaps()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all processes: the first one ends the workers
    parent = multiprocessing.parent_process()
    assert parent is not None

    def follow() -> None:
        parent.join()
        os._exit(0)

    Thread(target=follow, daemon=True).start()
    for name in ("desk", "reporter"):
        Shared.register(name)
    shared: Any = Shared(address, authkey=key)
    shared.connect()
    with open_explorer(Background(shared.desk(), shared.reporter())) as explorer:
        serve(create_app(explorer, options), options, listener)
