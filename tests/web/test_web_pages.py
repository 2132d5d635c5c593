"""Every view: what it shows, and that labels are text everywhere."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlencode

import pytest
from fastapi.testclient import TestClient
from markupsafe import escape
from web_world import LONG, ODD, QUOTED, RIGHT_TO_LEFT, SCRIPT

import anyburl
from anyburl import OptionError
from anyburl.reasoning.metrics import keep_metrics
from anyburl.web import background, pages

PERSON = "France_city_0_person_1"


def page(client: TestClient, path: str, code: int = 200, **parameters: Any) -> str:
    """Return a page, checked for what every page has."""
    response = client.get(f"{path}?{urlencode(parameters)}" if parameters else path)
    assert response.status_code == code, response.text[:2000]
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    text = response.text
    assert text.count("<h1") == text.count("<main") == 1
    assert '<html lang="en">' in text
    assert "Skip to content" in text
    assert "style=" not in text, "the policy forbids it"
    assert not re.search(r"<script(?! src=)", text)
    assert not re.search(r"\son\w+=", text), "the policy forbids it"
    return text


def test_the_first_page_says_what_there_is_and_what_to_do(client: TestClient) -> None:
    text = page(client, "/")
    assert "rules know about" in text
    assert 'href="/review"' in text
    assert "/ask?subject=" in text


def test_search_finds_with_typing_errors_and_without_any(client: TestClient) -> None:
    assert "Netherlands" in page(client, "/search", q="Nehterlands")
    assert "No match for" in page(client, "/search", q="qqqqqqqqqqqqqq")
    assert "Type a name" in page(client, "/search")


def test_an_entity_shows_its_facts_by_relation_and_their_splits(client: TestClient) -> None:
    text = page(client, "/entity", label="France")
    assert "As subject" in text
    assert "As object" in text
    assert "French" in text
    held_out = page(client, "/entity", label="Dutch", relation="speaks", direction="backward")
    assert '<span class="badge">valid</span>' in held_out or '<span class="badge">test</span>' in held_out


def test_an_entity_shows_what_is_predicted_about_it(client: TestClient) -> None:
    text = page(client, "/entity", label=SCRIPT, view="predicted")
    assert "speaks" in text
    assert "French" in text
    assert "Why?" in text


def test_of_a_hub_the_first_predictions_come_at_once_and_the_rest_later(
    client: TestClient, explorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, search = Event(), background.predicted_facts

    def slow(*given: Any, **options: Any) -> Iterator[Any]:
        for n_done, best in enumerate(search(*given, **{**options, "at_a_time": 1})):
            if n_done:
                gate.wait(10)
            yield best

    whole = list(search(explorer.reasoner, PERSON, top=60))[-1]
    assert whole == list(search(explorer.reasoner, PERSON, top=60, at_a_time=1))[-1]
    monkeypatch.setattr(background, "predicted_facts", slow)
    monkeypatch.setattr(pages, "SECONDS_TO_PREDICT", 0.05)
    text = page(client, "/entity", label=PERSON, view="predicted")
    assert "These are the first predictions" in text
    assert 'data-live="2"' in text
    gate.set()
    monkeypatch.setattr(pages, "SECONDS_TO_PREDICT", 10)
    text = page(client, "/entity", label=PERSON, view="predicted")
    assert "These are the first predictions" not in text
    assert text.count('class="row-title"') == len(whole)


def test_an_entity_is_drawn_among_its_neighbours(client: TestClient) -> None:
    text = page(client, "/entity", label="France", view="graph")
    assert "<svg" in text
    assert 'class="edge fact"' in text
    assert "/entity?label=France_city_0" in text


def test_many_facts_are_paged(client: TestClient) -> None:
    text = page(client, "/relation", label="speaks")
    assert 'rel="next"' in text
    assert 'rel="prev"' in page(client, "/relation", label="speaks", page=2)


def test_a_question_is_answered_with_known_facts_marked(client: TestClient) -> None:
    text = page(client, "/ask", subject=PERSON, relation="speaks")
    assert "known: train" in text
    only_new = page(client, "/ask", subject=PERSON, relation="speaks", new="true")
    assert "known: train" not in only_new


def test_the_subject_can_be_asked_for(client: TestClient) -> None:
    assert str(escape(SCRIPT)) in page(client, "/ask", relation="speaks", object="French", new="true")


def test_aggregation_and_smoothing_change_the_scores(client: TestClient) -> None:
    def best_score(**chosen: Any) -> float:
        answers = client.get(f"/api/ask?{urlencode({'subject': SCRIPT, 'relation': 'speaks', **chosen})}").json()
        return float(answers["answers"][0]["score"])

    usual = best_score()
    assert best_score(aggregation="noisy-or") > usual
    assert best_score(smoothing=0) > usual
    text = page(client, "/ask", subject=SCRIPT, relation="speaks", aggregation="noisy-or", smoothing=1)
    assert "<option selected>noisy-or</option>" in text
    assert "the rank by max with smoothing 5" in text
    assert "the same place before" in text
    assert "the place by max" not in page(client, "/ask", subject=SCRIPT, relation="speaks")


def test_a_whole_triple_is_a_question_for_its_reasons(client: TestClient) -> None:
    response = client.get(f"/ask?{urlencode({'subject': PERSON, 'relation': 'speaks', 'object': 'French'})}")
    assert response.status_code == 303
    assert response.headers["location"].startswith("/why?subject=")


def test_without_a_question_the_form_is_explained(client: TestClient) -> None:
    assert "leave the other empty" in page(client, "/ask")
    assert "leave the other empty" in page(client, "/ask", relation="speaks")


def test_reasons_come_with_facts_graphs_and_a_sum(client: TestClient) -> None:
    text = page(client, "/why", subject=SCRIPT, relation="speaks", object="French")
    assert "Rules that fire" in text
    assert "right in" in text
    assert 'class="edge prediction"' in text
    assert "How the score adds up" in text
    assert "decides the score" in text
    assert "Review this fact" in text


def test_what_no_rule_predicts_has_a_missing_fact(client: TestClient) -> None:
    text = page(client, "/why", subject="Spain", relation="speaks", object="French")
    assert "No rule predicts it" in text
    assert "Missing:" in text
    assert 'class="edge missing"' in text


def test_an_explanation_is_downloaded_as_one_file(client: TestClient) -> None:
    asked = urlencode({"subject": SCRIPT, "relation": "speaks", "object": "French"})
    response = client.get(f"/why/page?{asked}")
    assert response.headers["content-disposition"].startswith("attachment")
    assert "<svg" in response.text
    assert "http" not in response.text.replace("http-equiv", "")


def test_rules_are_filtered_and_sorted(client: TestClient) -> None:
    text = page(client, "/rules", relation="speaks", type="B", length="3", min_support="3", contains="lives_in")
    assert "<abbr" in text
    assert ">Ud<" not in text.split('class="rows rules"')[1]
    found = client.get("/api/rules?sort=support&top=5").json()["rules"]
    supports = [rule["support"] for rule in found]
    assert supports == sorted(supports, reverse=True)


def test_empty_fields_of_a_form_count_as_left_out(client: TestClient) -> None:
    page(client, "/rules", relation="", type="", length="", min_confidence="", min_support="", contains="")


def test_a_rule_has_a_page(client: TestClient) -> None:
    best = client.get("/api/rules?relation=speaks&type=B&top=1").json()["rules"][0]
    text = page(client, f"/rules/{best['row']}")
    assert str(escape(best["rule"])) in text
    for part in ("Where it is right", "Where it is wrong", "What it predicts", "More general", "More specific"):
        assert part in text
    assert page(client, "/rules/123456789", 404)


def test_the_run_is_drawn_from_its_folder(client: TestClient) -> None:
    text = page(client, "/run")
    assert "How the rules were learned" in text
    assert text.count('<svg class="chart"') == 4
    assert 'data-live="0"' in text


def test_a_run_that_goes_on_is_shown_with_a_half_written_last_line(
    client: TestClient, explorer: Any, run_folder: Path, tmp_path: Path
) -> None:
    going_on = tmp_path / "going-on"
    going_on.mkdir()
    for name in ("options.json", "trace.jsonl"):
        (going_on / name).write_bytes((run_folder / name).read_bytes())
    with open(going_on / "trace.jsonl", "a") as trace:
        trace.write('{"number": 99, "elap')
    explorer.run = going_on
    keep_metrics(going_on, explorer.reasoner.evaluate("valid"), 10.0)
    text = page(client, "/run")
    assert "after 10 s" in text
    assert "(subject, speaks, ?)" in text  # by relation and direction
    assert "Still learning" in text
    assert 'data-live="3"' in text


def test_rules_without_a_run_folder_have_no_run_page(client: TestClient, explorer: Any) -> None:
    explorer.run = None
    page(client, "/run", 404)


def test_the_api_is_described_without_anything_from_elsewhere(client: TestClient) -> None:
    text = page(client, "/api")
    assert "/api/ask" in text
    assert "http" not in text.replace("http-equiv", "")
    assert json.loads(client.get("/api/openapi.json").text)["openapi"].startswith("3.")


@pytest.mark.parametrize("label", ODD, ids=["script", "quotes", "right to left", "long"])
def test_labels_are_text_everywhere(client: TestClient, label: str) -> None:
    triple = {"subject": label, "relation": "speaks", "object": "French"}
    texts = [
        page(client, "/search", q=label[:200]),
        page(client, "/entity", label=label),
        page(client, "/entity", label=label, view="predicted"),
        page(client, "/entity", label=label, view="graph"),
        page(client, "/entity", label="Spain"),
        page(client, "/ask", subject=label, relation="speaks"),
        page(client, "/ask", subject="Spain", relation="knows"),
        page(client, "/why", **triple),
        page(client, "/review", **triple),
        page(client, "/relation", label="knows"),
    ]
    for text in texts:
        assert SCRIPT not in text
        assert str(escape(label))[:60] in text
    assert str(escape(label)) in texts[1]


def test_a_name_that_is_not_there_is_not_found_and_suggests_others(client: TestClient) -> None:
    page(client, "/search", q="wait until it is there")
    text = page(client, "/entity", 404, label="Franse")
    assert "France" in text
    assert "/entity?label=France" in text
    assert page(client, "/entity", 404, label=f"{SCRIPT}?")
    assert page(client, "/nothing/here", 404)
    assert page(client, "/entity", 422)
    assert page(client, "/rules", 422, length="many")


def test_right_to_left_text_is_kept_apart(client: TestClient) -> None:
    assert f"<bdi>{RIGHT_TO_LEFT}</bdi>" in page(client, "/ask", relation="speaks", object="Dutch")
    assert f"<bdi>{escape(QUOTED)}</bdi>" in page(client, "/ask", relation="speaks", object="Dutch")
    assert LONG in page(client, "/entity", label=LONG)


def test_a_page_that_has_not_changed_is_not_sent_again(client: TestClient) -> None:
    first = client.get("/entity?label=France")
    again = client.get("/entity?label=France", headers={"If-None-Match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


def test_style_and_scripts_come_from_the_package_and_nothing_else_does(client: TestClient) -> None:
    assert client.get("/static/app.css").headers["content-type"].startswith("text/css")
    for path in (
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2Fapp.py",
        "/static//etc/passwd",
        "/static/",
    ):
        assert client.get(path).status_code == 404


def test_a_model_can_be_chosen_once_the_run_has_one(
    client: TestClient, explorer: Any, run_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is offered is the table of aggregations; a page that needs a model gives the command that trains it."""
    run = explorer.run = tmp_path / "tuned-run"
    shutil.copytree(run_folder, run, ignore=shutil.ignore_patterns("tuned"))
    assert "<option>noisy-or-top:5</option>" in page(client, "/ask")
    assert "<option>tuned</option>" not in page(client, "/ask")
    asked = {"subject": "Ed", "relation": "speaks", "aggregation": "tuned"}
    assert "anyburl tune" in client.get("/ask", params=asked).text
    monkeypatch.setattr("anyburl.models.tuned.train.MOST_QUESTIONS", 100)
    monkeypatch.setattr("anyburl.models.tuned.train.MORE_QUESTIONS", 100)
    anyburl.Reasoner.open(run, aggregation="tuned")  # trains the model
    assert "tuned" in explorer.aggregations
    ranked = explorer.ranking_by("tuned", None)
    assert ranked.options.aggregation == "tuned"
    with pytest.raises(OptionError, match=r"train it with `anyburl tune .* --smoothing 2`"):
        explorer.ranking_by("tuned", 2.0)


