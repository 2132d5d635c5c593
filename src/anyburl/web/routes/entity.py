"""An entity: its facts, what is predicted about it, and its neighbourhood.

Drawings for pages: their nodes lead to the pages of entities.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response
from markupsafe import Markup

from anyburl.reasoning.drawing.neighbourhood import neighbourhood
from anyburl.reasoning.drawing.svg import Drawing, Node, to_svg
from anyburl.reasoning.explanation.page import near_miss_graph, proof_graph
from anyburl.reasoning.explanation.record import Fact, NearMiss, Reason
from anyburl.web.explorer import Explorer
from anyburl.web.facts import EntityFacts, Paging, predicted_facts
from anyburl.web.parameters import Label, OptionalLabel, Page
from anyburl.web.site import Context, CurrentSite
from anyburl.web.templating import url


def draw_reasons(explorer: Explorer, reasons: Sequence[Reason], triple: Fact) -> Markup:
    """Return the facts behind one rule or several."""
    return _svg(proof_graph(reasons, triple, explorer.text))


def draw_near_miss(explorer: Explorer, near_miss: NearMiss, triple: Fact) -> Markup:
    """Return what a rule would predict if one more fact held."""
    return _svg(near_miss_graph(near_miss, triple, explorer.text))


def draw_neighbourhood(explorer: Explorer, entity: str, predictions: Sequence[Fact]) -> Markup:
    """Return the facts around an entity, and predictions."""
    reasoner = explorer.reasoner
    graph, vocabulary = reasoner.ranker.graph, reasoner.vocabulary
    return _svg(neighbourhood(graph, vocabulary, entity, show=explorer.text, predictions=predictions))


def _svg(drawing: Drawing) -> Markup:
    return Markup(to_svg(drawing, _link))


def _link(node: Node) -> str | None:
    """Return where a node leads: to its entity, or to the facts that it stands for."""
    if node.label is None:
        return None
    if node.kind == "more":
        direction = "backward" if node.backward and node.relation is not None else None
        return url("/entity", label=node.label, relation=node.relation, direction=direction)
    return url("/entity", label=node.label)


GROUPS, SHOWN, ROWS, PREDICTED, DRAWN = 20, 8, 100, 60, 12

View = Annotated[Literal["facts", "predicted", "graph"], Query()]
Direction = Annotated[Literal["forward", "backward"], Query()]

router = APIRouter()


@router.get("/entity")
async def entity_page(
    request: Request,
    site: CurrentSite,
    label: Label,
    view: View = "facts",
    relation: OptionalLabel = None,
    direction: Direction = "forward",
    page: Page = 1,
) -> Response:
    """Show one entity: all facts of one relation if that is asked for."""
    explorer = site.explorer

    def make() -> Context:
        meant = explorer.entity(label)
        context: Context = {"label": meant, "view": view}
        if view == "graph":
            return {**context, **_graph(explorer, meant)}
        if view == "predicted":
            return {**context, "predicted": predicted_facts(explorer.reasoner, meant, top=PREDICTED)}
        if relation is not None:
            return {**context, **_one_relation(explorer, meant, relation, direction == "backward", page)}
        return {**context, **_facts(explorer, meant, page)}

    return await site.page(request, "entity.html", make, None if view == "facts" else site.lanes.slow)


def _facts(explorer: Explorer, label: str, page: int) -> Context:
    groups = EntityFacts(explorer.reasoner, label).groups(SHOWN)
    paging = Paging(page, GROUPS, len(groups))
    n_facts = sum(group.n_facts for group in groups)
    return {"groups": groups[paging.first : paging.last], "paging": paging, "n_facts": n_facts, "shown": SHOWN}


def _one_relation(explorer: Explorer, label: str, relation: str, backward: bool, page: int) -> Context:
    number = explorer.reasoner.vocabulary.relation_id(explorer.relation(relation))
    directed = number + (explorer.reasoner.vocabulary.n_relations if backward else 0)
    group = EntityFacts(explorer.reasoner, label).group(directed, (page - 1) * ROWS, ROWS)
    return {"group": group, "paging": Paging(page, ROWS, group.n_facts)}


def _graph(explorer: Explorer, label: str) -> Context:
    predicted = predicted_facts(explorer.reasoner, label, top=DRAWN, per_question=2)
    drawing = draw_neighbourhood(explorer, label, [found.triple for found in predicted])
    return {"drawing": drawing, "predicted": predicted}
