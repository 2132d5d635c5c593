"""The API: the same answers as the library gives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from web_world import SCRIPT

from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.reasoning.reasoner import Reasoner
from anyburl.web.app import create_app
from anyburl.web.explorer import Explorer


def asked(client: TestClient, path: str, code: int = 200, **parameters: Any) -> Any:
    response = client.get(path, params=parameters)
    assert response.status_code == code, response.text
    assert response.headers["content-type"] == "application/json"
    return response.json()


@pytest.mark.parametrize("include_known", [False, True])
def test_a_question_has_the_answers_that_predict_gives(
    client: TestClient, reasoner: Reasoner, include_known: bool
) -> None:
    told = asked(client, "/api/ask", subject=SCRIPT, relation="speaks", known=include_known, top=5)
    expected = reasoner.predict(SCRIPT, "speaks", None, top=5, include_known=include_known)
    assert [
        (one["rank"], one["entity"], one["score"], tuple(one["known"]), one["rule_text"]) for one in told["answers"]
    ] == [(one.rank, one.entity, one.score, one.known, str(one.rule)) for one in expected]
    assert (told["n_candidates"], told["n_known"]) == (expected.n_candidates, expected.n_known)


@pytest.fixture(scope="module", params=[{"fallback": True}, {"aggregation": "tuned"}], ids=["fallback", "tuned"])
def beyond_rules(request: pytest.FixtureRequest, run_folder: Path) -> Reasoner:
    """Return a reasoner that also gives answers which no rule predicts."""
    return Reasoner.open(run_folder, **request.param)


@pytest.mark.parametrize("include_known", [False, True])
def test_an_answer_of_no_rule_has_no_rule(beyond_rules: Reasoner, tmp_path: Path, include_known: bool) -> None:
    last = beyond_rules.rules.rule(len(beyond_rules.rules) - 1)
    explorer = Explorer(beyond_rules, title="world", reviews=tmp_path / "reviews.jsonl")
    expected = beyond_rules.predict("France", "speaks", None, top=100, include_known=include_known)
    assert any(one.rule is None for one in expected)
    assert all((one.rule is None) == (one.n_rules == 0) for one in expected)
    question = {"subject": "France", "relation": "speaks"}
    with TestClient(create_app(explorer), base_url="http://127.0.0.1") as client:
        told = asked(client, "/api/ask", **question, known=include_known, top=100)["answers"]
        body = {"questions": [question], "known": include_known, "top": 100}
        many = client.post("/api/batch", json=body).json()["answers"][0]
        page = client.get("/ask", params={**question, "new": not include_known, "page": 1}).text
        facts = asked(client, "/api/predicted", label="France", top=100)["predicted"]
    assert many == told
    for one, answer in zip(told, expected, strict=True):
        assert (one["entity"], one["score"]) == (answer.entity, answer.score)
        assert one["rule_text"] == (None if answer.rule is None else str(answer.rule))
        assert (one["rule"] is None) == (answer.rule is None)
        assert str(one["score"]) != "-0.0"
    (frame,) = beyond_rules.predict_frames([("France", "speaks", None)], top=100, include_known=include_known)
    assert frame["rule"].to_list() == [one["rule_text"] for one in told]
    assert page.count("no rule") == sum(one["rule"] is None for one in told[:25])
    if last.head.relation != "speaks":
        assert str(last) not in {one["rule_text"] for one in told}
    assert all(one["rule"] is not None for one in facts)


def test_answers_come_with_the_stated_fact_that_contradicts_them(client: TestClient) -> None:
    """Nobody in this world speaks two languages."""
    stated = [SCRIPT, "speaks", "Dutch"]
    told = asked(client, "/api/ask", subject=SCRIPT, relation="speaks", known=True, top=5)["answers"]
    conflicts = {one["entity"]: one["conflict"] for one in told}
    assert conflicts.pop("Dutch", None) is None
    assert conflicts
    assert all(conflict == stated for conflict in conflicts.values())
    pages = [client.get("/ask", params={"subject": SCRIPT, "relation": "speaks"}).text]
    pages.append(client.get("/why", params={"subject": SCRIPT, "relation": "speaks", "object": "French"}).text)
    assert all('<span class="badge">conflict</span>' in text for text in pages)
    text = client.get("/why", params={"subject": SCRIPT, "relation": "speaks", "object": "Dutch"}).text
    assert '<span class="badge">conflict</span>' not in text


def test_answers_are_paged(client: TestClient) -> None:
    whole = asked(client, "/api/ask", relation="speaks", object="French", known=True, top=6)["answers"]
    part = asked(client, "/api/ask", relation="speaks", object="French", known=True, offset=2, top=2)["answers"]
    assert part == whole[2:4]


def test_many_questions_have_the_answers_of_each(client: TestClient) -> None:
    questions = [
        {"subject": SCRIPT, "relation": "speaks"},
        {"relation": "speaks", "object": "French"},
        {"subject": "France", "relation": "knows", "object": None},
    ]
    told = client.post("/api/batch", json={"questions": questions, "top": 3}).json()["answers"]
    alone = [asked(client, "/api/ask", **{k: v for k, v in one.items() if v}, top=3)["answers"] for one in questions]
    assert told == alone


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"questions": []}, 422),
        ({"questions": [{"relation": "speaks"}]}, 422),
        ({"questions": [{"relation": "speaks", "subject": "France", "object": "French"}]}, 422),
        ({"questions": [{"relation": "speaks", "subject": "nobody"}]}, 404),
        ({"questions": [{"relation": "speaks", "subject": "France"}] * 1001}, 422),
        ({"questions": [{"relation": "speaks", "subject": "France"}], "top": 101}, 422),
        ([], 422),
    ],
)
def test_wrong_batches_are_refused_with_a_sentence(client: TestClient, body: Any, code: int) -> None:
    response = client.post("/api/batch", json=body)
    assert response.status_code == code
    assert response.json()["error"]


def test_reasons_are_those_that_explain_gives(client: TestClient, reasoner: Reasoner) -> None:
    told = asked(client, "/api/why", subject=SCRIPT, relation="speaks", object="French", top=3)
    assert told == reasoner.explain((SCRIPT, "speaks", "French"), top=3).to_json()


def test_rules_and_one_rule(client: TestClient, reasoner: Reasoner) -> None:
    told = asked(client, "/api/rules", relation="speaks", type="B", top=3)
    expected = reasoner.rules.filter(relation="speaks", type="B")
    assert told["n_matching"] == len(expected)
    assert [rule["rule"] for rule in told["rules"]] == expected.top(3).texts().to_list()
    first = told["rules"][0]
    assert asked(client, f"/api/rules/{first['row']}") == first
    asked(client, f"/api/rules/{len(reasoner.rules)}", 404)


@pytest.mark.parametrize(
    "chosen",
    [{}, {"contains": "France"}, {"contains": "lives_in", "length": 1}, {"min_support": 4, "min_confidence": 0.5}],
)
@pytest.mark.parametrize("relation", [None, "speaks"])
def test_filters_choose_as_those_of_a_rule_set(
    client: TestClient, reasoner: Reasoner, relation: str | None, chosen: dict[str, Any]
) -> None:
    given = {**chosen, **({"relation": relation} if relation else {})}
    told = asked(client, "/api/rules", sort="support", top=10, **given)
    expected = reasoner.rules.filter(**given)
    assert told["n_matching"] == len(expected)
    assert [rule["rule"] for rule in told["rules"]] == expected.top(10, "support").texts().to_list()


def test_facts_and_predicted_facts_of_an_entity(client: TestClient) -> None:
    told = asked(client, "/api/entity", label="France")
    groups = {(group["relation"], group["backward"]): group["n_facts"] for group in told["facts"]}
    assert groups[("language", False)] == 1
    assert groups[("located_in", True)] == 3
    found = asked(client, "/api/predicted", label=SCRIPT)["predicted"]
    assert [SCRIPT, "speaks", "French"] in [one["triple"] for one in found]
    assert all(not one["known"] for one in found)


def test_values_of_an_entity(client: TestClient, reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(client, "/api/entity", label=SCRIPT)["values"] == []
    born = Attribute.of(
        "born", AttributeKind.DATE, np.array([reasoner.vocabulary.entity_id("France")] * 2), np.array([-1, 0])
    )
    monkeypatch.setattr(reasoner, "dataset", replace(reasoner.dataset, attributes=Attributes.of([born])))
    expected = {"attribute": "born", "kind": "date", "values": [-1.0, 0.0], "texts": ["1969-12-31", "1970-01-01"]}
    assert asked(client, "/api/entity", label="France")["values"] == [expected]
    assert "1969-12-31, 1970-01-01" in client.get("/entity", params={"label": "France"}).text


def test_a_relation_can_be_named_as_pages_write_it(client: TestClient) -> None:
    assert asked(client, "/api/ask", relation="lives in", subject=SCRIPT)["relation"] == "lives_in"


def test_search_by_kind(client: TestClient) -> None:
    found = asked(client, "/api/search", q="lives", kind="relation")["found"]
    assert [one["label"] for one in found] == ["lives_in"]
    assert asked(client, "/api/search", q="  ")["found"] == []


def test_wrong_questions_are_refused_with_a_sentence(client: TestClient) -> None:
    client.get("/search?q=wait until it is there")
    assert asked(client, "/api/ask", 404, relation="speaks", subject="Franse")["suggestions"][0] == "France"
    told = asked(client, "/api/ask", 404, relation="speaks", subject="Fran; se")
    assert told["error"] == "unknown entity 'Fran; se'"
    assert told["suggestions"]
    asked(client, "/api/ask", 422, relation="speaks")
    asked(client, "/api/ask", 422, relation="speaks", subject="France", aggregation="best")
    asked(client, "/api/ask", 422, relation="speaks", subject="France", aggregation="hybrid")
    asked(client, "/api/ask", 422, relation="speaks", subject="France", smoothing="nan")
    asked(client, "/api/nothing", 404)
    assert client.delete("/api/reviews").status_code == 405
