"""Questions and their answers; explanations of a triple, as a page and as a file to share."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.reasoning.explanation.page import near_miss_graph, proof_graph, to_html
from anyburl.reasoning.queries import ASKED
from anyburl.web.browse import linked_svg
from anyburl.web.explorer import Explorer
from anyburl.web.facts import Paging, Why, answer_question, explain_for_page
from anyburl.web.schemas import LIMITS, MOST_REASONS, Aggregation, Explained, OptionalLabel, Smoothing
from anyburl.web.site import HTML, Context, CurrentSite
from anyburl.web.templating import url

ROWS, COMPARED = 25, 500
GROUNDINGS = 3

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
    new: Annotated[bool, Query(description="leave out what train states")] = False,
    page: Annotated[int, Query(ge=1, le=LIMITS.deepest_row // ROWS)] = 1,
) -> Response:
    """Show the ranking of a question; a triple without a gap redirects to its explanation."""
    explorer = site.explorer
    subject, object = (None if entity == ASKED else entity for entity in (subject, object))
    if relation and subject and object:
        chosen = {"aggregation": aggregation, "smoothing": smoothing}
        return RedirectResponse(url("/why", subject=subject, relation=relation, object=object, **chosen), 303)
    form: Context = {
        "subject": subject or "",
        "relation": relation or "",
        "object": object or "",
        "aggregation": aggregation or explorer.reasoner.options.aggregation,
        "smoothing": explorer.reasoner.options.smoothing if smoothing is None else smoothing,
        "new": new,
        "aggregations": explorer.aggregations,
    }

    def make() -> Context:
        if relation is None or (subject is None and object is None):
            return {**form, "ranking": None, "examples": explorer.example_questions(6)}
        reasoner = explorer.ranking_by(aggregation, smoothing)
        query = explorer.query(subject, relation, object)
        ranking = answer_question(reasoner, query, first=(page - 1) * ROWS, top=ROWS, include_known=not new)
        ranks = {}  # by the aggregation and smoothing of the run, to show what moved
        if reasoner is not explorer.reasoner:
            usual = answer_question(explorer.reasoner, query, top=COMPARED, include_known=not new)
            ranks = {candidate.entity: candidate.rank for candidate in usual.candidates}
        return {
            **form,
            "before": ranks,
            "usual": explorer.reasoner.options,
            "ranking": ranking,
            "paging": Paging(page, ROWS, min(ranking.n_candidates, LIMITS.deepest_row)),
            "query": query,
            "is_calibrated": reasoner.calibration is not None,
        }

    return await site.page(request, "ask.html", make)


@router.get("/why")
async def why_page(request: Request, site: CurrentSite, asked: Explained) -> Response:
    """Show the rules that fire, their facts, what they add up to, and where they were wrong."""
    explorer = site.explorer

    def make() -> Context:
        reasoner, triple = explorer.ranking_by(asked.aggregation, asked.smoothing), explorer.triple(*asked.triple)
        why = explain_for_page(reasoner, triple, explorer.examples_of, top=asked.top, groundings=GROUNDINGS)
        return {
            "why": why,
            "explanation": why.explanation,
            "triple": why.explanation.triple,
            **_drawings(explorer, why),
            "aggregation": reasoner.options.aggregation,
            "smoothing": reasoner.options.smoothing,
            "aggregations": explorer.aggregations,
            "top": asked.top,
            "most": MOST_REASONS,
        }

    return await site.page(request, "why.html", make)


def _drawings(explorer: Explorer, why: Why) -> Context:
    """Return the proof graph of all rules, of each rule, and of each near miss."""
    reasons, triple, text = why.explanation.reasons, why.explanation.triple, explorer.text
    return {
        "drawing": linked_svg(proof_graph(reasons, triple, text)) if len(reasons) > 1 else "",
        "drawings": [linked_svg(proof_graph([reason], triple, text)) for reason in reasons],
        "near_drawings": [linked_svg(near_miss_graph(near_miss, triple, text)) for near_miss in why.near_misses],
    }


@router.get("/why/page")
async def download_page(site: CurrentSite, asked: Explained) -> Response:
    """Return the explanation as one HTML file that needs no other."""
    explorer = site.explorer

    def make() -> bytes:
        reasoner, triple = explorer.ranking_by(asked.aggregation, asked.smoothing), explorer.triple(*asked.triple)
        explanation = reasoner.explain(triple, top=asked.top, groundings=GROUNDINGS)
        return to_html(explanation, explorer.names).encode()

    headers = {"Content-Disposition": 'attachment; filename="explanation.html"'}
    return Response(await site.quick.run(make), media_type=HTML, headers=headers)
