"""The list of rules, and the page of a rule."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, HTTPException, Path, Request
from fastapi.responses import Response

from anyburl.reasoning.explanation.rule_examples import examine_rule
from anyburl.web.explorer import Explorer
from anyburl.web.facts import Paging
from anyburl.web.parameters import AskedRules, Page, choose_rules
from anyburl.web.rule_list import MOST_LISTED, ORDERS
from anyburl.web.site import Context, CurrentSite

ROWS, EXAMPLES, RELATED = 25, 6, 12

RuleRow = Annotated[int, Path(ge=0, lt=1 << 31)]

router = APIRouter()


@router.get("/rules")
async def rules_page(request: Request, site: CurrentSite, asked: AskedRules, page: Page = 1) -> Response:
    """List the best rules that pass."""
    explorer = site.explorer

    def make() -> Context:
        choice, chosen = choose_rules(explorer, asked)
        paging = Paging(page, ROWS, len(chosen.rows))
        return {
            "choice": choice,
            "paging": paging,
            "rows": chosen.rows[paging.first : paging.last].tolist(),
            "n_matching": chosen.n_matching,
            "most_listed": MOST_LISTED,
            "rules": explorer.reasoner.rules,
            "orders": ORDERS,
            "longest": explorer.reasoner.rules.bodies.shape[1],
        }

    return await site.page(request, "rules.html", make, site.lanes.slow)


@router.get("/rules/{row}")
async def rule_page(request: Request, site: CurrentSite, row: RuleRow) -> Response:
    """Show one rule: where it is right and wrong, what it predicts, and the rules above and below it."""
    explorer = site.explorer
    check_row(explorer, row)
    return await site.page(request, "rule.html", lambda: _rule(explorer, row), site.lanes.slow)


def check_row(explorer: Explorer, row: int) -> None:
    """Refuse a rule that is not there."""
    n_rules = len(explorer.reasoner.rules)
    if row >= n_rules:
        raise HTTPException(404, f"there are {n_rules:,} rules, numbered from 0")


def _rule(explorer: Explorer, row: int) -> Context:
    reasoner, lattice = explorer.reasoner, explorer.rule_list.lattice
    special, n_special = lattice.specialisations(row, top=RELATED)
    return {
        "row": row,
        "rule": reasoner.rules.rule(row),
        "rules": reasoner.rules,
        "confidence": float(reasoner.rules.slice(row, row + 1).confidence()[0]),
        "examples": examine_rule(reasoner.ranker, reasoner.dataset, row, top=EXAMPLES),
        "generalisations": lattice.generalisations(row).tolist(),
        "specialisations": special.tolist(),
        "n_special": n_special,
    }
