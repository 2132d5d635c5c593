"""Styles and scripts from the package; no other file can be read."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException, Request
from fastapi.responses import Response

from anyburl.web.cache import Kept, keep
from anyburl.web.templating import FOLDER

TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
FILES: dict[str, Kept] = {
    file.name: keep(file.read_bytes(), TYPES[file.suffix]) for file in sorted((FOLDER / "static").iterdir())
}

router = APIRouter()


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
