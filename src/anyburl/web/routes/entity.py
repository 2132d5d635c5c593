"""An entity: its facts, what is predicted about it, and its neighbourhood."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from anyburl.web.drawings import draw_neighbourhood
from anyburl.web.explorer import Explorer
from anyburl.web.facts import EntityFacts
from anyburl.web.paging import Paging
from anyburl.web.parameters import Label, OptionalLabel, Page
from anyburl.web.questions import predicted_facts
from anyburl.web.site import Context, CurrentSite

GROUPS, SHOWN, ROWS, PREDICTED, DRAWN = 20, 8, 100, 60, 12

View = Annotated[Literal["facts", "predicted", "graph"], Query()]
Direction = Annotated[Literal["forward", "backward"], Query()]

router = APIRouter()


@router.get("/entity")
async def entity(
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
