"""What an address says, and what it must not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl.base.errors import DataError, shown_argument
from anyburl.data.remote.addresses import Address, find_address


@pytest.mark.parametrize(
    ("text", "kind", "place", "table"),
    [
        ("sparql:http://h:3030/ds/query", "sparql", "http://h:3030/ds/query", None),
        ("https://h/sparql", "sparql", "https://h/sparql", None),
        ("postgresql://me@h:5432/db#kb.facts", "postgresql", "postgresql://me@h:5432/db", "kb.facts"),
        ("postgres://h/db", "postgresql", "postgresql://h/db", None),
        ("postgresql:///db?host=/run/pg#t", "postgresql", "postgresql:///db?host=/run/pg", "t"),
        ("postgresql://h/db?passfile=/p&sslkey=/k#t", "postgresql", "postgresql://h/db?passfile=/p&sslkey=/k", "t"),
        ("https://h/sparql?default-graph-uri=x", "sparql", "https://h/sparql?default-graph-uri=x", None),
        ("duckdb:/x/y.db#facts", "duckdb", "/x/y.db", "facts"),
        ("sqlite:////x/y.db", "sqlite", "/x/y.db", None),
    ],
)
def test_an_address_has_a_kind_a_place_and_a_table(text: str, kind: str, place: str, table: str | None) -> None:
    assert find_address(text) == Address(kind, place, table)


@pytest.mark.parametrize("text", ["sparql:http://h/q", "postgresql://h/d#t", "sqlite:/x/y.db#t", "duckdb:/x.db"])
def test_an_address_that_is_remembered_is_found_again(text: str) -> None:
    found = find_address(text)
    assert found is not None
    assert find_address(found.text) == found


def test_a_path_is_remembered_wherever_one_is_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = find_address("sqlite:graph.db#facts")
    assert found is not None
    assert found.text == f"sqlite:{tmp_path}/graph.db#facts"


@pytest.mark.parametrize("data", ["geo", "folder/train.txt", "C:/data", Path("sqlite:x"), "sparql", "postgresql"])
def test_names_and_paths_are_no_addresses(data: str | Path) -> None:
    assert find_address(data) is None


REFUSED = [
    "postgresql://me:hunter2@h/db#t",
    "postgresql://me:hun/ter2@h/db#t",
    "postgresql://me:12/hunter2@h/db#t",
    "postgresql://me:1#hunter2@h/db",
    "postgresql://me%3Ahunter2@h/db",
    "postgresql://a,b/db?password=hunter2",
    "postgresql://h/db?sslpassword=hunter2#t",
    "postgresql://h/db?oauth_client_secret=hunter2#t",
    "postgresql:host=h password=hunter2",
    "sparql:http://me:hunter2@h/sparql",
    "sparql:http://me:80/hunter2@h/sparql",
    "SPARQL:HTTP://ME:hunter2@h/sparql",
    "https://hunter2@h/sparql",
    "sparql:http://h/sparql?pwd=hunter2",
    "sparql:http://h/sparql?p%77d=hunter2",
    "sparql:http://h/sparql?a=b;PW=hunter2",
    "https://h/sparql?access_token=hunter2",
    "https://h/sparql#access_token=hunter2",
    "https://h/sparql?apikey=hunter2",
    "https://h/sparql?auth=hunter2",
    "https://h/sparql?X-Amz-Signature=hunter2",
    "https://h/sparql?sig=hunter2",
    "https://h/sparql?default-graph-uri=http%3A%2F%2Fme%3Ahunter2%40h%2F",
    "sqlite:x.db?password=hunter2#t",
    "duckdb://me:hunter2@h/db#t",
    "mysql://me:hunter2@h/db",
    "jdbc:mysql://h/db?user=me&password=hunter2",
    "ftp://me:hunter2@h/graph.nt",
]


@pytest.mark.parametrize("text", REFUSED)
def test_a_secret_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(DataError, match="must not contain a password") as caught:
        find_address(text)
    assert "hunter" not in str(caught.value)
    assert "ter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sparql:http://h/q?unit=hunter2&format=json", "sparql:http://h/q?unit=***&format=json"),
        ("sparql:http://h/q?hunter2", "sparql:http://h/q?***"),
        ("https://h/q?a=hunter2#hunter2", "sparql:https://h/q?a=***"),
        ("postgresql://me@h/db?sslmode=require&odd=hunter2#t", "postgresql://me@h/db?sslmode=require&odd=***#t"),
    ],
)
def test_what_may_be_a_secret_is_used_but_neither_kept_nor_shown(text: str, shown: str) -> None:
    found = find_address(text)
    assert found is not None
    assert "hunter2" in found.location
    assert found.text == shown
    assert found.text.removeprefix("sparql:").startswith(found.shown)
    assert found.hide(f"cannot open {found.location}, said 'hunter2'").count("hunter2") == 0
    with pytest.raises(DataError, match="kept without its parameters, which may be secret: pass the whole address"):
        find_address(found.text)


@pytest.mark.parametrize(
    "text",
    ["http://h:port/hunter2", "http://h:99999/?x=hunter2", "postgresql://me:hunter2", "postgresql://h:1,i:hunter2/db"],
)
def test_an_invalid_host_is_not_repeated(text: str) -> None:
    with pytest.raises(DataError, match="invalid address: expected a scheme, a host and a path") as caught:
        find_address(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("--data=sparql:http://h/q?x=hunter2", "--data=sparql:http://h/q?x=***"),
        ("postgresql:host=h password=hunter2", "postgresql:host=h password=***"),
        (
            "SELECT ?s { SERVICE <http://me:hunter2@h/q> { ?s ?p ?o } }",
            "SELECT ?s { SERVICE <http://***@h/q> { ?s ?p ?o } }",
        ),
        ("SELECT ?s { ?s ?p <http://h/?id=5> }", "SELECT ?s { ?s ?p <http://h/?id=5> }"),
        ("?", "?"),
        ("--min-score", "--min-score"),
    ],
)
def test_arguments_are_logged_without_secrets(argument: str, shown: str) -> None:
    assert shown_argument(argument) == shown


@pytest.mark.parametrize("text", [text for text in REFUSED if " " not in text])
def test_no_error_repeats_a_secret_wherever_the_address_comes_from(text: str) -> None:
    said = str(DataError(f"cannot open {text}, for some reason"))
    assert "***" in said
    assert "hunter" not in said
    assert "ter2" not in said


@pytest.mark.parametrize(
    "text", ["sparql:ftp://h/q", "sparql:", "http:///q", "postgresql:db", "sqlite:", "duckdb:#t", "http://[::1/q"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        find_address(text)


def test_a_file_on_the_web_is_no_endpoint() -> None:
    with pytest.raises(DataError, match="looks like a file"):
        find_address("https://h/dump.ttl.gz")
