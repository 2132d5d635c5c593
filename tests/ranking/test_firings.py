"""Which rules fire for a query, and for which candidates: as the reference says, rule by rule."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anyburl.ranking.ranker import Ranker
from anyburl.rules.types import FORMS, KINDS
from kernels import examples, random_graph, random_graphs
from ranked import Case, Judge, Scored, all_queries, any_rules, cases, make_ranker, scores_of
from reference.ranking import Query
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def fired(ranker: Ranker, query: Query) -> list[tuple[int, int]]:
    """(candidate, rule) in order, after a look at the scores."""
    found = ranker.fire(*query)
    assert len({len(column) for column in found}) == 1
    return sorted(zip(found.candidates.tolist(), found.rules.tolist(), strict=True))


def assert_firings(case: Case, object_identity: bool, *, block: bool = False) -> None:
    ranker = make_ranker(case.graph, case.scored, object_identity=object_identity, block=block)
    judge = Judge(case, object_identity)
    for query in all_queries(case.graph):
        assert fired(ranker, query) == judge.firings(query), query


def one_rule(graph: SmallGraph, *rules: tuple) -> Case:  # type: ignore[type-arg]
    return Case(graph, [Scored(rule, 1, 2) for rule in rules], [], [])


@settings(max_examples=examples(400, 150))
@given(cases(), st.booleans())
@example(one_rule((2, 1, []), ("Ud", 0, 1, (0,), None), ("Uc", 0, 1, (0,), 0), ("B", 0, None, (0,), None)), True)
@example(one_rule((2, 1, [(0, 0, 0)]), ("Uc", 1, 2, (0,), 2), ("Uc", 0, 2, (0,), 2), ("Ud", 1, 2, (0,), None)), True)
@example(one_rule((3, 2, [(0, 0, 1)]), ("Ud", 1, 2, (0,), None), ("Uc", 1, 2, (0,), 1)), True)
@example(one_rule((2, 1, [(0, 0, 1)]), ("Ud", 0, 0, (0,), None), ("Uc", 0, 0, (0,), 1)), False)
def test_rules_fire_as_the_reference_says(case: Case, object_identity: bool) -> None:
    """All types and lengths, both readings of the head and of `self`, reflexive triples, rules about nothing."""
    assert_firings(case, object_identity)


@settings(max_examples=examples(150, 40))
@given(cases(random_graphs(7, [1, 2], 20)), st.booleans())
def test_rules_fire_where_there_are_many_ways(case: Case, object_identity: bool) -> None:
    assert_firings(case, object_identity)


@settings(max_examples=examples(100, 30))
@given(cases(), st.booleans())
def test_unary_rules_fire_without_an_index_by_body(case: Case, object_identity: bool) -> None:
    """As those of a form that has none."""
    with pytest.MonkeyPatch.context() as patch:
        for kind in KINDS:
            patch.setitem(FORMS, kind, replace(kind.form, is_indexed_by_body=False))
        assert_firings(case, object_identity)


@settings(max_examples=examples(60, 15))
@given(random_graphs(6, [1, 2], 12), st.data(), st.booleans())
def test_many_rules_about_the_same_relations_fire_together(
    graph: SmallGraph, data: st.DataObject, object_identity: bool
) -> None:
    """All heads of a few bodies: every index holds runs of rules, and the trie branches."""
    n_entities, n_relations, _ = graph
    unary = [(d, c) for d in range(2 * n_relations) for c in range(n_entities + 1)]
    found = []
    for kind, _, _, body, last in data.draw(st.lists(any_rules(graph), min_size=1, max_size=4)):
        heads = [(h, None) for h in range(n_relations)] if kind == "B" else unary
        found += [(kind, head, constant, body, last) for head, constant in heads]
    order = data.draw(st.randoms(use_true_random=False))
    order.shuffle(found)
    assert_firings(one_rule(graph, *dict.fromkeys(found)), object_identity)


@settings(max_examples=examples(40, 5))
@given(cases())
def test_a_ranker_that_blocks_still_fires_everything(case: Case) -> None:
    assert_firings(case, True, block=True)


@settings(max_examples=examples(60, 10))
@given(cases())
def test_firings_carry_the_scores_of_their_rules(case: Case) -> None:
    ranker, scores = make_ranker(case.graph, case.scored), scores_of(case.scored)
    for query in all_queries(case.graph):
        found = ranker.fire(*query)
        assert found.scores.tolist() == [scores[row] for row in found.rules.tolist()]


@pytest.mark.parametrize("length", [5, 6, 7])
@pytest.mark.parametrize("object_identity", [True, False])
def test_long_bodies_fire_as_the_reference_says(length: int, object_identity: bool) -> None:
    """Beyond what is learned: bodies up to the limit keep more witnesses."""
    graph = random_graph(length, 8, 1, 14)
    body = (0, 1, 0, 0, 1, 1, 0)[:length]
    rules = [("B", 0, None, body, None), ("Ud", 0, 3, body, None), ("Uc", 1, 2, body, 5), ("Uc", 0, 2, body, 2)]
    shorter = [(kind, head, constant, body[:2], last) for kind, head, constant, body, last in rules]
    assert_firings(one_rule(graph, *rules, *shorter), object_identity)


@settings(max_examples=examples(60, 10))
@given(graphs(), st.booleans())
def test_rules_about_what_no_triple_mentions(graph: SmallGraph, object_identity: bool) -> None:
    """Two entities and a relation more than the triples have, in every place of a rule."""
    n_entities, n_relations, triples = graph
    larger = (n_entities + 2, n_relations + 1, triples)
    self_id, stranger, other, news = n_entities + 2, n_entities, n_entities + 1, n_relations
    found = [
        ("Uc", 0, stranger, (0,), 0),
        ("Uc", 0, 0, (0,), stranger),
        ("Uc", news, 0, (0,), 0),
        ("Uc", news + n_relations + 1, other, (0, n_relations + 1), 0),
        ("Uc", 0, other, (0, n_relations + 1), other),
        ("Uc", 0, self_id, (news,), self_id),
        ("Ud", 0, stranger, (0,), None),
        ("Ud", news, 0, (0,), None),
        ("Ud", news, self_id, (0,), None),
        ("Ud", 0, 0, (news,), None),
        ("Ud", news, stranger, (0, n_relations + 1), None),
        ("B", news, None, (0,), None),
        ("B", 0, None, (news, 0), None),
        ("B", news, None, (0, n_relations + 1, 0), None),
        ("Z", news, stranger, (), None),
        ("Z", 0, other, (), None),
        ("Z", news, self_id, (), None),
    ]
    assert_firings(one_rule(larger, *found), object_identity)
