"""Fetches one file over HTTP: resumes after a break, retries after a pause, and never waits forever."""

from __future__ import annotations

import io
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from anyburl.base.errors import DataError

Received = Callable[[int, int | None], None]
"""Called with how many bytes of a file are there, and how many it has if that is known."""

RETRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds; each pause is twice as long as the one before
SECONDS_TO_WAIT = 30.0  # for a connection, and for the next bytes
BYTES_AT_A_TIME = 1 << 16
WORTH_ANOTHER_TRY = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


def fetch(url: str, partial: Path, received: Received) -> None:
    """Download a file to `partial`, resuming from what is there. What has arrived stays there, whatever happens."""
    for n_failures in range(RETRIES + 1):
        try:
            _fetch_once(url, partial, received)
            return
        except (OSError, HTTPException) as error:
            if n_failures == RETRIES or not may_pass(error):
                raise DataError(_failure(url, partial, error)) from error
            time.sleep(pause_after(n_failures, error))


def _fetch_once(url: str, partial: Path, received: Received) -> None:
    n_there = partial.stat().st_size if partial.exists() else 0
    headers = {"Accept-Encoding": "identity", "User-Agent": "anyburl"}
    if n_there:
        headers["Range"] = f"bytes={n_there}-"
    try:
        response: HTTPResponse = urlopen(Request(url, headers=headers), timeout=SECONDS_TO_WAIT)
    except HTTPError as error:
        error.close()
        if n_there and error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing; if what is there is something else, its checksum tells
        raise
    with response:
        start = n_there if _goes_on(response, n_there) else 0
        with _writing(partial):
            stream = partial.open("ab" if start else "wb", buffering=0)
        with stream:
            for block, n_there, total in _blocks(response, start):
                with _writing(partial):
                    _write(stream, block)
                received(n_there, total)


def _goes_on(response: HTTPResponse, n_there: int) -> bool:
    """Return whether the server sends the rest only; one that cannot do that sends everything."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    if not response.headers.get("Content-Range", "").startswith(f"bytes {n_there}-"):
        raise HTTPException("the server sent a different range than requested")
    return True


def _blocks(response: HTTPResponse, start: int) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield what arrives, each time with how many bytes of the file are there then, and how many it has."""
    length = response.headers.get("Content-Length")
    n_there, total = start, start + int(length) if length else None
    while block := response.read1(BYTES_AT_A_TIME):
        n_there += len(block)
        yield block, n_there, total
    if total is not None and n_there < total:
        raise HTTPException(f"the connection broke after {n_there:,} of {total:,} bytes")


def _write(stream: io.FileIO, block: bytes) -> None:
    rest = memoryview(block)
    while rest:
        rest = rest[stream.write(rest) :]


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Tell what the disk refuses from what goes wrong on the network: trying again would not help."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: the file cannot be written ({error.strerror or error})") from error


def may_pass(error: OSError | HTTPException) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, HTTPError):
        return error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in WORTH_ANOTHER_TRY
    reason = error.reason if isinstance(error, URLError) else error
    return not isinstance(reason, socket.gaierror | ssl.SSLCertVerificationError | InvalidURL)


def pause_after(n_failures: int, error: OSError | HTTPException) -> float:
    """Return how many seconds to wait: as long as the server asks for, or twice as long as the last time."""
    asked = _asked(error.headers.get("Retry-After") or "") if isinstance(error, HTTPError) else None
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2**n_failures if asked is None else asked)


def _asked(text: str) -> float | None:
    """Return how many seconds a server asks to be left alone: it says so in seconds, or names a time."""
    if text.isdecimal():
        return float(text)
    try:
        return max(0.0, parsedate_to_datetime(text).timestamp() - time.time())
    except ValueError:
        return None


def _failure(url: str, partial: Path, error: OSError | HTTPException) -> str:
    if isinstance(error, HTTPError):
        return f"{url} cannot be downloaded: the server responded with {error.code} ({error.reason})"
    n_there = partial.stat().st_size if partial.exists() else 0
    kept = f"; {n_there:,} bytes are kept, and the next attempt resumes there" if n_there else ""
    return f"{url} cannot be downloaded: {reason_of(error, SECONDS_TO_WAIT)}{kept}"


def reason_of(error: OSError | HTTPException, seconds: float) -> str:
    """Return why there was no answer, after waiting for `seconds` at most."""
    reason = error.reason if isinstance(error, URLError) else error
    if isinstance(reason, TimeoutError):
        return f"the server did not respond for {seconds:g} seconds"
    return str(getattr(reason, "strerror", None) or reason) or type(reason).__name__
