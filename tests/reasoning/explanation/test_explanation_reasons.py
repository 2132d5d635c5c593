"""The rules behind a triple and their facts, compared with plain Python."""

from __future__ import annotations

import numpy as np
import pytest
from explaining import Ids, all_groundings, cases, dataset_of, label_triple, ranker_of, rule_set_of
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.ranking.queries import make_queries
from anyburl.reasoning.explanation.explain import explain_triple
from anyburl.rules.rule import Constant, Rule, Variable
from kernels import examples
from ranked import AGGREGATIONS
from reference.scoring import predicted
from strategies import RuleTuple, SmallGraph

Case = tuple[SmallGraph, list[RuleTuple], list[int], Ids]
EVERYTHING = 100


def predicts(graph: SmallGraph, rule: RuleTuple, triple: Ids, identity: bool) -> bool:
    """Whether the reference says so."""
    n_entities, n_relations, triples = graph
    subject, relation, object_ = triple
    if rule[1] % n_relations != relation:
        return False
    pairs = predicted(triples, n_entities, n_relations, rule, identity)
    pair = (subject, object_) if rule[1] < n_relations else (object_, subject)
    return pair in pairs or (subject == object_ and (subject, n_entities) in pairs)


@pytest.mark.kernel
@settings(max_examples=examples(400, 100))
@given(cases(), st.booleans(), st.integers(1, 4))
def test_reasons_are_the_rules_that_predict_with_all_their_groundings(case: Case, identity: bool, limit: int) -> None:
    graph, tuples, supports, triple = case
    dataset = dataset_of(graph)
    vocabulary = dataset.vocabulary
    rules = rule_set_of(vocabulary, tuples, supports)
    ranker = ranker_of(rules, dataset, object_identity=identity)
    labels = label_triple(vocabulary, triple)
    found = explain_triple(ranker, dataset, labels, top=EVERYTHING, groundings=limit)
    rows = {rules.rule(row): row for row in range(len(rules))}
    firing = {row for row, rule in enumerate(tuples) if predicts(graph, rule, triple, identity)}
    listed = {rows[reason.rule] for reason in found}
    assert firing <= listed
    assert {row for row in listed if tuples[row][0] != "Z"} <= firing
    assert found.n_reasons == len(found.reasons) == len(listed)
    for reason in found:
        row = rows[reason.rule]
        if tuples[row][0] == "Z":
            assert reason.groundings == ()
            continue
        every = all_groundings(graph[2], graph[:2], tuples[row], triple, vocabulary, identity)
        assert set(reason.groundings) <= every
        assert len(set(reason.groundings)) == len(reason.groundings) == min(limit, len(every))


@settings(max_examples=examples(300, 60))
@given(cases())
def test_each_fact_is_in_train_and_instantiates_the_rule_with_different_entities(case: Case) -> None:
    graph, tuples, supports, triple = case
    dataset = dataset_of(graph)
    rules = rule_set_of(dataset.vocabulary, tuples, supports)
    labels = label_triple(dataset.vocabulary, triple)
    facts = set(dataset.train.to_polars().rows())
    found = explain_triple(ranker_of(rules, dataset), dataset, labels, top=EVERYTHING)
    for reason in found:
        for grounding in reason.groundings:
            assert set(grounding) <= facts
            check_instance(reason.rule, labels, grounding)


def check_instance(rule: Rule, triple: tuple[str, str, str], grounding: tuple[tuple[str, str, str], ...]) -> None:
    """Bind the variables of head and body; they are consistent, and no entity stands for two terms."""
    bound: dict[object, str] = {}
    for atom, (subject, relation, object_) in zip((rule.head, *rule.body), (triple, *grounding), strict=True):
        assert atom.relation == relation
        for term, label, other in ((atom.subject, subject, object_), (atom.object, object_, subject)):
            if isinstance(term, Constant) and term.is_self:
                assert label == other
            elif isinstance(term, Constant):
                assert label == term.label
                assert bound.setdefault(term, label) == label
            else:
                assert isinstance(term, Variable)
                assert bound.setdefault(term, label) == label
    assert len(set(bound.values())) == len(bound)


@settings(max_examples=examples(300, 60))
@given(
    cases(),
    st.sampled_from(AGGREGATIONS),
    st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2), st.integers(0, 5)), max_size=6),
    st.booleans(),
)
def test_ranks_scores_and_order_agree_with_the_ranker(
    case: Case, aggregation: str, drawn: list[Ids], block: bool
) -> None:
    graph, tuples, supports, triple = case
    more = [(s % graph[0], r % graph[1], o % graph[0]) for s, r, o in drawn]
    dataset = dataset_of(graph, more[::2], more[1::2])
    rules = rule_set_of(dataset.vocabulary, tuples, supports)
    ranker = ranker_of(rules, dataset, block_connected=block, aggregation=aggregation)
    found = explain_triple(ranker, dataset, label_triple(dataset.vocabulary, triple), top=EVERYTHING)
    known = [dataset.split(split).triples for split in ("train", "valid", "test")]
    queries, places = make_queries(np.array([triple], np.int32), known, graph[1])
    answers = ranker.answer(queries)
    ranks = (answers.better + answers.equal / 2 + 1)[places]
    fired = answers.fired[places]
    assert [found.rank, found.rank_subject] == [rank if f else None for rank, f in zip(ranks, fired, strict=True)]
    assert found.known == tuple(
        name for name, part in (("train", graph[2]), ("valid", more[::2]), ("test", more[1::2])) if triple in part
    )
    confidences = [reason.confidence for reason in found]
    assert confidences == sorted(confidences, reverse=True)
    counted = sum(reason.contribution for reason in found)
    assert counted == pytest.approx(1.0 if max(confidences, default=0) > 0 else counted)
    if aggregation == "max" and not any(rule[0] == "Z" for rule in tuples):
        assert found.score == max(confidences, default=0.0)
    if aggregation == "noisy-or" and not any(rule[0] == "Z" for rule in tuples):
        assert found.score == pytest.approx(1 - np.prod([1 - c for c in confidences]))
