"""Triples in SQLite, DuckDB and PostgreSQL."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path
from threading import Timer

import pytest

from anyburl.base.errors import DataError
from anyburl.data.dataset import load_dataset
from anyburl.data.options import ReadOptions
from anyburl.data.remote import database
from anyburl.data.remote.addresses import Address, find_address, keep_credentials
from data.remote.conftest import Fill
from postgresql import PostgresServer

COLUMNS = ("s", "p", "o")
FACTS = [("ed", "speaks", "dutch"), ("lisa", "speaks", "dutch"), ("ed", "born in", "NL")]
AWKWARD = [
    ("a b", 'with "quotes"', "it's"),
    ("comma, tab\t", "new\nline", "\\N"),
    ("(x)", "é ü 日本", "_:b0"),
    ("http://example.org/a#b", "100%", '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ("x" * 5000, "{}", "NULL"),
]


def read(address: str, **options: object) -> list[tuple[str, str, str]]:
    return sorted(load_dataset(address, ReadOptions(**options)).train.to_polars().rows())  # type: ignore[arg-type]


def refusal(address: str, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read(address, **options)
    return str(caught.value)


def test_a_table_of_three_columns_is_a_graph(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    data = load_dataset(f"{address}#facts")
    assert sorted(data.train.to_polars().rows()) == sorted(FACTS)
    assert data.name == "facts"
    assert data.source == f"{address}#facts"
    assert len(data.valid) == len(data.test) == 0


def test_awkward_labels_come_as_they_are(fill: Fill) -> None:
    assert read(f"{fill('facts', COLUMNS, AWKWARD)}#facts") == sorted(AWKWARD)


def test_many_rows_come_in_batches(fill: Fill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "ROWS", 7)
    rows = [(f"s{i}", f"p{i % 3}", f"o{i % 11}") for i in range(100)]
    assert read(f"{fill('facts', COLUMNS, rows)}#facts") == sorted(rows)


def test_a_query_gives_the_columns_in_its_order(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    query = "SELECT o, p, s FROM facts WHERE p = 'speaks';"
    assert read(address, query=query) == [("dutch", "speaks", "ed"), ("dutch", "speaks", "lisa")]


def test_a_query_may_name_columns_alike_and_end_in_a_comment(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS[:1])
    assert read(address, query="WITH x AS (SELECT s FROM facts) SELECT s, s, s FROM x -- all") == [("ed", "ed", "ed")]


def test_numbers_become_text(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS[:1])
    assert read(address, query="SELECT s, p, 17 FROM facts") == [("ed", "speaks", "17")]


def test_columns_are_chosen_by_name(fill: Fill) -> None:
    address = fill("facts", ("id", "tail", "head", "rel"), [("1", "dutch", "ed", "speaks")])
    assert read(f"{address}#facts", columns=("head", "rel", "tail")) == [("ed", "speaks", "dutch")]
    assert "no column 'object', only id, tail, head, rel" in refusal(
        f"{address}#facts", columns=("head", "rel", "object")
    )


def test_a_fourth_column_is_refused(fill: Fill) -> None:
    address = fill("facts", (*COLUMNS, "weight"), [("a", "b", "c", "0.5")])
    assert "expected three columns (subject, relation, object), got 4: s, p, o, weight" in refusal(f"{address}#facts")


@pytest.mark.parametrize(("value", "told"), [(None, "NULL"), ("", "an empty text")])
def test_a_missing_label_is_refused_with_its_row(fill: Fill, value: str | None, told: str) -> None:
    address = fill("facts", COLUMNS, [*FACTS, ("a", "b", value)])
    assert f"row 4 has {told} for its object" in refusal(f"{address}#facts")


def test_an_address_without_a_table_lists_the_tables(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    assert "no table named; add #TABLE to the address (there are facts)" in refusal(address)


def test_an_unknown_table_is_refused(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    assert "the database rejected 'SELECT * FROM \"fcts\"'" in refusal(f"{address}#fcts")


def test_a_query_that_writes_is_refused(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    assert "the database rejected" in refusal(address, query="DELETE FROM facts")
    assert read(f"{address}#facts") == sorted(FACTS)


def test_a_table_and_a_query_contradict_each_other(fill: Fill) -> None:
    address = fill("facts", COLUMNS, FACTS)
    assert "use one of them" in refusal(f"{address}#facts", query="SELECT s, p, o FROM facts")


def test_an_empty_table_is_refused(fill: Fill) -> None:
    assert "no rows" in refusal(f"{fill('facts', COLUMNS, [])}#facts")


def test_a_name_with_quotes_is_a_name(fill: Fill) -> None:
    assert "the database rejected" in refusal(f'{fill("facts", COLUMNS, FACTS)}#facts" UNION SELECT')


@pytest.mark.parametrize("kind", ["sqlite", "duckdb"])
def test_a_file_that_is_no_database_is_refused(tmp_path: Path, kind: str) -> None:
    pytest.importorskip("duckdb")
    (tmp_path / "text").write_text("this is text, and long enough to have a header " * 99)
    assert str(tmp_path / "text") in refusal(f"{kind}:{tmp_path / 'text'}#facts")
    assert refusal(f"{kind}:{tmp_path / 'missing'}#facts").endswith("missing#facts: no such file")
    assert not (tmp_path / "missing").exists()
    assert "no such file" in refusal(f"{kind}:{tmp_path}#facts")


def test_a_server_that_is_down_is_told() -> None:
    pytest.importorskip("psycopg")
    assert "Connection refused" in refusal("postgresql://127.0.0.1:9/graphs#facts")


def test_a_password_comes_from_the_environment(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    postgres.psql(
        "SET client_min_messages = warning; DROP TABLE IF EXISTS secrets; DROP ROLE IF EXISTS reader;"
        "CREATE ROLE reader LOGIN PASSWORD 'hidden treasure'; CREATE TABLE secrets (s text, p text, o text);"
        "INSERT INTO secrets VALUES ('a', 'b', 'c'); GRANT SELECT ON secrets TO reader;"
    )
    address = f"postgresql://reader@127.0.0.1:{postgres.port}/postgres#secrets"
    assert "asks for a password: set PGPASSWORD" in refusal(address)
    monkeypatch.setenv("PGPASSWORD", "wrong treasure")
    told = refusal(address)
    assert "password authentication failed" in told
    assert "treasure" not in told
    monkeypatch.setenv("PGPASSWORD", "hidden treasure")
    assert read(address) == [("a", "b", "c")]
    monkeypatch.delenv("PGPASSWORD")
    keep_credentials(address, "", "hidden treasure")  # as someone who was asked has given it
    assert read(address) == [("a", "b", "c")]


def test_a_connection_that_breaks_half_way_is_no_graph(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "ROWS", 10)
    postgres.psql(
        "SET client_min_messages = warning; DROP TABLE IF EXISTS large;"
        "CREATE TABLE large AS SELECT 's' || i AS s, 'p' AS p, 'o' AS o FROM generate_series(1, 1000) i;"
    )
    batches = database.read_database(_address(f"{postgres.local}#large"), ReadOptions())
    next(batches)
    postgres.psql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'anyburl'")
    with pytest.raises(DataError, match=r"terminating connection|server closed"):
        list(batches)


def test_a_server_that_does_not_answer_is_not_waited_for() -> None:
    pytest.importorskip("psycopg")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        assert "timeout" in refusal(f"postgresql://127.0.0.1:{port}/graphs#facts", timeout=2.0)


def test_an_interrupted_query_ends_at_once_and_leaves_nothing(postgres: PostgresServer) -> None:
    interrupt = Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    interrupt.start()
    with pytest.raises(KeyboardInterrupt):
        read(postgres.local, query="SELECT 'a', 'b', 'c' FROM (SELECT pg_sleep(60)) AS slow")
    interrupt.join()
    running = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'anyburl' AND state = 'active'"
    assert postgres.psql(running).strip() == "0"


def _address(text: str) -> Address:
    found = find_address(text)
    assert found is not None
    return found
