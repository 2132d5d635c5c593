"""The JSON API under /api, and its description as a page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import Response

from anyburl.web import schemas
from anyburl.web.background import BusyError
from anyburl.web.facts import EntityFacts, answer_question, answer_questions
from anyburl.web.pages import GROUNDINGS, check_row
from anyburl.web.schemas import (
    Aggregation,
    Explained,
    Known,
    Label,
    Offset,
    OptionalLabel,
    RuleFilters,
    RuleRow,
    Smoothing,
    Text,
    Top,
    candidates_json,
    review_json,
    rule_json,
)
from anyburl.web.site import Context, CurrentSite

ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.Error, "description": "not found"},
    422: {"model": schemas.Error, "description": "the request cannot be answered"},
    503: {"model": schemas.Error, "description": "too many readers are waiting"},
}
FACTS = 20

router = APIRouter(prefix="/api", responses=ERRORS)


@router.get("/search", response_model=schemas.SearchResult)
async def search(
    request: Request,
    site: CurrentSite,
    q: Text,
    kind: Annotated[Literal["entity", "relation"] | None, Query()] = None,
    top: Top = 20,
) -> Response:
    """Find entities and relations by name or label; small typos are fine."""
    explorer = site.explorer
    lane = None if explorer.can_search else site.slow
    return await site.answer(request, lambda: explorer.find_labels(q, kind, top), lane)


@router.get("/entity", response_model=schemas.EntityResult)
async def entity(request: Request, site: CurrentSite, label: Label) -> Response:
    """Return the facts of an entity, of each relation the first few, and its numbers, dates and booleans."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        entity = explorer.entity(label)
        facts = [asdict(group) for group in EntityFacts(explorer.reasoner, entity).groups(FACTS)]
        values = explorer.values(entity)
        return {"label": entity, "name": explorer.names.get(entity), "facts": facts, "values": values}

    return await site.answer(request, make)


@router.get("/predicted", response_model=schemas.PredictedFacts)
async def predicted(request: Request, site: CurrentSite, label: Label, top: Top = 20) -> Response:
    """Return the best new facts about an entity, of all relations and in both directions."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        entity = explorer.entity(label)
        facts, is_whole = explorer.predictions(entity, top=top, seconds=site.options.seconds)
        if not is_whole:
            raise BusyError("these predictions take longer")
        return {"label": entity, "predicted": candidates_json(explorer.reasoner, facts)}

    return await site.answer(request, make, site.slow)


@router.get("/ask", response_model=schemas.AnswersResponse)
async def answers(
    request: Request,
    site: CurrentSite,
    relation: Label,
    subject: OptionalLabel = None,
    object: OptionalLabel = None,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    known: Known = False,
    offset: Offset = 0,
    top: Top = 20,
) -> Response:
    """Answer (subject, relation, ?) or (?, relation, object)."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        query = explorer.query(subject, relation, object)
        reasoner = explorer.ranking_by(aggregation, smoothing)
        ranking = answer_question(reasoner, query, first=offset, top=top, include_known=known)
        return {
            **query._asdict(),
            "aggregation": reasoner.options.aggregation,
            "smoothing": reasoner.options.smoothing,
            "n_candidates": ranking.n_candidates,
            "n_known": ranking.n_known,
            "answers": candidates_json(reasoner, ranking.candidates),
        }

    return await site.answer(request, make)


@router.post("/batch", response_model=schemas.BatchResult)
async def batch(site: CurrentSite, given: Annotated[schemas.QuestionBatch, Body()]) -> Response:
    """Answer many questions at once."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        queries = [explorer.query(one.subject, one.relation, one.object) for one in given.questions]
        answers = answer_questions(explorer.reasoner, queries, top=given.top, include_known=given.known)
        return {"answers": [candidates_json(explorer.reasoner, candidates) for candidates in answers]}

    return await site.answer_once(make, site.slow)


@router.get("/why")
async def why(request: Request, site: CurrentSite, query: Explained) -> Response:
    """Return the rules that predict a triple, with their facts: what `anyburl explain --json` prints."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        reasoner, triple = explorer.ranking_by(query.aggregation, query.smoothing), explorer.triple(*query.triple)
        return reasoner.explain(triple, top=query.top, groundings=GROUNDINGS).to_json(explorer.names)

    return await site.answer(request, make)


@router.get("/rules", response_model=schemas.RulesResult)
async def rules(
    request: Request, site: CurrentSite, filters: RuleFilters, offset: Offset = 0, top: Top = 20
) -> Response:
    """Return the best rules that pass all filters."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        _, chosen = explorer.choose_rules(filters)
        rows = chosen.rows[offset : offset + top].tolist()
        return {
            "n_matching": chosen.n_matching,
            "rules": [rule_json(explorer.reasoner.rules, row) for row in rows],
        }

    return await site.answer(request, make, site.slow)


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
    """Accept or reject a fact, or withdraw an earlier verdict."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        triple = explorer.triple(judged.subject, judged.relation, judged.object)
        return review_json(explorer.reviews.record(triple, judged.verdict, judged.note, judged.reader))

    return await site.answer_once(make)


page_router = APIRouter()


@page_router.get("/api")
async def api(request: Request, site: CurrentSite) -> Response:
    """List the calls of the API and their parameters."""

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
