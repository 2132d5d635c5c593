"""Filtered and sorted lists of millions of rules; each is computed once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.bodies.rescore import surprising_rows
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.explanation.relatives import RuleLattice, find_first_alike
from anyburl.rules import selection
from anyburl.rules.columns import SMOOTHING
from anyburl.rules.ruleset import RuleSet

ORDERS = ("surprise", "confidence", "support", "value", "predictions", "worth")
Sort = Literal["surprise", "confidence", "support", "value", "predictions", "worth"]
MOST_CACHED = 64
MOST_LISTED = 5_000
FOLDED = 200
"""The first rules of a list, among which those that say nearly the same are folded."""


@dataclass(frozen=True, kw_only=True)
class RuleChoice:
    """Filters of rules, and their order; labels as the data has them."""

    relation: str | None = None
    type: str | None = None
    length: int | None = None
    min_confidence: float | None = None
    min_support: int | None = None
    contains: str | None = None
    sort: Sort | None = None

    def __post_init__(self) -> None:
        if self.sort is not None and self.sort not in ORDERS:
            raise InvalidOptionError("sort", f"one of {', '.join(ORDERS)}", self.sort)


@dataclass(frozen=True)
class Chosen:
    """The rows of the best rules that pass, best first, and how many rules pass."""

    rows: NDArray[np.int64]
    n_matching: int


@dataclass(frozen=True)
class Folded:
    """Rules that pass, how many each stands for, by its row, and how many are folded in all."""

    chosen: Chosen
    alike: dict[int, int]
    n_folded: int


class RuleList:
    """Filters and sorts rules; the latest lists are cached."""

    def __init__(self, rules: RuleSet, ranker: Ranker) -> None:
        self.rules, self._ranker = rules, ranker
        self.choose = lru_cache(MOST_CACHED)(self._choose)
        self.fold = lru_cache(MOST_CACHED)(self._fold)
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
        order = choice.sort or self.default_order
        if order == "surprise" and part.surprise is None:
            best = surprising_rows(part, self._ranker.graph, MOST_LISTED)
        else:
            best = selection.best_rows(part, MOST_LISTED, order, SMOOTHING)
        return Chosen(best if rows is None else rows[best], len(part))

    @property
    def orders(self) -> tuple[str, ...]:
        """By which these rules can be sorted."""
        return tuple(order for order in ORDERS if order != "worth" or self.rules.worth is not None)

    @property
    def default_order(self) -> str:
        return "surprise" if self.rules.worth is None else "worth"

    def _fold(self, choice: RuleChoice) -> Folded:
        """Return the best rules that pass, without those that say nearly the same as an earlier one."""
        chosen = self.choose(choice)
        first = chosen.rows[:FOLDED]
        identity = self._ranker.options.object_identity
        same = find_first_alike(self._ranker.ready.graph, self.rules.take(first), object_identity=identity)
        is_kept = same == np.arange(len(first))
        counts = np.bincount(same, minlength=len(first)) - 1
        alike = {int(row): int(n) for row, n in zip(first[is_kept], counts[is_kept], strict=True) if n}
        rows = np.concatenate([first[is_kept], chosen.rows[FOLDED:]])
        return Folded(Chosen(rows, chosen.n_matching), alike, int((~is_kept).sum()))

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
