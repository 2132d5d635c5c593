"""Small rule sets made of text, and a way to compare two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from anyburl.rules.rule import Rule, parse_rule
from anyburl.rules.rule_file import encode_rules, label_rules
from anyburl.rules.ruleset import RuleSet
from rules.strategies import labels, rules

Scores = tuple[int, int]


def make_rules(scored: Sequence[tuple[Rule | str, Scores]], exact: bool = True) -> RuleSet:
    """Return rules with (predictions, support)."""
    objects = [parse_rule(rule) if isinstance(rule, str) else rule for rule, _ in scored]
    predictions = pl.Series([scores[0] for _, scores in scored], dtype=pl.Int64)
    support = pl.Series([scores[1] for _, scores in scored], dtype=pl.Int64)
    made = RuleSet.of(encode_rules(label_rules(objects), predictions, support))
    return made.replace(exact=np.full(len(made), exact))


def rule_sets(
    entities: SearchStrategy[str] = labels, relations: SearchStrategy[str] = labels
) -> SearchStrategy[RuleSet]:
    """Sets of up to eight rules of any type."""
    scores = st.tuples(st.integers(0, 10**12), st.integers(0, 10**9)).map(lambda s: (max(s), min(s)))
    return st.lists(st.tuples(rules(entities, relations), scores), max_size=8).map(lambda drawn: make_rules(drawn))


def assert_same(left: RuleSet, right: RuleSet, *, same_exact: bool = True) -> None:
    """Check that two sets have the same rules and scores in the same order."""
    assert list(left) == list(right)
    assert left.type.tolist() == right.type.tolist()
    assert left.predictions.tolist() == right.predictions.tolist()
    assert left.support.tolist() == right.support.tolist()
    assert not same_exact or left.exact.tolist() == right.exact.tolist()
