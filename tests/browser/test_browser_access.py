"""Accessibility by axe-core, and pages that fit their window: light and dark, on a laptop and a phone."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import pytest

pytestmark = pytest.mark.browser

WHY = urlencode({"subject": "France", "relation": "official_language", "object": "English"})
WHY_NOT = urlencode({"subject": "Euro", "relation": "official_language", "object": "Dutch"})
PAGES = (
    "/",
    "/search?q=fran",
    "/entity?label=France",
    "/entity?label=France&view=predicted",
    "/entity?label=France&view=graph",
    "/entity?label=Euro&relation=currency&direction=backward",
    "/relation?label=time_zone",
    "/ask",
    "/ask?subject=France&relation=official_language",
    f"/why?{WHY}",
    f"/why?{WHY_NOT}",
    "/rules",
    "/rules/5",
    "/run",
    "/review",
    "/api",
    "/login",
)
LOOKS: dict[str, dict[str, Any]] = {
    "laptop, light": {"color_scheme": "light"},
    "phone, dark": {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}},
}
SERIOUS = ("serious", "critical")


HUB, RELATION = "/m/09c7w0", "/people/person/nationality"
LARGE_PAGES = (
    "/",
    "/search?q=nationalty",
    f"/entity?{urlencode({'label': HUB})}",
    f"/entity?{urlencode({'label': HUB, 'view': 'graph'})}",
    f"/relation?{urlencode({'label': RELATION})}",
    f"/ask?{urlencode({'relation': RELATION, 'object': HUB})}",
    f"/why?{urlencode({'subject': '/m/02mjmr', 'relation': RELATION, 'object': HUB})}",
    "/rules",
    "/run",
    "/review",
)


def faults_of(page: Any, address: str, paths: tuple[str, ...], axe: str) -> list[tuple[str, str, str]]:
    """Return what axe-core finds serious, and pages that are wider than their window."""
    faults = []
    for path in paths:
        page.goto(address + path)
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        faults += [
            (path, fault["id"], fault["nodes"][0]["html"][:200]) for fault in found if fault["impact"] in SERIOUS
        ]
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > page.viewport_size["width"]:
            faults.append((path, "wider than its window", str(width)))
    return faults


@pytest.mark.parametrize("look", LOOKS)
def test_pages_have_no_serious_fault_and_fit_their_window(open_page: Any, address: str, axe: str, look: str) -> None:
    assert faults_of(open_page(**LOOKS[look]), address, PAGES, axe) == []


@pytest.mark.parametrize("look", LOOKS)
def test_so_do_those_of_a_large_graph_with_long_names(open_page: Any, large_address: str, axe: str, look: str) -> None:
    assert faults_of(open_page(**LOOKS[look]), large_address, LARGE_PAGES, axe) == []
