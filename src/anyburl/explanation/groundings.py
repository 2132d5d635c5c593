"""The facts that make a rule predict a triple."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.arrays import Sought, empty_search
from anyburl.explanation.kernel import count_steps, find_walks
from anyburl.explanation.record import Fact, Grounding, OpenFact
from anyburl.graph.arrays import inverses
from anyburl.graph.lookup import Ids
from anyburl.ranking.ranker import Ranker
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.vocabulary import Vocabulary

MOST_TRIED = 200_000
"""Once there is a grounding, others are looked for among this many entities."""


class Task(NamedTuple):
    """A body to be grounded: from the head's variable to an end (-1: anywhere), avoiding the head's constant."""

    body: NDArray[np.int32]
    start: int
    end: int
    avoided: int


def make_task(rules: RuleSet, row: int, triple: Ids) -> Task:
    """Return what has to hold for the rule at `row` to predict `triple`."""
    subject, _, object = triple
    body = rules.bodies[rules.body[row]]
    body = body[body >= 0]
    if rules.type[row] == RuleType.BINARY.code:
        return Task(body, subject, object, -1)
    start = subject if rules.head[row] < rules.vocabulary.n_relations else object
    return Task(body, start, int(rules.body_constant[row]), int(rules.head_constant[row]))


def find_groundings(ranker: Ranker, row: int, triple: Ids, limit: int) -> tuple[Grounding, ...]:
    """Return up to `limit` groundings of the rule at `row` that predict `triple`."""
    task = make_task(ranker.rules, row, triple)
    if limit < 1 or not len(task.body):
        return ()
    return tuple(walk_facts(ranker.vocabulary, task.body, walk) for walk in find_task_walks(ranker, task, limit))


def find_task_walks(ranker: Ranker, task: Task, limit: int) -> list[list[int]]:
    """Return up to `limit` walks from the start; they are looked for from the end if that has fewer neighbours."""
    graph, length = ranker.ready.graph, len(task.body)
    backward = inverses(task.body[::-1], graph.n_relations)
    out = np.empty((limit, length + 1), np.int32)
    from_end = task.end >= 0 and count_steps(graph, task.end, int(backward[0])) < count_steps(
        graph, task.start, int(task.body[0])
    )
    body, start, end = (
        (backward, task.end, task.start) if from_end else (np.ascontiguousarray(task.body), task.start, task.end)
    )
    sought = Sought(start, end, task.avoided, ranker.options.object_identity)
    n = find_walks(graph, body, sought, MOST_TRIED, empty_search(length), out)
    walks = out[:n, ::-1] if from_end else out[:n]
    return [[int(entity) for entity in walk] for walk in walks]


def walk_facts(vocabulary: Vocabulary, body: Sequence[int] | NDArray[np.int32], walk: Sequence[int]) -> Grounding:
    """Return the facts along a walk; a step to `self` is a reflexive fact."""
    facts = (step_fact(vocabulary, int(d), a, b) for d, a, b in zip(body, walk[:-1], walk[1:], strict=True))
    return tuple((str(s), r, str(o)) for s, r, o in facts)


def step_fact(vocabulary: Vocabulary, relation: int, here: int, there: int) -> OpenFact:
    """Return one step along a directed relation as a fact; -1 (anything) becomes None."""
    n_relations, self_id = vocabulary.n_relations, vocabulary.self_id
    here, there = (there if here == self_id else here), (here if there == self_id else there)
    subject, object = (here, there) if relation < n_relations else (there, here)
    labels = [vocabulary.entity_label(entity) if entity >= 0 else None for entity in (subject, object)]
    return labels[0], vocabulary.relation_label(relation % n_relations), labels[1]


def triple_ids(vocabulary: Vocabulary, triple: Fact) -> Ids:
    """Return the ids of a triple; an unknown label raises `UnknownLabelError`."""
    subject, relation, object = triple
    return vocabulary.entity_id(subject), vocabulary.relation_id(relation), vocabulary.entity_id(object)
