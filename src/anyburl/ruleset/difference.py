"""`diff`: how two rule sets differ."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import checking
from anyburl.ruleset import measures
from anyburl.ruleset.comparison import Rows, changed_pairs, match_rules
from anyburl.ruleset.ruleset import RuleSet

SMOOTHING = 5  # of confidences compared: a rule that falls from 500 of 510 matters more than one of 2 of 2
BEFORE, AFTER = "_before", "_after"


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


def _confidence(rules: RuleSet, rows: Rows) -> NDArray[np.float64]:
    return measures.confidence(rules.support[rows], rules.predictions[rows], SMOOTHING)


def _largest(values: NDArray[np.float64], k: int) -> Rows:
    """Return the places of the k largest values, the largest first."""
    checking.whole("top", k, 0)
    places = np.arange(len(values))
    if k < len(values):
        places = np.argpartition(-values, k)[:k]
    return places[np.argsort(-values[places], kind="stable")]


def _described(change: str, rules: RuleSet, before: RuleSet | None, after: RuleSet | None) -> pl.DataFrame:
    """Return the rows of one sort of change; what a rule did not have is null."""
    columns: dict[str, pl.Series] = {
        "change": pl.repeat(change, len(rules), eager=True, dtype=pl.String),
        "rule": rules.texts(),
    }
    for name in ("confidence", "support", "predictions"):
        for when, counted in ((BEFORE, before), (AFTER, after)):
            columns[f"{name}{when}"] = _column(name, counted, len(rules))
    return pl.DataFrame(columns)


def _column(name: str, rules: RuleSet | None, n_rules: int) -> pl.Series:
    dtype = pl.Float64 if name == "confidence" else pl.Int64
    if rules is None:
        return pl.repeat(None, n_rules, eager=True, dtype=dtype)
    return pl.Series(rules.confidence() if name == "confidence" else getattr(rules, name)).cast(dtype)
