"""The explorer of temporal rules: every page answers, and bad moments get a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from fastapi.testclient import TestClient

import anyburl
from anyburl.tools.options import ServeOptions
from anyburl.web.history import TemporalExplorer, create_temporal_app


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    data = anyburl.load_temporal_dataset("history")
    rules = anyburl.TemporalLearner(data, model="none", threads=1).learn()
    reviews = anyburl.ReviewLog(tmp_path_factory.mktemp("reviews") / "reviews.jsonl")
    explorer = TemporalExplorer(anyburl.TemporalReasoner(rules, data, threads_used=1), "history", reviews)
    app = create_temporal_app(explorer, ServeOptions(seconds=600))
    with TestClient(app, base_url="http://127.0.0.1:8000") as client:
        yield client


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("/", "82 years from 1945 to 2026"),
        ("/ask", "2027"),
        ("/ask?relation=adopts&subject=Croatia&time=2023", "Euro"),
        ("/why?subject=Canada&relation=chairs&object=G7&time=2025", '<svg class="times"'),
        ("/why?subject=France&relation=adopts&object=ASEAN&time=2025", "Why not"),
        ("/rules?relation=chairs&form=pair", "chairs(X,Y,T) &lt;= chairs(X,Y,U)"),
        ("/entity?label=Croatia", "Schengen_Area"),
        ("/review?time=2027", "Accept"),
        ("/review?subject=France&relation=adopts&object=ASEAN&time=2025", "Why not?"),
        ("/search?q=croat", "Croatia"),
        ("/api/search?q=croat", "Croatia"),
        ("/api/ask?relation=adopts&subject=Croatia&time=2023", '"entity":"Euro"'),
        ("/api/why?subject=Canada&relation=chairs&object=G7&time=2025", '"facts":[["Canada","chairs","G7","2018"]'),
        ("/static/times.css", ".times"),
    ],
)
def test_every_page_answers(client: TestClient, address: str, shown: str) -> None:
    response = client.get(address)
    assert response.status_code == 200, response.text
    assert shown in response.text


def test_a_rules_page_has_its_curve(client: TestClient) -> None:
    assert "confidence by age" in client.get("/rules/0").text
    assert client.get("/rules/999999").status_code == 404


def test_a_whole_fact_leads_to_its_reasons(client: TestClient) -> None:
    response = client.get("/ask?subject=Canada&relation=chairs&object=G7&time=2025", follow_redirects=False)
    assert response.headers["location"] == "/why?subject=Canada&relation=chairs&object=G7&time=2025"


def test_a_fact_is_reviewed_with_its_moment(client: TestClient) -> None:
    question = {"subject": "Canada", "relation": "chairs", "object": "G7", "time": "2030"}
    page = client.get("/review", params=question).text
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    assert token is not None
    headers = {"origin": "http://127.0.0.1:8000"}

    def judge(verdict: str) -> str:
        form = {**question, "form_token": token[1], "verdict": verdict, "at": "2030"}
        done = client.post("/review", data=form, headers=headers, follow_redirects=False)
        assert (done.status_code, done.headers["location"]) == (303, "/review?time=2030")
        return client.get("/review?time=2030").text

    def is_stated() -> bool:
        return "stated" in client.get("/why", params=question).text

    assert not is_stated()
    assert "Latest decisions" in judge("accepted")
    assert is_stated()
    judge("rejected")
    assert not is_stated()
    assert "Latest decisions" not in judge("withdrawn")
    wrong = {**question, "form_token": token[1], "verdict": "perhaps"}
    assert client.post("/review", data=wrong, headers=headers).status_code == 422


@pytest.mark.parametrize(
    ("time", "sentence"), [("soon", "Expected a time such as 2014"), ("1930", "Nothing is known before 1930")]
)
def test_a_bad_moment_gets_a_sentence(client: TestClient, time: str, sentence: str) -> None:
    response = client.get(f"/ask?relation=adopts&subject=Croatia&time={time}")
    assert (response.status_code, sentence in response.text) == (422, True)
