"""Small rule sets and plain-Python explanations to compare with."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from anyburl.data import Dataset, TripleTable, Vocabulary
from anyburl.graph.stored import graph_of
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.rules.combine import pad_lists
from anyburl.rules.ruleset import RuleSet
from kernels import table_of
from reference.graph import Graph, build
from reference.scoring import predicted, walks
from strategies import RuleTuple, SmallGraph, graphs, grounded_rules, rules

CODES = {"B": 0, "Uc": 1, "Ud": 2, "Z": 3}
Ids = tuple[int, int, int]
Facts = tuple[tuple[str | None, str, str | None], ...]


def rule_set_of(vocabulary: Vocabulary, tuples: Sequence[RuleTuple], supports: Sequence[int]) -> RuleSet:
    """Rules with ten predictions each."""
    flat = np.array([step for rule in tuples for step in rule[3]], np.int32)
    lengths = np.array([len(rule[3]) for rule in tuples], np.int64)
    missing = [(-1 if rule[2] is None else rule[2], -1 if rule[4] is None else rule[4]) for rule in tuples]
    return RuleSet(
        vocabulary=vocabulary,
        bodies=pad_lists(flat, lengths),
        type=np.array([CODES[rule[0]] for rule in tuples], np.uint8),
        head=np.array([rule[1] for rule in tuples], np.int32),
        body=np.arange(len(tuples), dtype=np.int32),
        head_constant=np.array([constants[0] for constants in missing], np.int32),
        body_constant=np.array([constants[1] for constants in missing], np.int32),
        predictions=np.full(len(tuples), 10, np.int64),
        support=np.array(supports, np.int32),
        exact=np.ones(len(tuples), np.bool_),
    )


def dataset_of(graph: SmallGraph, valid: Sequence[Ids] = (), test: Sequence[Ids] = ()) -> Dataset:
    """The graph as the train split."""
    train = table_of(graph)
    splits = [TripleTable.from_ids(np.array(list(part), np.int32), train.vocabulary) for part in (valid, test)]
    return Dataset("small", train, splits[0], splits[1])


def ranker_of(rules: RuleSet, dataset: Dataset, *, block_connected: bool = False, **options: Any) -> Ranker:
    """A ranker on one thread."""
    chosen = RankOptions(threads=1, **options)
    return make_ranker(graph_of(dataset.train), rules, chosen, block_connected=block_connected)


@st.composite
def cases(draw: DrawFn, max_rules: int = 6) -> tuple[SmallGraph, list[RuleTuple], list[int], Ids]:
    """A graph, distinct rules, their supports (often equal), and a triple that is mostly predicted."""
    graph = draw(graphs(min_triples=1))
    n_entities, n_relations, triples = graph
    either = st.one_of(grounded_rules(graph), grounded_rules(graph), rules(n_entities, n_relations))
    drawn = draw(st.lists(either, min_size=1, max_size=max_rules, unique=True))
    supports = draw(st.lists(st.sampled_from([0, 3, 5, 5, 9]), min_size=len(drawn), max_size=len(drawn)))
    rule = draw(st.sampled_from(drawn))
    pairs = sorted(predicted(triples, n_entities, n_relations, rule))
    if pairs and draw(st.integers(0, 2)) > 0:
        x, y = draw(st.sampled_from(pairs))
        y = x if y == n_entities else y
    else:
        x, y = draw(st.tuples(st.integers(0, n_entities - 1), st.integers(0, n_entities - 1)))
    relation = rule[1] % n_relations
    return graph, drawn, supports, (x, relation, y) if rule[1] < n_relations else (y, relation, x)


def start_of(graph: Graph, rule: RuleTuple, triple: Ids) -> int | None:
    """What the head's variable stands for if the rule's head is `triple`; None if it cannot be."""
    kind, head, constant, _, _ = rule
    subject, relation, object_ = triple
    if head % graph.n_relations != relation:
        return None
    if kind == "B":
        return subject
    start, other = (subject, object_) if head < graph.n_relations else (object_, subject)
    if constant == graph.self_id:
        return start if start == other else None
    return start if other == constant else None


def all_groundings(
    triples: Sequence[Ids], size: tuple[int, int], rule: RuleTuple, triple: Ids, vocabulary: Vocabulary, identity: bool
) -> set[Facts]:
    """Every way in which a rule with a body predicts `triple`, as facts."""
    graph = build(triples, *size, identity)
    start = start_of(graph, rule, triple)
    if start is None:
        return set()
    kind, _, constant, body, last = rule
    if kind == "Uc":
        assert last is not None
        found = {
            (*walk, last)
            for walk in walks(graph, body[:-1], start, identity)
            if last in graph.steps.get((walk[-1], body[-1]), ()) and not (identity and {last, constant} & set(walk))
        }
    else:
        found = walks(graph, body, start, identity)
        found = {
            walk for walk in found if (walk[-1] == triple[2] if kind == "B" else not identity or constant not in walk)
        }
    return {facts_of(graph, body, walk, vocabulary) for walk in found}


def facts_of(graph: Graph, body: Sequence[int], walk: Sequence[int | None], vocabulary: Vocabulary) -> Facts:
    """A walk as facts, with `self` spelled out; None stays."""
    return tuple(fact_of(graph, d, a, b, vocabulary) for d, a, b in zip(body, walk[:-1], walk[1:], strict=True))


def fact_of(
    graph: Graph, d: int, a: int | None, b: int | None, vocabulary: Vocabulary
) -> tuple[str | None, str, str | None]:
    """One step as a fact."""
    if b == graph.self_id:
        b = a
    s, o = (a, b) if d < graph.n_relations else (b, a)
    labels = [None if e is None else vocabulary.entity_label(e) for e in (s, o)]
    return labels[0], vocabulary.relation_label(d % graph.n_relations), labels[1]


def near_misses(
    triples: Sequence[Ids], size: tuple[int, int], rule: RuleTuple, triple: Ids, vocabulary: Vocabulary
) -> set[tuple[Facts, tuple[str | None, str, str | None]]]:
    """Every way in which one body fact is missing for the rule to predict `triple`, under object identity."""
    graph = build(triples, *size)
    start = start_of(graph, rule, triple)
    kind, _, constant, body, last = rule
    if start is None or kind == "Z" or (kind == "B" and triple[0] == triple[2]):
        return set()
    free = len(body) - 1 if kind != "Ud" else len(body)
    end = {"B": (triple[2],), "Uc": (last,), "Ud": ()}[kind]
    found = set()
    for values in product((*range(graph.n_entities), None), repeat=free):
        walk = (start, *values, *end)
        variables = walk if kind == "Ud" or kind == "B" else walk[:-1]
        named = [v for v in variables if v is not None]
        if None in walk[:-1] or len(set(named)) < len(named) or constant in named or (kind == "Uc" and last in named):
            continue
        steps = list(zip(body, walk[:-1], walk[1:], strict=True))
        holds = [b is not None and b in graph.steps.get((a, d), ()) for d, a, b in steps]
        if holds.count(False) == 1:
            facts = facts_of(graph, body, walk, vocabulary)
            place = holds.index(False)
            found.add((facts[:place] + facts[place + 1 :], facts[place]))
    head = (
        vocabulary.entity_label(triple[0]),
        vocabulary.relation_label(triple[1]),
        vocabulary.entity_label(triple[2]),
    )
    return {miss for miss in found if miss[1] != head}


def label_triple(vocabulary: Vocabulary, triple: Ids) -> tuple[str, str, str]:
    """The labels of a triple of ids."""
    s, r, o = triple
    return vocabulary.entity_label(s), vocabulary.relation_label(r), vocabulary.entity_label(o)
