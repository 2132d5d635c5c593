"""SQL, executed: SQLite, DuckDB and PostgreSQL give what the reference says."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import pytest
from exported import Exported, Fact, check_each, exports, text_of
from hypothesis import given, settings

from kernels import examples

TABLE = "CREATE TABLE triples (subject text, relation text, object text)"


def in_sqlite(triples: Sequence[Fact], query: str) -> list[Fact]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(TABLE)
        connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", triples)
        return connection.execute(query).fetchall()


def inserted(rows: Sequence[tuple[str, str, str, float]], case: Exported) -> list[set[Fact]]:
    """Return the facts in a table of predictions, by rule: each has a confidence of its own.

    DuckDB takes a number for a decimal fraction first, and its last digit may be another one.
    """
    by_confidence: dict[float, list[Fact]] = defaultdict(list)
    for subject, relation, object, confidence in rows:
        by_confidence[round(confidence, 9)].append((subject, relation, object))
    found = [by_confidence.pop(round(confidence, 9), []) for confidence in case.rules.confidence().tolist()]
    assert not by_confidence
    assert all(len(facts) == len({*facts}) for facts in found)
    return [{*facts} for facts in found]


def all_expected(case: Exported, object_identity: bool) -> list[set[Fact]]:
    return [case.expected(number, object_identity) for number in range(len(case.rules))]


@given(exports())
def test_sqlite_selects_what_each_rule_predicts(case: Exported) -> None:
    check_each(case, "sql", in_sqlite)


@given(exports())
def test_sqlite_inserts_what_all_rules_predict(case: Exported) -> None:
    names: dict[str, Any] = {"table": 'my "table"', "columns": ("s", "p of", 'o"'), "target": "new"}
    for object_identity in (True, False):
        script = text_of(case.rules, "sql", insert=True, object_identity=object_identity, **names)
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute('CREATE TABLE "my ""table""" (s text, "p of" text, "o""" text)')
            connection.executemany('INSERT INTO "my ""table""" VALUES (?, ?, ?)', case.triples)
            connection.executescript(script)
            rows = connection.execute("SELECT * FROM new").fetchall()
        assert inserted(rows, case) == all_expected(case, object_identity)


@settings(max_examples=examples(30))
@given(case=exports())
def test_duckdb_inserts_what_all_rules_predict(case: Exported) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    for object_identity in (True, False):
        with duckdb.connect(":memory:") as connection:
            connection.execute(TABLE)
            if case.triples:
                connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", case.triples)
            connection.execute(text_of(case.rules, "sql", insert=True, object_identity=object_identity))
            rows = connection.execute("SELECT * FROM predictions").fetchall()
        assert inserted(rows, case) == all_expected(case, object_identity)


@settings(max_examples=6)
@given(case=exports(max_rules=20))
def test_postgresql_inserts_what_all_rules_predict(postgresql: Any, case: Exported) -> None:
    for object_identity in (True, False):
        script = text_of(case.rules, "sql", insert=True, object_identity=object_identity, table="kb.triples")
        rows = postgresql(case.triples, script)
        assert inserted(rows, case) == all_expected(case, object_identity)
