"""Who is let in, and what browsers are told."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urljoin, urlsplit

import pytest
from fastapi.testclient import TestClient
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.websockets import WebSocketDisconnect

from anyburl.base.errors import OptionError
from anyburl.tools.options import ServeOptions
from anyburl.web.guard import host_name, inside, origin_host

TOKEN = "correct horse battery"
OURS = "127.0.0.1:8000"
ADDRESS_SIGNS = st.text(st.sampled_from(list("/\\?#@:[]%. \t\n\x00;,&=az09-_ü")), max_size=12)
"""Text of what addresses are made of, and of what they must not contain."""


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


@pytest.mark.parametrize("path", ["/api/rules?top=1", "/rules", "/run", "/login/", "/loginx", "/static"])
@pytest.mark.parametrize(
    "sign", ["/login?", "/static/?", "/login#", "@127.0.0.1", "\\login", ":80:80", ":x", ":", " ", ",127.0.0.1", "%2f"]
)
def test_no_host_opens_a_path_that_needs_the_token(serve: Any, sign: str, path: str) -> None:
    client = serve(token=TOKEN)
    assert client.get(path, headers={"Host": f"127.0.0.1{sign}"}).status_code == 421
    assert client.get(path, headers={"Host": f"127.0.0.1:8000{sign}"}).status_code == 421
    assert client.get(path).status_code in (401, 303)


def test_two_hosts_are_none(client: TestClient) -> None:
    assert client.get("/", headers=[("Host", OURS), ("Host", "evil.example")]).status_code == 421


@given(st.one_of(ADDRESS_SIGNS, ADDRESS_SIGNS.map(lambda text: OURS + text)))
@example("127.0.0.1/login?")
@example("[::1]:8000")
def test_a_host_name_is_what_an_address_with_it_leads_to(host: str) -> None:
    name = host_name(host)
    if name is not None:
        parts = urlsplit(f"http://{host}/path?query")
        assert (parts.hostname, parts.path, parts.query, parts.username) == (name, "/path", "query", None)


@pytest.mark.parametrize("path", ["/static/../api/rules", "/login/../rules", "/static/..//rules", "/login/rules"])
def test_paths_are_taken_as_they_are(serve: Any, path: str) -> None:
    """A path that begins like an open one leads to nothing else; clients would tidy it up, so it is given as such."""
    client, codes = serve(token=TOKEN), []

    async def send(message: Any) -> None:
        codes.append(message.get("status"))

    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"host", OURS.encode())]}
    asyncio.run(client.app(scope, None, send))
    assert codes[0] in (303, 404)


def test_a_slash_too_many_is_another_page(client: TestClient) -> None:
    """Not a redirection, whose address would be made from the Host header."""
    assert client.get("/rules/").status_code == 404


def test_a_path_is_kept_for_after_the_form(serve: Any) -> None:
    """What needs quoting in an address is quoted, and bytes that are no text break nothing."""
    client = serve(token=TOKEN)
    assert client.get("/a%3Fb?c=%26").headers["location"] == "/login?next=%2Fa%253Fb%3Fc%3D%2526"
    assert client.get("/rules?\xff").status_code == 303


def test_sockets_are_closed(serve: Any) -> None:
    client = serve(token=TOKEN)
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/rules"):
        pass


@pytest.mark.parametrize(
    "origin",
    [
        "http://[",
        "http://]",
        "http://[::1",
        "[",
        "null",
        "",
        "//127.0.0.1:8000",
        "127.0.0.1:8000",
        "ftp://127.0.0.1:8000",
        "http://127.0.0.1:8000/",
        "http://127.0.0.1:8000@evil.example",
        "http://evil.example#127.0.0.1:8000",
        "http://evil.example",
        "http://127.0.0.1:9000",
    ],
)
@pytest.mark.parametrize("path", ["/api/reviews", "/review", "/login", "/nothing"])
def test_writes_from_elsewhere_are_refused(client: TestClient, path: str, origin: str) -> None:
    assert client.post(path, json={}, headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize("origin", ["http://127.0.0.1:8000", "HTTP://127.0.0.1:8000", "https://127.0.0.1:8000"])
def test_writes_from_our_pages_are_read(client: TestClient, origin: str) -> None:
    assert client.post("/api/reviews", json={}, headers={"Origin": origin}).status_code == 422


@given(ADDRESS_SIGNS, ADDRESS_SIGNS)
@example("http", "[")
def test_an_origin_has_a_host_or_none(scheme: str, rest: str) -> None:
    for origin in (scheme + rest, f"{scheme}://{rest}", f"http://{rest}"):
        found = origin_host(origin)
        assert found is None or (urlsplit(origin).netloc == found and host_name(found))


@given(st.one_of(ADDRESS_SIGNS, ADDRESS_SIGNS.map(lambda text: f"/{text}")))
@example("//[")
@example("http://[")
@example("/\t/evil")
def test_an_address_inside_leads_to_this_site(address: str) -> None:
    there = inside(address)
    assert there in (address, "/")
    for read_by_browsers in (there, there.replace("\\", "/")):
        assert urlsplit(urljoin("http://site/page", read_by_browsers)).netloc == "site"


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
    "there", ["//evil.example", "http://evil.example", "/\\evil.example", "evil", "/a\tb", "/\n/e", "//[", "http://["]
)
def test_the_form_leads_to_no_other_site(serve: Any, there: str) -> None:
    client = serve(token=TOKEN)
    asked = client.get("/login", params={"next": there})
    assert 'name="next" value="/"' in asked.text
    form = re.search(r'name="form_token" value="([^"]+)"', asked.text)
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
