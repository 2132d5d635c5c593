"""The explorer of temporal rules: questions with a moment, reasons on a time line, a rule's curve, and reviews."""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Literal

import numpy as np
from fastapi import APIRouter, Depends, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup
from starlette.types import ASGIApp

from anyburl.data.names import Names
from anyburl.reasoning.queries import UNKNOWN
from anyburl.temporal.drawing import STYLES, draw_curve, draw_timeline
from anyburl.temporal.explanation import DatedFact
from anyburl.temporal.reasoner import TemporalReasoner
from anyburl.tools.options import ServeOptions
from anyburl.tools.review import ReviewLog
from anyburl.web.app import make_app
from anyburl.web.explorer import BaseExplorer, SearchedLabels
from anyburl.web.facts import Paging
from anyburl.web.guard import Guard, form_token, set_form_token
from anyburl.web.pages import RECENT, Skip, next_fact, record_verdict
from anyburl.web.schemas import LIMITS, Label, OptionalLabel, Page, Text
from anyburl.web.site import HTML, Context, Site, current_site, make_environment, tagged_response, url

LINKED = {"/ask": "Ask", "/rules": "Rules", "/review": "Review"}
N_EXAMPLES, N_RELATIONS = 5, 12
ROWS, MOST_RULES, REASONS = 25, 1000, 8
DRAWN = 60  # facts of an entity on its time line
MOST_WAITING, LEAST_LIKELY = 500, 0.1  # facts of a moment to be reviewed, and how likely they are at least
MOST_MOMENTS = 8  # whose waiting facts are remembered
STYLE_SHEET = tagged_response(STYLES.encode(), "text/css; charset=utf-8")

Moment = Annotated[str | None, Query(max_length=64)]


class TemporalExplorer(BaseExplorer):
    """A temporal reasoner, and what pages need of it; safe to use from several threads."""

    def __init__(self, reasoner: TemporalReasoner, title: str, reviews: ReviewLog) -> None:
        super().__init__(reviews, SearchedLabels(reasoner.dataset.vocabulary, reasoner.dataset.names))
        self.reasoner, self.title = reasoner, title
        self._likely = lru_cache(MOST_MOMENTS)(self._find_likely)

    def count_verdicts(self) -> None:
        """Apply the verdicts of people to the answers."""
        self.reasoner.apply_verdicts(*self.reviews.judged(4))

    def _find_likely(self, moment: str) -> list[DatedFact]:
        likely = self.reasoner.complete(moment, min_probability=LEAST_LIKELY, top=MOST_WAITING)
        return [(s, r, o, t) for s, r, o, t, _ in likely.iter_rows()]

    def waiting(self, moment: str) -> list[DatedFact]:
        """Return the facts that are likely at a moment and that nobody has judged, the most likely first."""
        judged = self.reviews.standing()
        return [fact for fact in self._likely(moment) if fact not in judged]

    def judged_fact(self, subject: str, relation: str, object: str, time: str) -> DatedFact:
        """Return a fact as the data writes it."""
        dataset = self.reasoner.dataset
        words, clock = dataset.vocabulary, dataset.clock
        link = words.relation_label(self.names.relation_id(relation, words))
        return self.entity(subject), link, self.entity(object), clock.label(self.reasoner.step_of(time))

    @property
    def names(self) -> Names:
        return self.reasoner.dataset.names

    @property
    def next_moment(self) -> str:
        """The moment after the last fact."""
        return self.reasoner.dataset.clock.label(self.reasoner.last + 1)

    def warm_up(self) -> None:
        """Fill the caches that the first requests would have to wait for."""
        self.search.find("warm", top=1)
        _ = self.reasoner.answerer

    def close(self) -> None:
        """There is nothing to end."""

    def entity(self, text: str) -> str:
        """Return the label of an entity given by label or name."""
        words = self.reasoner.dataset.vocabulary
        return words.entity_label(self.names.entity_id(text, words))

    def examples(self, top: int) -> list[DatedFact]:
        """Return facts of different relations to ask about, the latest first."""
        dataset = self.reasoner.dataset
        facts = next((split for split in (dataset.test, dataset.valid) if len(split)), dataset.train)
        seen: dict[int, int] = {}
        for row in range(len(facts) - 1, -1, -1):
            seen.setdefault(int(facts.relations[row]), row)
            if len(seen) == top:
                break
        return [self.dated(facts, row) for row in seen.values()]

    def dated(self, facts: Any, row: int) -> DatedFact:
        """Return one fact as people read it."""
        dataset = self.reasoner.dataset
        columns = (facts.subjects, facts.relations, facts.objects)
        labels = dataset.vocabulary.triple_labels(*(int(column[row]) for column in columns))
        return (*labels, dataset.clock.label(int(facts.times[row])))

    def facts_of(self, label: str) -> list[DatedFact]:
        """Return the facts of an entity, the latest first."""
        entity, dataset = self.reasoner.dataset.vocabulary.entity_id(label), self.reasoner.dataset
        dated = []
        for facts in (dataset.test, dataset.valid, dataset.train):
            rows = np.flatnonzero((facts.subjects == entity) | (facts.objects == entity))
            dated += [self.dated(facts, int(row)) for row in rows[::-1]]
        return dated

    def common_relations(self, top: int) -> list[tuple[str, int]]:
        """Return the relations with most facts in train, and how many each has."""
        dataset = self.reasoner.dataset
        counts = np.bincount(dataset.train.relations, minlength=dataset.vocabulary.n_relations)
        order = np.argsort(-counts, kind="stable")[:top]
        return [(dataset.vocabulary.relation_label(int(relation)), int(counts[relation])) for relation in order]


