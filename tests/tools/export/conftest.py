"""Scripts are run in a PostgreSQL of our own, where it is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pytest
from exported import Fact

from postgresql import PostgresServer, postgres_server

LABELS = ", ".join(f"encode(convert_to({name}, 'UTF8'), 'hex')" for name in ("subject", "relation", "object"))
FRESH = """
SET client_min_messages = warning;
DROP SCHEMA IF EXISTS kb CASCADE;
DROP TABLE IF EXISTS predictions;
CREATE SCHEMA kb;
CREATE TABLE kb.triples (subject text, relation text, object text);
"""
QUERY = f"SELECT {LABELS}, confidence FROM predictions"

Rows = list[tuple[str, str, str, float]]


def ask(server: PostgresServer, triples: Sequence[Fact], script: str) -> Rows:
    """Run a script on a fresh table kb.triples, and return the rows of the table predictions."""
    rows = ", ".join(f"({', '.join(map(_quoted, triple))})" for triple in triples)
    filled = f"INSERT INTO kb.triples VALUES {rows};\n" if rows else ""
    printed = server.psql(f"{FRESH}{filled}{script}\n{QUERY};\n")
    return [_row(line) for line in printed.splitlines()]


def _quoted(label: str) -> str:
    return "'" + label.replace("'", "''") + "'"


def _row(line: str) -> tuple[str, str, str, float]:
    *coded, confidence = line.split("|")
    subject, relation, object = (bytes.fromhex(label).decode() for label in coded)
    return subject, relation, object, float(confidence)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Callable[[Sequence[Fact], str], Rows]]:
    """Return what runs a script in PostgreSQL and reads the table of predictions."""
    with postgres_server() as server:
        yield lambda triples, script: ask(server, triples, script)
