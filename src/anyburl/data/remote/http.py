"""Requests over HTTP: resumed downloads, and the SPARQL protocol; retried after a pause, limited in time and size."""

from __future__ import annotations

import io
import json
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead, InvalidURL
from io import BufferedReader, BytesIO, RawIOBase
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener, urlopen

from anyburl.base.errors import CredentialsError, DataError, UnauthorizedError, redacted_address
from anyburl.base.files import is_text
from anyburl.data.remote.addresses import ENDPOINT, FROM_ENVIRONMENT, Address, authorization, note_asking

Received = Callable[[int, int | None], None]
"""Called with the bytes of a file received so far, and its size if known."""

RETRIES = 3
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0  # seconds; each pause is twice as long as the one before
SECONDS_TO_WAIT = 30.0  # for a connection, and for the next bytes
BYTES_AT_A_TIME = 1 << 16
RETRIED_CODES = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_MANY_REQUESTS)


def fetch(url: str, partial: Path, received: Received) -> None:
    """Download a file to `partial`, resuming from what is there; it is kept also if the download fails."""
    for n_failures in range(RETRIES + 1):
        try:
            _fetch_once(url, partial, received)
            return
        except (OSError, HTTPException) as error:
            if n_failures == RETRIES or not is_temporary(error):
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
            return  # nothing is missing; the checksum is verified later
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
    """Return whether the server sends the rest only; some always send everything."""
    if response.status != HTTPStatus.PARTIAL_CONTENT:
        return False
    if not response.headers.get("Content-Range", "").startswith(f"bytes {n_there}-"):
        raise HTTPException("the server sent a different range than requested")
    return True


