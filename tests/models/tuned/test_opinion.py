"""Another model's opinion: more candidates, more columns, and an order for all that rules do not know."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from anyburl.models.tuned.kernel import fill_best, sort_lists
from anyburl.models.tuned.listing import Opinion
from anyburl.models.tuned.observations import Lists, find_answers, reorder, rerank
from anyburl.ranking.arrays import QueryArrays, empty_answers

N_ENTITIES, N_QUERIES = 7, 3

score_tables = arrays.arrays(
    np.float32, (N_QUERIES, N_ENTITIES), elements=st.sampled_from([-np.inf, -1.0, 0.0, 0.5, 2.0])
)
entity_sets = st.lists(st.lists(st.integers(0, N_ENTITIES - 1), unique=True, max_size=4), min_size=3, max_size=3)


def lists_with(candidates: list[list[int]]) -> Lists:
    flat = np.array([entity for listed in candidates for entity in listed], np.int32)
    return Lists(np.array([len(listed) for listed in candidates]), flat, np.ones((len(flat), 2), np.float32))


def queries_with(targets: list[list[int]]) -> QueryArrays:
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in targets])]).astype(np.int64)
    nothing = np.zeros(N_QUERIES + 1, np.int64)
    flat = np.array([entity for some in targets for entity in sorted(some)], np.int32)
    zeros = np.zeros(N_QUERIES, np.int32)
    return QueryArrays(zeros, zeros, offsets, flat, nothing, np.empty(0, np.int32))


def listed(candidates: list[list[int]], n_targets: int) -> tuple[Lists, object]:
    lists = lists_with(candidates)
    answers = empty_answers(N_QUERIES, n_targets, 5)
    answers.n_best[:] = lists.sizes
    answers.best[lists.questions, lists.positions] = lists.candidates
    return lists, answers


def opinion_of(scores: NDArray[np.float32]) -> Opinion:
    return Opinion(scores, np.ones(len(scores), np.bool_))


@given(score_tables, entity_sets)
def test_columns_are_those_of_the_definition(scores: NDArray[np.float32], candidates: list[list[int]]) -> None:
    lists = lists_with(candidates)
    columns = opinion_of(scores).columns(lists)
    assert np.isfinite(columns).all()
    for (log_probability, rank, distance), query, entity in zip(
        columns.tolist(), lists.questions, lists.candidates, strict=True
    ):
        own, row = float(scores[query, entity]), scores[query].astype(float)
        if not np.isfinite(own):
            continue
        assert log_probability == pytest.approx(own - np.log(np.exp(row).sum()), abs=1e-4)
        assert np.expm1(-rank) == pytest.approx((row > own).sum(), abs=1e-3)
        assert distance == pytest.approx(own - row.max(), abs=1e-5)


@given(score_tables, entity_sets)
def test_every_entity_that_may_be_ranked_is_a_candidate_once(
    scores: NDArray[np.float32], candidates: list[list[int]]
) -> None:
    lists, answers = listed(candidates, 0)
    wide, longer = opinion_of(scores).add_candidates(answers, lists)  # type: ignore[arg-type]
    for query in range(N_QUERIES):
        found = longer.candidates[longer.questions == query].tolist()
        assert found[: len(candidates[query])] == candidates[query]
        assert sorted(found) == sorted({*candidates[query], *np.flatnonzero(np.isfinite(scores[query])).tolist()})
        assert wide.best[query, : wide.n_best[query]].tolist() == found
    assert not longer.evidence[longer.positions >= np.repeat(lists.sizes, longer.sizes)].any()


@given(score_tables, entity_sets, entity_sets, st.randoms(use_true_random=False))
def test_ranks_are_those_of_lists_then_opinion(
    scores: NDArray[np.float32], candidates: list[list[int]], targets: list[list[int]], random: object
) -> None:
    queries = queries_with(targets)
    lists, answers = listed(candidates, len(queries.targets))
    judged = np.array([random.choice([0.0, 1.0, 2.0]) for _ in lists.candidates])  # type: ignore[attr-defined]
    found, opinion = find_answers(lists, queries), opinion_of(scores)
    opinion.rank_the_rest(lists, queries, found, answers)  # type: ignore[arg-type]
    rerank(lists, queries, found, judged, answers)  # type: ignore[arg-type]
    place = 0
    for query in range(N_QUERIES):
        by_model = dict(zip(candidates[query], judged[lists.questions == query].tolist(), strict=True))
        for target in sorted(targets[query]):
            rivals = [entity for entity in range(N_ENTITIES) if entity not in targets[query]]
            better, equal = expected_place(target, rivals, by_model, scores[query])
            assert (answers.better[place], answers.equal[place]) == (better, equal)  # type: ignore[attr-defined]
            place += 1


def expected_place(
    target: int, rivals: list[int], by_model: dict[int, float], scores: NDArray[np.float32]
) -> tuple[int, int]:
    """Listed entities come first, in the model's order; the others follow in the order of the opinion."""

    def key(entity: int) -> tuple[int, float]:
        return (1, by_model[entity]) if entity in by_model else (0, float(scores[entity]))

    return sum(key(rival) > key(target) for rival in rivals), sum(key(rival) == key(target) for rival in rivals)


