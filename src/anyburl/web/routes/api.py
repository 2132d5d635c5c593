"""The same for programs: JSON under /api."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Query, Request
from fastapi.responses import Response

from anyburl.reasoning.queries import Query as Question
from anyburl.reasoning.queries import make_query
from anyburl.web import schemas
from anyburl.web.explorer import Explorer
from anyburl.web.facts import EntityFacts
from anyburl.web.parameters import Aggregation, Known, Label, Offset, OptionalLabel, Smoothing, Text, Top
from anyburl.web.questions import Ranking, ask, ask_many, predicted_facts
from anyburl.web.routes.why import GROUNDINGS, Rules, meant
from anyburl.web.serialise import candidates_json
from anyburl.web.site import CurrentSite

ERRORS: dict[int | str, dict[str, Any]] = {
    404: {"model": schemas.Error, "description": "not found"},
    422: {"model": schemas.Error, "description": "the request cannot be answered"},
    503: {"model": schemas.Error, "description": "too many readers are waiting"},
}
Kind = Annotated[Literal["entity", "relation"] | None, Query()]
FACTS = 20

router = APIRouter(prefix="/api", responses=ERRORS)


@router.get("/search", response_model=schemas.SearchResult)
async def search(request: Request, site: CurrentSite, q: Text, kind: Kind = None, top: Top = 20) -> Response:
    """Find entities and relations by name or label; small typos are fine."""

    def make() -> dict[str, Any]:
        found = site.explorer.search.find(q, kind=kind, top=top) if q.strip() else []
        return {"found": [dict(label=m.label, name=m.name, kind=m.kind, distance=m.distance) for m in found]}

    return await site.answer(request, make, None if site.explorer.can_search else site.lanes.slow)


@router.get("/entity", response_model=schemas.EntityResult)
async def entity(request: Request, site: CurrentSite, label: Label) -> Response:
    """Return the facts of an entity: of each relation, the first few."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        found = explorer.entity(label)
        facts = [
            {
                "relation": group.relation,
                "backward": group.backward,
                "n_facts": group.n_facts,
                "facts": [{"entity": fact.entity, "splits": list(fact.splits)} for fact in group.facts],
            }
            for group in EntityFacts(explorer.reasoner, found).groups(FACTS)
        ]
        return {"label": found, "name": explorer.names.get(found), "facts": facts}

    return await site.answer(request, make)


@router.get("/predicted", response_model=schemas.PredictedFacts)
async def predicted(request: Request, site: CurrentSite, label: Label, top: Top = 20) -> Response:
    """Return the best new facts about an entity, of all relations and in both directions."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        found = explorer.entity(label)
        facts = predicted_facts(explorer.reasoner, found, top=top)
        return {"label": found, "predicted": candidates_json(explorer.reasoner, facts)}

    return await site.answer(request, make, site.lanes.slow)


@router.get("/ask", response_model=schemas.Answers)
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
        query = labelled(explorer, make_query(subject, relation, object))
        reasoner = explorer.ranking_by(aggregation, smoothing)
        found: Ranking = ask(reasoner, query, first=offset, top=top, include_known=known)
        return {
            **query._asdict(),
            "aggregation": reasoner.options.aggregation,
            "smoothing": reasoner.options.smoothing,
            "n_candidates": found.n_candidates,
            "n_known": found.n_known,
            "answers": candidates_json(reasoner, found.candidates),
        }

    return await site.answer(request, make)


def labelled(explorer: Explorer, query: Question) -> Question:
    """Return a query with labels where it had names."""
    return Question(
        query.subject and explorer.entity(query.subject),
        explorer.relation(query.relation),
        query.object and explorer.entity(query.object),
    )


@router.post("/batch", response_model=schemas.BatchResult)
async def batch(site: CurrentSite, asked: Annotated[schemas.Batch, Body()]) -> Response:
    """Answer many questions at once."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        queries = [labelled(explorer, make_query(one.subject, one.relation, one.object)) for one in asked.questions]
        found = ask_many(explorer.reasoner, queries, top=asked.top, include_known=asked.known)
        return {"answers": [candidates_json(explorer.reasoner, candidates) for candidates in found]}

    return await site.answer_once(make, site.lanes.slow)


@router.get("/why")
async def why(
    request: Request,
    site: CurrentSite,
    subject: Label,
    relation: Label,
    object: Label,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    top: Rules = 5,
) -> Response:
    """Return the rules that predict a triple, with their facts: what `anyburl explain --json` prints."""
    explorer = site.explorer

    def make() -> dict[str, Any]:
        reasoner = explorer.ranking_by(aggregation, smoothing)
        found = reasoner.explain(meant(explorer, subject, relation, object), top=top, groundings=GROUNDINGS)
        return found.to_json(explorer.names)

    return await site.answer(request, make)
