"""The home page and search."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from anyburl.web.explorer import Explorer
from anyburl.web.parameters import Text
from anyburl.web.site import Context, CurrentSite

N_EXAMPLES, N_RELATIONS, N_FOUND = 4, 12, 40

router = APIRouter()


@router.get("/")
async def home(request: Request, site: CurrentSite) -> Response:
    """Say what there is, and what can be done with it."""
    return await site.page(request, "home.html", lambda: _home(site.explorer))


@router.get("/search")
async def search(request: Request, site: CurrentSite, q: Text = "") -> Response:
    """List the entities and relations that are called like a text."""

    def make() -> Context:
        found = site.explorer.search.find(q, top=N_FOUND) if q.strip() else []
        return {"q": q, "found": found}

    return await site.page(request, "search.html", make, None if site.explorer.can_search else site.lanes.slow)


def _home(explorer: Explorer) -> Context:
    dataset, rules = explorer.reasoner.dataset, explorer.reasoner.rules
    return {
        "dataset": dataset,
        "vocabulary": dataset.vocabulary,
        "rules": rules,
        "n_facts": {name: len(dataset.split(name)) for name in ("train", "valid", "test")},
        "by_type": {name: n for name, n in rules.counts_by_type().items() if n},
        "examples": explorer.example_questions(N_EXAMPLES),
        "relations": explorer.common_relations(N_RELATIONS),
    }