@pytest.mark.kernel
@given(score_tables, entity_sets, st.integers(1, N_ENTITIES), st.sets(st.integers(0, N_QUERIES - 1)))
def test_the_best_entities_that_are_not_listed_are_found(
    scores: NDArray[np.float32], candidates: list[list[int]], n_best: int, chosen: set[int]
) -> None:
    lists, questions = lists_with(candidates), np.array(sorted(chosen), np.int64)
    found = np.empty((len(questions), n_best), np.int32)
    fill_best(scores[questions], questions, lists.offsets, lists.candidates, found)
    for row, question in enumerate(questions.tolist()):
        possible = [entity for entity in range(N_ENTITIES) if np.isfinite(scores[question, entity])]
        best = sorted(possible, key=lambda entity: (-scores[question, entity], entity))[:n_best]
        expected = [-1 if entity in candidates[question] else entity for entity in best]
        assert found[row].tolist() == expected + [-1] * (n_best - len(best))


def test_an_opinion_on_some_questions_leaves_the_others_alone() -> None:
    scores = np.array([[0.0, 3.0, 1.0, -np.inf, 0, 0, 2.0]], np.float32)
    lists, answers = listed([[0], [5], [2, 1]], 0)
    chosen = np.array([False, True, False])
    wide, longer = Opinion(scores, chosen).add_candidates(answers, lists)  # type: ignore[arg-type]
    assert [longer.candidates[longer.questions == query].tolist() for query in range(N_QUERIES)] == [
        [0],
        [5, 1, 6, 2, 0, 4],
        [2, 1],
    ]
    assert [wide.best[query, : wide.n_best[query]].tolist() for query in range(N_QUERIES)] == [
        [0],
        [5, 1, 6, 2, 0, 4],
        [2, 1],
    ]


@pytest.mark.kernel
@given(st.lists(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 2.0]), st.integers(0, 9)), max_size=6), max_size=3))
def test_lists_are_sorted_by_score_then_candidate(drawn: list[list[tuple[float, int]]]) -> None:
    offsets = np.cumsum([0, *map(len, drawn)]).astype(np.int64)
    flat = [pair for own in drawn for pair in own]
    scores, candidates = np.array([score for score, _ in flat]), np.array([entity for _, entity in flat], np.int32)
    order = np.empty(len(flat), np.int64)
    sort_lists(offsets, scores, candidates, order)
    assert sorted(order.tolist()) == list(range(len(flat)))
    for first, own in zip(offsets[:-1].tolist(), drawn, strict=True):
        found = [flat[row] for row in order[first : first + len(own)].tolist()]
        assert found == sorted(own, key=lambda pair: (-pair[0], pair[1]))


def test_the_order_of_candidates_is_the_models() -> None:
    scores = np.array([[0.0, 3.0, 1.0, -np.inf, 0, 0, 0]] * N_QUERIES, np.float32)
    lists, answers = listed([[0], [], [2, 1]], 0)
    wide, longer = opinion_of(scores).add_candidates(answers, lists)  # type: ignore[arg-type]
    judged = -longer.candidates.astype(np.float64)
    reorder(longer, judged, wide)
    assert wide.best[0, :3].tolist() == [0, 1, 2]
    assert wide.best_rules.max() == -1