TemporalSite = Annotated[Site[TemporalExplorer], Depends(current_site)]

pages = APIRouter(include_in_schema=False)
api = APIRouter(prefix="/api")


def create_temporal_app(explorer: TemporalExplorer, options: ServeOptions | None = None) -> ASGIApp:
    """Return the application: pages, and the same questions under /api."""
    chosen = options or ServeOptions()
    environment = make_environment(None, explorer.names, title=explorer.title, has_run=False, pages=LINKED)
    site = Site(explorer, chosen, environment, explorer)
    return Guard(make_app(site, explorer.title, [pages, api]), chosen)


@pages.get("/")
async def history_home(request: Request, site: TemporalSite) -> Response:
    """Describe the facts and the rules, with examples."""
    explorer, reasoner = site.explorer, site.explorer.reasoner

    def make() -> Context:
        return {
            "dataset": reasoner.dataset,
            "vocabulary": reasoner.dataset.vocabulary,
            "rules": reasoner.rules,
            "examples": explorer.examples(N_EXAMPLES),
            "best": reasoner.rules.top(N_EXAMPLES, form="pair"),
            "relations": explorer.common_relations(N_RELATIONS),
        }

    return await site.page(request, "times_home.html", make)


@pages.get("/static/times.css")
async def style_sheet(request: Request) -> Response:
    """Return the style of drawings of time."""
    return STYLE_SHEET.response(request)


def _question(subject: str | None, object: str | None) -> tuple[str | None, str | None]:
    first, second = (None if entity in (UNKNOWN, "") else entity for entity in (subject, object))
    return first, second


@pages.get("/ask")
async def ask_at(
    request: Request,
    site: TemporalSite,
    subject: OptionalLabel = None,
    relation: OptionalLabel = None,
    object: OptionalLabel = None,
    time: Moment = None,
) -> Response:
    """Show the answers to a question at a moment; a fact without a gap redirects to its explanation."""
    explorer, (subject, object) = site.explorer, _question(subject, object)
    moment = time or explorer.next_moment
    if relation and subject and object:
        return RedirectResponse(url("/why", subject=subject, relation=relation, object=object, time=moment), 303)
    form: Context = {"subject": subject or "", "relation": relation or "", "object": object or "", "time": moment}

    def make() -> Context:
        if not relation or (subject is None and object is None):
            return {**form, "answers": None, "examples": explorer.examples(N_EXAMPLES)}
        answers = explorer.reasoner.predict(subject, relation, object, moment, top=ROWS, include_known=True)
        best = max((answer.score for answer in answers), default=1.0)
        is_calibrated = any(answer.probability is not None for answer in answers)
        return {**form, "answers": answers, "best": best or 1.0, "is_calibrated": is_calibrated}

    return await site.page(request, "times_ask.html", make, site.slow)


@pages.get("/why")
async def why_at(
    request: Request,
    site: TemporalSite,
    subject: Label,
    relation: Label,
    object: Label,
    time: Annotated[str, Query(max_length=64)],
    asks: Annotated[Literal["object", "subject"], Query()] = "object",
) -> Response:
    """Show the rules that speak for a fact at a moment, and the facts behind them on a time line."""
    explorer = site.explorer

    def make() -> Context:
        explanation = explorer.reasoner.explain(subject, relation, object, time, asks=asks, top=REASONS)
        facts = [fact for reason in explanation.reasons for fact in reason.facts]
        clock = explorer.reasoner.dataset.clock
        drawing = Markup(draw_timeline(facts, clock, explanation.fact)) if facts else ""
        return {"explanation": explanation, "fact": explanation.fact, "drawing": drawing, "asks": asks}

    return await site.page(request, "times_why.html", make, site.slow)


@pages.get("/review")
async def review_moment(
    request: Request,
    site: TemporalSite,
    time: Moment = None,
    subject: OptionalLabel = None,
    relation: OptionalLabel = None,
    object: OptionalLabel = None,
    skip: Skip = 0,
) -> Response:
    """Show the next fact that is likely at a moment, or the given one, to accept or reject."""
    explorer, token = site.explorer, form_token(request)
    moment = time or explorer.next_moment

    def make() -> bytes:
        explorer.catch_up(explorer.edition())
        waiting = explorer.waiting(explorer.reasoner.dataset.clock.label(explorer.reasoner.step_of(moment)))
        fact = next(iter(waiting[skip:]), None)
        if subject and relation and object:
            fact = explorer.judged_fact(subject, relation, object, moment)
        standing = explorer.reviews.standing()
        context: Context = {
            "path": "/review",
            "form_token": token,
            "time": moment,
            "skip": skip,
            "fact": fact,
            "explanation": fact and explorer.reasoner.explain(*fact, top=1),
            "verdict": standing.get(fact or ()),
            "n_waiting": len(waiting),
            "recent": [one for one in reversed(standing.values()) if len(one.triple) == 4][:RECENT],
            "counts": explorer.reviews.counts(),
        }
        return site.render("times_review.html", context)

    return set_form_token(Response(await site.slow.run(make), media_type=HTML), token)


