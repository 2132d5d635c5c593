"""Reviewing: verdicts are kept, counted, taken back and exported; forms of other sites are refused."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from fastapi.testclient import TestClient
from web_world import SCRIPT

FACT = {"subject": SCRIPT, "relation": "speaks", "object": "French"}


def token_of(client: TestClient) -> str:
    """Return the token that the forms of a page hold."""
    found = re.search(r'name="form_token" value="([^"]+)"', client.get("/review", params=FACT).text)
    assert found
    return found[1]


def judge(client: TestClient, verdict: str = "accepted", headers: dict[str, str] | None = None, **fields: str) -> Any:
    form = {"form_token": token_of(client), **FACT, "verdict": verdict, **fields}
    return client.post("/review", data=form, headers=headers or {})


def test_the_next_fact_is_shown_with_its_reason_and_keys(client: TestClient) -> None:
    text = client.get("/review").text
    assert "Because" in text
    assert 'data-key="a"' in text
    assert "precision so far" in text


def test_an_accepted_fact_is_kept_counted_and_exported(client: TestClient, tmp_path: Path) -> None:
    answered = judge(client, note="seen <b>myself</b>")
    assert answered.status_code == 303
    assert answered.headers["location"] == "/review"
    text = client.get("/review").text
    assert "seen &lt;b&gt;myself&lt;/b&gt;" in text
    assert ">100%<" in text
    lines = (tmp_path / "reviews.jsonl").read_text("utf-8").splitlines()
    assert json.loads(lines[0])["verdict"] == "accepted"
    assert "anyburl publish accepted.tsv sqlite:" in client.get("/review").text
    assert client.get("/review/accepted.tsv").text == "\t".join(FACT.values()) + "\n"
    assert "speaks" in client.get("/review/accepted.nt").text
    assert "seen <b>myself</b>" in client.get("/review/accepted.csv").text
    assert client.get("/review/accepted.exe").status_code == 404


def test_a_verdict_can_be_withdrawn(client: TestClient) -> None:
    judge(client, "rejected")
    assert client.get("/api/reviews").json()["rejected"] == 1
    judge(client, "withdrawn")
    told = client.get("/api/reviews").json()
    assert (told["accepted"], told["rejected"], told["reviews"]) == (0, 0, [])


def test_what_was_judged_is_not_shown_again_and_what_was_skipped_is(client: TestClient) -> None:
    def shown(**parameters: int) -> str:
        found = re.search(r'<h2 id="fact">(.*?)</h2>', client.get("/review", params=parameters).text)
        return found[1] if found else ""

    first, second = shown(), shown(skip=1)
    assert first
    assert first != second
    triple = re.findall(r'name="(subject|relation|object)" value="([^"]*)"', client.get("/review").text)[:3]
    judge(client, **{name: unescape(value) for name, value in triple})
    assert shown() == second
    assert shown(skip=10_000) == ""


def test_verdicts_also_come_through_the_api(client: TestClient) -> None:
    answered = client.post("/api/reviews", json={**FACT, "verdict": "accepted", "reader": "ann"})
    assert answered.status_code == 200
    assert answered.json()["reader"] == "ann"
    assert client.post("/api/reviews", json={**FACT, "verdict": "perhaps"}).status_code == 422
    assert client.post("/api/reviews", json={**FACT, "subject": "nobody", "verdict": "accepted"}).status_code == 404


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_forms_of_other_sites_are_refused(client: TestClient, headers: dict[str, str]) -> None:
    assert judge(client, headers=headers).status_code == 403
    assert client.post("/api/reviews", json={**FACT, "verdict": "accepted"}, headers=headers).status_code == 403
    assert client.get("/api/reviews").json()["accepted"] == 0


def test_a_form_without_our_token_is_refused(client: TestClient) -> None:
    assert judge(client, form_token="guessed").status_code == 403
    assert judge(client, form_token="").status_code == 403
    client.cookies.clear()
    assert client.post("/review", data={**FACT, "verdict": "accepted", "form_token": "x" * 43}).status_code == 403


def test_forms_of_our_own_pages_are_taken(client: TestClient) -> None:
    ours = {"Origin": "http://127.0.0.1:8000", "Sec-Fetch-Site": "same-origin"}
    assert judge(client, headers=ours).status_code == 303


def test_a_form_that_is_none_is_refused(client: TestClient) -> None:
    assert client.post("/review", json=FACT).status_code == 415
    assert judge(client, "perhaps").status_code == 422
    assert judge(client, subject="nobody").status_code == 404


def test_a_search_that_failed_is_tried_again(
    client: TestClient, explorer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, tried = explorer.desk._search, []

    def fail_once(relation: str | None) -> Any:
        tried.append(relation)
        if len(tried) == 1:
            raise OSError("no file can be opened")
        return search(relation)

    monkeypatch.setattr(explorer.desk, "_search", fail_once)
    codes = [client.get("/review?about=speaks").status_code for _ in range(3)]
    assert codes == [500, 200, 200]
    assert tried == ["speaks", "speaks"]


def test_searches_that_nobody_waits_for_any_more_are_not_made(explorer: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the oldest relations, where there are more than are kept; who asks for one again has it searched again."""
    gate, searched, search = Event(), [], explorer.desk._search

    def wait_and_search(relation: str | None) -> Any:
        gate.wait(60)
        searched.append(relation)
        return search(None)

    monkeypatch.setattr(explorer.desk, "_search", wait_and_search)
    monkeypatch.setattr("anyburl.web.background.SECONDS_TO_WAIT", 0.0)
    monkeypatch.setattr("anyburl.web.background.MOST_STACKS", 3)
    desk = explorer.desk
    try:
        assert [desk.waiting(name) for name in "abcdefgh"] == [None] * 8
        assert len(desk._stacks) == 3
    finally:
        gate.set()
    monkeypatch.setattr("anyburl.web.background.SECONDS_TO_WAIT", 60.0)
    assert desk.waiting("h")
    assert searched == ["a", "f", "g", "h"]
    assert desk.waiting("b")
