"""The kernels of distilling against plain Python: which rules predict an answer, what they are worth, how they are
chosen.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anyburl import Dataset, Reasoner
from anyburl.models.distilling.choosing import Evidence, order_by_gain
from anyburl.models.distilling.contests import HARM
from anyburl.models.distilling.known import KnownAnswers, Observer, in_answers
from anyburl.ranking.index import to_scores
from anyburl.ranking.queries import make_queries
from anyburl.rules.combine import rule_keys
from kernels import examples, table_of
from ranked import Case, Judge, as_table, cases, make_ranker, rule_set
from reference.distilling import Rules, best_value, reciprocal_rank
from reference.graph import Triple
from reference.ranking import known_answers
from reference.scoring import all_rules
from reference.subsumption import is_more_general
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

LEAST_SUPPORT = 1
AGGREGATIONS = ("max", "noisy-or", "noisy-or-top:2")


class Asked(NamedTuple):
    """A known answer, and the rules of all candidates as they count for it."""

    target: int
    candidates: Mapping[int, Rules]


def asked_about(case: Case, facts: list[Triple], *, from_train: bool) -> list[Asked]:
    """The known answers of facts in the order of the kernels: by question, then by answer."""
    _, n_relations, train = case.graph
    judge, found = Judge(Case(case.graph, case.scored, case.valid, facts)), []
    fewer = [left_out_score(support, predictions) for _, support, predictions in case.scored]
    for query, targets in judge.targets().items():
        known = known_answers([train, case.valid], n_relations, query)
        excluded = known - set(targets)
        rules: dict[int, list[int]] = {}
        for candidate, row in judge.firings(query):
            if candidate not in excluded:
                rules.setdefault(candidate, []).append(row)
        for target in targets:
            own = set(rules.get(target, [])) if from_train else set()
            counted = {
                c: {row: fewer[row] if row in own else judge.scores[row] for row in rows}
                for c, rows in rules.items()
                if c == target or c not in targets
            }
            counted = {c: {row: score for row, score in some.items() if score >= 0} for c, some in counted.items()}
            found.append(Asked(target, counted))
    return found


def left_out_score(support: int, predictions: int) -> int:
    """The score of a rule with one correct prediction less; -1 if too little support is left."""
    return int(to_scores((support - 1) / predictions)) if support - 1 >= LEAST_SUPPORT else -1


def known_of(case: Case, facts: list[Triple], *, from_train: bool) -> KnownAnswers:
    train, valid = (as_table(some) for some in (case.graph[2], case.valid))
    queries, _ = make_queries(as_table(facts), [train, valid], case.graph[1])
    return KnownAnswers(queries, from_train)


def facts_of(case: Case, *, from_train: bool) -> list[Triple]:
    return sorted(set(case.graph[2])) if from_train else case.valid


@given(case=cases(), from_train=st.booleans())
def test_the_best_rules_of_an_answer(case: Case, from_train: bool) -> None:
    facts = facts_of(case, from_train=from_train)
    ranker = make_ranker(case.graph, case.scored)
    observer, keys = Observer(ranker, LEAST_SUPPORT), rule_keys(ranker.rules)[0]
    known = known_of(case, facts, from_train=from_train)
    best, expected = observer.best_rules(known, 3), asked_about(case, facts, from_train=from_train)
    assert len(known) == len(expected)
    for row, asked in enumerate(expected):
        rules = asked.candidates.get(asked.target, {})
        first = sorted(rules, key=lambda rule: (-rules[rule], keys[rule]))[:3]
        assert best.rules[row].tolist() == first + [-1] * (3 - len(first))
        assert best.scores[row, : len(first)].tolist() == [rules[rule] for rule in first]


@given(case=cases(), from_train=st.booleans(), aggregation=st.sampled_from(AGGREGATIONS))
def test_worth_is_what_ranking_without_a_rule_loses(case: Case, from_train: bool, aggregation: str) -> None:
    facts = facts_of(case, from_train=from_train)
    observer = Observer(make_ranker(case.graph, case.scored, aggregation=aggregation), LEAST_SUPPORT)
    expected, every = asked_about(case, facts, from_train=from_train), set(range(len(case.scored)))
    total, found = observer.worth([known_of(case, facts, from_train=from_train)])
    whole = sum_of_ranks(expected, aggregation, every)
    assert total == pytest.approx(whole)
    for rule in every:
        left = sum_of_ranks(expected, aggregation, every - {rule})
        assert in_answers(found.worth)[rule] == pytest.approx(whole - left, abs=1e-6)
    own = [asked.candidates.get(asked.target, {}) for asked in expected]
    best = [min(rules, key=lambda rule: (-rules[rule], rule)) for rules in own if rules]
    assert found.decides.tolist() == np.bincount(best, minlength=len(case.scored)).tolist()
    single = [next(iter(rules)) for rules in own if len(rules) == 1]
    assert found.only.tolist() == np.bincount(single, minlength=len(case.scored)).tolist()


@given(
    case=cases(),
    from_train=st.booleans(),
    aggregation=st.sampled_from(AGGREGATIONS),
    drawn=st.sets(st.integers(0, 13)),
)
def test_contests_rank_by_any_of_the_rules(case: Case, from_train: bool, aggregation: str, drawn: set[int]) -> None:
    facts = facts_of(case, from_train=from_train)
    observer = Observer(make_ranker(case.graph, case.scored, aggregation=aggregation), LEAST_SUPPORT)
    expected = asked_about(case, facts, from_train=from_train)
    chosen = {rule for rule in drawn if rule < len(case.scored)}
    kept = np.isin(np.arange(len(case.scored)), list(chosen))
    contests = observer.contests([known_of(case, facts, from_train=from_train)], 0, 1_000)
    now = sum_of_ranks(expected, aggregation, chosen)
    for some in (contests, contests.of_rules(kept)):
        assert some.weigh(kept).total == pytest.approx(sum_of_ranks(expected, aggregation, chosen, HARM))
    worth = in_answers(contests.weigh(kept, with_gains=True).rules.worth)
    for rule in range(len(case.scored)):
        if all(rule in asked.candidates.get(asked.target, {rule: 0}) for asked in expected):  # else it is an estimate
            changed = sum_of_ranks(expected, aggregation, chosen ^ {rule})
            assert worth[rule] == pytest.approx(now - changed if rule in chosen else changed - now, abs=1e-6)


def sum_of_ranks(expected: list[Asked], aggregation: str, kept: set[int], harm: float = 1.0) -> float:
    return sum(reciprocal_rank(asked.candidates, asked.target, aggregation, kept, harm) for asked in expected)


@st.composite
def values(draw: st.DrawFn) -> list[dict[int, float]]:
    """For each of some answers, rules and what they are worth to it."""
    value = st.sampled_from([1.0, 0.5, 0.25, 0.125])
    return draw(st.lists(st.dictionaries(st.integers(0, 7), value, max_size=4), min_size=1, max_size=8))


@given(values=values(), shares=st.sampled_from([(1.0,), (1.0, 0.5), (1.0, 0.25, 0.125)]))
def test_each_rule_that_is_chosen_adds_the_most(values: list[dict[int, float]], shares: tuple[float, ...]) -> None:
    rules, worth = np.full((len(values), 4), -1, np.int32), np.zeros((len(values), 4), np.float32)
    for answer, of_rules in enumerate(values):
        for place, (rule, value) in enumerate(of_rules.items()):
            rules[answer, place], worth[answer, place] = rule, value
    order = order_by_gain(Evidence(rules, worth), 8, np.array(shares, np.float32)).tolist()
    for place in range(len(order) + 1):
        before = best_value(values, shares, order[:place])
        gains = [best_value(values, shares, [*order[:place], rule]) - before for rule in range(8)]
        others = [gain for rule, gain in enumerate(gains) if rule not in order[:place]]
        assert place == len(order) or gains[order[place]] == max(others)
    assert sorted(order) == sorted({rule for of_rules in values for rule in of_rules})


SIZES: list[dict[str, Any]] = [{"rules": 3}, {"rules": 12}, {"per_relation": 4}, {"quality": 0.9}]


@settings(max_examples=examples(60))
@given(graph=graphs(min_triples=8, max_triples=24), size=st.sampled_from(SIZES))
def test_no_kept_rule_predicts_the_same_as_a_more_general_kept_one(graph: SmallGraph, size: dict[str, Any]) -> None:
    n_entities, n_relations, triples = graph
    counts = all_rules(triples, n_entities, n_relations, max_acyclic=2, max_grounded=2)
    assume(counts)
    every = rule_set(graph, [(rule, support, predictions) for rule, (predictions, support) in counts.items()])
    train = table_of(graph)
    nothing = train.from_ids(train.triples[:0], train.vocabulary)
    kept = Reasoner(every, Dataset("drawn", train, nothing, nothing), threads=1).distil(**size).rules
    rules = list(kept)
    for row, special in enumerate(rules):
        same = np.flatnonzero(kept.predictions == kept.predictions[row])
        assert not [str(rules[other]) for other in same if is_more_general(rules[other], special)]
