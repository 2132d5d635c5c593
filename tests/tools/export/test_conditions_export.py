"""Rules with conditions in other languages, executed: SQLite, DuckDB, PostgreSQL, SWI-Prolog and Oxigraph find what the
engine predicts.
"""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from exported import Fact, text_of
from test_prolog_export import in_prolog
from test_sql_export import in_sqlite

from anyburl import Dataset, RuleSet
from anyburl.bodies.conditions import comparison_holds, members_of, pairs_along, split_body
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.graph.stored import graph_of
from rules.samples import make_rules

TRIPLES = [
    ("a", "made_by", "m"),
    ("b", "made_by", "m"),
    ("d", "made_by", "m"),
    ("c", "made_by", "n"),
    ("n", "made_by", "n"),
    ("m", "h", "c"),
]
VALUES = {
    "size": {"a": ["5", "20"], "b": ["10"], "c": ["-3.5"], "d": ["10", "3"], "n": ["1000"]},
    "born": {"a": ["1899-12-31"], "b": ["1900-01-01"], "d": ["1899-12-31"], "m": ["1969-07-20"]},
    "free": {"a": ["true"], "b": ["false"], "d": ["true"], "n": ["true"]},
}
KINDS = {"size": AttributeKind.NUMBER, "born": AttributeKind.DATE, "free": AttributeKind.BOOLEAN}
RULES = [
    "h(X,c) <= size(X) >= 10",
    "h(X,c) <= size(X) < 10",
    "h(X,b) <= size(X) >= 6, size(X) < 10",
    "h(a,Y) <= made_by(Y,A), size(A) >= 0.5",
    "h(X,c) <= made_by(A,X), size(A) < 0",
    "h(X,c) <= born(X) < 1900-01-01",
    "h(X,c) <= made_by(X,A), born(A) >= 1960-01-01",
    "h(X,b) <= free(X) = true",
    "h(X,me_myself_i) <= free(X) = false",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), size(X) < size(Y)",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), size(X) > size(Y)",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), size(X) = size(Y)",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), born(X) < born(Y)",
    "h(X,Y) <= made_by(X,Y), born(X) < born(Y)",
    "h(X,Y) <= made_by(Y,X), born(X) > born(Y)",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), born(X) = born(Y)",
    "h(X,Y) <= made_by(X,A), made_by(Y,A), free(X) = free(Y)",
]


@pytest.fixture(scope="module")
def data() -> Dataset:
    plain = Dataset.from_triples(TRIPLES)
    attributes = []
    for name, found in VALUES.items():
        pairs = [(entity, text) for entity, texts in found.items() for text in texts]
        ids = plain.vocabulary.encode_entities([entity for entity, _ in pairs])
        empty = Attribute.of(name, KINDS[name], np.empty(0), np.empty(0))
        attributes.append(Attribute.of(name, KINDS[name], ids, np.array([empty.parse(text) for _, text in pairs])))
    return Dataset("values", plain.train, plain.valid, plain.test, attributes=Attributes.of(attributes))


@pytest.fixture(scope="module")
def rules(data: Dataset) -> RuleSet:
    return make_rules([(rule, (20, number)) for number, rule in enumerate(RULES, 1)]).with_vocabulary(data.vocabulary)


@pytest.fixture(scope="module")
def expected(data: Dataset, rules: RuleSet) -> list[set[Fact]]:
    """What the engine predicts, rule by rule."""
    found, labels = [], data.vocabulary.entity_label
    for row in range(len(rules)):
        if rules.is_binary[row]:
            found.append(_pairs(data, rules, row))
            assert found[-1], rules.rule(row)
            continue
        members = members_of(graph_of(data.train), rules, row, object_identity=True)
        head, constant = rules.rule(row).head, int(rules.head_constant[row])
        names = [(labels(int(x)), labels(int(x) if constant == data.vocabulary.self_id else constant)) for x in members]
        is_forward = rules.head[row] < data.vocabulary.n_relations
        found.append({(x, head.relation, y) if is_forward else (y, head.relation, x) for x, y in names})
    assert sum(map(len, found)) > 10
    return found


