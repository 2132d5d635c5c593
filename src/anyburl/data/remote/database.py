"""Reads triples from SQLite, DuckDB or PostgreSQL: a table, or a query with three columns; opened read-only."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import polars as pl

from anyburl.base.errors import DataError, MissingExtraError, UnauthorizedError, redacted_address
from anyburl.data.formats.frames import COLUMNS
from anyburl.data.options import IGNORED, PARTS, RECOGNISED, TIMED, ReadOptions, time_positions, usual_times
from anyburl.data.remote.addresses import DUCKDB, FROM_ENVIRONMENT, POSTGRESQL, SQLITE, Address, postgresql_password

LISTED = "SELECT table_name FROM information_schema.tables WHERE table_schema IN ({}) ORDER BY table_name"
LIST_TABLES = {
    SQLITE: "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name",
    DUCKDB: LISTED.format("current_schema()"),
    POSTGRESQL: LISTED.format("SELECT unnest(current_schemas(false))"),
}


def _connect(kind: str, location: str, timeout: float, *, writing: bool) -> Any:
    """Open a database; return a connection of Python's database interface."""
    if kind == POSTGRESQL:
        return _connect_postgresql(location, timeout, writing=writing)
    if kind == SQLITE:
        mode = "rwc" if writing else "ro"
        return sqlite3.connect(f"file:{quote(location)}?mode={mode}", uri=True, timeout=timeout, isolation_level=None)
    try:
        import duckdb
    except ImportError as error:
        raise MissingExtraError("reading DuckDB", "sql") from error
    return duckdb.connect(location, read_only=not writing)


def _connect_postgresql(location: str, timeout: float, *, writing: bool) -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError("reading PostgreSQL", "sql") from error
    given = {"connect_timeout": max(1, round(timeout)), "application_name": "anyburl", "client_encoding": "utf-8"}
    try:
        connection = psycopg.connect(location, **postgresql_password(location), **given)
    except psycopg.OperationalError as error:
        if error.pgconn is None or not error.pgconn.needs_password:
            raise
        raise UnauthorizedError(
            f"{redacted_address(location)} asks for a password: {FROM_ENVIRONMENT[POSTGRESQL]}"
        ) from error
    if not writing:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.read_only = True
    return connection


@contextmanager
def connected(address: Address, *, timeout: float, writing: bool = False, new: Path | None = None) -> Iterator[Any]:
    """Open a database, or create it in the file `new`; its errors are raised as `DataError`."""
    _check_file(address, writing=writing or new is not None)
    location, writing = (address.location, writing) if new is None else (str(new), True)
    try:
        with closing(_connect(address.kind, location, timeout, writing=writing)) as connection:
            yield connection
    except Exception as error:
        if not is_of_driver(error):
            raise
        raise DataError(f"{address.text}: {address.hide(one_line(error))}") from error


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
    """Whether an error comes from a database driver."""
    return type(error).__module__.split(".")[0] in ("sqlite3", "duckdb", "_duckdb", "psycopg")


def one_line(error: Exception) -> str:
    """Return the message of a database on one line."""
    return " ".join(str(error).split())[:500] or type(error).__name__


def table_name(name: str) -> str:
    """Return the name of a table, perhaps with its schema, as SQL has it."""
    return ".".join(map(column_name, name.split(".")))


def column_name(name: str) -> str:
    """Return the name of a column as SQL has it."""
    return '"' + name.replace('"', '""') + '"'


ROWS = 1 << 16  # at a time
N_LISTED = 8  # tables


def read_database(address: Address, options: ReadOptions) -> Iterator[pl.DataFrame]:
    """Yield the rows of a table or query as labels, in one read-only transaction.

    Other values are cast to text by the database. A missing or empty one raises an error.
    """
    n_read = 0
    with connected(address, timeout=options.timeout) as connection:
        query, columns = _chosen_columns(address, options, connection, _query(address, options, connection))
        # A cursor of PostgreSQL's server does not hold all rows at once, and takes half as long as COPY.
        named = {"name": "anyburl"} if address.kind == POSTGRESQL else {}
        with closing(connection.cursor(**named)) as cursor:
            cursor.execute(_as_text(query, columns))
            while rows := cursor.fetchmany(ROWS):
                frame = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
                _refuse_missing(address, frame, n_read)
                n_read += frame.height
                yield frame
    if not n_read:
        raise DataError(f"{address.text}: no rows")


