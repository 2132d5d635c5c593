"""Asks for the token once and keeps it in a cookie."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.web.forms import form_token, read_form, set_form_token
from anyburl.web.guard import OPEN_PATH, TOKEN_COOKIE, inside, token_digest
from anyburl.web.parameters import LIMITS
from anyburl.web.site import CurrentSite, Site

Next = Annotated[str, Query(max_length=LIMITS.longest_text)]
SECONDS_KEPT = 30 * 24 * 3600

router = APIRouter()


@router.get(OPEN_PATH)
async def login(request: Request, site: CurrentSite, next: Next = "/") -> Response:
    """Ask for the token."""
    return _form(request, site, next)


@router.post(OPEN_PATH)
async def check(request: Request, site: CurrentSite) -> Response:
    """Keep the token's digest in a cookie, if it is the right one."""
    fields = await read_form(request)
    there, token = fields.get("next", "/"), site.options.token
    if token is None:
        return RedirectResponse("/", 303)
    if not hmac.compare_digest(fields.get("token", "").encode(), token.encode()):
        return _form(request, site, there, wrong=True)
    response = RedirectResponse(inside(there), 303)
    response.set_cookie(
        TOKEN_COOKIE, token_digest(token), max_age=SECONDS_KEPT, httponly=True, samesite="strict", path="/"
    )
    return response


def _form(request: Request, site: Site, there: str, *, wrong: bool = False) -> Response:
    token = form_token(request)
    context = {"path": OPEN_PATH, "next": inside(there), "wrong": wrong, "form_token": token}
    return set_form_token(site.send("login.html", context, 401 if wrong else 200), token)
