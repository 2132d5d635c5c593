"""The best rules of a large run, kept in a small file beside all of them, so that they can be shown at once.

    best.parquet  rules that are among the best of all, or of their relation, by one of the orders; with their surprise
    best.json     the seal of the rules.parquet that they are from, how many rules it holds, how many are kept, and
                  which of the first by the default order say nearly the same

The best of all that are kept, by any of the orders, are the best of all rules by that order. To read them imports no
compiler: that would take as long as all the rest.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import AnyburlError, RunError
from anyburl.base.sealed import read_seal
from anyburl.base.writing import replace_text
from anyburl.rules.columns import SMOOTHING, RuleColumns
from anyburl.rules.files.parquet import read_rules_parquet
from anyburl.rules.files.run_folder import RULES, part_files
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.selection import best_rows

if TYPE_CHECKING:
    from anyburl.data.table import TripleTable
    from anyburl.graph.arrays import GraphArrays

BEST, ABOUT = "best.parquet", "best.json"
MANY = 100_000
"""Rules from which on the best are kept: fewer are read in a moment."""
FOLDED = 1_000
"""Rules by the default order that are compared with each other when the best are kept."""

ORDERS = ("confidence", "support", "value", "predictions", "worth")


@dataclass(frozen=True)
class BestRules:
    """The best rules, and how many there are in all: of the run, and of each relation."""

    rules: RuleColumns
    n_rules: int
    by_relation: dict[str, int]
    overall: int
    of_a_relation: int
    alike: tuple[int, ...]
    """For the first rules by the default order, the row of the first that says nearly the same."""

    @property
    def default_order(self) -> str:
        return "surprise" if self.rules.worth is None else "worth"

    def can_tell(self, order: str | None, n: int, smoothing: float, *, of_relation: bool) -> bool:
        """Return whether the first n rules by an order, of one relation or of all, are among those kept."""
        is_kept = order is None or order == "surprise" or (order in ORDERS and order != "worth")
        is_kept |= order == "worth" and self.rules.worth is not None
        is_smoothed = order != "confidence" or smoothing == SMOOTHING
        return is_kept and is_smoothed and n <= (self.of_a_relation if of_relation else self.overall)


def read_best(folder: Path) -> BestRules | None:
    """Return the best rules of a run folder; None if they are not kept, or are those of other rules."""
    with suppress(OSError, ValueError, KeyError, TypeError, AnyburlError):
        about = json.loads((folder / ABOUT).read_text("utf-8"))
        if part_files(folder) or about["rules"] != read_seal(folder / RULES).hex():
            return None
        return BestRules(
            rules=read_rules_parquet(folder / BEST)[0],
            n_rules=int(about["total"]),
            by_relation=dict(about["by_relation"]),
            overall=int(about["overall"]),
            of_a_relation=int(about["of_a_relation"]),
            alike=tuple(map(int, about["alike"])),
        )
    return None


OVERALL, OF_A_RELATION = 2_000, 200
MOST_OF_ALL_RELATIONS = 200_000

Rows = NDArray[np.int64]


def write_best(folder: Path, rules: RuleSet, table: TripleTable, find_alike: Callable[[RuleSet], list[int]]) -> None:
    """Keep the best rules of a run folder; `table` is what they were learned from.

    `find_alike` returns for each of some rules, best first, the row of the first that says nearly the same.
    """
    from anyburl.bodies.rescore import surprises
    from anyburl.graph.stored import graph_of

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
    from anyburl.bodies.rescore import surprising_rows

    part = rules if rows is None else rules.take(rows)
    rows = np.arange(len(rules), dtype=np.int64) if rows is None else rows
    if len(part) <= n:
        yield rows
        return
    for order in ORDERS:
        if order != "worth" or part.worth is not None:
            yield rows[best_rows(part, n, order, SMOOTHING)]
    yield rows[surprising_rows(part, graph, n)]
