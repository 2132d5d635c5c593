"""What PyKEEN is given orders candidates as the reference does; neither torch nor PyKEEN is needed for it."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.tools.pykeen import query_scores
from kernels import examples
from ranked import AGGREGATIONS, Case, cases, make_ranker
from reference.ranking import strength


@settings(max_examples=examples(100, 25))
@given(cases(), st.sampled_from(AGGREGATIONS))
def test_places_are_those_of_the_reference(case: Case, aggregation: str) -> None:
    n_entities, n_relations, _ = case.graph
    ranker = make_ranker(case.graph, case.scored, aggregation=aggregation)
    for entity in range(n_entities):
        for relation in range(2 * n_relations):
            firings = ranker.fire(entity, relation)
            scores: dict[int, list[int]] = {}
            for candidate, score in zip(firings.candidates.tolist(), firings.scores.tolist(), strict=True):
                scores.setdefault(candidate, []).append(score)
            strengths = {candidate: strength(found, aggregation) for candidate, found in scores.items()}
            places = {one: place for place, one in enumerate(sorted(set(strengths.values())), 1)}
            expected = [places[strengths[e]] if e in strengths else 0 for e in range(n_entities)]
            assert query_scores(ranker, entity, relation).tolist() == expected
