"""Databases and an endpoint on this machine."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from postgresql import PostgresServer, postgres_server
from sparql_server import SparqlServer, sparql_server

Row = Sequence[Any]
Fill = Callable[[str, Sequence[str], Sequence[Row]], str]
"""Fills a table, with these columns and rows, and returns the address of the database."""

SECRETS = ("ANYBURL_SPARQL_USER", "ANYBURL_SPARQL_PASSWORD", "ANYBURL_SPARQL_TOKEN", "PGPASSWORD", "PGUSER")


@pytest.fixture(autouse=True)
def no_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SECRETS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("anyburl.data.remote.addresses._given", {})
    monkeypatch.setattr("anyburl.data.remote.addresses._asking", set())


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    pytest.importorskip("psycopg", reason="psycopg is not installed: pip install 'anyburl[sql]'")
    with postgres_server() as server:
        yield server


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[SparqlServer]:
    """Return an endpoint; nobody pauses before another attempt."""
    monkeypatch.setattr("anyburl.data.remote.http.FIRST_PAUSE", 0.0)
    with sparql_server() as server:
        yield server


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def fill(request: pytest.FixtureRequest, tmp_path: Path) -> Fill:
    """Return what fills a table of each kind of database."""
    if request.param == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        return lambda table, columns, rows: _fill_postgresql(server, table, columns, rows)
    if request.param == "duckdb":
        duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install 'anyburl[sql]'")
        return lambda table, columns, rows: _fill(duckdb.connect, tmp_path / "graph.duckdb", table, columns, rows)
    return lambda table, columns, rows: _fill(sqlite3.connect, tmp_path / "graph.sqlite", table, columns, rows)


def _fill(connect: Any, path: Path, table: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    with closing(connect(str(path))) as connection:
        _insert(connection, table, columns, rows, "?")
    return f"{path.suffix[1:]}:{path}"


def _fill_postgresql(server: PostgresServer, table: str, columns: Sequence[str], rows: Sequence[Row]) -> str:
    import psycopg

    with psycopg.connect(server.local) as connection:
        connection.execute(f'DROP TABLE IF EXISTS "{table}"')
        _insert(connection, table, columns, rows, "%s")
    return server.local


def _insert(connection: Any, table: str, columns: Sequence[str], rows: Sequence[Row], mark: str) -> None:
    described = ", ".join(f'"{name}" text' for name in columns)
    connection.execute(f'CREATE TABLE "{table}" ({described})')
    marks = ", ".join([mark] * len(columns))
    if rows:
        cursor = connection.cursor()
        cursor.executemany(f'INSERT INTO "{table}" VALUES ({marks})', [list(row) for row in rows])
    connection.commit()
