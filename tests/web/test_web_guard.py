"""Who is let in, and what browsers are told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fastapi.testclient import TestClient

from anyburl.errors import OptionError
from anyburl.web.options import ServeOptions

TOKEN = "correct horse battery"


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/api/openapi.json", "/static/app.css", "/nothing", "/entity"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "unsafe" not in policy
        assert "default-src 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "", "[", "192.168.0.9"]
)
def test_other_host_names_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize("host", ["localhost:8000", "127.0.0.1", "[::1]:8000", "LOCALHOST"])
def test_this_machine_by_any_of_its_names_is_served(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"Host": host}).status_code == 200


def test_listening_to_all_takes_addresses_but_no_foreign_names(serve: Any) -> None:
    client = serve(host="0.0.0.0", token=TOKEN)
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    assert client.get("/", headers={"Host": "192.168.0.9:8000", **bearer}).status_code == 200
    assert client.get("/", headers={"Host": "evil.example", **bearer}).status_code == 421


def test_without_the_token_there_is_only_its_form(serve: Any) -> None:
    client = serve(token=TOKEN)
    asked = client.get("/entity?label=France")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=%2Fentity%3Flabel%3DFrance")
    assert client.get("/api/rules").status_code == 401
    assert client.post("/api/reviews", json={}).status_code == 401
    assert client.get("/api/rules", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/static/app.css").status_code == 200
    assert "world" not in client.get("/login").text


def test_the_token_opens_by_form_and_by_header(serve: Any) -> None:
    client = serve(token=TOKEN)
    assert client.get("/api/rules", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    form = re.search(r'name="form_token" value="([^"]+)"', client.get("/login?next=/rules").text)
    assert form
    wrong = client.post("/login", data={"token": "guess", "next": "/rules", "form_token": form[1]})
    assert wrong.status_code == 401
    right = client.post("/login", data={"token": TOKEN, "next": "/rules", "form_token": form[1]})
    assert (right.status_code, right.headers["location"]) == (303, "/rules")
    assert "httponly" in right.headers["set-cookie"].lower()
    assert "samesite=strict" in right.headers["set-cookie"].lower()
    assert TOKEN not in right.headers["set-cookie"]
    assert client.get("/rules").status_code == 200


@pytest.mark.parametrize(
    "there", ["//evil.example", "http://evil.example", "/\\evil.example", "evil", "/a\tb", "/\n/e"]
)
def test_the_form_leads_to_no_other_site(serve: Any, there: str) -> None:
    client = serve(token=TOKEN)
    form = re.search(r'name="form_token" value="([^"]+)"', client.get("/login").text)
    assert form
    answered = client.post("/login", data={"token": TOKEN, "next": there, "form_token": form[1]})
    assert answered.headers["location"] == "/"


def test_others_need_a_token() -> None:
    with pytest.raises(OptionError, match="lets others in"):
        ServeOptions(host="0.0.0.0")
    with pytest.raises(OptionError, match="at least 8"):
        ServeOptions(token="short")
    assert ServeOptions(host="0.0.0.0", token=TOKEN).address == "http://127.0.0.1:8000/"


def test_large_requests_are_refused(serve: Any) -> None:
    client = serve(largest_body=1000)
    assert client.post("/api/batch", content=b"x" * 2000).status_code == 413
    assert client.post("/api/batch", content=iter([b"x" * 600, b"x" * 600])).status_code == 413
    assert client.get(f"/entity?label={'x' * 20_001}").status_code == 422
    assert client.get(f"/search?q={'x' * 501}").status_code == 422


def test_json_of_another_kind_is_no_request(client: TestClient) -> None:
    """What a form of another site could send without asking first."""
    body = b'{"subject": "France", "relation": "speaks", "object": "French", "verdict": "accepted"}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
        assert client.post("/api/reviews", content=body, headers={"Content-Type": kind}).status_code == 422


def test_the_head_of_a_page_can_be_asked_for(client: TestClient) -> None:
    whole, head = client.get("/entity?label=France"), client.head("/entity?label=France")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == str(len(whole.content))
