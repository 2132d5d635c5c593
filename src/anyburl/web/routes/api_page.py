"""The API as a page, made from its OpenAPI document."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from anyburl.web.site import Context, CurrentSite

router = APIRouter()


@router.get("/api")
async def api(request: Request, site: CurrentSite) -> Response:
    """List the addresses of the API with what they take."""

    def make() -> Context:
        document: dict[str, Any] = request.app.openapi()
        return {
            "calls": [
                (method.upper(), path, call)
                for path, methods in document["paths"].items()
                for method, call in methods.items()
            ]
        }

    return await site.page(request, "api.html", make)
