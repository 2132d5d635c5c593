"""A server of files on this machine, which can be as unreliable as a test wants it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
NOBODY = "http://127.0.0.1:9"


class FileServer(ThreadingHTTPServer):
    """Serves files from memory, and remembers what was asked for: (path, Range).

    The first answers have the codes in `refusals`; the next `n_breaks` end after half of what was asked for; from
    then on, answers pause after half of it for `pause` seconds. `knows_ranges` says whether Range is understood.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.refusals: list[int] = []
        self.n_breaks, self.pause, self.knows_ranges = 0, 0.0, True
        self.asked: list[tuple[str, str | None]] = []
        self.is_over = Event()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{name}"

    @property
    def ranges(self) -> list[str | None]:
        return [wanted for _, wanted in self.asked]

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients of these tests hang up as they like."""


class Handler(BaseHTTPRequestHandler):
    server: FileServer

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        self.server.asked.append((self.path, wanted))
        content = self.server.files.get(self.path[1:])
        if self.server.refusals or content is None:
            self.send_error(self.server.refusals.pop(0) if self.server.refusals else 404)
            return
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.server.knows_ranges else 0
        if start and start >= len(content):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.end_headers()
        self._send(content[start:])

    def _send(self, content: bytes) -> None:
        half = len(content) // 2
        self.wfile.write(content[:half])
        if self.server.n_breaks:
            self.server.n_breaks -= 1
            return
        self.server.is_over.wait(self.server.pause)
        self.wfile.write(content[half:])

    def log_message(self, format: str, *arguments: object) -> None:
        pass


def stay_on_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let addresses with https lead nowhere, and those of a server on this machine lead there."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("https_proxy", NOBODY)


@contextmanager
def serving() -> Iterator[FileServer]:
    """Run a server as long as the context lasts."""
    with FileServer() as server, running(server):
        yield server


@contextmanager
def running(server: Any) -> Iterator[None]:
    """Let a server answer as long as the context lasts; `is_over` ends what it is waiting for."""
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.is_over.set()
        server.shutdown()
        thread.join()


def blob_id(content: bytes) -> str:
    """Return what git calls a file with this content."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
