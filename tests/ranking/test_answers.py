"""Order, best candidates and ranks: as the reference says, for all aggregations, filters and blocking."""

from __future__ import annotations

from math import isclose

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from anyburl.ranking.index import to_confidences, to_scores
from anyburl.ranking.queries import make_queries, single_query, target_ranks
from kernels import examples, random_graphs
from ranked import (
    AGGREGATIONS,
    Answer,
    Case,
    Judge,
    Scored,
    all_queries,
    as_table,
    assert_answers,
    cases,
    make_ranker,
    read_answers,
)
from reference.ranking import Query, noisy_or, predicting
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel


def answers_of(case: Case, *, top_k: int = 0, block: bool = False, **options: object) -> dict[Query, Answer]:
    """Ask both questions of every test triple."""
    ranker = make_ranker(case.graph, case.scored, block=block, **options)
    tables = [as_table(case.graph[2]), as_table(case.valid), as_table(case.test)]
    queries, _ = make_queries(as_table(case.test), tables, case.graph[1])
    return read_answers(queries, ranker.answer(queries, top_k=top_k), case.graph[0])


def expected_answers(judge: Judge, aggregation: str, block: bool, top_k: int) -> dict[Query, Answer]:
    asked = judge.targets().items()
    return {query: judge.answer(query, targets, aggregation, block, top_k) for query, targets in asked}


ONE_COUNTS = ("max", "noisy-or-top:1")

# Entity 0 has a reflexive triple; without it, nothing is blocked that could be ranked.
REFLEXIVE = Case(
    (3, 1, [(0, 0, 0), (1, 0, 2)]),
    [Scored(("Z", 0, 3, (), None), 1, 2), Scored(("Z", 0, 1, (), None), 1, 2)],
    [],
    [(0, 0, 1), (0, 0, 0), (1, 0, 2)],
)


@settings(max_examples=examples(300, 90))
@given(cases(), st.booleans(), st.booleans(), st.integers(0, 7))
@example(REFLEXIVE, True, True, 3)
def test_targets_are_ranked_as_the_reference_says(case: Case, object_identity: bool, block: bool, top_k: int) -> None:
    """Counts, the best candidates with their keys, better and equal, the best rule: for all aggregations."""
    judge = Judge(case, object_identity)
    for aggregation in AGGREGATIONS:
        expected = expected_answers(judge, aggregation, block, top_k)
        found = answers_of(case, top_k=top_k, block=block, aggregation=aggregation, object_identity=object_identity)
        assert_answers(found, expected, may_prune=top_k == 0 and aggregation in ONE_COUNTS)


@settings(max_examples=examples(80, 6))
@given(cases(random_graphs(12, [2, 3], 30)), st.booleans(), st.sampled_from(AGGREGATIONS))
def test_targets_are_ranked_among_many(case: Case, block: bool, aggregation: str) -> None:
    assert answers_of(case, top_k=5, block=block, aggregation=aggregation) == expected_answers(
        Judge(case), aggregation, block, 5
    )


@settings(max_examples=examples(60, 8))
@given(cases(), st.sampled_from(AGGREGATIONS), st.booleans(), st.data())
def test_a_single_query_leaves_out_what_it_is_told_to(
    case: Case, aggregation: str, block: bool, data: st.DataObject
) -> None:
    """Every entity and directed relation; known answers as given."""
    n_entities, _, triples = case.graph
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation)
    judge = Judge(Case(case.graph, case.scored, [], []))
    for query in all_queries(case.graph):
        known = data.draw(st.lists(st.integers(0, n_entities - 1), unique=True, max_size=2))
        stated = [(query[0], query[1], c) for c in known]  # as if a table said so
        turned = [(o, r - case.graph[1], s) if r >= case.graph[1] else (s, r, o) for s, r, o in stated]
        plain = judge_without_train(judge, turned, triples if block else [])
        asked = single_query(*query, np.array(known, np.int32))
        found = read_answers(asked, ranker.answer(asked, top_k=4), n_entities)[query]
        assert found == plain.answer(query, [], aggregation, block, 4)


def judge_without_train(judge: Judge, known: list[tuple[int, int, int]], train: list[tuple[int, int, int]]) -> Judge:
    """The same answers; `known` is known and nothing else, `train` says what is connected."""
    other = object.__new__(Judge)
    n_entities, n_relations, _ = judge.case.graph
    # Train triples are known answers as well, unless they are blocked anyway, which with `train` they are.
    other.case = Case((n_entities, n_relations, train), judge.case.scored, known, [])
    other.scores, other.answers = judge.scores, judge.answers
    return other


