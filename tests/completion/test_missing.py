"""Missing facts: exactly those that asking every question gives, with the same scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anyburl.completion.finder
import anyburl.completion.merging
from anyburl.completion.facts import FactColumns
from anyburl.completion.missing import missing_facts
from anyburl.ranking.scores import to_confidences
from anyburl.triples.dataset import Dataset
from anyburl.triples.table import TripleTable
from kernels import examples, random_graphs, table_of
from ranked import AGGREGATIONS, Case, Judge, as_table, cases, make_ranker
from reference.completion import Missing, missing
from reference.graph import Triple

pytestmark = pytest.mark.kernel

LEAST = st.sampled_from([0.0, 0.25, 0.3, 0.5, 2 / 3, 0.75, 0.9, 1.0, np.inf])


def dataset_of(case: Case) -> Dataset:
    train = table_of(case.graph)
    valid, test = (TripleTable.from_ids(as_table(table), train.vocabulary) for table in (case.valid, case.test))
    return Dataset("case", train, valid, test)


def as_facts(parts: list[FactColumns]) -> dict[Triple, tuple[float, int, int]]:
    """Fact to score, best rule and number of rules; no fact comes twice."""
    facts = FactColumns.concat(parts)
    triples = [(s, r, o) for s, r, o in facts.triples.tolist()]
    assert len(set(triples)) == len(triples)
    said = zip(facts.scores.tolist(), facts.rules.tolist(), facts.n_rules.tolist(), strict=True)
    return dict(zip(triples, said, strict=True))


def found(case: Case, least: list[float], *, block: bool, **options: Any) -> dict[Triple, tuple[float, int, int]]:
    ranker = make_ranker(case.graph, case.scored, block=block, **options)
    return as_facts(list(missing_facts(ranker, dataset_of(case), np.array(least))))


def expected(
    judge: Judge, least: list[float], aggregation: str, *, block: bool
) -> dict[Triple, tuple[float, int, int]]:
    """The reference, with scores as people see them; a key is enough if its score is, as people see it."""
    case, (n_entities, n_relations, train) = judge.case, judge.case.graph
    keys = sorted({*all_keys(judge, aggregation), *judge.scores})
    seen = {key: float(to_confidences(np.array([key], np.int64)).round(12)[0]) for key in keys}
    floors = [min((key for key in keys if seen[key] >= score), default=2**62) for score in least]
    facts = missing(
        train,
        [*case.valid, *case.test],
        n_entities,
        n_relations,
        judge.answers,
        judge.scores,
        aggregation,
        floors,
        seen,
        block=block,
    )
    return {fact: said(told, seen) for fact, told in facts.items()}


def said(told: Missing, seen: dict[int, float]) -> tuple[float, int, int]:
    return seen[told.key], told.rule, told.n_rules


def all_keys(judge: Judge, aggregation: str) -> list[int]:
    """The keys that candidates have, as answers to any question."""
    n_entities, n_relations, _ = judge.case.graph
    found = []
    for entity in range(n_entities):
        for d in range(2 * n_relations):
            rows: dict[int, list[int]] = {}
            for candidate, row in judge.firings((entity, d)):
                rows.setdefault(candidate, []).append(row)
            found += [judge.strength(some, aggregation)[0] for some in rows.values()]
    return found


@settings(max_examples=examples(300, 40))
@given(cases(), st.booleans(), st.booleans(), st.sampled_from(AGGREGATIONS), st.data())
def test_exactly_what_asking_every_question_gives(
    case: Case, object_identity: bool, block: bool, aggregation: str, data: st.DataObject
) -> None:
    """All aggregations, blocked and not, with and without object identity, another least score for each relation."""
    judge = Judge(case, object_identity)
    least = data.draw(st.lists(LEAST, min_size=case.graph[1], max_size=case.graph[1]))
    facts = found(case, least, block=block, aggregation=aggregation, object_identity=object_identity)
    assert facts == expected(judge, least, aggregation, block=block)


@settings(max_examples=examples(25, 2))
@given(cases(random_graphs(12, [2, 3], 30)), st.booleans(), st.sampled_from(AGGREGATIONS), LEAST)
def test_in_larger_graphs(case: Case, block: bool, aggregation: str, score: float) -> None:
    least = [score] * case.graph[1]
    facts = found(case, least, block=block, aggregation=aggregation)
    assert facts == expected(Judge(case), least, aggregation, block=block)


@settings(max_examples=examples(25, 2))
@given(cases(random_graphs(12, [2, 3], 30)), st.sampled_from(AGGREGATIONS), st.booleans())
def test_whatever_the_room(case: Case, aggregation: str, block: bool) -> None:
    """Buffers that are too small for firings, ends of bodies or facts are made larger, or emptied, and nothing is lost;
    facts that do not fit into memory go to files.
    """
    least = [0.0] * case.graph[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyburl.completion.finder, "ROOM", 1)
        patch.setattr(anyburl.completion.finder, "LISTS", 1)
        patch.setattr(anyburl.completion.merging, "MOST_FACTS", 7)
        patch.setattr(anyburl.completion.merging, "FACTS_AT_A_TIME", 3)
        patch.setattr(anyburl.completion.missing, "SUBJECTS_AT_A_TIME", 2)
        cramped = found(case, least, block=block, aggregation=aggregation, threads=2)
    assert cramped == found(case, least, block=block, aggregation=aggregation)


@settings(max_examples=examples(25, 3))
@given(cases(), st.sampled_from(AGGREGATIONS), st.data())
def test_some_subjects_only(case: Case, aggregation: str, data: st.DataObject) -> None:
    subjects = data.draw(st.lists(st.integers(0, case.graph[0] - 1), max_size=3))
    ranker, dataset = make_ranker(case.graph, case.scored, aggregation=aggregation), dataset_of(case)
    least = np.zeros(case.graph[1])
    some = as_facts(list(missing_facts(ranker, dataset, least, subjects=np.array(subjects, np.int32))))
    every = as_facts(list(missing_facts(ranker, dataset, least)))
    assert some == {fact: told for fact, told in every.items() if fact[0] in subjects}


@settings(max_examples=examples(25, 3))
@given(cases(), st.sampled_from(AGGREGATIONS))
def test_facts_of_other_splits_may_be_kept(case: Case, aggregation: str) -> None:
    ranker, least = make_ranker(case.graph, case.scored, aggregation=aggregation), np.zeros(case.graph[1])
    kept = as_facts(list(missing_facts(ranker, dataset_of(case), least, stated=("train",))))
    unseen = case._replace(valid=[], test=[])
    assert kept == as_facts(list(missing_facts(ranker, dataset_of(unseen), least)))
