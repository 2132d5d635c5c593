"""The SPARQL protocol: one request, retried after a pause if that may help, with a complete response or none."""

from __future__ import annotations

import time
from collections.abc import Callable
from http import HTTPStatus
from http.client import HTTPException, HTTPResponse, IncompleteRead
from io import BytesIO
from typing import Any, NamedTuple, TypeVar
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from anyburl.errors import CredentialsError, DataError, UnauthorizedError
from anyburl.triples.fetching import RETRIES, may_pass, pause_after, reason_of
from anyburl.triples.remote.addresses import ENDPOINT, FROM_ENVIRONMENT
from anyburl.triples.remote.credentials import authorization, note_asking

RESULTS = "application/sparql-results+json"
MOST_TOLD = 300  # bytes of what a server says

T = TypeVar("T")


class Answer(NamedTuple):
    """What a server has sent, all of it."""

    content_type: str
    content: bytes


class _NoRedirects(HTTPRedirectHandler):
    """Leaves a redirection to us: credentials and updates must not go elsewhere."""

    def redirect_request(self, *request: Any) -> None:
        return None


def send(url: str, field: str, text: str, *, timeout: float, read: Callable[[Answer], T]) -> T:
    """Send a query or an update, as `field` says; return what `read` makes of the answer.

    `timeout` is how many seconds the server may be silent. What may pass is tried again, also an answer for which
    `read` raises an `HTTPException`. Credentials are sent only to a server that asks for them.
    """
    credentials = authorization(url)
    n_failures = 0
    while True:
        try:
            return read(_send_once(url, field, text, timeout, credentials))
        except (OSError, HTTPException) as error:
            if _wants_credentials(error) and credentials is None:
                note_asking(url)
                credentials = authorization(url)
                if credentials is not None:
                    continue
            if n_failures == RETRIES or not may_pass(error):
                raise _refusal(url, error, timeout, tried=credentials is not None) from error
            time.sleep(pause_after(n_failures, error))
            n_failures += 1


def _send_once(url: str, field: str, text: str, timeout: float, credentials: str | None) -> Answer:
    headers = {"Accept": f"{RESULTS}, application/json;q=0.9, */*;q=0.1", "User-Agent": "anyburl"}
    if credentials is not None:
        headers["Authorization"] = credentials
    request = Request(url, urlencode({field: text}).encode(), headers, method="POST")
    response: HTTPResponse
    try:
        with build_opener(_NoRedirects).open(request, timeout=timeout) as response:
            return Answer(response.headers.get_content_type(), response.read())
    except HTTPError as error:
        with error:
            said = error.read(MOST_TOLD)
        raise HTTPError(url, error.code, error.reason, error.headers, BytesIO(said)) from None


def _wants_credentials(error: OSError | HTTPException) -> bool:
    return isinstance(error, HTTPError) and error.code == HTTPStatus.UNAUTHORIZED


def _refusal(url: str, error: OSError | HTTPException, timeout: float, *, tried: bool) -> DataError:
    """Return the sentence that says why there is no answer."""
    if isinstance(error, IncompleteRead):
        return DataError(f"{url}: the connection broke after {len(error.partial):,} bytes of the response")
    if not isinstance(error, HTTPError):
        return DataError(f"{url} does not respond: {reason_of(error, timeout)}")
    if error.code == HTTPStatus.UNAUTHORIZED:
        if tried:
            return CredentialsError(f"{url} rejects the credentials: {FROM_ENVIRONMENT[ENDPOINT]}")
        return UnauthorizedError(f"{url} asks for credentials: {FROM_ENVIRONMENT[ENDPOINT]}")
    if error.code in (301, 302, 303, 307, 308):
        return DataError(f"{url} has moved: the server points to {error.headers.get('Location')!r}")
    said = _said(error)
    return DataError(f"{url} responded with {error.code} ({error.reason}){f': {said}' if said else ''}")


def _said(error: HTTPError) -> str:
    """Return the beginning of what a server says, on one line; pages for browsers say nothing."""
    text = error.read().decode("utf-8", "replace")
    return "" if text.lstrip().startswith("<") else " ".join(text.split())
