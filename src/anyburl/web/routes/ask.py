"""A question and its answers, with a choice of aggregation and smoothing."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.reasoning.queries import ASKED, make_query
from anyburl.reasoning.queries import Query as Question
from anyburl.web.explorer import Explorer
from anyburl.web.facts import Paging
from anyburl.web.facts import answer_question as find_answers
from anyburl.web.parameters import LIMITS, Aggregation, OptionalLabel, Smoothing
from anyburl.web.site import Context, CurrentSite
from anyburl.web.templating import url

ROWS, COMPARED = 25, 500

New = Annotated[bool, Query(description="leave out what train states")]
Page = Annotated[int, Query(ge=1, le=LIMITS.deepest_row // ROWS)]

router = APIRouter()


@router.get("/ask")
async def ask_page(
    request: Request,
    site: CurrentSite,
    subject: OptionalLabel = None,
    relation: OptionalLabel = None,
    object: OptionalLabel = None,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    new: New = False,
    page: Page = 1,
) -> Response:
    """Show the ranking of a question; a whole triple is a question for its reasons."""
    subject, object = (None if entity == ASKED else entity for entity in (subject, object))
    if relation and subject and object:
        chosen = {"aggregation": aggregation, "smoothing": smoothing}
        return RedirectResponse(url("/why", subject=subject, relation=relation, object=object, **chosen), 303)
    form: Context = {
        "subject": subject or "",
        "relation": relation or "",
        "object": object or "",
        "aggregation": aggregation or site.explorer.reasoner.options.aggregation,
        "smoothing": site.explorer.reasoner.options.smoothing if smoothing is None else smoothing,
        "new": new,
        "aggregations": site.explorer.aggregations,
    }

    def make() -> Context:
        if relation is None or (subject is None and object is None):
            return {**form, "ranking": None, "examples": site.explorer.example_questions(6)}
        query = make_query(subject, relation, object)
        return {**form, **_answers(site.explorer, query, aggregation, smoothing, new, page)}

    return await site.page(request, "ask.html", make)


def _answers(
    explorer: Explorer, query: Question, aggregation: str | None, smoothing: float | None, new: bool, page: int
) -> Context:
    reasoner = explorer.ranking_by(aggregation, smoothing)
    meant = Question(
        query.subject and explorer.entity(query.subject),
        explorer.relation(query.relation),
        query.object and explorer.entity(query.object),
    )
    ranking = find_answers(reasoner, meant, first=(page - 1) * ROWS, top=ROWS, include_known=not new)
    paging = Paging(page, ROWS, min(ranking.n_candidates, LIMITS.deepest_row))
    return {
        "before": _places(explorer, meant, new) if reasoner is not explorer.reasoner else {},
        "usual": explorer.reasoner.options,
        "ranking": ranking,
        "paging": paging,
        "query": meant,
        "is_calibrated": reasoner.calibration is not None,
    }


def _places(explorer: Explorer, query: Question, new: bool) -> dict[str, int]:
    """Return where the run's own aggregation and smoothing place the best answers."""
    usual = find_answers(explorer.reasoner, query, top=COMPARED, include_known=not new)
    return {candidate.entity: candidate.rank for candidate in usual.candidates}
