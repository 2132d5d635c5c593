"""What every backend does: the same answers, firings, counts and progress, for all aggregations.

The Ray backend leaves more than 32 queries to workers, and answers fewer here: both ways are asked.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from anyburl.models.tuned.observations import rule_groups
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.options import parse_aggregation
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import QUERIES_AT_A_TIME, AnswerRequest, Backend, LocalBackend, ReadyRules
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.reasoning.completion.kernel import find_facts
from anyburl.reasoning.completion.search import make_search
from kept_workers import KeptRay
from kernels import random_graph
from ranked import AGGREGATIONS, Case, Judge, Scored, all_queries, as_table, assert_answers, make_ranker, read_answers

BACKENDS = ("one thread", "three threads", "ray")
N = 30
GRAPH = random_graph(3, N, 3, 120)


def some_rules() -> list[Scored]:
    """All types, lengths 1 to 3, with few different counts."""
    found = {}
    for i in range(30):
        for rule, support in [
            (("Uc", i % 6, i, ((i + 1) % 6,), (7 * i + 3) % N), 1 + i % 3),
            (("Uc", i % 3, N, (i % 3,), N - i), 1 + i % 2),
            (("Ud", (i + 3) % 6, (3 * i) % N, (i % 5, (i + 1) % 6), None), 1 + i % 5),
            (("Ud", i % 3, i, (i % 6,), None), 1 + i % 3),
            (("B", i % 3, None, (i % 6, i // 6 % 6, (i + 2) % 5)[: 1 + i % 3], None), 1 + i % 4),
            (("Z", i % 6, (11 * i) % N, (), None), 1),
        ]:
            found.setdefault(rule, Scored(rule, support, 8))
    return list(found.values())


CASE = Case(GRAPH, some_rules(), [], sorted({*GRAPH[2][::2], *((s, r, (o + 1) % N) for s, r, o in GRAPH[2][::3])}))


def ready(*, block: bool) -> ReadyRules:
    return make_ranker(CASE.graph, CASE.scored, block=block).ready


def questions() -> QueryArrays:
    return make_queries(as_table(CASE.test), [as_table(GRAPH[2]), as_table(CASE.test)], GRAPH[1])[0]


@pytest.fixture(scope="module")
def ray_session() -> Iterator[None]:
    """Two cores, whose workers are kept: there is one backend after the other."""
    ray: Any = pytest.importorskip("ray", reason="Ray is not installed: pip install 'anyburl[ray]'")
    ray.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    kept = KeptRay(ray)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("anyburl.base.cluster.import_ray", lambda: kept)
        yield
    ray.shutdown()


@pytest.fixture(scope="module", params=BACKENDS)
def kind(request: pytest.FixtureRequest) -> str:
    if request.param == "ray":
        request.getfixturevalue("ray_session")
    return str(request.param)


def start(kind: str, rules: ReadyRules) -> Backend:
    if kind == "ray":
        from anyburl.ranking.ray import RayBackend

        return RayBackend(rules, 2)
    return LocalBackend(rules, 1 if kind == "one thread" else 3)


@pytest.fixture(scope="module", params=[False, True], ids=["open", "blocked"])
def blocked(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture(scope="module")
def backend(kind: str, blocked: bool) -> Iterator[Backend]:
    made = start(kind, ready(block=blocked))
    yield made
    made.close()
    made.close()  # does no harm


@pytest.fixture(scope="module")
def plain(blocked: bool) -> Backend:
    """What the others are compared with; itself compared with the reference."""
    return LocalBackend(ready(block=blocked), 1)


def assert_same(left: AnswerArrays, right: AnswerArrays) -> None:
    for name, column in left._asdict().items():
        assert np.array_equal(column, getattr(right, name)), name
        assert column.dtype == getattr(right, name).dtype, name


@pytest.mark.parametrize("name", [*AGGREGATIONS, "tuned"])
@pytest.mark.parametrize("top_k", [0, 5])
def test_answers_do_not_depend_on_the_backend(backend: Backend, plain: Backend, name: str, top_k: int) -> None:
    asked, aggregation = questions(), parse_aggregation(name)
    assert len(asked.entities) > 2 * QUERIES_AT_A_TIME
    for queries in (asked, take_queries(asked, np.arange(3)), take_queries(asked, np.arange(0))):
        wanted = AnswerRequest(aggregation, top_k=top_k)
        assert_same(backend.answer(queries, wanted), plain.answer(queries, wanted))


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_answers_are_those_of_the_reference(backend: Backend, blocked: bool, name: str) -> None:
    judge, asked = Judge(CASE), questions()
    found = read_answers(asked, backend.answer(asked, AnswerRequest(parse_aggregation(name), top_k=4)), N)
    expected = {query: judge.answer(query, targets, name, blocked, 4) for query, targets in judge.targets().items()}
    assert_answers(found, expected, may_prune=False)


def test_evidence_and_known_answers_do_not_depend_on_the_backend(backend: Backend, plain: Backend) -> None:
    asked, groups = questions(), rule_groups(make_ranker(CASE.graph, CASE.scored).rules)
    chosen: dict[str, Any] = {"top_k": 5, "groups": groups, "keep_known": True}
    asked = asked._replace(excluded_offsets=np.zeros_like(asked.excluded_offsets), excluded=np.empty(0, np.int32))
    wanted = AnswerRequest(parse_aggregation("noisy-or"), **chosen)
    found = backend.answer(asked, wanted)
    assert found.evidence.any()
    assert_same(found, plain.answer(asked, wanted))


def test_firings_do_not_depend_on_the_backend(backend: Backend, plain: Backend) -> None:
    for query in all_queries(GRAPH)[::5]:
        left, right = (one.fire(*query, parse_aggregation("max")) for one in (backend, plain))
        assert left.candidates.tolist() == right.candidates.tolist()
        assert left.rules.tolist() == right.rules.tolist()
        assert left.scores.tolist() == right.scores.tolist()


def test_progress_counts_every_query_once(backend: Backend) -> None:
    asked, done = questions(), list[int]()
    backend.answer(asked, AnswerRequest(parse_aggregation("max")), done.append)
    assert sum(done) == len(asked.entities)


def test_a_backend_tells_its_threads(backend: Backend, kind: str) -> None:
    assert backend.threads == {"one thread": 1, "three threads": 3, "ray": 2}[kind]


class Facts:
    """Facts of all subjects, as work that a backend does in parts."""

    def __init__(self, name: str, *, block: bool) -> None:
        self.ranker = make_ranker(CASE.graph, CASE.scored, block=block, aggregation=name)
        self.search = make_search(self.ranker, np.full(GRAPH[1], 0.2))

    def by(self, backend: Backend, size: int) -> list[tuple[object, ...]]:
        parts = [np.arange(i, min(i + size, N), dtype=np.int32) for i in range(0, N, size)]
        found = FactColumns.concat(list(backend.map(self.search, parts)))
        return [(*triple, score) for triple, score in zip(found.triples.tolist(), found.scores, strict=True)]


@pytest.mark.parametrize("name", ["max", "noisy-or-top:2"])
def test_facts_do_not_depend_on_the_backend(backend: Backend, plain: Backend, blocked: bool, name: str) -> None:
    """Whatever the parts are, and whatever work came before."""
    facts = Facts(name, block=blocked)
    expected = facts.by(plain, N)
    assert len(expected) > 20
    assert facts.by(backend, 1) == facts.by(backend, 7) == expected


def test_work_that_is_sent_to_workers_needs_no_other_kernels(ray_session: None) -> None:
    """Arrays that come from the object store are read-only: kernels would be compiled for them once more."""
    import ray

    facts = Facts("max", block=False)
    subjects = np.arange(N, dtype=np.int32)
    facts.search(subjects)
    before = list(find_facts.signatures)  # type: ignore[attr-defined]
    ray.get(ray.put(facts.search))(subjects)
    assert find_facts.signatures == before  # type: ignore[attr-defined]


def test_parts_come_in_order_and_may_be_left(backend: Backend) -> None:
    assert list(backend.map(str, range(100))) == [str(number) for number in range(100)]
    taken = backend.map(str, iter(range(10**9)))
    assert [next(taken) for _ in range(3)] == ["0", "1", "2"]
    taken.close()  # type: ignore[attr-defined]
    assert list(backend.map(str, [])) == []


def test_an_error_of_the_work_is_raised(backend: Backend) -> None:
    with pytest.raises(Exception, match="invalid literal"):
        list(backend.map(int, ["1", "two"]))
