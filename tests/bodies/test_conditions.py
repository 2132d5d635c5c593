"""Rules with conditions on values: counted and fired as the reference says, for every form, bound and kind of value."""

from __future__ import annotations

import math
from itertools import pairwise, product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from anyburl import Dataset, RuleSet, rescore
from anyburl.base.errors import RuleError
from anyburl.data.attributes import Attribute, AttributeKind, Attributes
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.stored import graph_of
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.explanation.rule_examples import find_groundings, find_task_walks, make_task
from anyburl.rules.parts import COMPARED
from anyburl.rules.rule import SELF, Atom, Condition, Constant, Rule, Variable, X, Y
from kernels import examples
from reference.conditions import (
    ComparingRule,
    ConditionalRule,
    Values,
    predicted_by_comparison,
    predicted_by_condition,
    score_comparing,
    score_conditional,
)
from reference.graph import build
from rules.samples import make_rules
from strategies import SmallGraph, graphs

pytestmark = pytest.mark.kernel

CUTS = (-25_567.0, -1.5, 0.0, 1.0, 2.0, 1e300)  # the first is 1900-01-01
KINDS = {"size": AttributeKind.NUMBER, "born": AttributeKind.DATE, "free": AttributeKind.BOOLEAN}


class Case(NamedTuple):
    """A graph, values of its entities, and rules over them."""

    graph: SmallGraph
    values: Values
    rules: list[ConditionalRule]
    compared: list[ComparingRule]


@st.composite
def cases(draw: DrawFn) -> Case:
    """Few values, so that there are ties; of some entities several or none, of some attributes one or none at all."""
    graph = draw(graphs())
    n_entities, n_relations, _ = graph
    some = st.sets(st.sampled_from(CUTS), max_size=3)
    values = {
        name: {entity: found for entity in range(n_entities) if (found := draw(some))} for name in ("size", "born")
    }
    values["free"] = {entity: {1.0} for entity in draw(st.sets(st.integers(0, n_entities - 1), max_size=2))}
    bounds = st.tuples(st.sampled_from((-math.inf, *CUTS)), st.sampled_from((*CUTS, math.inf)))
    one = st.tuples(
        st.integers(0, 2 * n_relations - 1),
        st.integers(0, n_entities),
        st.lists(st.integers(0, 2 * n_relations - 1), max_size=1).map(tuple),
        st.sampled_from([name for name in values if values[name]] or ["size"]),
        bounds.filter(lambda pair: pair[0] < pair[1] and pair != (-math.inf, math.inf)),
    ).map(lambda drawn: (*drawn[:4], *drawn[4]))
    rules = draw(st.lists(one, max_size=6, unique=True))
    compared = st.tuples(
        st.integers(0, n_relations - 1),
        st.lists(st.integers(0, 2 * n_relations - 1), min_size=1, max_size=3).map(tuple),
        st.sampled_from([name for name in values if values[name]] or ["size"]),
        st.sampled_from("<=>"),
    )
    if not any(values.values()):
        return Case(graph, values, [], [])
    return Case(graph, values, rules, draw(st.lists(compared, max_size=6, unique=True)))


def dataset_of(case: Case) -> Dataset:
    n_entities, n_relations, triples = case.graph
    vocabulary = Vocabulary.from_labels([f"e{i}" for i in range(n_entities)], [f"r{i}" for i in range(n_relations)])
    attributes = Attributes.of(
        Attribute.of(
            name,
            KINDS[name],
            np.array([entity for entity, own in found.items() for _ in own]),
            np.array([value for own in found.values() for value in own]),
        )
        for name, found in case.values.items()
    )
    train = TripleTable.from_ids(np.array(triples, np.int32).reshape(-1, 3), vocabulary)
    nothing = TripleTable.from_ids(np.empty((0, 3), np.int32), vocabulary)
    return Dataset("drawn", train, nothing, nothing, attributes=attributes)


def as_rule(case: Case, rule: ConditionalRule) -> Rule:
    n_entities, n_relations, _ = case.graph
    head, constant, path, attribute, low, high = rule
    far = SELF if constant == n_entities else Constant(f"e{constant}")
    start, atoms, end = X if head < n_relations else Y, [], X if head < n_relations else Y
    for step in path:
        end = Variable("A")
        terms = (start, end) if step < n_relations else (end, start)
        atoms.append(Atom(f"r{step % n_relations}", *terms))
    terms_of_head = (start, far) if head < n_relations else (far, start)
    condition = Condition(attribute, end, low, high, KINDS[attribute])
    return Rule(Atom(f"r{head % n_relations}", *terms_of_head), tuple(atoms), condition)


