"""What an address says, and what it must not say."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl.errors import DataError
from anyburl.triples.remote.addresses import Address, find_address


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


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://me:hunter2@h/db#t",
        "postgresql://h/db?password=hunter2",
        "postgresql://h/db?sslpassword=hunter2#t",
        "sparql:http://me:hunter2@h/sparql",
        "https://hunter2@h/sparql",
        "https://h/sparql?access_token=hunter2",
        "https://h/sparql?apikey=hunter2",
    ],
)
def test_a_secret_in_an_address_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(DataError, match="must not contain a password") as caught:
        find_address(text)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["sparql:ftp://h/q", "sparql:", "http:///q", "postgresql:db", "sqlite:", "duckdb:#t", "http://[::1/q"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(DataError):
        find_address(text)


def test_a_file_on_the_web_is_no_endpoint() -> None:
    with pytest.raises(DataError, match="looks like a file"):
        find_address("https://h/dump.ttl.gz")
