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


@pytest.mark.parametrize("look", LOOKS)
def test_pages_have_no_serious_fault_and_fit_their_window(open_page: Any, address: str, axe: str, look: str) -> None:
    page, faults = open_page(**LOOKS[look]), []
    for path in PAGES:
        page.goto(address + path)
        page.evaluate(axe)
        found = page.evaluate("axe.run({resultTypes: ['violations']})")["violations"]
        faults += [
            (path, fault["id"], fault["nodes"][0]["html"][:200]) for fault in found if fault["impact"] in SERIOUS
        ]
        width = page.evaluate("document.documentElement.scrollWidth")
        if width > page.viewport_size["width"]:
            faults.append((path, "wider than its window", str(width)))
    assert faults == []
