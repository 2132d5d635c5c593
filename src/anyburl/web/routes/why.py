"""Why a triple is predicted, or why not; and the same as a file to share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from anyburl.reasoning.explanation.page import to_html
from anyburl.reasoning.explanation.record import Fact
from anyburl.web.explorer import Explorer
from anyburl.web.facts import Why
from anyburl.web.facts import explain_for_page as find_reasons
from anyburl.web.parameters import Aggregation, Label, Smoothing
from anyburl.web.routes.entity import draw_near_miss, draw_reasons
from anyburl.web.site import Context, CurrentSite

SHOWN, MOST, GROUNDINGS = 5, 50, 3

Rules = Annotated[int, Query(ge=1, le=MOST)]

router = APIRouter()


@router.get("/why")
async def why_page(
    request: Request,
    site: CurrentSite,
    subject: Label,
    relation: Label,
    object: Label,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    top: Rules = SHOWN,
) -> Response:
    """Show the rules that fire, their facts, what they add up to, and where they were wrong."""
    explorer = site.explorer

    def make() -> Context:
        reasoner = explorer.ranking_by(aggregation, smoothing)
        found = find_reasons(reasoner, meant(explorer, subject, relation, object), top=top, groundings=GROUNDINGS)
        return {
            "why": found,
            "explanation": found.explanation,
            "triple": found.explanation.triple,
            **_drawings(explorer, found),
            "aggregation": reasoner.options.aggregation,
            "smoothing": reasoner.options.smoothing,
            "aggregations": explorer.aggregations,
            "top": top,
            "most": MOST,
        }

    return await site.page(request, "why.html", make)


@router.get("/why/page")
async def download_page(
    site: CurrentSite,
    subject: Label,
    relation: Label,
    object: Label,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    top: Rules = SHOWN,
) -> Response:
    """Return the explanation as one file that needs nothing else."""
    explorer = site.explorer

    def make() -> bytes:
        triple = meant(explorer, subject, relation, object)
        found = explorer.ranking_by(aggregation, smoothing).explain(triple, top=top, groundings=GROUNDINGS)
        return to_html(found, explorer.names).encode()

    body = await site.lanes.quick.run(make)
    headers = {"Content-Disposition": 'attachment; filename="explanation.html"'}
    return Response(body, media_type="text/html; charset=utf-8", headers=headers)


def meant(explorer: Explorer, subject: str, relation: str, object: str) -> Fact:
    """Return the labels of a triple that someone asks about."""
    return explorer.entity(subject), explorer.relation(relation), explorer.entity(object)


def _drawings(explorer: Explorer, found: Why) -> Context:
    """Return the proof graph of all rules, of each rule, and of each near miss."""
    reasons, triple = found.explanation.reasons, found.explanation.triple
    return {
        "drawing": draw_reasons(explorer, reasons, triple) if len(reasons) > 1 else "",
        "drawings": [draw_reasons(explorer, [reason], triple) for reason in reasons],
        "near_drawings": [draw_near_miss(explorer, near_miss, triple) for near_miss in found.near_misses],
    }
