"""The review page: predicted facts, one at a time, to accept or reject."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response

from anyburl.graph.build import known_answers
from anyburl.reasoning.explanation.record import Fact
from anyburl.tools.review import VERDICTS
from anyburl.web.explorer import Explorer
from anyburl.web.guard import form_token, int_or, read_form, set_form_token
from anyburl.web.schemas import OptionalLabel
from anyburl.web.site import HTML, Context, CurrentSite, Site
from anyburl.web.templating import url

RECENT = 8
MOST_STATED = 3
MOST_ERRORS = 5
FORMATS = {
    "tsv": "text/tab-separated-values; charset=utf-8",
    "nt": "application/n-triples; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}

Skip = Annotated[int, Query(ge=0, le=100_000)]

router = APIRouter()


@router.get("/review")
async def review_page(
    request: Request,
    site: CurrentSite,
    about: OptionalLabel = None,
    subject: OptionalLabel = None,
    relation: OptionalLabel = None,
    object: OptionalLabel = None,
    skip: Skip = 0,
) -> Response:
    """Show the next fact, of the relation `about` or of all, or the given triple."""
    explorer, token = site.explorer, form_token(request)

    def make() -> bytes:
        context: Context = {"path": "/review", "form_token": token, "skip": skip, "about": about or ""}
        if subject and relation and object:
            shown = _card(explorer, explorer.triple(subject, relation, object))
        else:
            shown = _next(explorer, about, skip)
        recent = list(reversed(explorer.reviews.standing().values()))[:RECENT]
        lists = {"recent": recent, "possible_errors": explorer.desk.possible_errors()[:MOST_ERRORS]}
        return site.render("review.html", {**context, **shown, **lists, "counts": explorer.reviews.counts()})

    return set_form_token(Response(await site.slow.run(make), media_type=HTML), token)


@router.post("/review")
async def judge(request: Request, site: CurrentSite) -> Response:
    """Record a verdict, and redirect to the next fact."""
    fields = await record_verdict(request, site, site.explorer.triple, ("subject", "relation", "object"))
    return next_fact(fields, about=fields.get("about"))


async def record_verdict(
    request: Request, site: Site[Any], fact_of: Callable[..., tuple[str, ...]], names: tuple[str, ...]
) -> dict[str, str]:
    """Record the verdict of a form on a fact, which `fact_of` makes of the fields of these names; return all fields."""
    fields = await read_form(request)
    if fields.get("verdict") not in VERDICTS:
        raise HTTPException(422, f"a verdict is one of {', '.join(VERDICTS)}")

    def record() -> None:
        fact = fact_of(*(fields.get(name, "") for name in names))
        site.explorer.reviews.record(fact, fields["verdict"], fields.get("note", ""), fields.get("reader", ""))

    await site.quick.run(record)
    return fields


def next_fact(fields: dict[str, str], **chosen: str | None) -> Response:
    """Redirect to the next fact among those that were chosen, after the skipped ones."""
    return RedirectResponse(url("/review", **chosen, skip=int_or(fields.get("skip"), 0) or None), 303)


@router.get("/review/accepted.{format}")
async def export(site: CurrentSite, format: str) -> Response:
    """Return the accepted facts as triples."""
    if format not in FORMATS:
        raise HTTPException(404)
    log = site.explorer.reviews

    def make() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / f"accepted.{format}"
            log.export_triples(path)
            return path.read_bytes()

    body = await site.quick.run(make)
    headers = {"Content-Disposition": f'attachment; filename="accepted.{format}"'}
    return Response(body, media_type=FORMATS[format], headers=headers)


def _next(explorer: Explorer, about: str | None, skip: int) -> Context:
    waiting = explorer.desk.waiting(about and explorer.relation(about))
    if waiting is None:
        return {"fact": None, "is_searching": True}
    if skip >= len(waiting):
        return {"fact": None, "is_searching": False, "n_waiting": len(waiting)}
    subject, relation, object = waiting[skip].triple
    return {**_card(explorer, (subject, relation, object)), "n_waiting": len(waiting)}


def _card(explorer: Explorer, triple: Fact) -> Context:
    explanation = explorer.reasoner.explain(triple, top=1, groundings=1)
    score = explanation.score or explanation.score_subject
    return {
        "fact": triple,
        "explanation": explanation,
        "score": score,
        **explorer.reasoner.verdict(triple)._asdict(),
        "verdict": explorer.reviews.standing().get(triple),
        **_stated(explorer, triple),
    }


def _stated(explorer: Explorer, triple: Fact) -> Context:
    """Return facts in train with the same subject and relation: often only one object can be right."""
    subject, relation, _ = triple
    graph, words = explorer.reasoner.ranker.graph, explorer.reasoner.vocabulary
    objects = known_answers(graph, words.entity_id(subject), words.relation_id(relation))
    facts = [(subject, relation, words.entity_label(int(entity))) for entity in objects[:MOST_STATED]]
    return {"stated": facts, "n_stated": len(objects)}
