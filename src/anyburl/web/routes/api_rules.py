"""Rules, the run and reviews under /api."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Body, Request
from fastapi.responses import Response

from anyburl.web import schemas
from anyburl.web.choices import AskedRules, choose_rules
from anyburl.web.parameters import Offset, Top
from anyburl.web.routes.api import ERRORS
from anyburl.web.routes.rules import RuleRow, check_row
from anyburl.web.routes.why import meant
from anyburl.web.serialise import review_json, rule_json
from anyburl.web.site import CurrentSite

router = APIRouter(prefix="/api", responses=ERRORS)


@router.get("/rules", response_model=schemas.RulesResult)
async def rules(request: Request, site: CurrentSite, asked: AskedRules, offset: Offset = 0, top: Top = 20) -> Response:
    """Return the best rules that pass all filters."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        _, chosen = choose_rules(explorer, asked)
        rows = chosen.rows[offset : offset + top].tolist()
        return {
            "n_matching": chosen.n_matching,
            "rules": [rule_json(explorer.reasoner.rules, row) for row in rows],
        }

    return await site.answer(request, make, site.lanes.slow)


@router.get("/rules/{row}", response_model=schemas.RuleResult)
async def rule(request: Request, site: CurrentSite, row: RuleRow) -> Response:
    """Return one rule."""
    check_row(site.explorer, row)
    return await site.answer(request, lambda: rule_json(site.explorer.reasoner.rules, row))


@router.get("/reviews", response_model=schemas.ReviewResult)
async def reviews(site: CurrentSite) -> Response:
    """Return what readers accepted and rejected."""
    log = site.explorer.reviews

    def make() -> dict[str, Any]:
        return {**log.counts(), "reviews": [review_json(review) for review in log.standing().values()]}

    return await site.answer_once(make)


@router.post("/reviews", response_model=schemas.Reviewed)
async def review(site: CurrentSite, judged: Annotated[schemas.ReviewRequest, Body()]) -> Response:
    """Accept or reject a fact, or withdraw what was said of it."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        triple = meant(explorer, judged.subject, judged.relation, judged.object)
        return review_json(explorer.reviews.record(triple, judged.verdict, judged.note, judged.reader))

    return await site.answer_once(make)
