"""The strongest rule behind a fact, compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from anyburl.tools.doctor.evidence import SMOOTHING, SupportFinder, one_short
from kernels import arrays_of, examples, random_graphs
from ranked import Case, Judge, as_table, cases, rule_set
from reference.support import best_score
from reference.support import one_short as expected_score

pytestmark = pytest.mark.kernel


def assert_support(case: Case) -> None:
    n_entities, n_relations, _ = case.graph
    triples = [(s, r, o) for s in range(n_entities) for r in range(n_relations) for o in range(n_entities)]
    short = one_short(rule_set(case.graph, case.scored))
    found = SupportFinder(arrays_of(case.graph), short, 1).find(as_table(triples))
    answers = Judge(case).answers
    kept = [row for row, scored in enumerate(case.scored) if scored.support > 1 and scored.rule[3]]
    scores = [expected_score(case.scored[row].support, case.scored[row].predictions, SMOOTHING) for row in kept]
    expected = [best_score(triple, [answers[row] for row in kept], scores) for triple in triples]
    assert found.scores.tolist() == pytest.approx(expected)
    for triple, row, score in zip(triples, found.rows.tolist(), expected, strict=True):
        assert (row >= 0) == (score > 0)
        if row >= 0:
            assert triple in answers[kept[row]]
            assert scores[row] == pytest.approx(score)


@given(cases())
@settings(max_examples=examples(300))
def test_the_strongest_rule_is_found(case: Case) -> None:
    assert_support(case)


@given(cases(random_graphs(6, (1, 2), 20)))
@settings(max_examples=examples(100))
def test_the_strongest_rule_is_found_where_there_are_many_ways(case: Case) -> None:
    assert_support(case)


def test_a_rule_with_one_fact_says_nothing_about_it() -> None:
    graph = (3, 2, [(0, 0, 1), (0, 1, 1)])
    case = Case(graph, [], [], [])
    rules = rule_set(graph, [])
    assert len(one_short(rules)) == 0
    assert SupportFinder(arrays_of(case.graph), rules, 1).find(np.array([[0, 0, 1]], np.int32)).rows.tolist() == [-1]
