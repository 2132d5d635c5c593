"""Questions: each asked once, with the known answers that do not count against its targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.ranking.queries import make_queries, single_query
from kernels import examples
from ranked import as_table
from reference.graph import Triple
from reference.ranking import known_answers

N_ENTITIES, N_RELATIONS = 5, 3

triples = st.lists(
    st.tuples(st.integers(0, N_ENTITIES - 1), st.integers(0, N_RELATIONS - 1), st.integers(0, N_ENTITIES - 1)),
    max_size=25,
)


@settings(max_examples=examples(200))
@given(triples, st.lists(triples, max_size=3))
def test_every_question_is_asked_once_with_all_its_targets(asked: list[Triple], known: list[list[Triple]]) -> None:
    """Triples may repeat, in the test set and among what is known."""
    queries, places = make_queries(as_table(asked), [as_table(table) for table in known], N_RELATIONS)
    questions = list(zip(queries.entities.tolist(), queries.relations.tolist(), strict=True))
    wanted = [(s, r, o) for s, r, o in asked] + [(o, r + N_RELATIONS, s) for s, r, o in asked]
    assert questions == sorted({(entity, d) for entity, d, _ in wanted})
    assert sorted(places.tolist()) == list(range(len(wanted))) == list(range(len(queries.targets)))
    owners = np.searchsorted(queries.target_offsets, places, side="right") - 1
    assert [(*questions[q], int(queries.targets[i])) for q, i in zip(owners, places, strict=True)] == wanted
    for q, query in enumerate(questions):
        targets = queries.targets[queries.target_offsets[q] : queries.target_offsets[q + 1]].tolist()
        assert targets == sorted(answer for entity, d, answer in wanted if (entity, d) == query)
        excluded = queries.excluded[queries.excluded_offsets[q] : queries.excluded_offsets[q + 1]].tolist()
        assert excluded == sorted(known_answers(known, N_RELATIONS, query) - set(targets))
    assert queries.excluded_offsets[0] == queries.target_offsets[0] == 0
    assert len(queries.excluded_offsets) == len(queries.target_offsets) == len(questions) + 1
    assert queries.excluded_offsets[-1] == len(queries.excluded)


@pytest.mark.parametrize("known", [[], [as_table([])], [as_table([]), as_table([(0, 0, 1)])]])
def test_no_triples_ask_nothing(known: list[np.ndarray]) -> None:  # type: ignore[type-arg]
    queries, places = make_queries(as_table([]), known, 2)
    assert len(places) == len(queries.entities) == len(queries.targets) == len(queries.excluded) == 0
    assert queries.target_offsets.tolist() == queries.excluded_offsets.tolist() == [0]


def test_the_same_question_of_two_triples_is_asked_once() -> None:
    queries, places = make_queries(as_table([(0, 0, 2), (0, 0, 1), (3, 0, 1)]), [as_table([(0, 0, 4)])], 1)
    assert list(zip(queries.entities.tolist(), queries.relations.tolist(), strict=True)) == [
        (0, 0),
        (1, 1),
        (2, 1),
        (3, 0),
    ]
    assert queries.targets.tolist() == [1, 2, 0, 3, 0, 1]
    assert queries.excluded.tolist() == [4]
    assert queries.targets[places].tolist() == [2, 1, 1, 0, 0, 3]


def test_a_single_query_has_no_targets() -> None:
    queries = single_query(3, 1, np.array([2, 0], np.int32))
    assert (queries.entities.tolist(), queries.relations.tolist()) == ([3], [1])
    assert queries.excluded[queries.excluded_offsets[0] : queries.excluded_offsets[1]].tolist() == [2, 0]
    assert len(queries.targets) == 0