@pages.post("/review")
async def judge_moment(request: Request, site: TemporalSite) -> Response:
    """Record a verdict on a fact at a moment, and redirect to the next fact."""
    names = ("subject", "relation", "object", "time")
    fields = await record_verdict(request, site, site.explorer.judged_fact, names)
    return next_fact(fields, time=fields.get("at") or fields.get("time"))


@pages.get("/rules")
async def temporal_rules_page(
    request: Request,
    site: TemporalSite,
    relation: OptionalLabel = None,
    form: Annotated[str | None, Query(max_length=20)] = None,
    page: Page = 1,
) -> Response:
    """List the rules with the most right cases, weighed by their confidence."""
    rules = site.explorer.reasoner.rules

    def make() -> Context:
        best = rules.top(MOST_RULES, relation=relation or None, form=form or None)
        paging = Paging(page, ROWS, len(best))
        shown = best[paging.first : paging.last]
        forms = rules.sizes
        return {"rules": shown, "paging": paging, "relation": relation or "", "form": form, "forms": forms}

    return await site.page(request, "times_rules.html", make, site.slow)


@pages.get("/rules/{number}")
async def temporal_rule_page(request: Request, site: TemporalSite, number: int) -> Response:
    """Show one rule, and its confidence by age."""
    rules = site.explorer.reasoner.rules
    if not 0 <= number < len(rules):
        raise HTTPException(404, f"there are {len(rules):,} rules, numbered from 0")

    def make() -> Context:
        rule = rules[number]
        return {"rule": rule, "drawing": Markup(draw_curve(rule)) if any(rule.curve) else ""}

    return await site.page(request, "times_rule.html", make)


@pages.get("/relation")
async def relation_rules(label: Label) -> Response:
    """Show the rules of a relation."""
    return RedirectResponse(url("/rules", relation=label), 303)


@pages.get("/entity")
async def entity_history(request: Request, site: TemporalSite, label: Label, page: Page = 1) -> Response:
    """Show the facts of an entity in the order of time, the latest first, and on a time line."""
    explorer = site.explorer

    def make() -> Context:
        entity = explorer.entity(label)
        facts = explorer.facts_of(entity)
        paging = Paging(page, LIMITS.largest_page // 2, len(facts))
        clock = explorer.reasoner.dataset.clock
        drawing = Markup(draw_timeline(facts[:DRAWN], clock)) if facts else ""
        return {"label": entity, "facts": facts[paging.first : paging.last], "paging": paging, "drawing": drawing}

    return await site.page(request, "times_entity.html", make, site.slow)


@api.get("/search")
async def search_labels(
    request: Request,
    site: TemporalSite,
    q: Text,
    kind: Annotated[Literal["entity", "relation"] | None, Query()] = None,
    top: Annotated[int, Query(ge=1, le=LIMITS.largest_page)] = 20,
) -> Response:
    """Find entities and relations by name or label; small typos are fine."""
    return await site.answer(request, lambda: site.explorer.find_labels(q, kind, top), site.slow)


@api.get("/ask")
async def answers_at(
    request: Request,
    site: TemporalSite,
    relation: Label,
    subject: OptionalLabel = None,
    object: OptionalLabel = None,
    time: Moment = None,
    top: Annotated[int, Query(ge=1, le=LIMITS.largest_page)] = 10,
) -> Response:
    """Return the answers to (subject, relation, ?) or (?, relation, object) at a moment."""
    explorer, (subject, object) = site.explorer, _question(subject, object)

    def make() -> dict[str, Any]:
        moment = time or explorer.next_moment
        answers = explorer.reasoner.predict(subject, relation, object, moment, top=top, include_known=True)
        listed = [
            dict(rank=a.rank, entity=a.entity, score=a.score, probability=a.probability, known=a.known) for a in answers
        ]
        return {"query": [subject, relation, object, moment], "answers": listed}

    return await site.answer(request, make, site.slow)


@api.get("/why")
async def reasons_at(
    request: Request,
    site: TemporalSite,
    subject: Label,
    relation: Label,
    object: Label,
    time: Annotated[str, Query(max_length=64)],
) -> Response:
    """Return the rules that speak for a fact at a moment, with the facts and dates behind them."""
    reasoner = site.explorer.reasoner
    return await site.answer(
        request, lambda: reasoner.explain(subject, relation, object, time, top=REASONS).to_json(), site.slow
    )
