"""A relation: how often it is stated, some facts, and the best rules that predict it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from anyburl.web.facts import Paging, relation_facts
from anyburl.web.parameters import Label, Page
from anyburl.web.rule_list import RuleChoice
from anyburl.web.site import Context, CurrentSite

ROWS, RULES = 25, 8

router = APIRouter()


@router.get("/relation")
async def relation(request: Request, site: CurrentSite, label: Label, page: Page = 1) -> Response:
    """Show one relation."""
    explorer = site.explorer

    def make() -> Context:
        meant = explorer.relation(label)
        facts = relation_facts(explorer.reasoner, meant, first=(page - 1) * ROWS, top=ROWS)
        chosen = explorer.rule_list.choose(RuleChoice(relation=meant))
        return {
            "label": meant,
            "facts": facts,
            "paging": Paging(page, ROWS, facts.n_facts["train"]),
            "rows": chosen.rows[:RULES].tolist(),
            "n_rules": chosen.n_matching,
            "rules": explorer.reasoner.rules,
        }

    return await site.page(request, "relation.html", make, site.lanes.slow)
