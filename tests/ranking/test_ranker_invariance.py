"""What must not change a ranking: the order of triples and rules, threads, batches, the size of buffers."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import OptionError, RuleError
from anyburl.ranking import ranker as local
from anyburl.ranking.arrays import AnswerArrays, FiringArrays
from anyburl.ranking.index import build_rule_index
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import make_queries, single_query
from kernels import INTERPRETED, arrays_of, examples, random_graph, random_graphs
from ranked import (
    AGGREGATIONS,
    Case,
    Judge,
    Scored,
    all_queries,
    as_table,
    cases,
    make_ranker,
    read_answers,
    rule_set,
)
from strategies import SmallGraph

pytestmark = pytest.mark.kernel


def every_query(case: Case, **options: Any) -> AnswerArrays:
    """Answer (s, r, ?) and (?, r, o) for all triples that can be, filtered by those of the case."""
    n_entities, n_relations, triples = case.graph
    possible = [(s, r, o) for s in range(n_entities) for r in range(n_relations) for o in range(n_entities)]
    queries, _ = make_queries(as_table(possible), [as_table(triples)], n_relations)
    return make_ranker(case.graph, case.scored, **options).answer(queries, top_k=3)


def same(left: AnswerArrays, right: AnswerArrays) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(left, right, strict=True))


@settings(max_examples=examples(60, 8))
@given(cases(), st.randoms(use_true_random=False), st.sampled_from(AGGREGATIONS), st.booleans())
def test_the_order_of_triples_and_rules_does_not_matter(case: Case, rng: Any, aggregation: str, block: bool) -> None:
    triples, order = list(case.graph[2]), list(range(len(case.scored)))
    rng.shuffle(triples)
    rng.shuffle(order)
    shuffled = Case((*case.graph[:2], triples), [case.scored[row] for row in order], [], [])
    before = every_query(case, aggregation=aggregation, block=block)
    after = every_query(shuffled, aggregation=aggregation, block=block)
    assert same(before._replace(target_rules=after.target_rules, best_rules=after.best_rules), after)
    counts = [(scored.support / scored.predictions) for scored in case.scored]
    for earlier, later in ((before.target_rules, after.target_rules), (before.best_rules, after.best_rules)):
        for old, new in zip(earlier.ravel().tolist(), later.ravel().tolist(), strict=True):
            assert (old < 0) == (new < 0)
            assert old < 0 or counts[old] == counts[order[new]]


MANY: Case = Case(
    random_graph(3, 40, 3, 160),
    [
        Scored(rule, support, 9)
        for i in range(40)
        for rule, support in [
            (("Uc", i % 6, i, ((i + 1) % 6,), (7 * i + 3) % 40), 1 + i % 8),
            (("Uc", i % 6, 40, ((i + 2) % 3,), 40 - i), 1 + i % 7),
            (("Ud", (i + 3) % 6, (3 * i) % 40, (i % 5, (i + 1) % 6), None), 1 + i % 5),
            (("Ud", i % 3, 40 - i, (i % 6,), None), 1 + i % 3),
            (("B", i % 3, None, (i % 6, i // 6 % 6, (i + 2) % 5), None), 1 + i % 9),
        ]
    ],
    [],
    [],
)


def distinct(case: Case) -> Case:
    return case._replace(scored=list({scored.rule: scored for scored in case.scored}.values()))


@pytest.mark.skipif(INTERPRETED, reason="threads are handed the same batches, compiled or not")
@pytest.mark.parametrize("aggregation", ["max", "noisy-or-top:2"])
def test_threads_and_batches_do_not_matter(monkeypatch: pytest.MonkeyPatch, aggregation: str) -> None:
    case = distinct(MANY)
    expected = every_query(case, aggregation=aggregation, block=True)
    assert expected.n_firings.sum() > 1000
    for threads, batch in [(1, 1), (2, 1), (3, 7), (2, 32), (4, 10**6)]:
        monkeypatch.setattr(local, "QUERIES_AT_A_TIME", batch)
        assert same(every_query(case, aggregation=aggregation, block=True, threads=threads), expected)


@settings(max_examples=examples(40, 6))
@given(cases(random_graphs(6, [1, 2], 14)), st.sampled_from(AGGREGATIONS), st.booleans())
def test_a_tiny_buffer_for_firings_grows(case: Case, aggregation: str, block: bool) -> None:
    """Where a query needs more room it is asked again, and nothing is counted twice, or lost."""
    expected = every_query(case, aggregation=aggregation, block=block)
    rooms: list[int] = []

    def tiny(room: int) -> FiringArrays:
        rooms.append(room)
        return empty(1 if room >= 1 << 10 else room)

    empty = local.empty_firings
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local, "empty_firings", tiny)
        found = every_query(case, aggregation=aggregation, block=block)
        ranker = make_ranker(case.graph, case.scored)
        fired = [ranker.fire(*query) for query in all_queries(case.graph)]
    assert same(found, expected)
    assert len(rooms) > 2 or expected.n_firings.max(initial=0) <= 1
    ranker = make_ranker(case.graph, case.scored)
    for query, columns in zip(all_queries(case.graph), fired, strict=True):
        again = ranker.fire(*query)
        assert columns.candidates.tolist() == again.candidates.tolist()
        assert columns.rules.tolist() == again.rules.tolist()


@settings(max_examples=examples(40, 6))
@given(cases(), st.booleans())
def test_a_ranker_remembers_nothing(case: Case, block: bool) -> None:
    """The same answers the second time, after other questions, and with `fire` in between."""
    n_entities, n_relations, triples = case.graph
    ranker = make_ranker(case.graph, case.scored, block=block)
    queries, _ = make_queries(as_table(case.test), [as_table(triples), as_table(case.valid)], n_relations)
    first = ranker.answer(queries, top_k=2)
    before = [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)]
    for query in all_queries(case.graph):
        everything = np.arange(n_entities, dtype=np.int32)
        hidden = ranker.answer(single_query(*query, everything), top_k=2)
        assert hidden.n_candidates.tolist() == [0]
        assert hidden.n_best.tolist() == [0]
    assert same(ranker.answer(queries, top_k=2), first)
    assert [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)] == before


def test_an_interrupted_answer_leaves_no_trace() -> None:
    """Ctrl-C comes where progress is reported: what was excluded then must not be excluded later."""
    case = distinct(MANY)
    ranker = make_ranker(case.graph, case.scored, block=True)
    before = [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)]

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    everything = np.arange(case.graph[0], dtype=np.int32)
    with pytest.raises(KeyboardInterrupt):
        ranker.answer(single_query(*all_queries(case.graph)[0], everything), progress=interrupt)
    assert [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)] == before


def test_an_interrupt_drops_the_batches_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "QUERIES_AT_A_TIME", 1)
    case = distinct(MANY)
    queries, _ = make_queries(as_table(case.graph[2]), [], case.graph[1])
    ranker, started, cancelled = make_ranker(case.graph, case.scored, threads=2), [], Event()
    run = ranker.backend._run  # type: ignore[attr-defined]

    class Pool(ThreadPoolExecutor):
        def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
            super().shutdown(wait=False, cancel_futures=cancel_futures)
            cancelled.set()
            super().shutdown(wait=wait)

    def after_the_interrupt(*arguments: Any) -> int:
        """All batches but the first take until those that wait are dropped."""
        started.append(arguments[-1])
        assert arguments[-1] == 0 or cancelled.wait(60)
        return run(*arguments)  # type: ignore[no-any-return]

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("anyburl.base.machine.ThreadPoolExecutor", Pool)
    monkeypatch.setattr(ranker.backend, "_run", after_the_interrupt)
    with pytest.raises(KeyboardInterrupt):
        ranker.answer(queries, progress=interrupt)
    assert len(started) <= 3
    assert ranker.answer(queries).n_firings.sum() > 0


def test_answers_and_firings_at_the_same_time_do_not_disturb_each_other() -> None:
    """One ranker may be asked by several threads, as a server does."""
    case = distinct(MANY)
    n_relations = case.graph[1]
    tables = [as_table(case.graph[2][:90]), as_table(case.graph[2][90:])]
    questions = [make_queries(table, [tables[0]], n_relations)[0] for table in tables]
    ranker = make_ranker(case.graph, case.scored, threads=2)
    expected = [ranker.answer(queries, top_k=3) for queries in questions]
    fired = [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)]

    def work(number: int) -> bool:
        if number % 3 == 2:
            return [ranker.fire(*query).rules.tolist() for query in all_queries(case.graph)] == fired
        return same(ranker.answer(questions[number % 3], top_k=3), expected[number % 3])

    with ThreadPoolExecutor(3) as pool:
        assert all(pool.map(work, range(examples(30, 6))))


def test_progress_counts_every_question_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "QUERIES_AT_A_TIME", 7)
    case = distinct(MANY)
    queries, _ = make_queries(as_table(case.graph[2]), [], case.graph[1])
    for threads in (1, 2):
        told: list[int] = []
        make_ranker(case.graph, case.scored, threads=threads).answer(queries, progress=told.append)
        assert sum(told) == len(queries.entities)


@pytest.mark.parametrize("graph", [(3, 1, [(0, 0, 1), (2, 0, 2)]), (3, 1, []), (1, 1, [(0, 0, 0)])])
def test_without_rules_nothing_is_a_candidate(graph: SmallGraph) -> None:
    rules = rule_set(graph, [])
    arrays = arrays_of(graph)
    build_rule_index(arrays, rules)
    found = every_query(Case(graph, [], [], []))
    assert not found.fired.any()
    assert found.n_candidates.sum() == found.n_best.sum() == found.n_firings.sum() == 0
    assert (found.best == -1).all()
    assert (found.target_rules == -1).all()
    assert (found.best_rules == -1).all()
    assert (found.best_counts == 0).all()


def test_without_questions_there_are_no_answers() -> None:
    case = distinct(MANY)
    queries, places = make_queries(as_table([]), [as_table(case.graph[2])], case.graph[1])
    found = make_ranker(case.graph, case.scored, threads=2).answer(queries, top_k=3)
    assert len(places) == 0
    assert read_answers(queries, found, case.graph[0]) == {}


@pytest.mark.parametrize("kind", ["B", "Uc", "Ud", "Z"])
def test_one_rule_alone_makes_an_index(kind: str) -> None:
    """The other indexes are empty then; each rule predicts something."""
    graph: SmallGraph = (4, 2, [(0, 0, 2), (3, 0, 2), (0, 1, 3)])
    walks = [((), None)] if kind == "Z" else [((0,), 2), ((0, 2), 3)]  # from 0 to 2, and on to 3
    for steps, end in walks:
        rule = (kind, 1, None if kind == "B" else 1, steps, end if kind == "Uc" else None)
        case = Case(graph, [Scored(rule, 1, 2)], [], [])
        ranker, judge = make_ranker(graph, case.scored), Judge(case)
        fired = {query: ranker.fire(*query).candidates.tolist() for query in all_queries(graph)}
        expected = {query: [candidate for candidate, _ in judge.firings(query)] for query in all_queries(graph)}
        assert {query: sorted(found) for query, found in fired.items()} == expected
        assert any(fired.values())


def test_bodies_that_are_too_long_are_refused() -> None:
    with pytest.raises(RuleError, match="at most 7 body atoms can be applied, got one with 8"):
        make_ranker((2, 1, [(0, 0, 1)]), [Scored(("B", 0, None, (0,) * 8, None), 1, 2)])


@pytest.mark.parametrize("threads", [0, -1])
def test_threads_are_at_least_one(threads: int) -> None:
    with pytest.raises(OptionError, match=f"threads must be at least 1, got {threads}"):
        RankOptions(threads=threads)
