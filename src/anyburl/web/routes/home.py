"""The home page and search.

Styles and scripts from the package; no other file can be read.

Asks for the token once and keeps it in a cookie.
"""

from __future__ import annotations

import hmac
from typing import Annotated

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.web.explorer import Explorer
from anyburl.web.guard import OPEN_PATH, TOKEN_COOKIE, form_token, inside, read_form, set_form_token, token_digest
from anyburl.web.parameters import LIMITS, Text
from anyburl.web.site import CachedResponse, Context, CurrentSite, Site, tagged_response
from anyburl.web.templating import FOLDER

N_EXAMPLES, N_RELATIONS, N_FOUND = 4, 12, 40

router = APIRouter()


@router.get("/")
async def home(request: Request, site: CurrentSite) -> Response:
    """Say what there is, and what can be done with it."""
    return await site.page(request, "home.html", lambda: _home(site.explorer))


@router.get("/search")
async def search_page(request: Request, site: CurrentSite, q: Text = "") -> Response:
    """List the entities and relations that are called like a text."""

    def make() -> Context:
        found = site.explorer.search.find(q, top=N_FOUND) if q.strip() else []
        return {"q": q, "found": found}

    return await site.page(request, "search.html", make, None if site.explorer.can_search else site.lanes.slow)


def _home(explorer: Explorer) -> Context:
    dataset, rules = explorer.reasoner.dataset, explorer.reasoner.rules
    return {
        "dataset": dataset,
        "vocabulary": dataset.vocabulary,
        "rules": rules,
        "n_facts": {name: len(dataset.split(name)) for name in ("train", "valid", "test")},
        "by_type": {name: n for name, n in rules.counts_by_type().items() if n},
        "examples": explorer.example_questions(N_EXAMPLES),
        "relations": explorer.common_relations(N_RELATIONS),
    }


TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FILES: dict[str, CachedResponse] = {
    file.name: tagged_response(file.read_bytes(), TYPES[file.suffix]) for file in sorted((FOLDER / "static").iterdir())
}


@router.get("/static/{name}")
async def asset(request: Request, name: str) -> Response:
    """Return one of the files that were read at the start."""
    if name not in FILES:
        raise HTTPException(404)
    return FILES[name].response(request)


@router.get("/favicon.ico")
async def icon(request: Request) -> Response:
    """Browsers ask for it unbidden."""
    return FILES["icon.svg"].response(request)


Next = Annotated[str, Query(max_length=LIMITS.longest_text)]
SECONDS_KEPT = 30 * 24 * 3600


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
