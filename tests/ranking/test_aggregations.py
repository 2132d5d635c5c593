"""Aggregations: what each class says is what the kernels compute; a new one is a class and a line."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import OptionError
from anyburl.data import Dataset, TripleTable
from anyburl.ranking import kernel_order
from anyburl.ranking import kernel_order as kernel_evidence
from anyburl.ranking import options as aggregation_module
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.index import to_confidences, to_scores
from anyburl.ranking.options import AGGREGATIONS, Aggregation, RankOptions, parse_aggregation
from anyburl.ranking.queries import make_queries, single_query
from anyburl.reasoning.explanation.explain import explain_triple
from kernels import examples, table_of
from ranked import AGGREGATIONS as NAMES
from ranked import Case, Judge, all_queries, as_table, cases, make_ranker
from reference.ranking import best, noisy_or, predicting, rank, strength

WHOLE = st.lists(st.integers(0, 2**46), max_size=12).map(lambda scores: sorted(scores, reverse=True))


@pytest.mark.kernel
@settings(max_examples=examples(100, 12))
@given(cases(), st.sampled_from(NAMES))
def test_keys_are_those_of_the_kernels_and_of_the_reference(case: Case, name: str) -> None:
    ranker, judge = make_ranker(case.graph, case.scored, aggregation=name), Judge(case)
    aggregation = parse_aggregation(name)
    for query in all_queries(case.graph):
        answers = ranker.answer(single_query(*query, np.empty(0, np.int32)), top_k=case.graph[0])
        rows = predicting(judge.answers, query)
        for candidate, key in zip(answers.best[0].tolist(), answers.best_keys[0].tolist(), strict=True):
            if candidate >= 0:
                scores = sorted((judge.scores[row] for row in rows[candidate]), reverse=True)
                assert aggregation.key(scores) == key == strength(scores, name)[0]


@pytest.mark.kernel
@settings(max_examples=examples(60, 8))
@given(cases(), st.sampled_from(NAMES), st.sampled_from([0.1, 0.3, 0.5, 0.9]), st.sampled_from([0, 3]))
def test_weak_binary_rules_do_not_fire(case: Case, name: str, least: float, top_k: int) -> None:
    """The answers are those of the other rules alone."""
    kept = [
        row
        for row, one in enumerate(case.scored)
        if one.rule[0] != "B" or to_scores(one.support / max(one.predictions, 1)) >= to_scores(least)
    ]
    passing = make_ranker(case.graph, case.scored, aggregation=name).with_aggregation(name, least_binary=least)
    without = make_ranker(case.graph, [case.scored[row] for row in kept], aggregation=name)
    asked = all_questions(case)
    left, right = (ranker.answer(asked, top_k=top_k) for ranker in (passing, without))
    for column in ("fired", "better", "equal", "n_excluded", "best", "best_keys", "best_counts", "n_best"):
        assert np.array_equal(getattr(left, column), getattr(right, column)), column
    for query in all_queries(case.graph):
        assert passing.fire(*query).rules.tolist() == [kept[row] for row in without.fire(*query).rules.tolist()]


@given(WHOLE, st.sampled_from(NAMES))
def test_keys_are_those_of_the_reference(scores: list[int], name: str) -> None:
    if scores:
        assert parse_aggregation(name).key(scores) == strength(scores, name)[0]
    else:
        assert parse_aggregation(name).key(scores) == 0


@given(st.lists(st.floats(0, 0.999), min_size=1, max_size=8), st.sampled_from(NAMES))
def test_scores_are_confidences(confidences: list[float], name: str) -> None:
    """The best, or one minus the doubts that are left by those that count."""
    ordered = sorted(confidences, reverse=True)
    aggregation = parse_aggregation(name)
    key = aggregation.key(to_scores(np.array(ordered)).tolist())
    score = aggregation.score(float(to_confidences(np.array(key))), ordered[0])
    wanted = ordered[0] if name == "max" else noisy_or(ordered[: aggregation.n_counted])
    assert score == pytest.approx(wanted, abs=1e-9)
    assert 0 <= score <= 1


@given(WHOLE.filter(bool), st.sampled_from(NAMES))
def test_contributions_are_shares_of_what_counts(scores: list[int], name: str) -> None:
    aggregation = parse_aggregation(name)
    shares = [aggregation.contribution(scores, place) for place in range(len(scores))]
    assert all(0 <= share <= 1 for share in shares)
    if name == "max":
        assert shares == [1.0, *[0.0] * (len(scores) - 1)]
    elif any(scores):
        assert sum(shares) == pytest.approx(1)
        counted = scores[: aggregation.n_counted]
        assert shares == pytest.approx([score / sum(counted) for score in counted] + [0] * (len(scores) - len(counted)))
    else:
        assert not any(shares)


@pytest.mark.kernel
@settings(max_examples=examples(40, 5))
@given(cases(), st.sampled_from(NAMES))
def test_explanations_tell_the_contributions_of_the_class(case: Case, name: str) -> None:
    """Where no rule without a body speaks: those answer one of the two queries only."""
    scored = [one for one in case.scored if one.rule[0] != "Z"]
    table = table_of(case.graph)
    nothing = TripleTable.from_ids(np.empty((0, 3), np.int32), table.vocabulary)
    dataset = Dataset("small", table, nothing, nothing)
    ranker, aggregation = make_ranker(case.graph, scored, aggregation=name), parse_aggregation(name)
    for s, r, o in case.test[:3]:
        labels = (
            table.vocabulary.entity_label(s),
            table.vocabulary.relation_label(r),
            table.vocabulary.entity_label(o),
        )
        found = explain_triple(ranker, dataset, labels, top=100, groundings=0)
        scores = to_scores(np.array([reason.confidence for reason in found])).tolist()
        expected = [aggregation.contribution(scores, place) for place in range(len(scores))]
        assert [reason.contribution for reason in found] == expected


@pytest.mark.parametrize(
    "name",
    ["", "Max", "max ", "mean", "noisy-or-top", "noisy-or-top:0", "noisy-or-top:-1", "noisy-or-top:x", "noisy_or"],
)
def test_an_unknown_name_is_refused(name: str) -> None:
    written = "max, noisy-or, noisy-or-top:H, tuned, hybrid"
    with pytest.raises(OptionError, match=f"aggregation must be one of {written}, got"):
        RankOptions(aggregation=name)


@pytest.mark.parametrize(("name", "n_counted"), [("noisy-or-top:1", 1), (f"noisy-or-top:{10**9 - 1}", 10**9 - 1)])
def test_the_number_of_rules_that_count_is_read(name: str, n_counted: int) -> None:
    assert parse_aggregation(name).n_counted == n_counted
    with pytest.raises(OptionError, match="aggregation must be one of"):
        parse_aggregation(f"noisy-or-top:{10**9}")


def test_contributions_worked_out_by_hand() -> None:
    """Scores 6, 3 and 1: of all three, of the best two, of the best one; and of rules that say nothing."""
    scores = [6, 3, 1]
    shares = {
        "max": [1, 0, 0],
        "noisy-or": [0.6, 0.3, 0.1],
        "noisy-or-top:2": [6 / 9, 3 / 9, 0],
        "noisy-or-top:1": [1, 0, 0],
        "tuned": [0.6, 0.3, 0.1],
    }
    for name, expected in shares.items():
        found = [parse_aggregation(name).contribution(scores, place) for place in range(3)]
        assert found == pytest.approx(expected), name
    assert parse_aggregation("noisy-or").contribution([0, 0], 1) == 0
    assert parse_aggregation("noisy-or-top:2").contribution([0, 0], 0) == 0


def test_what_an_aggregation_needs_and_how_it_orders() -> None:
    parsed = [parse_aggregation(kind.example) for kind in AGGREGATIONS]
    assert [one.name for one in parsed if one.needs_model] == ["tuned", "hybrid"]
    assert [one.name for one in parsed if one.needs_embedding] == ["hybrid"]
    assert [one.name for one in parsed if one.breaks_ties] == ["max"]
    assert {one.least_binary for one in parsed} == {0.0}
    assert [one.n_counted for one in parsed] == [1, None, 5, 5, 5]
    assert parse_aggregation("noisy-or").key([2**61, 2**61, 5]) == 2**62
    assert parse_aggregation("noisy-or").score(0.7, 0.4) == 0.7
    assert parse_aggregation("max").score(0.7, 0.4) == 0.4


@pytest.mark.parametrize("kind", AGGREGATIONS)
def test_every_aggregation_describes_itself(kind: type[Aggregation]) -> None:
    made = parse_aggregation(kind.example)
    assert type(made) is kind
    assert made.name == kind.example
    assert kind.help
    assert kind.__doc__
    assert RankOptions(aggregation=kind.example).aggregation == kind.example


@pytest.mark.parametrize("kind", AGGREGATIONS)
def test_aggregations_are_values_that_nothing_changes(kind: type[Aggregation]) -> None:
    made = parse_aggregation(kind.example)
    assert {made, parse_aggregation(kind.example)} == {made}
    assert made != parse_aggregation("max" if kind.example != "max" else "noisy-or")
    with pytest.raises(FrozenInstanceError):
        made.breaks_ties = False  # type: ignore[misc]


def test_no_name_is_that_of_two_aggregations(monkeypatch: pytest.MonkeyPatch) -> None:
    forward = [type(parse_aggregation(kind.example)) for kind in AGGREGATIONS]
    monkeypatch.setattr(aggregation_module, "AGGREGATIONS", AGGREGATIONS[::-1])
    assert [type(parse_aggregation(kind.example)) for kind in AGGREGATIONS] == forward


@dataclass(frozen=True)
class BestTwo(Aggregation):
    """The two best add up; ties go by the scores one by one."""

    pattern = r"best-two"
    written = example = "best-two"
    help = "a toy"

    n_counted: int | None = 2
    breaks_ties: bool = True


@pytest.mark.kernel
@settings(max_examples=examples(80, 10))
@given(cases())
def test_a_new_class_in_the_list_is_all_that_a_new_aggregation_takes(case: Case) -> None:
    n_entities, judge = case.graph[0], Judge(case)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation_module, "AGGREGATIONS", (*AGGREGATIONS, BestTwo))
        ranker = make_ranker(case.graph, case.scored, aggregation="best-two")
        queries = all_questions(case)
        answers = ranker.answer(queries, top_k=n_entities)
    for q, query in enumerate(zip(queries.entities.tolist(), queries.relations.tolist(), strict=True)):
        rows = predicting(judge.answers, query)
        strengths = {}
        for candidate, found in rows.items():
            downward = strength([judge.scores[row] for row in found], "max")
            strengths[candidate] = (sum(downward[:2]), *downward)
        assert answers.best[q, : answers.n_best[q]].tolist() == best(strengths, n_entities)
        for place in range(queries.target_offsets[q], queries.target_offsets[q + 1]):
            target = int(queries.targets[place])
            fellows = set(queries.targets[queries.target_offsets[q] : queries.target_offsets[q + 1]].tolist())
            expected = rank(strengths, n_entities, target, fellows)
            if answers.fired[place]:
                assert (answers.better[place], answers.equal[place]) == expected


def all_questions(case: Case) -> QueryArrays:
    return make_queries(as_table(case.test), [], case.graph[1])[0]


def test_kernels_and_classes_count_in_the_same_units() -> None:
    assert aggregation_module.MOST_EVIDENCE == kernel_order.MOST_EVIDENCE
    assert aggregation_module.UNIT == kernel_evidence.UNIT
