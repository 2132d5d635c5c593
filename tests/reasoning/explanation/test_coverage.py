"""Which stated facts rules predict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl.graph.build import with_loops
from anyburl.reasoning.explanation.relatives import overlap, predicted_facts_of
from kernels import arrays_of
from ranked import Case, as_table, cases, rule_set
from reference.scoring import predicted


@pytest.mark.kernel
@given(case=cases(), object_identity=st.booleans())
def test_facts_are_those_that_the_reference_predicts(case: Case, object_identity: bool) -> None:
    n_entities, n_relations, triples = case.graph
    graph, rules = arrays_of(case.graph), rule_set(case.graph, case.scored)
    walked = graph if object_identity else with_loops(graph)
    for row, (rule, _, _) in enumerate(case.scored):
        relation = rule[1] % n_relations
        facts = [fact for fact in triples if fact[1] == relation]
        (covered,) = predicted_facts_of(
            walked, rules, np.array([row]), as_table(facts), object_identity=object_identity
        ).tolist()
        pairs = predicted(triples, n_entities, n_relations, rule, object_identity)
        assert [fact for fact, is_covered in zip(facts, covered, strict=True) if is_covered] == [
            (s, r, o) for s, r, o in facts if _ends(s, o, rule[1] >= n_relations, rule[2], n_entities) & pairs
        ]


def _ends(subject: int, object: int, backward: bool, constant: int | None, self_id: int) -> set[tuple[int, int]]:
    """How the head of a rule may say a fact."""
    start, end = (object, subject) if backward else (subject, object)
    return {(start, end)} | ({(start, self_id)} if subject == object and constant == self_id else set())


def test_similar_rules_predict_mostly_the_same_facts() -> None:
    covers = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]], np.bool_)
    assert overlap(covers[:1], covers).tolist() == [[1.0, 0.75, 0.25, 0.0]]