def as_comparing(case: Case, rule: ComparingRule) -> Rule:
    n_relations = case.graph[1]
    head, path, attribute, sign = rule
    terms = [X, *map(Variable, "ABC"[: len(path) - 1]), Y]
    ends = [pair if step < n_relations else pair[::-1] for step, pair in zip(path, pairwise(terms), strict=True)]
    atoms = [Atom(f"r{step % n_relations}", *pair) for step, pair in zip(path, ends, strict=True)]
    condition = Condition(attribute, X, *COMPARED[sign], kind=KINDS[attribute], than=Y)
    return Rule(Atom(f"r{head}", X, Y), tuple(atoms), condition)


def rule_set(case: Case) -> RuleSet:
    rules = [*(as_rule(case, rule) for rule in case.rules), *(as_comparing(case, rule) for rule in case.compared)]
    return make_rules([(rule, (4, 1)) for rule in rules])


@given(cases(), st.booleans())
@settings(max_examples=examples(150))
def test_counts_are_those_of_the_reference(case: Case, object_identity: bool) -> None:
    n_entities, n_relations, triples = case.graph
    graph = build(triples, n_entities, n_relations, object_identity)
    found = rescore(rule_set(case), dataset_of(case), object_identity=object_identity)
    expected = [score_conditional(graph, case.values, rule, object_identity) for rule in case.rules]
    expected += [score_comparing(graph, case.values, rule, object_identity) for rule in case.compared]
    assert list(zip(found.predictions.tolist(), found.support.tolist(), strict=True)) == expected
    assert found.exact.all()


@given(cases(), st.booleans())
@settings(max_examples=examples(100))
def test_rules_fire_for_what_the_reference_predicts(case: Case, object_identity: bool) -> None:
    n_entities, n_relations, triples = case.graph
    graph, dataset = build(triples, n_entities, n_relations, object_identity), dataset_of(case)
    rules = rule_set(case).with_vocabulary(dataset.vocabulary)
    options = RankOptions(threads=1, object_identity=object_identity)
    ranker = make_ranker(graph_of(dataset.train), rules, options, block_connected=False)
    labels = dataset.vocabulary.relations.to_list()
    fired: list[set[tuple[int, int, int]]] = [set(), set()]  # asked for objects, and for subjects
    for relation, entity in product(range(n_relations), range(n_entities)):
        for turn in (0, 1):
            found = ranker.fire(entity, labels.index(f"r{relation}") + turn * len(labels))
            for row, other in zip(found.rules.tolist(), found.candidates.tolist(), strict=True):
                fired[turn].add((row, other, entity) if turn else (row, entity, other))
    expected = set()
    for row, rule in enumerate(case.rules):
        for x in predicted_by_condition(graph, case.values, rule, object_identity):
            other = x if rule[1] == n_entities else rule[1]
            expected.add((row, x, other) if rule[0] < n_relations else (row, other, x))
    for row, one in enumerate(case.compared, len(case.rules)):
        expected |= {(row, *pair) for pair in predicted_by_comparison(graph, case.values, one, object_identity)}
    assert fired == [expected, expected]


@given(cases(), st.booleans())
@settings(max_examples=examples(100))
def test_walks_lead_to_where_a_condition_holds(case: Case, object_identity: bool) -> None:
    n_entities, n_relations, triples = case.graph
    graph, dataset = build(triples, n_entities, n_relations, object_identity), dataset_of(case)
    rules = rule_set(case).with_vocabulary(dataset.vocabulary)
    options = RankOptions(threads=1, object_identity=object_identity)
    ranker = make_ranker(graph_of(dataset.train), rules, options, block_connected=False)
    for row in range(len(rules)):
        constant = int(rules.head_constant[row]) if object_identity else -1
        tasks = [make_task(rules, row, start, -1) for start in range(n_entities) if start != constant]
        walks = [walk for task in tasks for walk in find_task_walks(ranker, task, 1000)]
        if row < len(case.rules):
            members = predicted_by_condition(graph, case.values, case.rules[row], object_identity)
            assert {walk[0] for walk in walks} == members
            continue
        pairs = predicted_by_comparison(graph, case.values, case.compared[row - len(case.rules)], object_identity)
        assert {(walk[0], walk[-1]) for walk in walks} == pairs
        relation = int(rules.head[row])
        for x, y in product(range(n_entities), repeat=2):
            if x != y or not object_identity:
                assert bool(find_groundings(ranker, row, (x, relation, y), 1)) == ((x, y) in pairs)


def test_an_attribute_that_is_not_there_is_refused_in_a_sentence() -> None:
    data = Dataset.from_triples([("a", "h", "b")])
    with pytest.raises(RuleError, match="a rule has a condition on size, but the data has no such attribute"):
        rescore(make_rules([("h(X,b) <= size(X) >= 5", (1, 1))]), data)
