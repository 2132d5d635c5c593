"""`anyburl serve`: how it starts and ends; what it serves is told in tests/web."""

from __future__ import annotations

import http.client
import json
import os
import select
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from anyburl.base.jit import kernel_sources
from anyburl.cli.serve import KERNELS

TOKEN = "correct horse battery"
SECONDS = 2.0
IMPATIENT = f"""
from functools import partial
from anyburl.cli import serve
serve.replace = partial(serve.replace, seconds_to_send={SECONDS})
"""
HEAD = "HTTP/1.1\r\nHost: 127.0.0.1\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded\r\n"
POST_WITHOUT_END = f"POST /api/batch {HEAD}Content-Length: 999999\r\n\r\n"
MEGABYTE = 1 << 20
Server = tuple["subprocess.Popen[str]", Callable[[], socket.socket]]


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_that_serve_looks_for_exist(name: str) -> None:
    module, _, function = name.partition(".")
    files = [path.read_text() for path in kernel_sources() if path.stem == module]
    assert any(f"def {function}(" in text for text in files)


def test_a_port_in_use_is_refused_in_one_sentence(run: Any, geo_run: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", geo_run, "--port", port, code=2)
    assert result.stderr == f"error: port {port} is in use: choose another with --port\n"


def test_others_are_let_in_with_a_token_only(run: Any, geo_run: Path) -> None:
    assert "lets others in: set a --token" in run("serve", geo_run, "--host", "0.0.0.0", code=2).stderr
    assert "at least 8 characters" in run("serve", geo_run, "--token", "short", code=2).stderr


def test_what_is_not_there_is_refused(run: Any, tmp_path: Path) -> None:
    assert "no run folder" in run("serve", tmp_path / "nothing", code=2).stderr
    (tmp_path / "rules.txt").write_text("1\t1\t1.0\tp(X,Y) <= q(X,Y)\n")
    assert "--data is missing" in run("serve", tmp_path / "rules.txt", code=2).stderr


def test_a_missing_extra_is_named(run: Any, geo_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.cli.serve.find_spec", lambda name: None)
    assert "pip install 'anyburl[web]'" in run("serve", geo_run, code=2).stderr


def test_an_embedding_is_not_for_pages(run: Any, geo_run: Path) -> None:
    assert "by rules alone" in run("serve", geo_run, "--aggregation", "hybrid", code=2).stderr


def address_of(process: subprocess.Popen[str]) -> str:
    """Wait until a server listens; return its address."""
    assert process.stdout
    assert process.stderr
    told = ""
    while not told.rstrip().endswith("}"):
        line = process.stdout.readline()
        assert line, process.stderr.read()
        told += line
    return str(json.loads(told)["address"])


@pytest.fixture(scope="module")
def impatient(spawn: Any, geo_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server that needs a token and does not wait long, and what connects to it.

    It serves until it is interrupted, and says nothing else.
    """
    reviews = tmp_path_factory.mktemp("serve") / "reviews.jsonl"
    process = spawn("serve", geo_run, "--port", 0, "--json", "--token", TOKEN, "--reviews", reviews, first=IMPATIENT)
    try:
        port = urlsplit(address_of(process)).port
        yield process, lambda: socket.create_connection(("127.0.0.1", port), 60)
        assert_ends_by(signal.SIGINT, process)
    finally:
        process.kill()
        process.communicate()


def assert_ends_by(number: signal.Signals, process: subprocess.Popen[str]) -> None:
    """Send a signal; the server ends as it should."""
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.endswith("stopped\n")
    assert "error" not in errors
    assert "Traceback" not in errors


@contextmanager
def cut_off() -> Iterator[None]:
    """Let a connection be reset while something is sent."""
    with suppress(ConnectionError):
        yield


def drips(connection: socket.socket) -> bool:
    """Send a byte; return whether the server still takes it."""
    with cut_off():
        connection.sendall(b"a")
        return True
    return False


def received(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection; it does."""
    found = b""
    with cut_off():
        while part := connection.recv(1 << 16):
            found += part
    return found


def peak_memory(process: subprocess.Popen[str]) -> int:
    """Return the most memory that a process has had, in bytes."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))


def test_headers_without_end_are_refused_before_they_cost_memory(impatient: Server) -> None:
    process, connect = impatient
    if not Path(f"/proc/{process.pid}/status").exists():
        pytest.skip("memory is read from /proc")
    before, sent, piece = peak_memory(process), 0, b"a" * MEGABYTE
    for start in (
        f"GET / {HEAD}X: ",
        f"GET /{'?'}",
        "",
        f"POST /login {HEAD}Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    ):
        with connect() as connection, cut_off():
            connection.sendall(start.encode())
            for _ in range(100):
                connection.sendall(piece)
                sent += len(piece)
    assert sent < 80 * MEGABYTE  # of 400: what sockets hold before the server has closed them
    assert peak_memory(process) - before < 30 * MEGABYTE
    with connect() as connection:
        connection.sendall(f"GET /login {HEAD}X: {'a' * 100_000}\r\nConnection: close\r\n\r\n".encode())
        assert received(connection).startswith(b"HTTP/1.1 200")


HALF_SENT = {
    "": b"",
    "GET /login HT": b"408",
    f"GET /login {HEAD}X: ": b"408",
    f"POST /login {HEAD}{FORM}Content-Length: 9\r\n\r\na=": b"408",
    f"POST /login {HEAD}{FORM}Transfer-Encoding: chunked\r\n\r\n5\r\na": b"408",
    f"POST /api/batch {HEAD}Content-Length: 9\r\n\r\na": b"401",
    f"GET /login {HEAD}\r\nGET /login HT": b"200",
}


def test_requests_that_are_half_sent_are_closed_after_a_while(impatient: Server) -> None:
    _, connect = impatient
    with ExitStack() as stack:
        connections = {}
        for number in range(200):
            connection, request = stack.enter_context(connect()), list(HALF_SENT)[number % len(HALF_SENT)]
            connection.sendall(request.encode())
            connections[connection] = HALF_SENT[request]
        for connection, code in connections.items():
            answered = received(connection)
            assert answered[9:12] == code
            if code == b"200":
                assert b"HTTP/1.1 408" in answered


def test_bytes_that_drip_in_gain_no_time(impatient: Server) -> None:
    _, connect = impatient
    began = time.monotonic()
    with ExitStack() as stack:
        dripping = [stack.enter_context(connect()) for _ in range(2)]
        for connection, start in zip(dripping, (f"GET /login {HEAD}X: ", POST_WITHOUT_END), strict=True):
            connection.sendall(start.encode())
        while dripping:
            assert time.monotonic() - began < 300, "the server reads on"
            dripping = [connection for connection in dripping if drips(connection)]
            time.sleep(0.05)


def test_a_client_that_reads_nothing_is_left(impatient: Server) -> None:
    _, connect = impatient
    with connect() as connection:
        connection.setblocking(False)
        request, waited = f"GET /static/app.css {HEAD}\r\n".encode() * 1000, select.poll()
        waited.register(connection, select.POLLOUT)
        began = time.monotonic()
        while time.monotonic() - began < 300:
            state = dict(waited.poll(1000)).get(connection.fileno(), 0)
            if state & (select.POLLERR | select.POLLHUP):
                return
            with suppress(BlockingIOError), cut_off():
                connection.send(request)
        pytest.fail("the server waits on")


def test_a_connection_is_kept_between_requests(impatient: Server) -> None:
    _, connect = impatient
    with connect() as connection:
        client = http.client.HTTPConnection("127.0.0.1")
        client.sock = connection
        for pause in (1.5 * SECONDS, 0):
            client.request("GET", "/login")
            with client.getresponse() as answered:
                assert answered.status == 200
                answered.read()
            time.sleep(pause)


def test_workers_share_a_port_and_verdicts_and_end_together(spawn: Any, geo_run: Path, tmp_path: Path) -> None:
    """An interrupt ends the one process of the other tests."""
    fact = {"subject": "France", "relation": "official_language", "object": "German"}
    reviews = tmp_path / "reviews.jsonl"
    process = spawn("serve", geo_run, "--port", 0, "--json", "--workers", 2, "--reviews", reviews)
    address = urlsplit(address_of(process))
    page, clients = f"/why?{urlencode(fact)}", []
    try:
        workers: list[str] = []
        while sum(n_connections(worker) > 0 for worker in workers) < 2:  # each takes what it can, once it is ready
            clients.append(http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=60))
            assert b"badge rejected" not in get(clients[-1], page)
            assert len(clients) < 500
            workers = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        body = json.dumps({**fact, "verdict": "rejected"}).encode()
        clients[0].request("POST", "/api/reviews", body, {"Content-Type": "application/json"})
        with clients[0].getresponse() as answered:
            assert answered.status == 200
            answered.read()
        assert all(b"badge rejected" in get(client, page) for client in clients)
        assert b"Accept" in get(clients[-1], "/review")
        os.kill(int(workers[-1]), signal.SIGKILL)  # another one takes its place
        assert b"rules know about" in urllib.request.urlopen(address.geturl(), timeout=30).read()
    finally:
        for client in clients:
            client.close()
    assert_ends_by(signal.SIGTERM, process)
    end = time.monotonic() + 30  # multiprocessing's own helper ends a little later
    while any(Path(f"/proc/{worker}").exists() for worker in workers):
        assert time.monotonic() < end
        time.sleep(0.05)


def get(client: http.client.HTTPConnection, page: str) -> bytes:
    """Return a page over a connection that stays open."""
    client.request("GET", page)
    with client.getresponse() as answered:
        assert answered.status == 200, answered.read()
        return answered.read()


def n_connections(process: str) -> int:
    """Return how many connections of TCP a process holds, besides those it listens on."""
    sockets = {os.readlink(file) for file in Path(f"/proc/{process}/fd").iterdir() if file.exists()}
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(f"socket:[{fields[9]}]" in sockets for fields in lines if fields[3] == "01")
