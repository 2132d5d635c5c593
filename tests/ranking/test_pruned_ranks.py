"""Ranks without a list of the best candidates are found without firing every rule, and so are the best candidates if no
others are counted: they are the same.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

import anyburl
from anyburl.ranking import ranker as local
from anyburl.ranking.arrays import AnswerArrays, FiringArrays, QueryArrays
from anyburl.ranking.queries import make_queries, target_ranks
from anyburl.ranking.ranker import Ranker
from kernels import INTERPRETED, examples, random_graph
from ranked import (
    NOT_COUNTED,
    Case,
    Judge,
    Scored,
    any_rules,
    as_table,
    assert_answers,
    make_ranker,
    read_answers,
)
from reference.graph import Triple
from strategies import SmallGraph, binary_rules

pytestmark = pytest.mark.kernel

ONE_COUNTS = ("max", "noisy-or-top:1")
PER_TARGET = ("fired", "better", "equal", "target_rules")
OF_BEST = ("n_best", "best", "best_keys", "best_rules", "best_counts", "n_excluded")

COUNTS = st.sampled_from([(0, 3), (1, 4), (1, 4), (1, 2), (1, 2), (2, 4), (3, 4), (3, 3)])
"""Support and predictions: hardly any two rules differ, 0 and 1 are among them, and one is half of another."""


@st.composite
def tied_cases(draw: DrawFn, max_rules: int = 40, max_entities: int = 10) -> Case:
    """Many rules, most of them B, with few scores; test triples about few subjects, so that questions have several
    targets; many of these are connected, so that they may be blocked.
    """
    n_entities = draw(st.integers(3, max_entities))
    n_triples = draw(st.integers(2, 4 * max_entities))
    graph = random_graph(draw(st.integers(0, 2**32 - 1)), n_entities, draw(st.integers(1, 3)), n_triples)
    either = st.one_of(binary_rules(graph[1], max_length=4), binary_rules(graph[1], max_length=2), any_rules(graph))
    found = draw(st.lists(either, min_size=1, max_size=max_rules, unique=True))
    scored = [Scored(rule, *draw(COUNTS)) for rule in found]
    valid, test = draw(held_back(graph, 6)), draw(held_back(graph, 20))
    return Case(graph, scored, valid, test)


def held_back(graph: SmallGraph, most: int) -> st.SearchStrategy[list[Triple]]:
    few, entities = st.integers(0, min(2, graph[0] - 1)), st.integers(0, graph[0] - 1)
    return st.lists(st.tuples(few, st.integers(0, graph[1] - 1), entities), unique=True, max_size=most)


def questions_of(case: Case) -> QueryArrays:
    tables = [as_table(case.graph[2]), as_table(case.valid), as_table(case.test)]
    return make_queries(as_table(case.test), tables, case.graph[1])[0]


def assert_same_ranks(ranker: Ranker, queries: QueryArrays, n_entities: int) -> AnswerArrays:
    """Ask with and without a list of the best; return what was found without."""
    pruned, whole = ranker.answer(queries), ranker.answer(queries, top_k=1)
    for name in (*PER_TARGET, "n_excluded"):
        assert np.array_equal(getattr(pruned, name), getattr(whole, name)), name
    for name in ("n_candidates", "n_firings"):
        found, counted = getattr(pruned, name), getattr(whole, name)
        assert np.all((found == counted) | (found == NOT_COUNTED)), name
    left, right = (target_ranks(queries, answers, n_entities) for answers in (pruned, whole))
    assert np.array_equal(left.optimistic, right.optimistic)
    assert np.array_equal(left.pessimistic, right.pessimistic)
    return pruned


@settings(max_examples=examples(800, 60))
@given(tied_cases(), st.sampled_from(ONE_COUNTS), st.booleans(), st.booleans())
def test_pruned_ranks_are_those_of_all_rules(case: Case, aggregation: str, block: bool, object_identity: bool) -> None:
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation, object_identity=object_identity)
    assert_same_ranks(ranker, questions_of(case), case.graph[0])


@settings(max_examples=examples(200, 20))
@given(tied_cases(max_entities=60), st.sampled_from(ONE_COUNTS), st.booleans(), st.booleans())
def test_pruned_ranks_among_many_are_those_of_all_rules(
    case: Case, aggregation: str, block: bool, object_identity: bool
) -> None:
    """Some rules predict more entities than are looked up one by one."""
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation, object_identity=object_identity)
    assert_same_ranks(ranker, questions_of(case), case.graph[0])


def without_targets(case: Case) -> QueryArrays:
    """Return the questions of a case; what is known is left out."""
    queries = questions_of(case)
    offsets = np.zeros(len(queries.entities) + 1, np.int64)
    return queries._replace(target_offsets=offsets, targets=np.empty(0, np.int32))


@settings(max_examples=examples(600, 50))
@given(
    st.one_of(tied_cases(), tied_cases(max_entities=40)),
    st.sampled_from((*ONE_COUNTS, "noisy-or", "noisy-or-top:2")),
    st.booleans(),
    st.booleans(),
    st.integers(1, 6),
)
def test_the_best_candidates_alone_are_those_of_all_rules(
    case: Case, aggregation: str, block: bool, object_identity: bool, top_k: int
) -> None:
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation, object_identity=object_identity)
    queries = without_targets(case)
    bounded, whole = (ranker.answer(queries, top_k=top_k, only_best=only_best) for only_best in (True, False))
    for name in OF_BEST:
        assert np.array_equal(getattr(bounded, name), getattr(whole, name)), name
    assert np.all((bounded.n_candidates == whole.n_candidates) | (bounded.n_candidates == NOT_COUNTED))
    assert np.all(whole.n_candidates >= 0)


# Entities 1 and 2 tie by the best rule and by the next; only the worst, of another branch, tells 2 from 1.
LATE = Case(
    (4, 4, [(0, 0, 1), (0, 0, 2), (0, 1, 1), (0, 1, 2), (0, 2, 2), (3, 3, 3)]),
    [
        Scored(("B", 3, None, (0,), None), 3, 4),
        Scored(("B", 3, None, (1,), None), 3, 4),
        Scored(("B", 3, None, (2,), None), 1, 100),
    ],
    [],
    [(0, 3, 1)],
)


@settings(max_examples=examples(300, 30))
@given(tied_cases(), st.sampled_from(ONE_COUNTS), st.booleans(), st.booleans())
@example(LATE, "max", False, True)
def test_pruned_ranks_are_those_of_the_reference(
    case: Case, aggregation: str, block: bool, object_identity: bool
) -> None:
    judge = Judge(case, object_identity)
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation, object_identity=object_identity)
    queries = questions_of(case)
    expected = {query: judge.answer(query, found, aggregation, block, 0) for query, found in judge.targets().items()}
    assert_answers(read_answers(queries, ranker.answer(queries), case.graph[0]), expected, may_prune=True)


def test_a_rule_far_below_breaks_the_tie() -> None:
    ranker, queries = make_ranker(LATE.graph, LATE.scored), questions_of(LATE)
    found = ranker.answer(queries)
    place = queries.targets.tolist().index(1)
    assert found.n_candidates[queries.entities == 0].tolist() == [NOT_COUNTED]
    assert (found.better[place], found.equal[place]) == (1, 0)


@settings(max_examples=examples(60, 6))
@given(tied_cases(max_rules=25), st.booleans())
def test_a_tiny_buffer_for_firings_changes_no_pruned_rank(case: Case, block: bool) -> None:
    """Room may run out when rules fire first, and again when ties are settled."""
    queries = questions_of(case)
    expected = make_ranker(case.graph, case.scored, block=block).answer(queries)
    empty = local.empty_firings

    def tiny(room: int) -> FiringArrays:
        return empty(1 if room >= 1 << 10 else max(1, room // 2))  # grows by what is needed and no more

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "empty_firings", tiny)
        found = make_ranker(case.graph, case.scored, block=block).answer(queries)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.skipif(INTERPRETED, reason="takes minutes interpreted; the reference is compared with above")
@pytest.mark.parametrize("block", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 5.0])
def test_pruned_ranks_of_learned_rules_are_those_of_all_rules(block: bool, smoothing: float) -> None:
    """Enough rules that most questions are pruned; without smoothing, many rules are certain."""
    data = anyburl.load_dataset("geo")
    rules = anyburl.learn(data, paths=1300, seed=1)
    options = {"smoothing": smoothing, "block_connected": "on" if block else "off", "threads": 2}
    ranker = anyburl.Reasoner(rules, data, **options).ranker  # type: ignore[arg-type]
    known = [data.train.triples, data.valid.triples, data.test.triples]
    queries, _ = make_queries(data.test.triples, known, data.vocabulary.n_relations)
    found = assert_same_ranks(ranker, queries, data.vocabulary.n_entities)
    assert (found.n_candidates == NOT_COUNTED).sum() > 100


def test_only_one_that_counts_and_no_list_of_the_best_is_pruned() -> None:
    queries = questions_of(LATE)
    for aggregation, top_k in (("max", 1), ("noisy-or", 0), ("noisy-or-top:2", 0)):
        ranker = make_ranker(LATE.graph, LATE.scored, aggregation=aggregation)
        assert (ranker.answer(queries, top_k=top_k).n_candidates >= 0).all()
