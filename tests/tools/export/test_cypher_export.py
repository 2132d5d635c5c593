"""Cypher, executed by Kuzu, an embedded property graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from exported import Exported, Fact, check_each, exports, text_of
from hypothesis import assume, given, settings

from rules.samples import make_rules


@pytest.fixture(scope="module")
def kuzu() -> Any:
    return pytest.importorskip("kuzu", reason="Kuzu is not installed: pip install kuzu")


def symbol(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def connected(kuzu: Any, case: Exported) -> Any:
    """Return a connection to a graph in memory."""
    database = kuzu.Database(":memory:", buffer_pool_size=2**26, max_num_threads=1, max_db_size=2**30)
    connection = kuzu.Connection(database)
    connection.execute("CREATE NODE TABLE Entity(name STRING PRIMARY KEY)")
    for label in case.rules.vocabulary.entities:
        connection.execute("CREATE (:Entity {name: $name})", {"name": label})
    for relation in case.rules.vocabulary.relations:
        connection.execute(f"CREATE REL TABLE {symbol(relation)}(FROM Entity TO Entity, confidence DOUBLE)")
    for subject, relation, object in case.triples:
        made = f"MATCH (s:Entity), (o:Entity) WHERE s.name = $s AND o.name = $o CREATE (s)-[:{symbol(relation)}]->(o)"
        connection.execute(made, {"s": subject, "o": object})
    return connection


def rows(connection: Any, query: str) -> Iterator[Fact]:
    result = connection.execute(query)
    while result.has_next():
        subject, relation, object = result.get_next()
        yield subject, relation, object


@settings(max_examples=15)
@given(case=exports())
def test_a_query_returns_what_a_rule_predicts(kuzu: Any, case: Exported) -> None:
    connection = connected(kuzu, case)

    def execute(triples: Sequence[Fact], query: str) -> Iterator[Fact]:
        return rows(connection, query)

    check_each(case, "cypher", execute)


@settings(max_examples=10)
@given(case=exports(max_rules=2))
def test_predictions_of_a_rule_are_merged_into_the_graph(kuzu: Any, case: Exported) -> None:
    """Kuzu 0.11 does not merge all reflexive facts, so there are no rules that predict some."""
    for object_identity in (True, False):
        for number in range(len(case.rules)):
            expected = case.expected(number, object_identity)
            assume(all(subject != object for subject, _, object in expected))
            connection = connected(kuzu, case)
            connection.execute(
                case.text(number, "cypher", insert=True, node_label="Entity", object_identity=object_identity)
            )
            found = {
                (subject, relation, object)
                for relation in case.rules.vocabulary.relations
                for subject, _, object in rows(
                    connection, f"MATCH (s)-[:{symbol(relation)}]->(o) RETURN s.name, '', o.name"
                )
            }
            assert found == {*case.triples} | expected


def test_each_atom_is_matched_on_its_own_and_every_inequality_is_there() -> None:
    """Within one MATCH, b(X,A) and b(Y,A) would have to be two relationships."""
    text = text_of(make_rules([("h(X,Y) <= b(X,A), b(Y,A)", (2, 1))]), "cypher", key="id", node_label="Thing")
    assert text == (
        "// h(X,Y) <= b(X,A), b(Y,A)  [confidence 0.5, 1 of 2]\n"
        "MATCH (X:`Thing`)-[:`b`]->(A:`Thing`)\n"
        "MATCH (Y:`Thing`)-[:`b`]->(A:`Thing`)\n"
        "WHERE X.`id` <> A.`id` AND X.`id` <> Y.`id` AND A.`id` <> Y.`id`\n"
        "RETURN DISTINCT X.`id` AS subject, 'h' AS relation, Y.`id` AS object;\n"
    )


def test_an_entity_of_the_head_may_be_new() -> None:
    text = text_of(make_rules([("h(it's,Y) <= b(Y,A)", (2, 1))]), "cypher", insert=True)
    assert text.endswith(
        "MERGE (subject {`name`: 'it\\'s'})\nMERGE (subject)-[fact:`h`]->(Y)\nON CREATE SET fact.confidence = 0.5;\n"
    )
