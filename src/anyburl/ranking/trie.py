"""The bodies of B rules as tries, one per directed head relation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import inverses
from anyburl.ranking.arrays import TrieIndex, offsets_of
from anyburl.ruleset.ruleset import RuleSet

Rows = NDArray[np.int64]
Ints = NDArray[np.int32]


def build_trie(rules: RuleSet, codes: Ints, rows: Rows) -> TrieIndex:
    """Build the tries of the B rules at `rows`; a rule stands in the tries of both its readings."""
    heads, bodies, read = readings(rules, rows)
    keys = np.column_stack([heads, bodies])
    order = np.lexsort(keys.T[::-1])
    return cut_levels(keys[order], read[order], codes, 2 * rules.vocabulary.n_relations)


def readings(rules: RuleSet, rows: Rows) -> tuple[Ints, Ints, Rows]:
    """Return directed heads, bodies and rows of the B rules at `rows`, read forward, then all read backward."""
    n_relations = rules.vocabulary.n_relations
    lengths = rules.lengths[rows]
    width = max(int(lengths.max(initial=1)), 1)
    bodies = rules.bodies[rules.body[rows]][:, :width] if len(rows) else np.empty((0, width), np.int32)
    places = lengths[:, None] - 1 - np.arange(width)[None, :]
    reversed_bodies = np.take_along_axis(bodies, np.maximum(places, 0), axis=1)
    backward = np.where(places >= 0, inverses(reversed_bodies, n_relations), -1)
    heads = np.concatenate([rules.head[rows], rules.head[rows] + n_relations])
    return heads, np.vstack([bodies, backward]), np.concatenate([rows, rows])


def cut_levels(keys: Ints, rows: Rows, codes: Ints, n_heads: int) -> TrieIndex:
    """Cut sorted keys (head, step, step, ...) into nodes, level by level: a node is a run with the same beginning."""
    n, width = keys.shape
    changed = np.ones((n, width), np.bool_)
    changed[1:] = np.logical_or.accumulate(keys[1:] != keys[:-1], axis=1)
    above = keys[:, 0].astype(np.int64)
    n_nodes = 0
    levels: list[tuple[NDArray[Any], ...]] = []
    for step in range(1, width):
        here = keys[:, step] >= 0
        starts = here & changed[:, step]
        nodes = np.cumsum(starts) - 1
        firsts = np.flatnonzero(starts)
        ending = np.flatnonzero(here & (keys[:, step + 1] < 0 if step + 1 < width else True))
        ending_codes, ending_rows = np.full((2, len(firsts)), -1, np.int32)
        ending_codes[nodes[ending]] = codes[rows[ending]]
        ending_rows[nodes[ending]] = rows[ending]
        levels.append((keys[firsts, step], above[firsts], ending_codes, ending_rows))
        above = nodes + n_nodes
        n_nodes += len(firsts)
    relations, parents, node_codes, node_rows = (np.concatenate(column) for column in zip(*levels, strict=True))
    n_first = len(levels[0][0])
    return TrieIndex(
        roots=offsets_of(parents[:n_first], n_heads),
        relations=relations,
        first_children=offsets_of(parents[n_first:], n_nodes)[:-1] + n_first,
        n_children=np.bincount(parents[n_first:], minlength=n_nodes).astype(np.int32),
        codes=node_codes,
        rows=node_rows,
    )
