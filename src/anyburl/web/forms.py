"""Form protection: a token in the form and in a cookie, which requests from other sites lack."""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

COOKIE = "anyburl_form"
FIELD = "form_token"
LONGEST_FORM = 200_000
MOST_FIELDS = 20


def form_token(request: Request) -> str:
    """Return the reader's token, a new one if there is none."""
    given = request.cookies.get(COOKIE, "")
    return given if len(given) == 43 and given.isascii() else secrets.token_urlsafe(32)


def set_form_token(response: Response, token: str) -> Response:
    """Give the reader the token that the page's forms hold."""
    response.set_cookie(COOKIE, token, httponly=True, samesite="strict", path="/")
    return response


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a form that one of our pages sent."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/x-www-form-urlencoded":
        raise HTTPException(415, "expected a form")
    body = await request.body()
    try:
        pairs = parse_qsl(body[:LONGEST_FORM].decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS)
    except ValueError as error:
        raise HTTPException(422, "cannot read this form") from error
    fields = dict(pairs)
    cookie = request.cookies.get(COOKIE, "")
    if not cookie or not hmac.compare_digest(fields.get(FIELD, "").encode(), cookie.encode()):
        raise HTTPException(403, "this form has expired: go back, reload the page and send it again")
    return fields
