"""A SPARQL endpoint on this machine, backed by pyoxigraph, which can be as unreliable as a test wants it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock
from urllib.parse import parse_qs

import pytest

from serving import running

JSON = "application/sparql-results+json"


class SparqlServer(ThreadingHTTPServer):
    """Answers queries and updates at /sparql, and remembers them.

    `refusals` are the codes of the next answers, `wrong` the next answers (type, content) with code 200. The next
    `n_breaks` answers end half-way, the next `n_cuts` are shorter than they should be and do not say so. From then on,
    answers pause half-way for `pause` seconds. `cap` is how many rows there are at most in an answer, `login` who may
    ask. `before` is called with every text that is received.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        pyoxigraph = pytest.importorskip("pyoxigraph")
        self.store = pyoxigraph.Store()
        self.to_json = lambda found: found.serialize(format=pyoxigraph.QueryResultsFormat.JSON)
        self.refusals: list[int] = []
        self.wrong: list[tuple[str, bytes]] = []
        self.n_breaks = self.n_cuts = 0
        self.pause = 0.0
        self.retry_after: str | None = None
        self.cap: int | None = None
        self.login: str | None = None
        self.before: Callable[[str], None] = lambda text: None
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.is_over, self.lock = Event(), Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/sparql"

    def fill(self, triples: Iterable[tuple[str, str, str]], graph: str | None = None) -> None:
        """Add statements, each of three terms as N-Triples has them."""
        text = "\n".join(f"{' '.join(triple)} ." for triple in triples)
        inserted = f"GRAPH <{graph}> {{\n{text}\n}}" if graph else text
        self.store.update(f"INSERT DATA {{ {inserted} }}")

    def allow(self, user: str, password: str) -> None:
        self.login = "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests hang up as they like."""


class Handler(BaseHTTPRequestHandler):
    server: SparqlServer

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        ((field, (text,)),) = parse_qs(body).items()
        with self.server.lock:
            self._answer(field, text)

    def _answer(self, field: str, text: str) -> None:
        server = self.server
        server.asked.append(text)
        server.authorizations.append(self.headers.get("Authorization"))
        if server.login is not None and self.headers.get("Authorization") != server.login:
            self._refuse(401)
        elif server.refusals:
            self._refuse(server.refusals.pop(0))
        elif server.wrong:
            self._send(*server.wrong.pop(0))
        else:
            server.before(text)
            self._compute(field, text)

    def _compute(self, field: str, text: str) -> None:
        try:
            if field == "update":
                self.server.store.update(text)
                content = b""
            else:
                content = self._capped(self.server.to_json(self.server.store.query(text)))
        except (SyntaxError, ValueError) as error:
            self._send("text/plain", str(error).encode(), 400)
            return
        self._send(JSON if field == "query" else "text/plain", content, 200 if field == "query" else 204)

    def _capped(self, content: bytes) -> bytes:
        if self.server.cap is None:
            return content
        found = json.loads(content)
        found["results"]["bindings"] = found["results"]["bindings"][: self.server.cap]
        return json.dumps(found).encode()

    def _refuse(self, code: int) -> None:
        self.send_response(code)
        if self.server.retry_after is not None:
            self.send_header("Retry-After", self.server.retry_after)
        if 300 <= code < 400:
            self.send_header("Location", "http://127.0.0.1:9/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _send(self, content_type: str, content: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        half = len(content) // 2
        if self.server.n_cuts:
            self.server.n_cuts -= 1
            content = content[:half]
        elif code != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[:half])
        if self.server.n_breaks:
            self.server.n_breaks -= 1
            return
        self.wfile.flush()
        self.server.is_over.wait(self.server.pause)
        self.wfile.write(content[half:])

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@contextmanager
def sparql_server() -> Iterator[SparqlServer]:
    """Run an endpoint as long as the context lasts."""
    with SparqlServer() as server, running(server):
        yield server
