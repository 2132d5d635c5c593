"""Which stated facts rules predict, and which rules predict nearly the same ones."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.conditions import condition_holds, is_conditional
from anyburl.data.table import TripleTable
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import build_graph, known_answers, on_tiny_table
from anyburl.reasoning.explanation.kernel import empty_search, find_first_walks
from anyburl.rules.ruleset import RuleSet, one_rule

Rows = NDArray[np.int64]
Triples = NDArray[np.int32]
Mask = NDArray[np.bool_]

NEARLY_THE_SAME = 0.8
"""Of the facts that either of two rules predicts, as many are predicted by both if they say nearly the same."""


MOST_SUBJECTS, ANSWERS_OF_ONE = 400, 4
"""Of the facts that rules are compared by: how many subjects, and facts of each."""


def predicted_facts_of(
    graph: GraphArrays, rules: RuleSet, rows: Rows, facts: Triples, *, object_identity: bool = True
) -> Mask:
    """Return which of some facts each of some rules predicts; all are of the same relation.

    `graph` is what rules walk on: without object identity, one with loops.
    """
    covers = np.zeros((len(rows), len(facts)), np.bool_)
    is_reflexive = facts[:, 0] == facts[:, 2]
    for place, row in enumerate(rows):
        forward = rules.head[row] < rules.vocabulary.n_relations
        starts, ends = (facts[:, 0], facts[:, 2]) if forward else (facts[:, 2], facts[:, 0])
        constant = int(rules.head_constant[row])
        if constant == rules.vocabulary.self_id:
            tried = np.flatnonzero(is_reflexive)
        elif constant >= 0:
            tried = np.flatnonzero((ends == constant) & ~(is_reflexive & object_identity))
        else:
            tried = np.flatnonzero(~(is_reflexive & object_identity))
        goals = ends if constant < 0 else np.full(len(facts), rules.body_constant[row], np.int32)
        if object_identity:
            tried = tried[starts[tried] != goals[tried]]
        covers[place, tried] = _has_walks(graph, rules, int(row), starts[tried], goals[tried], object_identity)
    return covers


def _has_walks(
    graph: GraphArrays,
    rules: RuleSet,
    row: int,
    starts: NDArray[np.int32],
    ends: NDArray[np.int32],
    object_identity: bool,
) -> Mask:
    """Return whether the body of a rule leads from each start to its end, -1 for any."""
    body, n = rules.bodies[rules.body[row]], len(starts)
    length = int((body >= 0).sum()) - is_conditional(rules, row)
    holds = condition_holds(graph, rules, row, starts, ends, object_identity=object_identity)
    if not length or not n:
        return holds
    walks = np.empty((n, length + 1), np.int32)
    find_first_walks(
        graph,
        np.ascontiguousarray(np.broadcast_to(body[:length], (n, length))),
        np.full(n, length, np.int32),
        np.ascontiguousarray(starts, np.int32),
        np.ascontiguousarray(ends, np.int32),
        np.full(n, rules.head_constant[row], np.int32),
        object_identity,
        empty_search(length),
        walks,
    )
    return holds & (walks[:, 0] >= 0)


def overlap(some: NDArray[np.bool_], others: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return which part of the facts that either of two rules predicts is predicted by both (Jaccard), 0 for none."""
    both = some.astype(np.float32) @ others.astype(np.float32).T
    either = some.sum(axis=1)[:, None] + others.sum(axis=1)[None, :] - both
    return np.asarray(both / np.maximum(either, 1), np.float64)


def find_first_alike(graph: GraphArrays, rules: RuleSet, *, object_identity: bool = True) -> Rows:
    """Return for each of some rules, best first, the row of the first that says nearly the same; its own if none does.

    Rules say nearly the same if they predict nearly the same facts of one relation, of a sample.
    """
    chosen = np.arange(len(rules), dtype=np.int64)
    relations = rules.head % max(1, graph.n_relations)
    for relation in np.unique(relations):
        rows = np.flatnonzero(relations == relation)
        facts = _facts_of(graph, int(relation))
        covers = predicted_facts_of(graph, rules, rows, facts, object_identity=object_identity)
        overlaps = overlap(covers, covers)
        for place in range(len(rows)):
            earlier = np.flatnonzero(
                (overlaps[place, :place] >= NEARLY_THE_SAME) & (chosen[rows[:place]] == rows[:place])
            )
            if len(earlier):
                chosen[rows[place]] = rows[earlier[0]]
    return chosen


def _facts_of(graph: GraphArrays, relation: int) -> Triples:
    """Return facts of a relation, a sample of many: the same each time."""
    subjects = graph.domains[slice(*graph.domain_offsets[relation : relation + 2])]
    if len(subjects) > MOST_SUBJECTS:
        subjects = np.sort(np.random.default_rng(0).choice(subjects, MOST_SUBJECTS, replace=False))
    parts = [known_answers(graph, int(subject), relation)[:ANSWERS_OF_ONE] for subject in subjects]
    sizes = [len(part) for part in parts]
    objects = np.concatenate([np.empty(0, np.int32), *parts])
    return np.stack([np.repeat(subjects, sizes), np.full(len(objects), relation), objects], axis=1).astype(np.int32)


def warm_up_coverage(n_relations: int) -> None:
    """Compile the kernels of comparing rules, for data with `n_relations`, or load them."""
    on_tiny_table(_cover_tiny, n_relations)


def _cover_tiny(table: TripleTable) -> None:
    rules = one_rule(table.vocabulary)
    find_first_alike(build_graph(table), rules)
