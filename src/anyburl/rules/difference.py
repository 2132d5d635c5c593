"""Matches the rules of two sets by label; `diff` says which are gone, new or changed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.rules import columns as measures
from anyburl.rules.columns import COLUMNS, Holds, RuleColumns
from anyburl.rules.combine import join_vocabularies, reencode, rule_keys
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import SMOOTHING

Rows = NDArray[np.int64]

BEFORE, AFTER = "_before", "_after"


COUNTS = tuple(name for name, column in COLUMNS.items() if column.holds is Holds.COUNT)


@dataclass(frozen=True)
class MatchedRows:
    """Where each rule of one set is in another: `first` and `second` are rows of the same rules, in pairs."""

    first: Rows
    second: Rows
    gone: Rows  # rows of the first set that the second lacks
    new: Rows  # rows of the second set that the first lacks


def match_rules(first: RuleColumns, second: RuleColumns) -> MatchedRows:
    """Match the rules of two sets by their labels."""
    vocabulary = join_vocabularies([first.vocabulary, second.vocabulary])
    keys = rule_keys(reencode(first, vocabulary), reencode(second, vocabulary))
    (sorted_first, order), (sorted_second, other_order) = (_sorted(column) for column in keys)
    nearest = np.searchsorted(sorted_second, sorted_first)
    is_match = np.append(sorted_second, -1)[nearest] == sorted_first
    rows, other_rows = order[is_match], other_order[nearest[is_match]]
    return MatchedRows(rows, other_rows, _others(rows, len(first)), _others(other_rows, len(second)))


def changed_pairs(first: RuleColumns, second: RuleColumns, matched: MatchedRows) -> NDArray[np.bool_]:
    """Mark the matched rules with different counts."""
    differs = np.zeros(len(matched.first), np.bool_)
    for name in COUNTS:
        differs |= getattr(first, name)[matched.first] != getattr(second, name)[matched.second]
    return differs


class RuleDifference:
    """Two rule sets, matched by label: `gone`, `new` and `changed` rules; the latter have different counts."""

    def __init__(self, first: RuleSet, second: RuleSet) -> None:
        self.first, self.second = first, second
        self._matched = match_rules(first, second)
        differs = changed_pairs(first, second, self._matched)
        self._changed = self._matched.first[differs], self._matched.second[differs]
        self.n_unchanged = int((~differs).sum())

    @cached_property
    def gone(self) -> RuleSet:
        """The rules of the first set that the second does not have."""
        return self.first.take(self._matched.gone)

    @cached_property
    def new(self) -> RuleSet:
        """The rules of the second set that the first does not have."""
        return self.second.take(self._matched.new)

    @property
    def n_changed(self) -> int:
        """How many rules have different counts in the second set."""
        return len(self._changed[0])

    def changed(self, top: int | None = None) -> tuple[RuleSet, RuleSet]:
        """Return the changed rules, before and after, or the `top` of them; the largest changes in confidence come
        first.
        """
        before, after = self._changed
        moved = np.abs(_confidence(self.second, after) - _confidence(self.first, before))
        order = _largest(moved, len(moved) if top is None else top)
        return self.first.take(before[order]), self.second.take(after[order])

    def counts(self) -> dict[str, int]:
        """Return how many rules are gone, new, changed and unchanged."""
        return {
            "gone": len(self._matched.gone),
            "new": len(self._matched.new),
            "changed": self.n_changed,
            "unchanged": self.n_unchanged,
        }

    def count_moved(self) -> tuple[int, int]:
        """Return how many of the changed rules gained confidence, and how many lost some."""
        before, after = self._changed
        growth = self.second.confidence()[after] - self.first.confidence()[before]
        return int((growth > 0).sum()), int((growth < 0).sum())

    def to_polars(self, top: int | None = None) -> pl.DataFrame:
        """Return one row per difference: gone and new rules, the most valuable first, then changed ones.

        With `top`, at most that many of each.
        """
        gone, new = (rules.top(len(rules) if top is None else top, "value") for rules in (self.gone, self.new))
        before, after = self.changed(top)
        parts = [
            _described("gone", gone, gone, None),
            _described("new", new, None, new),
            _described("changed", after, before, after),
        ]
        return pl.concat(parts)

    def to_json(self, top: int) -> dict[str, Any]:
        """Return the counts and, under "top", the largest differences of each kind."""
        rows = self.to_polars(top)
        shown = {
            name: rows.filter(pl.col("change") == name).drop("change").to_dicts() for name in ("gone", "new", "changed")
        }
        return {**self.counts(), "top": shown}

    def __repr__(self) -> str:
        return f"RuleDifference({', '.join(f'{n} {name}' for name, n in self.counts().items())})"


def diff(first: RuleSet | str | os.PathLike[str], second: RuleSet | str | os.PathLike[str]) -> RuleDifference:
    """Compare two rule sets, rule files or run folders: gone, new and changed rules."""
    sets = [rules if isinstance(rules, RuleSet) else RuleSet.load(rules) for rules in (first, second)]
    return RuleDifference(*sets)


def _sorted(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Rows]:
    """Return the keys in ascending order, and the row of each; Polars sorts on all cores."""
    frame = pl.DataFrame({"key": keys}).with_row_index("row").sort("key")
    return frame["key"].to_numpy(), frame["row"].to_numpy().astype(np.int64)


def _others(rows: Rows, n_rules: int) -> Rows:
    """Return the rows of `n_rules` that are not among some rows."""
    is_other = np.ones(n_rules, np.bool_)
    is_other[rows] = False
    return np.flatnonzero(is_other)


def _confidence(rules: RuleSet, rows: Rows) -> NDArray[np.float64]:
    return measures.confidence(rules.support[rows], rules.predictions[rows], SMOOTHING)


def _largest(values: NDArray[np.float64], k: int) -> Rows:
    """Return the rows of the k largest values, the largest first."""
    checking.whole("top", k, 0)
    rows = np.arange(len(values))
    if k < len(values):
        rows = np.argpartition(-values, k)[:k]
    return rows[np.argsort(-values[rows], kind="stable")]


def _described(change: str, rules: RuleSet, before: RuleSet | None, after: RuleSet | None) -> pl.DataFrame:
    """Return a frame of rules that changed in one way, with their scores before and after, or null."""
    columns: dict[str, pl.Series] = {
        "change": pl.repeat(change, len(rules), eager=True, dtype=pl.String),
        "rule": rules.texts(),
    }
    for name in ("confidence", *reversed(COUNTS)):
        for when, scored in ((BEFORE, before), (AFTER, after)):
            columns[f"{name}{when}"] = _column(name, scored, len(rules))
    return pl.DataFrame(columns)


def _column(name: str, rules: RuleSet | None, n_rules: int) -> pl.Series:
    dtype = pl.Float64 if name == "confidence" else pl.Int64
    if rules is None:
        return pl.repeat(None, n_rules, eager=True, dtype=dtype)
    return pl.Series(rules.confidence() if name == "confidence" else getattr(rules, name)).cast(dtype)