def read_whole_table(address: Address, timeout: float) -> pl.DataFrame:
    """Return all columns of the table that an address names, as text."""
    with connected(address, timeout=timeout) as connection:
        query = _whole_table(address, connection)
        names = _column_names(address, connection, query)
        rows = connection.execute(_as_text(query, names)).fetchall()
    return pl.DataFrame(rows, schema=dict.fromkeys(names, pl.String), orient="row")


def _as_text(query: str, columns: Sequence[str]) -> str:
    """Return a query for the same columns as text; their names need not be distinct."""
    named = ", ".join(map(column_name, columns))
    cast = ", ".join(f"CAST({column_name(name)} AS TEXT)" for name in columns)
    return f"WITH asked({named}) AS (\n{query}\n) SELECT {cast} FROM asked"


def _query(address: Address, options: ReadOptions, connection: Any) -> str:
    """Return the query: the given one, or all of a table."""
    if options.query is not None and address.table is not None:
        raise DataError(f"{address.text} names a table, and --query selects something else: use one of them")
    if options.query is not None:
        return options.query.strip().rstrip(";")
    return _whole_table(address, connection, ", or use --query")


def _whole_table(address: Address, connection: Any, otherwise: str = "") -> str:
    """Return the query for all of the table that an address names."""
    if address.table is not None:
        return f"SELECT * FROM {table_name(address.table)}"
    tables = [name for (name,) in connection.execute(LIST_TABLES[address.kind]).fetchall()]
    listed = ", ".join(tables[:N_LISTED]) + (", ..." if len(tables) > N_LISTED else "")
    there = f"there are {listed}" if tables else "there are none"
    raise DataError(f"{address.text}: no table named; add #TABLE to the address ({there}){otherwise}")


def _chosen_columns(address: Address, options: ReadOptions, connection: Any, query: str) -> tuple[str, tuple[str, ...]]:
    """Return a query for subject, relation and object, and for times if they are read; and the names of its columns."""
    names = _column_names(address, connection, query)
    times = [] if options.time is None else [names[i] for i in _time_columns(names, options.time, address.text)]
    others = [name for name in names if name not in times]
    if options.columns is not None:
        missing = [name for name in options.columns if name not in names]
        if missing:
            raise DataError(f"{address.text}: no column {missing[0]!r}, only {', '.join(names)}")
        others = [*options.columns]
    elif len(others) != len(COLUMNS):
        more = f"; {TIMED}" if len(names) in (4, 5) and not times else ""
        raise DataError(
            f"{address.text}: expected three columns (subject, relation, object), got {len(names)}: "
            f"{', '.join(names)}; choose three with --columns or --query{more}"
        )
    elif options.time is None:
        return query, COLUMNS
    chosen = others + (times if options.has_times else [])
    return f"SELECT {', '.join(map(column_name, chosen))} FROM (\n{query}\n) AS asked", PARTS[: len(chosen)]


def _column_names(address: Address, connection: Any, query: str) -> list[str]:
    try:
        cursor = connection.execute(f"SELECT * FROM (\n{query}\n) AS asked LIMIT 0")
    except Exception as error:
        if not is_of_driver(error):
            raise
        raise DataError(f"{address.text}: the database rejected {query!r}: {one_line(error)}") from error
    return [column[0] for column in cursor.description]


def _time_columns(names: Sequence[str], time: tuple[str, ...], where: str) -> list[int]:
    """Return the positions of the columns of times: those named, those of usual names, or those after the third."""
    if time[0] in (RECOGNISED, IGNORED) and 3 < len(names) <= len(PARTS) and not usual_times(names):
        return [*range(len(COLUMNS), len(names))]
    return time_positions(names, time, where)


def _refuse_missing(address: Address, frame: pl.DataFrame, n_before: int) -> None:
    """Raise an error for a row without a label."""
    for name in COLUMNS:
        missing = frame[name].is_null() | (frame[name] == "")
        if missing.any():
            row = missing.arg_max() or 0
            value = "NULL" if frame[name][row] is None else "an empty text"
            raise DataError(
                f"{address.text}: row {n_before + row + 1:,} has {value} for its {name}: exclude such rows with --query"
            )
