"""Reads triples from a SQL database: a table, or a query with three columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import polars as pl

from anyburl.errors import DataError
from anyburl.triples.frames import COLUMNS
from anyburl.triples.read_options import ReadOptions
from anyburl.triples.remote.addresses import Address
from anyburl.triples.remote.drivers import Driver, column_name, connected, is_of_driver, table_name, table_names, told

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
