"""`RuleLattice`: which rules of a set are more general than a rule, and which more special.

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

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.graph.arrays import inverses
from anyburl.rules.columns import RuleColumns

Rows = NDArray[np.int64]


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
