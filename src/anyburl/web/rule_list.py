"""Filtered and sorted lists of millions of rules; each is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.rules import selection
from anyburl.rules.lattice import RuleLattice
from anyburl.rules.ruleset import RuleSet

ORDERS = ("confidence", "support", "value", "predictions")
Sort = Literal["confidence", "support", "value", "predictions"]
SMOOTHING = 5.0
MOST_CACHED = 64
MOST_LISTED = 5_000


@dataclass(frozen=True, kw_only=True)
class RuleChoice:
    """Filters of rules, and their order; labels as the data has them."""

    relation: str | None = None
    type: str | None = None
    length: int | None = None
    min_confidence: float | None = None
    min_support: int | None = None
    contains: str | None = None
    sort: Sort = "confidence"

    def __post_init__(self) -> None:
        if self.sort not in ORDERS:
            raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", self.sort)


@dataclass(frozen=True)
class Chosen:
    """The rows of the best rules that pass, best first, and how many rules pass."""

    rows: NDArray[np.int64]
    n_matching: int


class RuleList:
    """Filters and sorts rules; the latest lists are cached."""

    def __init__(self, rules: RuleSet) -> None:
        self.rules = rules
        self.choose = lru_cache(MOST_CACHED)(self._choose)
        self._indexing = Lock()
        self._lattice: RuleLattice | None = None

    @property
    def lattice(self) -> RuleLattice:
        """The rules by their heads, indexed on first use."""
        with self._indexing:
            if self._lattice is None:
                self._lattice = RuleLattice.build(self.rules)
            return self._lattice

    def _choose(self, choice: RuleChoice) -> Chosen:
        """Return the best rules that pass the filters."""
        rows = self._matching(choice)
        part = self.rules if rows is None else self.rules.take(rows)
        best = selection.best_rows(part, MOST_LISTED, choice.sort, SMOOTHING)
        return Chosen(best if rows is None else rows[best], len(part))

    def _matching(self, choice: RuleChoice) -> NDArray[np.int64] | None:
        """Return the rows that pass; None for all of them."""
        rules = self.rules
        rows = None if choice.relation is None else self._of_relation(choice.relation)
        part = rules if rows is None else rules.take(rows)
        masks = []
        if choice.type is not None:
            masks.append(selection.type_mask(part, choice.type))
        if choice.contains is not None:
            masks.append(selection.label_mask(part, choice.contains))
        if choice.length is not None:
            masks.append(part.lengths == choice.length)
        if choice.min_support is not None:
            masks.append(part.support >= choice.min_support)
        if choice.min_confidence is not None:
            masks.append(part.confidence() >= choice.min_confidence)
        if not masks:
            return rows
        passing = np.flatnonzero(np.logical_and.reduce(masks))
        return passing if rows is None else rows[passing]

    def _of_relation(self, relation: str) -> NDArray[np.int64]:
        """Return the rows of the rules that predict a relation."""
        lattice, n_relations = self.lattice, self.rules.vocabulary.n_relations
        number = self.rules.vocabulary.relation_id(relation)
        ranges = [slice(*lattice.head_offsets[head : head + 2]) for head in (number, number + n_relations)]
        return np.concatenate([lattice.rows[part] for part in ranges]).astype(np.int64)
