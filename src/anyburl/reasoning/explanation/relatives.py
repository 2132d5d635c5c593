"""How rules are related: which predict nearly the same facts, which are more general; and the best of a large run.

A rule g is more general than a rule r if g becomes r, or r with fewer body atoms, when its variables are replaced:
by different terms, none of which is a constant of g (object identity). Among the rules that AnyBURL learns (section 2
of the paper), these are

- for h(X,c) <= b1(X,A), ..., bn(Z,c'): the U_d rules h(X,c) <= b1(X,A), ..., bk(.,B) of the first k atoms, k = n
  included unless c' is c or `self`, and, if c' is c, the B rule h(X,Y) <= b1(X,A), ..., bn(Z,Y);
- for h(X,c) <= b1(X,A), ..., bn(Z,B): the U_d rules of the first k atoms, k < n;
- for B rules: none;

and the same for heads h(c,Y). Without any atom left, it is the zero rule h(X,c) <= of other tools' files.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import RunError
from anyburl.base.sealed import read_seal
from anyburl.base.writing import replace_text
from anyburl.bodies.conditions import condition_holds, is_conditional
from anyburl.bodies.rescore import surprises, surprising_rows
from anyburl.data.table import TripleTable
from anyburl.graph.build import build_graph, known_answers, on_tiny_table
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.graph.stored import graph_of
from anyburl.reasoning.explanation.kernel import empty_search, find_first_walks
from anyburl.rules.columns import RuleColumns
from anyburl.rules.ruleset import RuleSet, one_rule
from anyburl.rules.run_folder import ABOUT, BEST, ORDERS, RULES
from anyburl.rules.selection import best_rows
from anyburl.rules.types import SMOOTHING

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
    for i, row in enumerate(rows):
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
        covers[i, tried] = _has_walks(graph, rules, int(row), starts[tried], goals[tried], object_identity)
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
        for i in range(len(rows)):
            earlier = np.flatnonzero((overlaps[i, :i] >= NEARLY_THE_SAME) & (chosen[rows[:i]] == rows[:i]))
            if len(earlier):
                chosen[rows[i]] = rows[earlier[0]]
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


@dataclass(frozen=True)
class RuleLattice:
    """Rules, indexed by their heads: 8 bytes a rule."""

    rules: RuleColumns
    head_offsets: NDArray[np.int64]  # directed relation of the head -> its first place
    constants: NDArray[np.int32]  # of the heads, sorted within a relation
    rows: NDArray[np.uint32]

    @classmethod
    def build(cls, rules: RuleColumns) -> Self:
        """Index a set of rules."""
        frame = pl.DataFrame({"head": rules.head, "constant": rules.head_constant}).with_row_index("row")
        ordered = frame.sort("head", "constant", "row")
        counts = np.bincount(rules.head, minlength=2 * rules.vocabulary.n_relations)
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(rules, offsets, ordered["constant"].to_numpy(), ordered["row"].to_numpy())

    def generalisations(self, row: int) -> Rows:
        """Return the rows of the rules that are more general than the one at `row`: longer bodies first, B last."""
        row, rules = self._checked(row), self.rules
        head, constant, end = int(rules.head[row]), int(rules.head_constant[row]), int(rules.body_constant[row])
        if constant < 0:
            return np.empty(0, np.int64)
        candidates = self._with_head(head, constant)
        candidates = candidates[(rules.body_constant[candidates] < 0) & ~self._conditional[candidates]]
        path, paths = self._path(row), self._paths(candidates)
        lengths = (paths >= 0).sum(axis=1)
        longest = len(path) if end not in (-1, constant, self._self) else len(path) - 1
        fits = (lengths <= longest) & ((paths == _padded(path, paths.shape[1])) | (paths < 0)).all(axis=1)
        shorter = candidates[fits][np.argsort(-lengths[fits], kind="stable")]
        return np.concatenate([shorter, self._binary(row)])

    def specialisations(self, row: int, *, top: int = 50) -> tuple[Rows, int]:
        """Return the rows of the `top` best rules that are more special than the one at `row`, and how many there are.

        Best are those with the highest support times confidence.
        """
        checking.whole("top", top, 1, checking.MOST_KEPT)
        row, rules = self._checked(row), self.rules
        if rules.body_constant[row] >= 0 or self._conditional[row]:
            rows = np.empty(0, np.int64)
        elif rules.head_constant[row] < 0:
            rows = self._grounded(row)
        else:
            rows = self._extended(row)
        worth = rules.support[rows] ** 2.0 / np.maximum(rules.predictions[rows], 1)
        return rows[np.lexsort((rows, -worth))[:top]], len(rows)

    @cached_property
    def _conditional(self) -> NDArray[np.bool_]:
        return self.rules.has_condition

    @property
    def _self(self) -> int:
        return self.rules.vocabulary.self_id

    def _checked(self, row: int) -> int:
        if not 0 <= row < len(self.rules):
            raise IndexError(f"expected the row of one of {len(self.rules)} rules, got {row}")
        return row

    def _with_head(self, head: int, constant: int) -> Rows:
        """Return the rules with a directed head relation and a constant there, -1 for B rules."""
        first, last = self.head_offsets[head], self.head_offsets[head + 1]
        constants = self.constants[first:last]
        start, end = np.searchsorted(constants, constant, "left"), np.searchsorted(constants, constant, "right")
        return self.rows[first + start : first + end].astype(np.int64)

    def _path(self, row: int) -> NDArray[np.int32]:
        body: NDArray[np.int32] = self.rules.bodies[self.rules.body[row]]
        return np.asarray(body[body >= 0])

    def _paths(self, rows: Rows) -> NDArray[np.int32]:
        paths: NDArray[np.int32] = self.rules.bodies[self.rules.body[rows]]
        return paths

    def _forward(self, head: int, path: NDArray[np.int32]) -> tuple[int, NDArray[np.int32]]:
        """Return head relation and path as B rules have them: read from the head's subject."""
        n_relations = self.rules.vocabulary.n_relations
        return (head, path) if head < n_relations else (head - n_relations, inverses(path[::-1], n_relations))

    def _binary(self, row: int) -> Rows:
        """Return the B rule that the U_c rule at `row` grounds: its constants are the same."""
        rules, constant = self.rules, int(self.rules.head_constant[row])
        if rules.body_constant[row] != constant or constant == self._self:
            return np.empty(0, np.int64)
        relation, path = self._forward(int(rules.head[row]), self._path(row))
        rows = self._with_head(relation, -1)
        paths = self._paths(rows)
        return np.asarray(rows[(paths == _padded(path, paths.shape[1])).all(axis=1)])

    def _grounded(self, row: int) -> Rows:
        """Return the U_c rules that put one constant for X or for Y in the B rule at `row`."""
        relation, path = int(self.rules.head[row]), self._path(row)
        n_relations = self.rules.vocabulary.n_relations
        backward = inverses(path[::-1], n_relations)
        return np.concatenate([self._of_constant(relation, path), self._of_constant(relation + n_relations, backward)])

    def _of_constant(self, head: int, path: NDArray[np.int32]) -> Rows:
        first, last = self.head_offsets[head], self.head_offsets[head + 1]
        constants = self.constants[first:last]
        rows = self.rows[first:last][(constants >= 0) & (constants != self._self)].astype(np.int64)
        rows = rows[self.rules.head_constant[rows] == self.rules.body_constant[rows]]
        paths = self._paths(rows)
        return np.asarray(rows[(paths == _padded(path, paths.shape[1])).all(axis=1)])

    def _extended(self, row: int) -> Rows:
        """Return the rules with the head of the U_d rule at `row` whose bodies begin with its body."""
        rules, path = self.rules, self._path(row)
        constant = int(rules.head_constant[row])
        rows = self._with_head(int(rules.head[row]), constant)
        paths = self._paths(rows)
        rows, paths = (column[(paths[:, : len(path)] == path).all(axis=1)] for column in (rows, paths))
        lengths = (paths >= 0).sum(axis=1)
        ends = rules.body_constant[rows]
        is_grounded = ~np.isin(ends, (-1, constant, self._self))
        return np.asarray(rows[(lengths > len(path)) | ((lengths == len(path)) & is_grounded)])


