"""The best facts of each relation, subject or question."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.facts import FactColumns

LEVELS = (0.9, 0.7, 0.5, 0.3, 0.15, 0.05, 0.0)  # scores from which on facts are looked for, one after the other
FACTS_AT_A_TIME = 1 << 20

Find = Callable[[NDArray[np.float64]], Iterator[FactColumns]]
"""Yields the facts with at least these scores, by relation."""


def best_of_each(facts: FactColumns, groups: NDArray[np.int64], top: int) -> FactColumns:
    """Return the `top` best facts of each group, in their order; of equals, those with more rules, then smaller ids."""
    subjects, relations, objects = facts.triples.T
    order = np.lexsort((objects, relations, subjects, -facts.n_rules, -facts.scores, groups))
    sorted_groups = groups[order]
    starts = np.searchsorted(sorted_groups, sorted_groups)
    return facts.take(np.sort(order[np.arange(len(order)) - starts < top]))


def groups_of(facts: FactColumns, per: str, n_relations: int) -> NDArray[np.int64]:
    """Return a number for the relation, the subject or the question of each fact."""
    subjects, relations = facts.triples[:, 0].astype(np.int64), facts.triples[:, 1].astype(np.int64)
    return {"relation": relations, "subject": subjects, "question": subjects * n_relations + relations}[per]


def best_by_relation(find: Find, least: NDArray[np.float64], top: int, *, in_levels: bool) -> Iterator[FactColumns]:
    """Yield the `top` best facts of each relation, those with at least the `least` score.

    Where high scores are found without looking at the lower ones, `in_levels`, they are looked for first; relations
    with enough of them are done.
    """
    for level in LEVELS if in_levels else LEVELS[-1:]:
        floors = np.where(np.isfinite(least), np.maximum(least, level), np.inf)
        found = _keep_best(find(floors), top)
        counts = np.bincount(found.triples[:, 1], minlength=len(least))
        is_done = np.isfinite(least) & ((counts >= top) | (floors == least))
        yield found.take(is_done[found.triples[:, 1]])
        least = np.where(is_done, np.inf, least)
        if not np.isfinite(least).any():
            return


def _keep_best(found: Iterator[FactColumns], top: int) -> FactColumns:
    """Return the best facts of each relation; no more are kept at any time than a few for each."""
    kept, n_kept = list[FactColumns](), 0
    for facts in found:
        kept.append(facts)
        n_kept += len(facts)
        if n_kept > FACTS_AT_A_TIME:
            kept = [_cut(kept, top)]
            n_kept = len(kept[0]) // 2  # as many again before they are cut once more
    return _cut(kept, top)


def _cut(parts: list[FactColumns], top: int) -> FactColumns:
    facts = FactColumns.concat(parts)
    return best_of_each(facts, groups_of(facts, "relation", 0), top)
