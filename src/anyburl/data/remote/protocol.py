"""The SPARQL protocol: one request, retried after a pause if that may help, with a complete response or none.

Rows of SPARQL results, from JSON to labels.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead
from io import BufferedReader, BytesIO, RawIOBase
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPHandler, HTTPRedirectHandler, HTTPSHandler, Request, build_opener

from anyburl.base.errors import CredentialsError, DataError, UnauthorizedError
from anyburl.base.reading import is_text
from anyburl.base.redacting import redacted_address
from anyburl.data.remote.addresses import ENDPOINT, FROM_ENVIRONMENT, Address, authorization, note_asking
from anyburl.data.remote.fetching import RETRIES, may_pass, pause_after, reason_of

RESULTS = "application/sparql-results+json"
MOST_TOLD = 300  # bytes of what a server says
MOST_BYTES = 1 << 30  # of one response
MOST_TIMEOUTS = 10  # that one response may take altogether, however it trickles in
PIECE = 1 << 16  # bytes read at a time

T = TypeVar("T")


class ServerResponse(NamedTuple):
    """What a server has sent, all of it."""

    content_type: str
    content: bytes


class _NoRedirects(HTTPRedirectHandler):
    """Leaves a redirection to us: credentials and updates must not go elsewhere."""

    def redirect_request(self, *request: Any) -> None:
        return None


class _EndlessError(Exception):
    """A response takes too long altogether, or is too large; the message says which."""


class _Paced(RawIOBase):
    """What a socket receives, until a moment: a server that sends a byte now and then is never silent for long."""

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
    """A response, headers and all, that may take `seconds` altogether."""

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
    """Send a query or an update, as `field` says; return what `read` makes of the answer.

    `timeout` is how many seconds the server may be silent; a response may take `MOST_TIMEOUTS` times that. What may
    pass is tried again, also an answer for which `read` raises an `HTTPException`. Credentials are sent only to a
    server that asks for them.
    """
    credentials = authorization(address.place)
    n_failures = 0
    while True:
        try:
            return read(_send_once(address, field, text, timeout, credentials))
        except _EndlessError as error:
            told = f"the response {error}: ask for less with --page-size or --query"
            raise DataError(f"{address.shown}: {told}") from error
        except (OSError, HTTPException) as error:
            if _wants_credentials(error) and credentials is None:
                note_asking(address.place)
                credentials = authorization(address.place)
                if credentials is not None:
                    continue
            if n_failures == RETRIES or not may_pass(error):
                raise _refusal(address, error, timeout, tried=credentials is not None) from error
            time.sleep(pause_after(n_failures, error))
            n_failures += 1


def _send_once(address: Address, field: str, text: str, timeout: float, credentials: str | None) -> ServerResponse:
    headers = {"Accept": f"{RESULTS}, application/json;q=0.9, */*;q=0.1", "User-Agent": "anyburl"}
    if credentials is not None:
        headers["Authorization"] = credentials
    try:
        request = Request(address.place, urlencode({field: text}).encode(), headers, method="POST")
        opener = build_opener(_NoRedirects, _PacedHandler, _PacedSecureHandler)
        with opener.open(request, timeout=timeout) as response:
            return ServerResponse(response.headers.get_content_type(), _content(response))
    except HTTPError as error:
        with error:
            said = error.read(MOST_TOLD)
        raise HTTPError(address.place, error.code, error.reason, error.headers, BytesIO(said)) from None
    except ValueError as error:  # of Python's client, which cannot encode the host or the path
        reason = address.hide(str(error))
        raise DataError(f"{address.shown} cannot be used as an address, write it in ASCII ({reason})") from error


def _content(response: HTTPResponse) -> bytes:
    """Return all that a server sends; one that never ends is refused."""
    pieces, n_bytes = [], 0
    while piece := response.read1(PIECE):
        pieces.append(piece)
        n_bytes += len(piece)
        if n_bytes > MOST_BYTES:
            raise _EndlessError(f"has more than {MOST_BYTES:,} bytes")
    content = b"".join(pieces)
    if response.length:  # that the server has promised, and not sent
        raise IncompleteRead(content, response.length)
    return content


def _wants_credentials(error: OSError | HTTPException) -> bool:
    return isinstance(error, HTTPError) and error.code == HTTPStatus.UNAUTHORIZED


def _refusal(address: Address, error: OSError | HTTPException, timeout: float, *, tried: bool) -> DataError:
    """Return the sentence that says why there is no answer."""
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
    said = address.hide(f"({error.reason}){_said(error)}")
    return DataError(f"{url} responded with {error.code} {said}")


def _said(error: HTTPError) -> str:
    """Return the beginning of what a server says, on one line; pages for browsers say nothing."""
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
            wanted = ", ".join(f"?{name}" for name in names)
            raise DataError(f"{address.shown}: expected {wanted} in every row of the results, got one without ?{name}")
    return rows


def _rows(address: Address, answer: ServerResponse) -> list[Row]:
    """Return the rows of an answer; one that was cut short is worth another try, one of another kind is not."""
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
        """Return the literal that a term of results is."""
        language = term.get("xml:lang")
        return cls(term["value"], language.lower() if language else None, term.get("datatype", XSD_STRING))


def is_literal(term: Mapping[str, Any]) -> bool:
    """Whether a term is a literal; older servers say so in another word if it has a type."""
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


def _escape(found: re.Match[str]) -> str:
    return ESCAPES.get(found[0], f"\\u{ord(found[0]):04X}")
