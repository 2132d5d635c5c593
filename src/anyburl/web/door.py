"""What every site of an explorer has: style sheets, the search for labels, and the form for the token."""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.tools.report.page import THEORY_STYLE
from anyburl.web.guard import OPEN_PATH, TOKEN_COOKIE, form_token, inside, read_form, set_form_token, token_digest
from anyburl.web.schemas import LIMITS, Text
from anyburl.web.site import AnySite, CachedResponse, Context, Explored, Site, tagged_response
from anyburl.web.templating import FOLDER

N_FOUND = 40
SECONDS_LOGGED_IN = 30 * 24 * 3600
MEDIA_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FILES: dict[str, CachedResponse] = {  # read at the start: no other file can be reached
    file.name: tagged_response(file.read_bytes(), MEDIA_TYPES[file.suffix])
    for file in sorted((FOLDER / "static").iterdir())
} | {"theory.css": tagged_response(THEORY_STYLE.encode(), MEDIA_TYPES[".css"])}

router = APIRouter()


@router.get("/search")
async def search_page(request: Request, site: AnySite, q: Text = "") -> Response:
    """List the entities and relations whose labels or names match."""

    def make() -> Context:
        return {"q": q, "matches": site.explorer.search.find(q, top=N_FOUND) if q.strip() else []}

    return await site.page(request, "search.html", make, None if site.explorer.can_search else site.slow)


@router.get("/static/{name}")
async def asset(request: Request, name: str) -> Response:
    """Return a style sheet, a script or the icon."""
    if name not in FILES:
        raise HTTPException(404)
    return FILES[name].response(request)


@router.get("/favicon.ico")
async def icon(request: Request) -> Response:
    """Return the icon; browsers request it here without being told to."""
    return FILES["icon.svg"].response(request)


@router.get(OPEN_PATH)
async def login(
    request: Request, site: AnySite, next: Annotated[str, Query(max_length=LIMITS.longest_text)] = "/"
) -> Response:
    """Show the form for the token."""
    return _login_form(request, site, next)


@router.post(OPEN_PATH)
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
