"""Where no rule predicts a triple: the strongest one that lacks a single fact."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.arrays import empty_search
from anyburl.explanation.explanation import NearMiss
from anyburl.explanation.groundings import Ids, Task, make_task, step_fact
from anyburl.explanation.kernel import first_near_miss
from anyburl.graph.arrays import GraphArrays
from anyburl.ranking.arrays import TrieIndex
from anyburl.ranking.index import to_scores
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.selection import BINARY

MOST_RULES = 2000
"""So many rules, the strongest, are tried."""

MOST_TRIED = 2000
"""So many entities are tried for each rule and missing atom."""

FEW_RULES = 100_000
"""Up to this many rules are searched one by one; beyond, through the ranker's indexes."""

Rows = NDArray[np.int64]
Scored = tuple[NDArray[np.int64], NDArray[np.int32]]
"""Scores and rows of rules."""


def find_near_miss(ranker: Ranker, triple: Ids) -> NearMiss | None:
    """Return the strongest rule that would predict `triple` if one more fact held; None if there is none.

    The `MOST_RULES` strongest rules are tried whose head can be the triple. Call it where no rule fires.
    """
    rows = _strongest(ranker, triple)
    tasks = [make_task(ranker.rules, int(row), triple) for row in rows]
    kept = [i for i, task in enumerate(tasks) if _is_possible(ranker, int(rows[i]), task, triple)]
    if not kept:
        return None
    rows, tasks = rows[kept], [tasks[i] for i in kept]
    bodies = ranker.rules.bodies[ranker.rules.body[rows]]
    lengths = np.array([len(task.body) for task in tasks], np.int32)
    starts, ends, avoided = (np.array([task[i] for task in tasks], np.int32) for i in (1, 2, 3))
    search = empty_search(bodies.shape[1])
    identity = ranker.options.object_identity
    found, missing = first_near_miss(ranker.graph, bodies, lengths, starts, ends, avoided, identity, MOST_TRIED, search)
    return None if found < 0 else _near_miss(ranker, int(rows[found]), tasks[found], missing, search.nodes)


def _near_miss(ranker: Ranker, row: int, task: Task, missing: int, nodes: NDArray[np.int32]) -> NearMiss:
    steps = [
        step_fact(ranker.vocabulary, int(relation), int(nodes[place]), int(nodes[place + 1]))
        for place, relation in enumerate(task.body)
    ]
    rules = ranker.rules
    return NearMiss(
        rule=rules.rule(row),
        confidence=float(ranker.confidences[row]),
        predictions=int(rules.predictions[row]),
        support=int(rules.support[row]),
        facts=tuple((str(s), r, str(o)) for place, (s, r, o) in enumerate(steps) if place != missing),
        missing=steps[missing],
        place=missing,
    )


def _is_possible(ranker: Ranker, row: int, task: Task, triple: Ids) -> bool:
    """Whether object identity leaves a way, and the missing fact could not be the triple itself."""
    body, start, end, avoided = task
    if not len(body):
        return False
    rules = ranker.rules
    if len(body) == 1 and body[0] == rules.head[row] and rules.body_constant[row] == rules.head_constant[row]:
        return False  # h(X,Y) <= h(X,Y), h(X,c) <= h(X,c)
    return not ranker.options.object_identity or (start not in (end, avoided))


def _strongest(ranker: Ranker, triple: Ids) -> Rows:
    """Return the strongest rules whose head can be `triple`, best first."""
    if len(ranker.rules) <= FEW_RULES:
        scored = [_scored_by_column(ranker, triple)]
    else:
        scored = list(_scored_by_index(ranker, triple))
    scores = np.concatenate([part[0] for part in scored])
    rows = np.concatenate([part[1] for part in scored]).astype(np.int64)
    rows, scores = rows[scores > 0], scores[scores > 0]
    if len(rows) > MOST_RULES:
        best = np.argpartition(-scores, MOST_RULES)[:MOST_RULES]
        rows, scores = rows[best], scores[best]
    return rows[np.lexsort((rows, -scores))]


def _scored_by_column(ranker: Ranker, triple: Ids) -> Scored:
    subject, relation, object = triple
    rules, n_relations = ranker.rules, ranker.vocabulary.n_relations
    self_id = ranker.vocabulary.self_id
    constants = rules.head_constant
    forward, backward = rules.head == relation, rules.head == relation + n_relations
    if subject == object:
        mask = (forward | backward) & (constants == self_id)
    else:
        mask = forward & ((rules.type == BINARY) | (constants == object)) | backward & (constants == subject)
    rows = np.flatnonzero(mask)
    return to_scores(ranker.confidences[rows]), rows.astype(np.int32)


def _scored_by_index(ranker: Ranker, triple: Ids) -> Iterator[Scored]:
    """Yield the rules in question from each index. Rules that the graph never makes true are not in there."""
    subject, relation, object = triple
    graph, index = ranker.graph, ranker.index
    if subject == object:
        ends = [(ranker.vocabulary.self_id, graph.n_relations + relation), (ranker.vocabulary.self_id, relation)]
    else:
        ends = [(object, graph.n_relations + relation), (subject, relation)]
        yield _trie_rules(index.trie, relation)
    for entity, directed in ends:
        segment = _segment(graph, entity, directed)
        if segment < 0:
            continue
        for part in (index.pairs, index.dangling):
            rows = slice(part.head_offsets[segment], part.head_offsets[segment + 1])
            yield part.head_scores[rows], part.head_rules[rows]
        long = index.long
        places = long.head_rules[long.head_offsets[segment] : long.head_offsets[segment + 1]]
        yield long.scores[places], long.rules[places]
    yield np.empty(0, np.int64), np.empty(0, np.int32)


def _trie_rules(trie: TrieIndex, relation: int) -> Scored:
    """Return the B rules of a relation: on each level of its trie, the nodes stand side by side."""
    start, end = int(trie.roots[relation]), int(trie.roots[relation + 1])
    scores, rows = [np.empty(0, np.int64)], [np.empty(0, np.int32)]
    while start < end:
        scores.append(trie.scores[start:end])
        rows.append(trie.rules[start:end])
        start, end = int(trie.first_children[start]), int(trie.first_children[end - 1] + trie.n_children[end - 1])
    return np.concatenate(scores), np.concatenate(rows)


def _segment(graph: GraphArrays, entity: int, relation: int) -> int:
    """Return the segment of an entity for a directed relation, -1 if it has none."""
    start, end = int(graph.segment_offsets[entity]), int(graph.segment_offsets[entity + 1])
    segment = start + int(np.searchsorted(graph.segment_relations[start:end], relation))
    return segment if segment < end and graph.segment_relations[segment] == relation else -1
