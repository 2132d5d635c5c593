"""What people do with the explorer, in a browser."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

pytestmark = pytest.mark.browser


def count(page: Any, name: str) -> str:
    """Return a figure of the page by its name."""
    return str(page.locator(".figures div", has=page.locator(f"dt:text-is('{name}')")).locator("dd").inner_text())


def test_an_entity_is_found_by_a_name_with_typing_errors(open_page: Any) -> None:
    page = open_page()
    page.keyboard.press("/")
    with page.expect_response("**/api/search?q=Netherlnads&*"):  # earlier ones are of a part of it
        page.keyboard.type("Netherlnads")
    page.get_by_role("option", name="Netherlands").first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url("**/entity?label=*")
    assert "Netherlands" in page.locator("h1").inner_text()


def test_an_entity_shows_facts_predictions_and_a_graph(open_page: Any) -> None:
    page = open_page("/entity?label=France")
    assert page.get_by_text("official language").first.is_visible()
    page.get_by_role("link", name="Predicted facts").click()
    page.get_by_text("New facts that rules predict about it").wait_for()
    page.get_by_role("link", name="Graph", exact=True).click()
    page.locator("svg.drawing .edge.prediction").first.wait_for(state="attached")
    page.locator("svg.drawing a", has_text="Germany").first.click()
    page.wait_for_url("**/entity?label=Germany")


def test_the_order_of_answers_changes_with_the_aggregation(open_page: Any) -> None:
    page = open_page("/ask")
    page.get_by_label("Subject").fill("France")
    page.get_by_label("Relation", exact=True).fill("offical lang")
    page.get_by_role("option", name="official_language").click()
    page.get_by_role("button", name="Ask", exact=True).click()
    page.wait_for_url("**relation=official_language**")
    before = page.locator(".rows .row-title").all_inner_texts()
    page.get_by_label("Combine rules by").select_option("noisy-or")
    page.wait_for_url("**aggregation=noisy-or&**")
    assert page.locator(".rows .row-title").all_inner_texts() != before
    page.get_by_role("link", name="Next").click()
    page.wait_for_url("**page=2**")


def test_a_prediction_is_explained_drawn_and_downloaded(open_page: Any) -> None:
    page = open_page(f"/ask?{urlencode({'subject': 'France', 'relation': 'official_language', 'new': 'true'})}")
    page.get_by_role("link", name=re.compile("Why")).first.click()
    page.get_by_role("heading", name="Rules that fire").wait_for()
    assert page.locator("svg.drawing .edge.prediction").first.is_visible()
    page.get_by_text("Proof graph of this rule").first.click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download as a page").click()
    assert "<svg" in download.value.path().read_text("utf-8")


@pytest.mark.parametrize("width", [1300, 390])
def test_a_proof_is_whole_or_scrolls_where_one_sees_it(open_page: Any, width: int) -> None:
    fact = {"subject": "Aalborg", "relation": "time_zone", "object": "Europe/Copenhagen"}
    page = open_page(f"/why?{urlencode(fact)}", viewport={"width": width, "height": 800})
    figure = page.locator("figure.drawing").first
    inside, whole = figure.evaluate("figure => [figure.clientWidth, figure.scrollWidth]")
    assert (whole > inside) is (width == 390)
    assert "linear-gradient" in figure.evaluate("figure => getComputedStyle(figure).backgroundImage")
    figure.evaluate("figure => { figure.scrollLeft = figure.scrollWidth; }")
    end = figure.locator(".node.end").last.bounding_box()
    assert end["x"] + end["width"] <= width
    inside, whole = page.locator("table.stacked").evaluate("table => [table.parentNode.clientWidth, table.scrollWidth]")
    assert whole <= inside
    assert page.locator("table.stacked thead").evaluate("head => getComputedStyle(head).position") == (
        "absolute" if width == 390 else "static"
    )


TEXTS_AND_BOXES = """[...document.querySelectorAll('svg.drawing g.node, svg.drawing g.edge')]
    .filter(part => part.querySelector('text'))
    .map(part => [part.classList.contains('node'), part.querySelector('text').textContent,
                  part.querySelector('rect').width.baseVal.value
                  - part.querySelector('text').getComputedTextLength()])"""


@pytest.mark.parametrize("width", [1300, 390])
def test_long_labels_fill_their_boxes_and_leave_no_gaps_in_lines(
    open_page: Any, large_address: str, width: int
) -> None:
    page = open_page(viewport={"width": width, "height": 800})
    hub, relation = "/m/09c7w0", "/people/person/nationality"
    for path, values in (
        ("/entity", {"label": hub, "view": "graph"}),
        ("/why", {"subject": "/m/02mjmr", "relation": relation, "object": hub}),
    ):
        page.goto(f"{large_address}{path}?{urlencode(values)}", timeout=60_000)  # the first one waits for the rules
        drawn = page.evaluate(TEXTS_AND_BOXES)
        assert any(len(text) > 20 for _, text, _ in drawn)
        for is_node, text, room in drawn:
            assert 0 < room < (40 if is_node else 24), text


def test_an_entity_is_drawn_again_in_a_proof_only_where_arrows_would_stay_in_a_column(open_page: Any) -> None:
    fact = {"subject": "Aalborg", "relation": "time_zone", "object": "Europe/Copenhagen"}
    page = open_page(f"/why?{urlencode(fact)}")
    texts = page.locator("figure.drawing").first.locator(".node text").all_text_contents()
    assert 1 <= texts.count("Denmark") <= 2
    assert len(texts) - len(set(texts)) <= 1


def test_why_not_tells_the_missing_fact(open_page: Any) -> None:
    page = open_page(f"/why?{urlencode({'subject': 'Euro', 'relation': 'official_language', 'object': 'Dutch'})}")
    assert page.get_by_text("No rule predicts it").is_visible()
    assert page.get_by_text("Missing:").first.is_visible()
    assert page.locator("svg.drawing .edge.missing").first.is_visible()


def test_rules_are_filtered_and_opened(open_page: Any) -> None:
    page = open_page("/rules")
    page.get_by_role("link", name=re.compile("rules, to filter and sort")).click()
    page.get_by_label("Predicts").fill("official_language")
    page.get_by_label("Type").select_option("B")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**relation=official_language**")
    page.get_by_role("link", name=re.compile("Open")).first.click()
    page.get_by_role("heading", name="What it predicts").wait_for()


def test_the_run_is_shown(open_page: Any) -> None:
    page = open_page("/run")
    assert page.locator("svg.chart").count() == 4


def test_from_the_first_page_to_an_accepted_fact_by_what_is_on_the_screen(open_page: Any) -> None:
    page = open_page()
    page.get_by_role("link", name="Start reviewing").click()
    page.get_by_role("button", name="Accept").click()
    page.wait_for_load_state()
    assert count(page, "accepted") == "1"
    assert count(page, "precision so far") == "100%"
    page.get_by_role("button", name=re.compile("Undo")).first.click()
    page.wait_for_load_state()
    assert count(page, "accepted") == "0"


def test_facts_are_reviewed_by_keys_alone(open_page: Any) -> None:
    page = open_page("/review")
    first = page.locator("#fact").inner_text()
    page.keyboard.press("s")
    page.wait_for_url("**skip=1")
    assert page.locator("#fact").inner_text() != first
    page.keyboard.press("n")
    page.keyboard.type("not so")
    page.keyboard.press("Escape")
    page.locator("#note").blur()
    page.keyboard.press("r")
    page.get_by_text("not so").wait_for()
    assert count(page, "rejected") == "1"
    page.keyboard.press("u")
    page.wait_for_load_state()
    page.locator(".figures dd", has_text="0").first.wait_for()


def test_everything_can_be_read_without_scripts(open_page: Any) -> None:
    page = open_page("/", java_script_enabled=False)
    page.locator("#big-find").fill("France")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="France", exact=True).first.click()
    page.get_by_role("link", name="Graph", exact=True).click()
    page.locator("svg.drawing").wait_for()
    page.get_by_role("link", name="Review", exact=True).click()
    page.get_by_role("button", name="Accept").first.wait_for()