def _padded(path: NDArray[np.int32], width: int) -> NDArray[np.int32]:
    """Return a path as a row of the table of bodies."""
    padded = np.full(max(width, len(path)), -1, np.int32)
    padded[: len(path)] = path
    return padded


MANY = 100_000
"""Rules from which on the best are kept: fewer are read in a moment."""
FOLDED = 1_000
"""Rules by the default order that are compared with each other when the best are kept."""
OVERALL, OF_A_RELATION = 2_000, 200
MOST_OF_ALL_RELATIONS = 200_000


def write_best(folder: Path, rules: RuleSet, table: TripleTable, find_alike: Callable[[RuleSet], list[int]]) -> None:
    """Keep the best rules of a run folder; `table` is what they were learned from.

    `find_alike` returns for each of some rules, best first, the row of the first that says nearly the same.
    """
    rules = rules.with_vocabulary(table.vocabulary)
    n_relations = max(1, rules.vocabulary.n_relations)
    relations = (rules.head % n_relations).astype(np.uint16 if n_relations < 1 << 16 else np.int32)
    n_each = min(OF_A_RELATION, max(10, MOST_OF_ALL_RELATIONS // n_relations))
    graph = graph_of(table)
    best = [*_best_of(rules, None, graph, OVERALL), *_of_relations(rules, relations, graph, n_each)]
    few = rules.take(np.unique(np.concatenate(best)))
    few = few.replace(surprise=surprises(graph, few))
    counts = np.bincount(relations, minlength=n_relations)
    about = {
        "rules": read_seal(folder / RULES).hex(),
        "total": len(rules),
        "overall": OVERALL,
        "of_a_relation": n_each,
        "alike": find_alike(few.top(FOLDED, "surprise")) if few.worth is None else [],
        "by_relation": {rules.vocabulary.relation_label(int(one)): int(counts[one]) for one in np.flatnonzero(counts)},
    }
    _with_own_entities(few).save(folder / BEST)
    replace_text(folder / ABOUT, json.dumps(about) + "\n", RunError)


def _with_own_entities(rules: RuleSet) -> RuleSet:
    """Return rules over a vocabulary of the entities that they mention: most of what takes time to read."""
    used = np.unique(np.concatenate([rules.head_constant, rules.body_constant]))
    used = used[(used >= 0) & (used < rules.vocabulary.n_entities)]
    return rules.with_vocabulary(replace(rules.vocabulary, entities=rules.vocabulary.entities.gather(used)))


def _of_relations(rules: RuleSet, relations: NDArray[Any], graph: GraphArrays, n: int) -> Iterator[Rows]:
    """Yield the rows of the best rules of each relation."""
    by_relation = np.argsort(relations, kind="stable")
    ends = np.cumsum(np.bincount(relations))
    for first, last in zip(np.r_[0, ends[:-1]], ends, strict=True):
        if first < last:
            yield from _best_of(rules, by_relation[first:last], graph, n)


def _best_of(rules: RuleSet, rows: Rows | None, graph: GraphArrays, n: int) -> Iterator[Rows]:
    """Yield the rows of the n best of all rules, or of those at some rows, by each order."""
    part = rules if rows is None else rules.take(rows)
    rows = np.arange(len(rules), dtype=np.int64) if rows is None else rows
    if len(part) <= n:
        yield rows
        return
    for order in ORDERS:
        if order != "worth" or part.worth is not None:
            yield rows[best_rows(part, n, order, SMOOTHING)]
    yield rows[surprising_rows(part, graph, n)]
