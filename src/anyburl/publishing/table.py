"""Writes facts to a database table in one transaction."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from anyburl.errors import DataError, OptionError
from anyburl.publishing.options import Progress, PublishOptions
from anyburl.triples.frames import COLUMNS
from anyburl.triples.remote.addresses import DUCKDB, POSTGRESQL, Address
from anyburl.triples.remote.drivers import column_name, connected, is_of_driver, table_name
from anyburl.writing import put_in_free_place, unfinished_folder

SQL_TYPES: dict[pl.DataType, str] = {pl.Float64(): "DOUBLE PRECISION", pl.Int64(): "BIGINT"}
INCOMING = "anyburl_incoming"


class TablePlan:
    """What would be written to a table: the facts that are not in it yet. It is made if it is missing."""

    def __init__(self, facts: pl.DataFrame, address: Address, options: PublishOptions) -> None:
        if address.table is None:
            raise DataError(f"{address.text}: no table named; add #TABLE to the address")
        if options.graph is not None:
            raise OptionError("--graph is for SPARQL endpoints; a database has tables")
        if "score" not in facts.columns:
            raise DataError("RDF has no scores: for a table, use facts in .parquet, .tsv or .jsonl")
        self.address, self._table = address, table_name(address.table)
        self._facts, self._options = facts, options
        self.n_facts, self.n_left_out = facts.height, 0
        self._is_new = not self._exists()

    def _exists(self) -> bool:
        """Whether the table is there; one with other columns is refused."""
        if self.address.file is not None and not self.address.file.exists():
            return False
        with connected(self.address, timeout=self._options.timeout) as (_, connection):
            found = _columns(connection, self._table)
        if found is not None and found != self._facts.columns:
            raise DataError(
                f"{self.address.text} has the columns {', '.join(found)}: expected {', '.join(self._facts.columns)}; "
                "choose another table"
            )
        return found is not None

    @property
    def told(self) -> list[str]:
        """What would be done, in lines for people."""
        made = " (a new table)" if self._is_new else " (those that are not there yet)"
        lines = [f"{self.n_facts:,} facts into {self.address.text}{made}, in one transaction"]
        return [*lines, f"columns: {', '.join(self._facts.columns)}"]

    def write(self, progress: Progress = lambda n_facts: None) -> int:
        """Write everything or nothing; return how many facts were not there before."""
        file = self.address.file
        n_new = self._write_file(file.resolve()) if file is not None and not file.exists() else None
        if n_new is None:
            with connected(self.address, timeout=self._options.timeout, writing=True) as (_, connection):
                n_new = self._write(connection, is_new=self._is_new)
        progress(self.n_facts)
        return n_new

    def _write_file(self, file: Path) -> int | None:
        """Write a new database beside its place and put it there; if another process was faster, its file is left
        alone, and None is returned.
        """
        try:
            with unfinished_folder(file) as folder:
                place = folder / file.name
                with connected(self.address, timeout=self._options.timeout, new=place) as (_, connection):
                    n_new = self._write(connection, is_new=True)
                if put_in_free_place(place, file):
                    return n_new
        except OSError as refusal:
            raise DataError(f"{self.address.text}: cannot write the file ({refusal.strerror or refusal})") from refusal
        self._is_new = not self._exists()
        return None

    def _write(self, connection: Any, *, is_new: bool) -> int:
        names = ", ".join(map(column_name, self._facts.columns))
        if self.address.kind != POSTGRESQL:  # which begins by itself
            connection.execute("BEGIN")
        if is_new:  # unless somebody else has made it meanwhile
            connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({_declared(self._facts)})")
        before = _count(connection, self._table)
        with TemporaryDirectory() as folder:
            source = _load(connection, self.address.kind, self._facts, Path(folder))
            same = " AND ".join(f"old.{name} = new.{name}" for name in COLUMNS)
            connection.execute(
                f"INSERT INTO {self._table} ({names}) SELECT {names} FROM {source} AS new "
                f"WHERE NOT EXISTS (SELECT 1 FROM {self._table} AS old WHERE {same})"
            )
        n_new = _count(connection, self._table) - before
        connection.commit()
        return n_new


def _columns(connection: Any, table: str) -> list[str] | None:
    try:
        found = connection.execute(f"SELECT * FROM {table} LIMIT 0").description
    except Exception as error:
        if not is_of_driver(error):
            raise
        return None  # if it cannot be read for another reason, it cannot be made either
    return [column[0] for column in found]


def _count(connection: Any, table: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


def _declared(facts: pl.DataFrame) -> str:
    kinds = [
        SQL_TYPES.get(kind, "TEXT") + (" NOT NULL" if name in COLUMNS else "") for name, kind in facts.schema.items()
    ]
    return ", ".join(f"{column_name(name)} {kind}" for name, kind in zip(facts.columns, kinds, strict=True))


def _load(connection: Any, kind: str, facts: pl.DataFrame, folder: Path) -> str:
    """Hand facts to a database; return what they are called there."""
    if kind == DUCKDB:  # whose inserts are slow
        facts.write_parquet(folder / "facts.parquet")
        place = str(folder / "facts.parquet").replace("'", "''")
        return f"read_parquet('{place}')"
    connection.execute(f"CREATE TEMPORARY TABLE {INCOMING} ({_declared(facts)})")
    if kind == POSTGRESQL:
        with connection.cursor() as cursor, cursor.copy(f"COPY {INCOMING} FROM STDIN") as copy:
            for row in facts.iter_rows():
                copy.write_row(row)
    else:
        marks = ", ".join("?" * facts.width)
        connection.executemany(f"INSERT INTO {INCOMING} VALUES ({marks})", facts.iter_rows())
    return INCOMING
