"""Reading triples from databases: seconds and memory of `load_dataset`.

    python benchmarks/bench_database.py [--rows 10000000] [--kinds postgresql,duckdb,sqlite]

PostgreSQL is started on loopback in a temporary folder, and filled by COPY with generated rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import HERE, peak_memory_mb, save

sys.path.insert(0, str(HERE.parent / "tests"))

from postgresql import PostgresServer, postgres_server

ROWS = (
    "SELECT 'entity_' || (i * 7919 % {entities}) AS s, 'relation_' || (i % 200) AS p, "
    "'entity_' || ((i * 104729 + i % 7 * 131) % {entities}) AS o FROM {numbers}"
)
READ = "import sys; sys.path.insert(0, {here!r}); import bench_database; bench_database.read({address!r})"


def generated(numbers: str, rows: int) -> str:
    """Return the query that makes the rows; there are about four of them for each entity."""
    return ROWS.format(entities=max(1, rows // 4), numbers=numbers)


def fill_postgresql(server: PostgresServer, rows: int) -> str:
    """Fill a table by COPY; return its address."""
    import psycopg

    with psycopg.connect(server.local) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TABLE facts (s text, p text, o text)")
        made = generated(f"generate_series(1::bigint, {rows}) AS i", rows)
        with tempfile.TemporaryFile() as file:
            with cursor.copy(f"COPY ({made}) TO STDOUT") as out:
                for row in out:
                    file.write(row)
            file.seek(0)
            with cursor.copy("COPY facts FROM STDIN") as into:
                while block := file.read(1 << 20):
                    into.write(block)
    return f"{server.local}#facts"


def fill_duckdb(folder: Path, rows: int) -> str:
    """Fill a table of DuckDB."""
    import duckdb

    with duckdb.connect(str(folder / "graph.duckdb")) as connection:
        connection.execute(f"CREATE TABLE facts AS {generated(f'range(1, {rows + 1}) AS t(i)', rows)}")
    return f"duckdb:{folder / 'graph.duckdb'}#facts"


def fill_sqlite(folder: Path, rows: int) -> str:
    """Fill a table of SQLite."""
    import sqlite3
    from contextlib import closing

    numbers = f"(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) SELECT i FROM n)"
    with closing(sqlite3.connect(folder / "graph.sqlite")) as connection:
        connection.execute(f"CREATE TABLE facts AS {generated(numbers, rows)}")
        connection.commit()
    return f"sqlite:{folder / 'graph.sqlite'}#facts"


def read(address: str) -> None:
    """Load a data set in this process, and print how long it took."""
    from anyburl.data.dataset import load_dataset

    started = time.perf_counter()
    data = load_dataset(address)
    print(
        json.dumps(
            {
                "seconds": round(time.perf_counter() - started, 2),
                "peak_memory_mb": peak_memory_mb(),
                "triples": len(data.train),
                "duplicates": data.train.n_duplicates,
                "entities": data.vocabulary.n_entities,
            }
        )
    )


def measured(address: str, rows: int) -> dict[str, Any]:
    """Read in a new process, so that its memory is its own."""
    code = READ.format(here=str(HERE), address=address)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return {**found, "rows": rows, "rows_per_second": round(rows / found["seconds"])}


def main() -> None:
    """Fill and read each kind of database."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kinds", default="postgresql,duckdb,sqlite")
    given = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as name:
        for kind in given.kinds.split(","):
            if kind == "postgresql":
                with postgres_server() as server:
                    results[kind] = measured(fill_postgresql(server, given.rows), given.rows)
            else:
                fill = fill_duckdb if kind == "duckdb" else fill_sqlite
                results[kind] = measured(fill(Path(name), given.rows), given.rows)
    save("database", results, f"python benchmarks/bench_database.py --rows {given.rows} --kinds {given.kinds}")


if __name__ == "__main__":
    main()