def _pairs(data: Dataset, rules: RuleSet, row: int) -> set[Fact]:
    """Return what a rule with a comparison predicts."""
    (path, _), labels = split_body(rules, row), data.vocabulary.entity_label
    parts = list(pairs_along(graph_of(data.train), path, object_identity=True))
    kept = [(xs[holds], ys[holds]) for xs, ys in parts if len(holds := comparison_holds(rules, row, xs, ys))]
    return {(labels(x), "h", labels(y)) for xs, ys in kept for x, y in zip(xs.tolist(), ys.tolist(), strict=True)}


STATED = [
    *TRIPLES,
    *((e, name, text) for name, found in VALUES.items() for e, texts in found.items() for text in texts),
]
"""Facts and values in one table."""


def test_sqlite_selects_what_the_engine_predicts(rules: RuleSet, expected: list[set[Fact]]) -> None:
    for row in range(len(rules)):
        query = text_of(rules.slice(row, row + 1), "sql")
        assert {*in_sqlite(STATED, query)} == expected[row], query


def test_duckdb_selects_what_the_engine_predicts(rules: RuleSet, expected: list[set[Fact]]) -> None:
    duckdb = pytest.importorskip("duckdb", reason="DuckDB is not installed: pip install duckdb")
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE triples (subject text, relation text, object text)")
        connection.executemany("INSERT INTO triples VALUES (?, ?, ?)", STATED)
        for row in range(len(rules)):
            found = connection.execute(text_of(rules.slice(row, row + 1), "sql")).fetchall()
            assert {*found} == expected[row]


def test_postgresql_inserts_what_the_engine_predicts(
    postgresql: Any, rules: RuleSet, expected: list[set[Fact]]
) -> None:
    rows = postgresql(STATED, text_of(rules, "sql", insert=True, table="kb.triples"))
    for row, confidence in enumerate(rules.confidence().tolist()):
        assert {fact[:3] for fact in rows if fact[3] == confidence} == expected[row]


@pytest.mark.skipif(shutil.which("swipl") is None, reason="SWI-Prolog is not installed: apt-get install swi-prolog-nox")
def test_prolog_proves_what_the_engine_predicts(rules: RuleSet, expected: list[set[Fact]]) -> None:
    assert in_prolog(STATED, text_of(rules, "prolog"), len(rules)) == expected


def test_oxigraph_constructs_what_the_engine_predicts(rules: RuleSet, expected: list[set[Fact]]) -> None:
    pyoxigraph: Any = pytest.importorskip(
        "pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'"
    )
    types = {"size": "decimal", "born": "date", "free": "boolean"}
    lines = [f"<urn:anyburl:{s}> <urn:anyburl:{r}> <urn:anyburl:{o}> ." for s, r, o in TRIPLES]
    lines += [
        f'<urn:anyburl:{s}> <urn:anyburl:{r}> "{o}"^^<http://www.w3.org/2001/XMLSchema#{types[r]}> .'
        for s, r, o in STATED[len(TRIPLES) :]
    ]
    store = pyoxigraph.Store()
    store.load("\n".join(lines).encode(), pyoxigraph.RdfFormat.N_TRIPLES)
    for row in range(len(rules)):
        found = store.query(text_of(rules.slice(row, row + 1), "sparql"))
        shown = {
            tuple(str(term)[len("<urn:anyburl:") : -1] for term in (t.subject, t.predicate, t.object)) for t in found
        }
        assert shown == expected[row]


@pytest.mark.parametrize(
    ("language", "line"),
    [
        ("datalog", 'to_float(Value) >= to_float("10")'),
        ("cypher", "WHERE X.`name` <> 'c' AND X.`size` >= 10"),
        ("shacl", "FILTER(?Value >= 10)"),
    ],
)
def test_other_languages_say_the_condition(rules: RuleSet, language: str, line: str) -> None:
    assert line in text_of(rules.slice(0, 1), language)


@pytest.mark.parametrize(
    ("language", "row", "line"),
    [
        ("datalog", 9, "to_float(Value) < to_float(Other)"),
        ("datalog", 12, "Value < Other"),
        ("cypher", 9, "X.`size` < Y.`size`"),
        ("cypher", 12, "date(X.`born`) < date(Y.`born`)"),
        ("shacl", 9, "FILTER(?Value < ?Other)"),
    ],
)
def test_other_languages_say_the_comparison(rules: RuleSet, language: str, row: int, line: str) -> None:
    assert line in text_of(rules.slice(row, row + 1), language)