@settings(max_examples=examples(100, 10))
@given(cases(), st.booleans())
def test_ranks_in_the_order_of_the_test_triples(case: Case, block: bool) -> None:
    """`target_ranks`, as `evaluate` uses it: all queries (s, r, ?), then all (?, r, o); misses tie with misses."""
    n_entities, n_relations, triples = case.graph
    ranker = make_ranker(case.graph, case.scored, block=block)
    tables = [as_table(triples), as_table(case.valid), as_table(case.test)]
    queries, places = make_queries(as_table(case.test), tables, n_relations)
    ranks = target_ranks(queries, ranker.answer(queries), n_entities).at(places)
    expected = expected_answers(Judge(case), "max", block, 0)
    wanted = [expected[s, r].ranks[o] for s, r, o in case.test]
    wanted += [expected[o, r + n_relations].ranks[s] for s, r, o in case.test]
    assert ranks.optimistic.tolist() == [rank.optimistic for rank in wanted]
    assert ranks.pessimistic.tolist() == [rank.pessimistic for rank in wanted]
    assert ranks.realistic.tolist() == [rank.realistic for rank in wanted]


@settings(max_examples=examples(60, 8))
@given(cases(), st.sampled_from(AGGREGATIONS[:2]))
def test_keys_stand_for_confidences(case: Case, aggregation: str) -> None:
    """The best confidence, or 1 minus the product of all doubts."""
    ranker, judge = make_ranker(case.graph, case.scored, aggregation=aggregation), Judge(case)
    confidences = [support / predictions for _, support, predictions in case.scored]
    for query in all_queries(case.graph):
        asked = single_query(*query, np.empty(0, np.int32))
        found = ranker.answer(asked, top_k=case.graph[0])
        values = to_confidences(found.best_keys[0, : found.n_best[0]])
        rows = predicting(judge.answers, query)
        assert found.n_best[0] == len(rows)
        for candidate, value in zip(found.best[0].tolist(), values.tolist(), strict=False):
            given_for = [confidences[row] for row in rows[candidate]]
            wanted = max(given_for) if aggregation == "max" else noisy_or(given_for)
            assert isclose(value, wanted, abs_tol=1e-9)


@settings(max_examples=examples(200))
@given(st.lists(st.integers(1, 10**9).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))), min_size=1))
def test_scores_are_ordered_as_confidences_are(drawn: list[tuple[int, int]]) -> None:
    confidences = np.sort(np.array([support / predictions for support, predictions in drawn]))
    scores = to_scores(confidences)
    assert scores[0] >= 0
    assert (np.diff(scores) >= 0).all()
    apart = (np.diff(confidences) > 1e-12) & (confidences[1:] < 1 - 2.0**-40)
    assert (np.diff(scores)[apart] > 0).all()
    assert np.allclose(to_confidences(scores), confidences, atol=1e-11)


@settings(max_examples=examples(60, 8))
@given(graphs(max_entities=4, max_triples=8), st.data())
def test_smoothing_and_weights_change_what_rules_count_for(graph: SmallGraph, data: st.DataObject) -> None:
    """A rule's confidence is support / (predictions + smoothing), times the factor of its type."""
    case = data.draw(cases(st.just(graph)))
    ranker = make_ranker(graph, case.scored, smoothing=5.0, weights={"Ud": 0.1, "Z": 0.01})
    factors = {"Ud": 0.1, "Z": 0.01}
    wanted = [support / (predictions + 5) * factors.get(rule[0], 1.0) for rule, support, predictions in case.scored]
    scores = to_scores(np.array(wanted, np.float64)).tolist()
    for query in all_queries(graph):
        found = ranker.fire(*query)
        assert found.scores.tolist() == [scores[row] for row in found.rules.tolist()]


def test_the_evidence_of_very_many_certain_rules_does_not_overflow() -> None:
    """Noisy-or adds; entity 0 satisfies 20 000 bodies, so that the sum would leave 64 bits."""
    n = 20_000
    graph: SmallGraph = (n + 3, 2, [(0, 0, i) for i in range(3, n + 3)])
    certain = [Scored(("Uc", 1, 1, (0,), i), 1, 1) for i in range(3, n + 3)]
    ranker = make_ranker(graph, [*certain, Scored(("Uc", 1, 2, (0,), 3), 1, 2)], aggregation="noisy-or")
    asked = single_query(0, 1, np.empty(0, np.int32))
    found = ranker.answer(asked, top_k=2)
    assert found.best[0].tolist() == [1, 2]
    assert to_confidences(found.best_keys[0]).tolist() == pytest.approx([1.0, 0.5])
