"""The three databases, and how they differ. They are opened read-only by default."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from anyburl.errors import DataError, MissingExtraError, UnauthorizedError
from anyburl.redacting import redacted_address
from anyburl.triples.remote.addresses import DUCKDB, FROM_ENVIRONMENT, POSTGRESQL, SQLITE, Address
from anyburl.triples.remote.credentials import postgresql_password

LISTED = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ({}) ORDER BY table_name"


class Driver(Protocol):
    """A kind of database: how it is opened and asked."""

    tables: str
    """The statement that lists the tables."""

    def connect(self, place: str, *, timeout: float, writing: bool) -> Any:
        """Return a connection, as Python's database interface has it."""

    def cursor(self, connection: Any) -> Any:
        """Return a cursor that does not hold all rows at once."""


class SqliteDriver:
    tables = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"

    def connect(self, place: str, *, timeout: float, writing: bool) -> Any:
        mode = "rwc" if writing else "ro"
        return sqlite3.connect(f"file:{quote(place)}?mode={mode}", uri=True, timeout=timeout, isolation_level=None)

    def cursor(self, connection: Any) -> Any:
        return connection.cursor()


class DuckdbDriver:
    tables = LISTED.format("current_schema()")

    def connect(self, place: str, *, timeout: float, writing: bool) -> Any:
        try:
            import duckdb
        except ImportError as error:
            raise MissingExtraError("reading DuckDB", "sql") from error
        return duckdb.connect(place, read_only=not writing)

    def cursor(self, connection: Any) -> Any:
        return connection.cursor()


class PostgresqlDriver:
    tables = LISTED.format("SELECT unnest(current_schemas(false))")

    def connect(self, place: str, *, timeout: float, writing: bool) -> Any:
        try:
            import psycopg
        except ImportError as error:
            raise MissingExtraError("reading PostgreSQL", "sql") from error
        given = {"connect_timeout": max(1, round(timeout)), "application_name": "anyburl", "client_encoding": "utf-8"}
        try:
            connection = psycopg.connect(place, **postgresql_password(place), **given)
        except psycopg.OperationalError as error:
            if error.pgconn is None or not error.pgconn.needs_password:
                raise
            raise UnauthorizedError(
                f"{redacted_address(place)} asks for a password: {FROM_ENVIRONMENT[POSTGRESQL]}"
            ) from error
        if not writing:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
        return connection

    def cursor(self, connection: Any) -> Any:
        # Fetching from a cursor of the server takes half as long as COPY, which hands over rows one by one.
        return connection.cursor(name="anyburl")


DRIVERS: dict[str, Driver] = {SQLITE: SqliteDriver(), DUCKDB: DuckdbDriver(), POSTGRESQL: PostgresqlDriver()}


@contextmanager
def connected(
    address: Address, *, timeout: float, writing: bool = False, new: Path | None = None
) -> Iterator[tuple[Driver, Any]]:
    """Open a database; whatever it refuses, now or later, is reported in one sentence.

    `new` is the file to create it in, if that is not where the address says.
    """
    driver = DRIVERS[address.kind]
    _check_file(address, writing=writing or new is not None)
    place, writing = (address.place, writing) if new is None else (str(new), True)
    try:
        with closing(driver.connect(place, timeout=timeout, writing=writing)) as connection:
            yield driver, connection
    except Exception as error:
        if not is_of_driver(error):
            raise
        raise DataError(f"{address.text}: {address.hide(told(error))}") from error


def _check_file(address: Address, *, writing: bool) -> None:
    """Refuse a missing database file; writing creates one."""
    file = address.file
    if file is None or file.is_file():
        return
    if file.exists():
        raise DataError(f"{address.text}: expected a file, got a folder or a device")
    if not writing:
        raise DataError(f"{address.text}: no such file")
    if not file.parent.is_dir():
        raise DataError(f"{address.text}: the folder {file.parent} does not exist")


def is_of_driver(error: Exception) -> bool:
    """Whether a database has raised an error."""
    return type(error).__module__.split(".")[0] in ("sqlite3", "duckdb", "_duckdb", "psycopg")


def told(error: Exception) -> str:
    """Return what a database says, on one line."""
    said = " ".join(str(error).split())[:500]
    return said or type(error).__name__


def table_name(name: str) -> str:
    """Return the name of a table, perhaps with its schema, as SQL has it."""
    return ".".join(map(column_name, name.split(".")))


def column_name(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


def table_names(driver: Driver, connection: Any) -> list[str]:
    """Return the tables that are there."""
    return [name for (name,) in connection.execute(driver.tables).fetchall()]