def test_a_question_with_a_typing_error_is_kept_when_it_is_corrected(client: TestClient, explorer: Any) -> None:
    explorer.warm_up()
    text = page(client, "/ask", 404, subject="Frnace", relation="speaks", aggregation="noisy-or")
    address = escape("/ask?" + urlencode({"subject": "France", "relation": "speaks", "aggregation": "noisy-or"}))
    assert f'href="{address}"' in text


def test_verdicts_are_marked_wherever_a_fact_is_shown(client: TestClient, explorer: Any) -> None:
    question = {"subject": PERSON, "relation": "speaks"}
    fact = explorer.reasoner.predict(PERSON, "speaks", None, top=1, include_known=True)[0].triple
    assert 'class="badge rejected"' not in page(client, "/ask", **question)
    client.post(
        "/api/reviews", json=dict(zip(("subject", "relation", "object"), fact, strict=True), verdict="rejected")
    )
    assert 'class="badge rejected">rejected<' in page(client, "/ask", **question)
    assert 'class="badge rejected">rejected<' in page(client, "/why", **question, object=fact[2])
    stated = explorer.reasoner.dataset.train.to_polars().row(0)
    client.post(
        "/api/reviews", json=dict(zip(("subject", "relation", "object"), stated, strict=True), verdict="accepted")
    )
    accepted = 'class="badge accepted">accepted<'
    assert accepted in page(client, "/entity", label=stated[0])
    assert accepted in page(client, "/entity", label=stated[2], relation=stated[1], direction="backward")
    assert accepted in page(client, "/relation", label=stated[1])


