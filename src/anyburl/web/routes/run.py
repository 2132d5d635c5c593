"""How the rules were learned, or are being learned."""

from __future__ import annotations

from fastapi import APIRouter, HTTPException
from fastapi.responses import Response

from anyburl.web.progress import view_run
from anyburl.web.site import CurrentSite

SECONDS_BETWEEN = 3

router = APIRouter()


@router.get("/run")
async def run(site: CurrentSite) -> Response:
    """Show what the run folder tells; it is read on every request."""
    folder = site.explorer.run
    if folder is None:
        raise HTTPException(404, "these rules are not a run folder")

    def make() -> bytes:
        view = view_run(folder)
        seconds = 0 if view.progress.is_finished else SECONDS_BETWEEN
        context = {"path": "/run", "view": view, "progress": view.progress, "seconds": seconds}
        return site.render("run.html", context)

    body = await site.lanes.quick.run(make)
    return Response(body, media_type="text/html; charset=utf-8")
