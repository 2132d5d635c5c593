"""Pages to read: home, search, entities, relations and rules; questions, answers, explanations; and facts to review."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, HTTPException, Query, Request
from fastapi.responses import RedirectResponse, Response
from markupsafe import Markup

from anyburl.graph.build import known_answers
from anyburl.reasoning.drawing import Drawing, Node, to_svg
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.explanation.render import near_miss_graph, proof_graph, to_html
from anyburl.reasoning.explanation.rule_examples import examine_rule
from anyburl.reasoning.neighbourhood import neighbourhood
from anyburl.reasoning.queries import UNKNOWN
from anyburl.tools.report.page import theory_parts
from anyburl.tools.review import VERDICTS
from anyburl.web.explorer import MOST_LISTED, Explorer, Folded, RuleChoice
from anyburl.web.facts import EntityFacts, Paging, Why, answer_question, explain_for_page, relation_facts
from anyburl.web.guard import form_token, int_or, path_of, read_form, set_form_token
from anyburl.web.schemas import (
    LIMITS,
    MOST_REASONS,
    Aggregation,
    Explained,
    Label,
    OptionalLabel,
    Page,
    RuleFilters,
    RuleRow,
    Smoothing,
)
from anyburl.web.site import HTML, UNFINISHED, Context, CurrentSite, Site, url

N_EXAMPLES, N_RELATIONS = 4, 12  # home
GROUPS, SHOWN, ENTITY_ROWS, PREDICTED, DRAWN = 20, 8, 100, 60, 12
SECONDS_TO_PREDICT = 0.5  # then the first predictions are shown, and the rest later
LEAST_DRAWN = 0.05  # how likely a prediction must be to stand among facts
ROWS, RULES, EXAMPLES, RELATED = 25, 8, 6, 12

router = APIRouter()


@router.get("/")
async def home(request: Request, site: CurrentSite) -> Response:
    """Describe the data and the rules, with examples."""
    explorer = site.explorer
    dataset, rules = explorer.reasoner.dataset, explorer.reasoner.rules

    def make() -> Context:
        return {
            "dataset": dataset,
            "vocabulary": dataset.vocabulary,
            "rules": rules,
            "n_facts": {name: len(dataset.split(name)) for name in ("train", "valid", "test")},
            "by_type": {name: n for name, n in rules.counts_by_type().items() if n},
            "examples": explorer.example_questions(N_EXAMPLES),
            "relations": explorer.common_relations(N_RELATIONS),
        }

    return await site.page(request, "home.html", make)


@router.get("/entity")
async def entity_page(
    request: Request,
    site: CurrentSite,
    label: Label,
    view: Annotated[Literal["facts", "predicted", "graph"], Query()] = "facts",
    relation: OptionalLabel = None,
    direction: Annotated[Literal["forward", "backward"], Query()] = "forward",
    page: Page = 1,
) -> Response:
    """Show the facts of an entity, of one `relation` or of all; or what is predicted; or its neighbourhood."""
    explorer = site.explorer

    def make() -> Context:
        entity = explorer.entity(label)
        context: Context = {"label": entity, "view": view}
        if view == "graph":
            return {**context, **_graph(explorer, entity)}
        if view == "predicted":
            predicted, is_whole = explorer.predictions(entity, top=PREDICTED, seconds=SECONDS_TO_PREDICT)
            return {**context, "predicted": predicted, UNFINISHED: not is_whole}
        if relation is not None:
            return {**context, **_one_relation(explorer, entity, relation, direction == "backward", page)}
        return {**context, **_facts(explorer, entity, page), "values": explorer.values(entity) if page == 1 else []}

    return await site.page(request, "entity.html", make, None if view == "facts" else site.slow)


def _facts(explorer: Explorer, label: str, page: int) -> Context:
    groups = EntityFacts(explorer.reasoner, label).groups(SHOWN)
    paging = Paging(page, GROUPS, len(groups))
    n_facts = sum(group.n_facts for group in groups)
    return {"groups": groups[paging.first : paging.last], "paging": paging, "n_facts": n_facts, "shown": SHOWN}


def _one_relation(explorer: Explorer, label: str, relation: str, backward: bool, page: int) -> Context:
    number = explorer.reasoner.vocabulary.relation_id(explorer.relation(relation))
    directed = number + (explorer.reasoner.vocabulary.n_relations if backward else 0)
    group = EntityFacts(explorer.reasoner, label).group(directed, (page - 1) * ENTITY_ROWS, ENTITY_ROWS)
    return {"group": group, "paging": Paging(page, ENTITY_ROWS, group.n_facts)}


def _graph(explorer: Explorer, label: str) -> Context:
    reasoner = explorer.reasoner
    best, is_whole = explorer.predictions(label, top=DRAWN, per_question=2, seconds=SECONDS_TO_PREDICT)
    predicted = [
        candidate
        for candidate in best
        if candidate.conflict is None and (candidate.probability is None or candidate.probability >= LEAST_DRAWN)
    ]
    triples = [candidate.triple for candidate in predicted]
    stated = EntityFacts(reasoner, label).held_out(DRAWN)
    graph, vocabulary = reasoner.ranker.graph, reasoner.vocabulary
    drawing = neighbourhood(graph, vocabulary, label, show=explorer.text, stated=stated, predictions=triples)
    return {"drawing": linked_svg(drawing), "predicted": predicted, UNFINISHED: not is_whole}


def linked_svg(drawing: Drawing) -> Markup:
    """Return a drawing whose nodes link to the pages of their entities."""
    return Markup(to_svg(drawing, _link))


def _link(node: Node) -> str | None:
    """Return the address of a node: its entity, or the facts that it sums up."""
    if node.label is None:
        return None
    if node.kind == "more":
        direction = "backward" if node.backward and node.relation is not None else None
        return url("/entity", label=node.label, relation=node.relation, direction=direction)
    return url("/entity", label=node.label)


@router.get("/relation")
async def relation_page(request: Request, site: CurrentSite, label: Label, page: Page = 1) -> Response:
    """Show how often a relation is stated, some of its facts, and the best rules that predict it."""
    explorer = site.explorer

    def make() -> Context:
        relation = explorer.relation(label)
        facts = relation_facts(explorer.reasoner, relation, first=(page - 1) * ROWS, top=ROWS)
        chosen = explorer.rule_list.choose(RuleChoice(relation=relation))
        return {
            "label": relation,
            "facts": facts,
            "paging": Paging(page, ROWS, facts.n_facts["train"]),
            "rows": chosen.rows[:RULES].tolist(),
            "n_rules": chosen.n_matching,
            "rules": explorer.reasoner.rules,
        }

    return await site.page(request, "relation.html", make, site.slow)


@router.get("/rules")
async def rules_page(
    request: Request,
    site: CurrentSite,
    filters: RuleFilters,
    page: Page = 1,
    everything: Annotated[bool, Query(alias="all")] = False,
    unfolded: bool = False,
) -> Response:
    """Tell what the rules say, in plain words; or list the best rules that pass the filters, or of all."""
    explorer = site.explorer
    if not everything and filters == RuleChoice() and page == 1 and len(explorer.reasoner.rules):
        return Response(await site.slow.run(lambda: _theory_page(site, path_of(request))), media_type=HTML)

    def make() -> Context:
        choice, chosen = explorer.choose_rules(filters)
        folds = choice.sort is None and not unfolded and explorer.rule_list.default_order == "surprise"
        folded = explorer.rule_list.fold(choice) if folds else Folded(chosen, {}, 0)
        rows = folded.chosen.rows
        paging = Paging(page, ROWS, len(rows))
        return {
            "choice": choice,
            "order": choice.sort or explorer.rule_list.default_order,
            "paging": paging,
            "rows": rows[paging.first : paging.last].tolist(),
            "alike": folded.alike,
            "n_folded": folded.n_folded,
            "unfolded": unfolded,
            "n_matching": chosen.n_matching,
            "most_listed": MOST_LISTED,
            "rules": explorer.reasoner.rules,
            "orders": explorer.rule_list.orders,
            "longest": explorer.reasoner.rules.bodies.shape[1],
        }

    return await site.page(request, "rules.html", make, site.slow)


def _theory_page(site: Site[Explorer], path: str) -> bytes:
    """Return what the rules say, or that it is being written."""
    theory = site.explorer.theory()
    theory_html = Markup(theory_parts(theory, lambda relation: url("/rules", relation=relation))) if theory else None
    return site.render("theory.html", {"path": path, "told": theory_html, "n_rules": len(site.explorer.reasoner.rules)})


@router.get("/rules/{row}")
async def rule_page(request: Request, site: CurrentSite, row: RuleRow) -> Response:
    """Show one rule: where it is right and wrong, what it predicts, and more general and more specific rules."""
    check_row(site.explorer, row)
    reasoner, rules = site.explorer.reasoner, site.explorer.reasoner.rules

    def make() -> Context:
        lattice = site.explorer.rule_list.lattice
        special, n_special = lattice.specialisations(row, top=RELATED)
        return {
            "row": row,
            "rule": rules.rule(row),
            "rules": rules,
            "confidence": float(rules.slice(row, row + 1).confidence()[0]),
            "examples": examine_rule(reasoner.ranker, reasoner.dataset, row, top=EXAMPLES),
            "generalisations": lattice.generalisations(row).tolist(),
            "specialisations": special.tolist(),
            "n_special": n_special,
            "reviewed": site.explorer.reviews.by_rule(reasoner).get(row),
        }

    return await site.page(request, "rule.html", make, site.slow)


def check_row(explorer: Explorer, row: int) -> None:
    """Raise a 404 if there is no rule at this row."""
    n_rules = len(explorer.reasoner.rules)
    if row >= n_rules:
        raise HTTPException(404, f"there are {n_rules:,} rules, numbered from 0")


COMPARED = 500
GROUNDINGS = 3


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
    subject, object = (None if entity == UNKNOWN else entity for entity in (subject, object))
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
async def why_page(request: Request, site: CurrentSite, query: Explained) -> Response:
    """Show the rules that fire, their facts, what they add up to, and where they were wrong."""
    explorer = site.explorer

    def make() -> Context:
        reasoner, triple = explorer.ranking_by(query.aggregation, query.smoothing), explorer.triple(*query.triple)
        why = explain_for_page(reasoner, triple, explorer.examples_of, top=query.top, groundings=GROUNDINGS)
        return {
            "why": why,
            "explanation": why.explanation,
            "triple": why.explanation.triple,
            **_drawings(explorer, why),
            "aggregation": reasoner.options.aggregation,
            "smoothing": reasoner.options.smoothing,
            "aggregations": explorer.aggregations,
            "top": query.top,
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
async def download_page(site: CurrentSite, query: Explained) -> Response:
    """Return the explanation as one HTML file that needs no other."""
    explorer = site.explorer

    def make() -> bytes:
        reasoner, triple = explorer.ranking_by(query.aggregation, query.smoothing), explorer.triple(*query.triple)
        explanation = reasoner.explain(triple, top=query.top, groundings=GROUNDINGS)
        return to_html(explanation, explorer.names).encode()

    headers = {"Content-Disposition": 'attachment; filename="explanation.html"'}
    return Response(await site.quick.run(make), media_type=HTML, headers=headers)


RECENT = 8
MOST_STATED = 3
MOST_ERRORS = 5
FORMATS = {
    "tsv": "text/tab-separated-values; charset=utf-8",
    "nt": "application/n-triples; charset=utf-8",
    "csv": "text/csv; charset=utf-8",
}

Skip = Annotated[int, Query(ge=0, le=100_000)]


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