def test_the_graph_of_an_entity_has_facts_of_every_split(client: TestClient, explorer: Any) -> None:
    subject, relation, object = explorer.reasoner.dataset.test.to_polars().row(0)
    text = page(client, "/entity", label=subject, view="graph")
    title = f"\u2068{subject}\u2069 \u2068{relation}\u2069 \u2068{object}\u2069"
    assert f"<title>{title}</title>" in text
    assert f"predicted: {title}" not in text


def test_the_graph_of_an_entity_has_no_unlikely_predictions(
    client: TestClient, explorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    best, _ = explorer.predictions(PERSON, top=12, per_question=2, seconds=20)
    likely = {fact.triple: 0.9 if n == 0 else 0.04 for n, fact in enumerate(best)}
    judged = [replace(fact, probability=likely[fact.triple], conflict=None) for fact in best]
    monkeypatch.setattr(explorer, "predictions", lambda *_, **__: (judged, True))
    text = page(client, "/entity", label=PERSON, view="graph")
    assert len(best) > 1
    assert len(re.findall(r"<title>predicted: ", text)) == 1


def test_what_the_first_pages_need_is_there_before_the_report_is_written(
    explorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def theory(seconds: float) -> None:
        assert "judge" in vars(explorer.reasoner)
        assert explorer.can_search
        written.append(seconds)

    written: list[float] = []
    vars(explorer.reasoner).pop("judge", None)
    monkeypatch.setattr(explorer, "theory", theory)
    explorer.warm_up()
    assert written == [0]


def test_the_page_of_rules_tells_what_they_say_and_all_rules_are_a_click_away(client: TestClient) -> None:
    text = page(client, "/rules")
    assert "Laws that hold nearly always" in text
    assert "style=" not in text
    assert client.get("/static/theory.css").status_code == 200
    assert 'href="/rules?relation=speaks"' in text
    listed = page(client, "/rules", all="1")
    assert 'class="rows rules"' in listed
    assert "are folded" in listed
    assert "are folded" not in page(client, "/rules", all="1", unfolded="1")
    assert "are folded" not in page(client, "/rules", all="1", sort="confidence")
