"""Indexes B rules by body: one trie, whose ends are bodies, and the rules of each body."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.arrays import BodyRules
from anyburl.ranking.arrays import RuleIndex, TrieIndex, offsets_of
from anyburl.ranking.rule_index import freeze
from anyburl.ranking.trie import cut_levels, readings
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet


def index_bodies(rules: RuleSet, index: RuleIndex, *, both_ways: bool) -> tuple[RuleIndex, BodyRules]:
    """Index the B rules by body, read forward only or both ways; return the index with a trie of all bodies."""
    chosen = np.flatnonzero(rules.type == RuleType.BINARY.code)
    heads, bodies, rows = readings(rules, chosen)
    if not both_ways:
        heads, bodies, rows = heads[: len(chosen)], bodies[: len(chosen)], rows[: len(chosen)]
    order = np.lexsort(bodies.T[::-1])
    heads, bodies, rows = heads[order], bodies[order], rows[order]
    changes = np.ones(len(bodies), np.bool_)
    changes[1:] = (bodies[1:] != bodies[:-1]).any(axis=1)
    numbers = np.cumsum(changes) - 1
    different = bodies[changes]
    keys = np.column_stack([np.zeros(len(different), np.int32), different])
    trie = cut_levels(keys, np.arange(len(keys)), np.zeros(len(keys), np.int32), 1)
    found = BodyRules(
        rule_offsets=offsets_of(numbers, len(different)),
        bodies=numbers.astype(np.int32),
        heads=heads.astype(np.int32),
        codes=_codes(index.trie, len(rules))[rows],
        rows=rows.astype(np.int32),
    )
    nothing_below = np.zeros(len(trie.codes), np.int64)
    for made in (trie, found, nothing_below):
        freeze(made)
    return index._replace(trie=trie, best_below=nothing_below), found


def _codes(trie: TrieIndex, n_rules: int) -> NDArray[np.int32]:
    """Return the code of each rule that ends in the trie, 0 for the others."""
    ending = trie.rows >= 0
    codes = np.zeros(n_rules, np.int32)
    codes[trie.rows[ending]] = trie.codes[ending]
    return codes
