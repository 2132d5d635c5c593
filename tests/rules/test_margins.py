"""How far estimated confidences may be off goes wherever the rules go; older files do not say."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anyburl import RuleSet, Vocabulary, learn, load_dataset, rescore
from anyburl.rules.run_folder import write_part
from rules.samples import make_rules


@pytest.fixture
def rules() -> RuleSet:
    plain = make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
            ("speaks(X,dutch) <= lives(X,nl)", (5, 4)),
            ("speaks(ed,Y) <= lang(A,Y)", (20, 2)),
        ]
    )
    return plain.replace(exact=[True, False, False], margin=np.array([0, 0.25, np.nan], np.float32))


def margins(rules: RuleSet) -> list[float | None]:
    assert rules.margin is not None
    assert rules.margin.dtype == np.float32
    return [None if np.isnan(margin) else margin for margin in rules.margin.tolist()]


def test_margins_follow_their_rules(rules: RuleSet, tmp_path: Path) -> None:
    assert margins(rules.take([2, 0])) == [None, 0]
    assert margins(rules[1:]) == [0.25, None]
    assert margins(rules.merge(rules)) == [0, 0.25, None]
    assert margins(pickle.loads(pickle.dumps(rules))) == [0, 0.25, None]
    assert margins(RuleSet.from_polars(rules.to_polars())) == [0, 0.25, None]
    rules.save(tmp_path / "rules.parquet")
    assert margins(RuleSet.load(tmp_path / "rules.parquet")) == [0, 0.25, None]
    kept = rules.with_vocabulary(Vocabulary.from_labels(["dutch", "nl"], ["lang", "lives", "speaks"]))
    assert margins(kept) == [0, 0.25]


def test_rules_of_which_none_is_known_join_those_of_which_some_are(rules: RuleSet) -> None:
    plain = rules.replace(margin=None)
    assert plain.margin is RuleSet.concat([plain, plain]).margin is None
    assert margins(RuleSet.concat([plain, rules])) == [0, None, None, 0, 0.25, None]


def test_files_have_the_column_if_the_rules_have_it(rules: RuleSet, tmp_path: Path) -> None:
    rules.save(tmp_path / "with.parquet")
    rules.replace(margin=None).save(tmp_path / "without.parquet")
    assert pl.read_parquet_schema(tmp_path / "with.parquet")["margin"] == pl.Float32
    assert "margin" not in pl.read_parquet_schema(tmp_path / "without.parquet")
    assert RuleSet.load(tmp_path / "without.parquet").margin is None


def test_a_run_that_was_killed_keeps_them(tmp_path: Path) -> None:
    data = load_dataset("geo")
    rules = rescore(learn(data, paths=2_000, seed=1), data.train, budget=10)
    from anyburl.learning.options import LearnOptions
    from anyburl.learning.run import RunDirectory

    run = RunDirectory.create(tmp_path / "run", data, LearnOptions())
    write_part(run.path, rules)
    write_part(run.path, rules[:3].replace(margin=None, exact=np.ones(3, np.bool_)))
    found = run.load_rules()
    assert np.isnan(rules.margin).sum() == 0
    assert found.margin.tolist() == [*rules.margin.tolist(), 0, 0, 0]


def test_counting_within_a_budget_says_how_far_confidences_may_be_off() -> None:
    data = load_dataset("geo")
    rules = rescore(learn(data, paths=20_000, seed=1), data.train)
    assert rules.margin is None
    estimated = rescore(rules, data.train, budget=40)
    assert estimated.margin is not None
    assert ((estimated.margin == 0) == estimated.exact).all()
    within = np.abs(estimated.confidence() - rules.confidence()) <= estimated.margin
    assert within.mean() >= 0.95
