"""Writes the best rules of a large run into a small file beside all of them; `rules/run_folder.py` reads it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import RunError
from anyburl.base.sealed import read_seal
from anyburl.base.writing import replace_text
from anyburl.bodies.rescore import surprises, surprising_rows
from anyburl.data.table import TripleTable
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.rules.columns import SMOOTHING
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.run_folder import ABOUT, BEST, ORDERS, RULES
from anyburl.rules.selection import best_rows

MANY = 100_000
"""Rules from which on the best are kept: fewer are read in a moment."""
FOLDED = 1_000
"""Rules by the default order that are compared with each other when the best are kept."""
OVERALL, OF_A_RELATION = 2_000, 200
MOST_OF_ALL_RELATIONS = 200_000

Rows = NDArray[np.int64]


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
