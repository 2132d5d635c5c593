"""Compares two rule sets: gone, new and changed rules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.ruleset.bodytable import joint_keys, merge_tables
from anyburl.ruleset.columns import RuleColumns
from anyburl.ruleset.combine import join_vocabularies, reencode

Rows = NDArray[np.int64]


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
    keys = _keys(reencode(first, vocabulary)[0], reencode(second, vocabulary)[0])
    (sorted_first, order), (sorted_second, other_order) = (_sorted(column) for column in keys)
    places = np.searchsorted(sorted_second, sorted_first)
    found = np.append(sorted_second, -1)[places] == sorted_first
    rows, other_rows = order[found], other_order[places[found]]
    return MatchedRows(rows, other_rows, _others(rows, len(first)), _others(other_rows, len(second)))


def changed_pairs(first: RuleColumns, second: RuleColumns, matched: MatchedRows) -> NDArray[np.bool_]:
    """Mark the matched rules whose predictions or support differ."""
    differs: NDArray[np.bool_] = first.predictions[matched.first] != second.predictions[matched.second]
    differs |= first.support[matched.first] != second.support[matched.second]
    return differs


def _keys(first: RuleColumns, second: RuleColumns) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return a number per rule, the same in both sets for the same rule."""
    _, places = merge_tables([first.bodies, second.bodies])
    columns = [
        np.concatenate([first.type, second.type]).astype(np.int32),
        np.concatenate([first.head, second.head]),
        np.concatenate([places[0][first.body], places[1][second.body]]),
        np.concatenate([first.head_constant, second.head_constant]),
        np.concatenate([first.body_constant, second.body_constant]),
    ]
    keys = joint_keys(columns)
    return keys[: len(first)], keys[len(first) :]


def _sorted(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], Rows]:
    """Return the keys in ascending order, and the row of each; Polars sorts on all cores."""
    frame = pl.DataFrame({"key": keys}).with_row_index("row").sort("key")
    return frame["key"].to_numpy(), frame["row"].to_numpy().astype(np.int64)


def _others(rows: Rows, n_rules: int) -> Rows:
    is_other = np.ones(n_rules, np.bool_)
    is_other[rows] = False
    return np.flatnonzero(is_other)