def _blocks(response: HTTPResponse, start: int) -> Iterator[tuple[bytes, int, int | None]]:
    """Yield blocks, each with the bytes of the file received so far, and its size if known."""
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
    """Raise `DataError` if the disk fails, which another attempt would not help, unlike the network."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path}: the file cannot be written ({error.strerror or error})") from error


def is_temporary(error: OSError | HTTPException) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, HTTPError):
        return error.code >= HTTPStatus.INTERNAL_SERVER_ERROR or error.code in RETRIED_CODES
    reason = error.reason if isinstance(error, URLError) else error
    return not isinstance(reason, socket.gaierror | ssl.SSLCertVerificationError | InvalidURL)


def pause_after(n_failures: int, error: OSError | HTTPException) -> float:
    """Return how many seconds to wait: as long as the server demands, or twice as long as the last time."""
    demanded = _retry_after(error.headers.get("Retry-After") or "") if isinstance(error, HTTPError) else None
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2**n_failures if demanded is None else demanded)


def _retry_after(text: str) -> float | None:
    """Return the seconds of a Retry-After header, which has seconds or a date."""
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


RESULTS = "application/sparql-results+json"
LONGEST_REASON = 300  # bytes of the body of an error
MOST_BYTES = 1 << 30  # of one response
MOST_TIMEOUTS = 10  # that one response may take altogether
PIECE = 1 << 16  # bytes read at a time

T = TypeVar("T")


class ServerResponse(NamedTuple):
    """A complete response."""

    content_type: str
    content: bytes


class _NoRedirects(HTTPRedirectHandler):
    """Does not follow redirections: credentials and updates must not go elsewhere."""

    def redirect_request(self, *request: Any) -> None:
        return None


class _EndlessError(Exception):
    """A response takes too long altogether, or is too large."""


class _Paced(RawIOBase):
    """Reads from a socket until a deadline, since a server may send a byte now and then without ever timing out."""

    def __init__(self, source: Any, sock: Any, seconds: float) -> None:
        self._source, self._sock = source, sock
        self._timeout, self._seconds, self._end = sock.gettimeout(), seconds, time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left = self._end - time.monotonic()
        if left <= 0:
            raise _EndlessError(f"was not complete after {self._seconds:g} seconds")
        self._sock.settimeout(min(left, self._timeout))
        try:
            return int(self._source.readinto(buffer))
        except TimeoutError:
            if left < self._timeout:
                raise _EndlessError(f"was not complete after {self._seconds:g} seconds") from None
            raise

    def close(self) -> None:
        self._source.close()
        super().close()


class _PacedResponse(HTTPResponse):
    """A response that may take `seconds` altogether, headers included."""

    def __init__(self, sock: Any, *arguments: Any, seconds: float, **named: Any) -> None:
        super().__init__(sock, *arguments, **named)
        self.fp = BufferedReader(_Paced(self.fp.detach(), sock, seconds))


class _PacedHandler(HTTPHandler):
    """Opens connections whose responses may take `MOST_TIMEOUTS` times the timeout."""

    def do_open(self, http_class: Any, req: Any, **arguments: Any) -> HTTPResponse:
        def connect(host: str, **given: Any) -> Any:
            connection = http_class(host, **given)
            connection.response_class = partial(_PacedResponse, seconds=MOST_TIMEOUTS * req.timeout)
            return connection

        return super().do_open(connect, req, **arguments)


class _PacedSecureHandler(_PacedHandler, HTTPSHandler):
    """The same for https."""


def send(address: Address, field: str, text: str, *, timeout: float, read: Callable[[ServerResponse], T]) -> T:
    """Send a query or an update (`field`); return the result of `read` on the response.

    `timeout` is how many seconds the server may be silent; a response may take `MOST_TIMEOUTS` times that. Temporary
    failures are retried, also when `read` raises an `HTTPException`. Credentials are sent only on demand.
    """
    credentials = authorization(address.location)
    n_failures = 0
    while True:
        try:
            return read(_send_once(address, field, text, timeout, credentials))
        except _EndlessError as error:
            raise DataError(
                f"{address.shown}: the response {error}: ask for less with --page-size or --query"
            ) from error
        except (OSError, HTTPException) as error:
            is_unauthorized = isinstance(error, HTTPError) and error.code == HTTPStatus.UNAUTHORIZED
            if is_unauthorized and credentials is None:
                note_asking(address.location)
                credentials = authorization(address.location)
                if credentials is not None:
                    continue
            if n_failures == RETRIES or not is_temporary(error):
                raise _refusal(address, error, timeout, tried=credentials is not None) from error
            time.sleep(pause_after(n_failures, error))
            n_failures += 1


def _send_once(address: Address, field: str, text: str, timeout: float, credentials: str | None) -> ServerResponse:
    headers = {"Accept": f"{RESULTS}, application/json;q=0.9, */*;q=0.1", "User-Agent": "anyburl"}
    if credentials is not None:
        headers["Authorization"] = credentials
    try:
        request = Request(address.location, urlencode({field: text}).encode(), headers, method="POST")
        opener = build_opener(_NoRedirects, _PacedHandler, _PacedSecureHandler)
        with opener.open(request, timeout=timeout) as response:
            return ServerResponse(response.headers.get_content_type(), _content(response))
    except HTTPError as error:
        with error:
            body = error.read(LONGEST_REASON)
        raise HTTPError(address.location, error.code, error.reason, error.headers, BytesIO(body)) from None
    except ValueError as error:  # of Python's client, which cannot encode the host or the path
        reason = address.hide(str(error))
        raise DataError(f"{address.shown} cannot be used as an address, write it in ASCII ({reason})") from error


def _content(response: HTTPResponse) -> bytes:
    """Return the body of a response, up to a limit."""
    pieces, n_bytes = [], 0
    while piece := response.read1(PIECE):
        pieces.append(piece)
        n_bytes += len(piece)
        if n_bytes > MOST_BYTES:
            raise _EndlessError(f"has more than {MOST_BYTES:,} bytes")
    content = b"".join(pieces)
    if response.length:  # bytes that were announced and not sent
        raise IncompleteRead(content, response.length)
    return content


def _refusal(address: Address, error: OSError | HTTPException, timeout: float, *, tried: bool) -> DataError:
    """Return the error that says why there is no response."""
    url = address.shown
    if isinstance(error, IncompleteRead):
        return DataError(f"{url}: the connection broke after {len(error.partial):,} bytes of the response")
    if not isinstance(error, HTTPError):
        return DataError(f"{url} does not respond: {address.hide(reason_of(error, timeout))}")
    if error.code == HTTPStatus.UNAUTHORIZED:
        if tried:
            return CredentialsError(f"{url} rejects the credentials: {FROM_ENVIRONMENT[ENDPOINT]}")
        return UnauthorizedError(f"{url} asks for credentials: {FROM_ENVIRONMENT[ENDPOINT]}")
    if error.code in (301, 302, 303, 307, 308):
        location = address.hide(redacted_address(error.headers.get("Location") or ""))
        return DataError(f"{url} has moved: the server points to {location!r}")
    reason = address.hide(f"({error.reason}){_body(error)}")
    return DataError(f"{url} responded with {error.code} {reason}")


def _body(error: HTTPError) -> str:
    """Return the beginning of the body of an error, on one line; HTML is left out."""
    text = error.read().decode("utf-8", "replace").strip()
    return f": {' '.join(text.split())}" if text and not text.startswith("<") else ""


XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
ESCAPED = re.compile(r'["\\\x00-\x1f\x7f]')
ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\b": "\\b", "\f": "\\f"}

TERM = ("type", "value", "xml:lang", "datatype")

Row = Mapping[str, Mapping[str, Any]]


def select(address: Address, query: str, names: Sequence[str], *, timeout: float) -> list[Row]:
    """Return the rows of a SELECT query, each with all of `names` bound."""
    rows = send(address, "query", query, timeout=timeout, read=lambda answer: _rows(address, answer))
    for name in names:
        if any(name not in row for row in rows):
            expected = ", ".join(f"?{name}" for name in names)
            raise DataError(
                f"{address.shown}: expected {expected} in every row of the results, got one without ?{name}"
            )
    return rows


def _rows(address: Address, answer: ServerResponse) -> list[Row]:
    """Return the rows of a response; a truncated one is retried, one of another type is not."""
    if "json" not in answer.content_type:
        start = address.hide(" ".join(answer.content[:80].decode("utf-8", "replace").split()))
        raise DataError(
            f"{address.shown} does not respond like a SPARQL endpoint: expected JSON results, got "
            f"{answer.content_type}: {start}"
        )
    try:
        rows: list[Row] = json.loads(answer.content)["results"]["bindings"]
        if all(_is_term(term) for row in rows for term in row.values()):
            return rows
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise HTTPException(f"the results are damaged or truncated ({error})") from error
    raise HTTPException("the results are damaged: expected text values")


def _is_term(term: Mapping[str, Any]) -> bool:
    return "value" in term and all(is_text(term[name]) for name in TERM if name in term)


class LiteralTerm(NamedTuple):
    """A literal, with its language or its type."""

    value: str
    language: str | None
    datatype: str

    @classmethod
    def of(cls, term: Mapping[str, Any]) -> LiteralTerm:
        """Return a term of results as a literal."""
        language = term.get("xml:lang")
        return cls(term["value"], language.lower() if language else None, term.get("datatype", XSD_STRING))


def is_literal(term: Mapping[str, Any]) -> bool:
    """Whether a term is a literal; older servers have another word for those with a type."""
    return term.get("type") in ("literal", "typed-literal")


def label(term: Mapping[str, Any]) -> str:
    """Return a term as RDF files have it: an IRI, _:name, or a literal as in N-Triples."""
    kind, value = term.get("type"), term["value"]
    if kind == "uri":
        return str(value)
    if kind == "bnode":
        return f"_:{value}"
    if not is_literal(term):
        raise DataError(f"expected IRIs, blank nodes and literals in results, got {kind!r}")
    literal = LiteralTerm.of(term)
    quoted = f'"{ESCAPED.sub(_escape, literal.value)}"'
    if literal.language:
        return f"{quoted}@{literal.language}"
    return quoted if literal.datatype == XSD_STRING else f"{quoted}^^<{literal.datatype}>"


def _escape(match: re.Match[str]) -> str:
    return ESCAPES.get(match[0], f"\\u{ord(match[0]):04X}")
