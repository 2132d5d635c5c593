"""Which rules of a large set have a more general rule in it: `RuleLattice` for all rules at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.data.table import find_keys
from anyburl.graph.arrays import inverses
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import distinct_rows

Rows = NDArray[np.int64]
Ids = NDArray[np.int64] | NDArray[np.int32]
AT_A_TIME = 2_000_000


class Generalisations:
    """Finds the rules that are more general than others, see `RuleLattice`; by keys of head and body."""

    def __init__(self, rules: RuleColumns) -> None:
        self._rules = rules
        self._paths = self._all_paths(rules)
        lengths = (self._paths >= 0).sum(axis=1)
        self._bodies, self._numbers = distinct_rows(self._paths)
        self._lengths = lengths
        is_dangling = (rules.head_constant >= 0) & (rules.body_constant < 0) & (rules.lengths > 0)
        is_dangling &= ~rules.has_condition
        rows = np.flatnonzero(is_dangling | rules.is_binary)
        keys = self._keys(rules.head[rows], rules.head_constant[rows], self._numbers[rules.body[rows]])
        order = np.argsort(keys, kind="stable")
        self._sorted_keys, self._sorted_rows = keys[order], rows[order]

    def pairs(self, start: int, stop: int) -> Iterator[tuple[Rows, Rows]]:
        """Yield rows from `start` to before `stop` together with the rows of rules that are more general."""
        rules, slots = self._rules, slice(start, stop)
        heads, constants, ends = rules.head[slots], rules.head_constant[slots], rules.body_constant[slots]
        bodies, rows = rules.body[slots], np.arange(start, stop)
        lengths = self._lengths[bodies]
        is_unary, own = constants >= 0, rules.vocabulary.self_id
        # Of a body that ends in a constant of its own, the U_d rule of the whole body is more general as well.
        longest = np.where((ends >= 0) & (ends != constants) & (ends != own), lengths, lengths - 1)
        for length in range(1, int(lengths.max(initial=0)) + 1):
            chosen = np.flatnonzero(is_unary & (longest >= length))
            numbers = self._prefix_numbers(length)[bodies[chosen]]
            yield from self._found(rows[chosen], heads[chosen], constants[chosen], numbers)
        grounded = np.flatnonzero(is_unary & (ends == constants) & (ends != own))
        backward = heads[grounded] >= rules.vocabulary.n_relations
        for chosen, shift, table in (
            (grounded[~backward], 0, np.arange(len(rules.bodies))),
            (grounded[backward], rules.vocabulary.n_relations, np.arange(len(rules.bodies)) + len(rules.bodies)),
        ):
            turned = self._numbers[table[bodies[chosen]]]
            yield from self._found(rows[chosen], heads[chosen] - shift, np.full(len(chosen), -1), turned)

    def _found(self, rows: Rows, heads: Ids, constants: Ids, numbers: Ids) -> Iterator[tuple[Rows, Rows]]:
        known = numbers >= 0
        keys = self._keys(heads[known], constants[known], numbers[known])
        found = find_keys(keys, self._sorted_keys)
        yield rows[known][found >= 0], self._sorted_rows[found[found >= 0]]

    def _keys(self, heads: Ids, constants: Ids, numbers: Ids) -> Rows:
        """Return a number for each head relation, constant and body."""
        n_constants = self._rules.vocabulary.n_entities + 2
        return np.asarray((heads.astype(np.int64) * n_constants + constants + 1) * len(self._bodies) + numbers)

    def _prefix_numbers(self, length: int) -> Rows:
        """Return for each body of the table the number of its first atoms as a body; -1 where it is none."""
        n_bodies = len(self._rules.bodies)
        prefixes = self._paths[:n_bodies].copy()
        prefixes[:, length:] = -1
        return find_rows(self._bodies, prefixes)

    def _all_paths(self, rules: RuleColumns) -> NDArray[np.int32]:
        """Return all bodies, and then all of them read from their other end."""
        bodies, n_relations = rules.bodies, rules.vocabulary.n_relations
        lengths = (bodies >= 0).sum(axis=1)
        places = lengths[:, None] - 1 - np.arange(bodies.shape[1])[None, :]
        turned = np.take_along_axis(bodies, np.maximum(places, 0), axis=1)
        return np.vstack([bodies, np.where(places >= 0, inverses(turned, n_relations), -1)])


def find_rows(table: NDArray[np.int32], rows: NDArray[np.int32]) -> Rows:
    """Return where each row stands in a table of distinct rows, -1 where it does not."""
    both, numbers = distinct_rows(np.vstack([table, rows]))
    places = np.full(len(both), -1, np.int64)
    places[numbers[: len(table)]] = np.arange(len(table))
    return places[numbers[len(table) :]]


def implied_rules(rules: RuleColumns) -> NDArray[np.bool_]:
    """Mark the rules that predict just what a more general rule of the set predicts."""
    marked = np.zeros(len(rules), np.bool_)
    known = Generalisations(rules)
    for start in range(0, len(rules), AT_A_TIME):
        for rows, general in known.pairs(start, min(start + AT_A_TIME, len(rules))):
            same = rules.predictions[rows] == rules.predictions[general]
            marked[rows[same]] = True
    return marked
