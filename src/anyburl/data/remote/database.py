"""Reads triples from a SQL database: a table, or a query with three columns.

The three databases, and how they differ. They are opened read-only by default.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

import polars as pl

from anyburl.base.errors import DataError, MissingExtraError, UnauthorizedError
from anyburl.base.redacting import redacted_address
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import ReadOptions
from anyburl.data.remote.addresses import DUCKDB, FROM_ENVIRONMENT, POSTGRESQL, SQLITE, Address, postgresql_password

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


ROWS = 1 << 16  # at a time
N_LISTED = 8  # tables


def read_database(address: Address, options: ReadOptions) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table or query as labels, in one read-only transaction.

    Values that are no text become what the database writes for them. A missing or empty one is refused.
    """
    n_read = 0
    with connected(address, timeout=options.timeout) as (driver, connection):
        asked = _asked(address, options, driver, connection)
        statement = _statement(_columns(address, options, connection, asked))
        with closing(driver.cursor(connection)) as cursor:
            cursor.execute(statement)
            while rows := cursor.fetchmany(ROWS):
                frame = pl.DataFrame(rows, schema=dict.fromkeys(COLUMNS, pl.String), orient="row")
                _refuse_missing(address, frame, n_read)
                n_read += frame.height
                yield frame
    if not n_read:
        raise DataError(f"{address.text}: no rows")


def _statement(asked: str) -> str:
    """Return a query for the same three columns as text; they may have any names, also the same."""
    named, cast = ", ".join(COLUMNS), ", ".join(f"CAST({name} AS TEXT)" for name in COLUMNS)
    return f"WITH asked({named}) AS (\n{asked}\n) SELECT {cast} FROM asked"


def _asked(address: Address, options: ReadOptions, driver: Driver, connection: Any) -> str:
    """Return the query: the given one, or all of a table."""
    if options.query is not None and address.table is not None:
        raise DataError(f"{address.text} names a table, and --query selects something else: use one of them")
    if options.query is not None:
        return options.query.strip().rstrip(";")
    if address.table is not None:
        return f"SELECT * FROM {table_name(address.table)}"
    found = table_names(driver, connection)
    listed = ", ".join(found[:N_LISTED]) + (", ..." if len(found) > N_LISTED else "")
    there = f"there are {listed}" if found else "there are none"
    raise DataError(f"{address.text}: no table named; add #TABLE to the address ({there}), or use --query")


def _columns(address: Address, options: ReadOptions, connection: Any, asked: str) -> str:
    """Return a query for the three columns that hold subject, relation and object."""
    try:
        cursor = connection.execute(f"SELECT * FROM (\n{asked}\n) AS asked LIMIT 0")
    except Exception as error:
        if not is_of_driver(error):
            raise
        raise DataError(f"{address.text}: the database rejected {asked!r}: {told(error)}") from error
    found = [column[0] for column in cursor.description]
    if options.columns is not None:
        missing = [name for name in options.columns if name not in found]
        if missing:
            raise DataError(f"{address.text}: no column {missing[0]!r}, only {', '.join(found)}")
        return f"SELECT {', '.join(map(column_name, options.columns))} FROM (\n{asked}\n) AS asked"
    if len(found) != len(COLUMNS):
        raise DataError(
            f"{address.text}: expected three columns (subject, relation, object), got {len(found)}: "
            f"{', '.join(found)}; choose three with --columns or --query"
        )
    return asked


def _refuse_missing(address: Address, frame: pl.DataFrame, n_before: int) -> None:
    """Refuse rows without a label, and say which."""
    for name in COLUMNS:
        missing = frame[name].is_null() | (frame[name] == "")
        if missing.any():
            row = missing.arg_max() or 0
            value = "NULL" if frame[name][row] is None else "an empty text"
            raise DataError(
                f"{address.text}: row {n_before + row + 1:,} has {value} for its {name}: exclude such rows with --query"
            )
