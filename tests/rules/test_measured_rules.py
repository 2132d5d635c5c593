"""Rule sets with measures: these go wherever their rules go, and choose among them."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anyburl import InvalidOptionError, RuleError, RuleSet, Vocabulary, load_dataset, measure, rescore
from anyburl.bodies.rescore import BY_DEFAULT as MEASURES
from rules.samples import make_rules

TRIPLES = [("ed", "lives", "nl"), ("jan", "lives", "nl"), ("ed", "speaks", "dutch"), ("nl", "lang", "dutch")]


@pytest.fixture
def rules() -> RuleSet:
    plain = make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
            ("speaks(X,dutch) <= lives(X,nl)", (5, 4)),
            ("speaks(ed,Y) <= lang(A,Y)", (20, 2)),
        ]
    )
    return plain.replace(pca_confidence=[0.8, 0.9, 0.7], head_coverage=[0.1, 0.2, 0.3], lift=[3.0, 1.0, 2.0])


def columns(rules: RuleSet) -> list[list[float]]:
    return [getattr(rules, name).tolist() for name in rules.measures]


def test_measures_follow_their_rules(rules: RuleSet, tmp_path: Path) -> None:
    assert columns(rules.take([2, 0])) == [[0.7, 0.8], [0.3, 0.1], [2, 3]]
    assert columns(rules[1:]) == [[0.9, 0.7], [0.2, 0.3], [1, 2]]
    assert columns(RuleSet.concat([rules[2:], rules[:2]])) == [[0.7, 0.8, 0.9], [0.3, 0.1, 0.2], [2, 3, 1]]
    assert columns(rules.merge(rules)) == columns(rules)
    assert columns(pickle.loads(pickle.dumps(rules))) == columns(rules)
    assert columns(RuleSet.from_polars(rules.to_polars())) == columns(rules)
    rules.save(tmp_path / "rules.parquet")
    assert columns(RuleSet.load(tmp_path / "rules.parquet")) == columns(rules)


def test_another_vocabulary_keeps_the_measures_of_the_rules_that_it_keeps(rules: RuleSet) -> None:
    kept = rules.with_vocabulary(Vocabulary.from_labels(["dutch", "nl"], ["lang", "lives", "speaks"]))
    assert columns(kept) == [[0.8, 0.9], [0.1, 0.2], [3, 1]]


def test_a_set_has_a_measure_if_all_its_parts_had_it(rules: RuleSet) -> None:
    assert RuleSet.concat([rules, rules.replace(lift=None)]).measures == ("pca_confidence", "head_coverage")


def test_files_have_the_columns_that_the_rules_have(rules: RuleSet, tmp_path: Path) -> None:
    rules.save(tmp_path / "measured.parquet")
    rules.replace(**dict.fromkeys(MEASURES)).save(tmp_path / "plain.parquet")
    assert pl.read_parquet_schema(tmp_path / "measured.parquet").keys() >= {*MEASURES}
    assert not pl.read_parquet_schema(tmp_path / "plain.parquet").keys() & {*MEASURES}


def test_a_measure_that_is_no_number_is_refused(rules: RuleSet) -> None:
    frame = rules.to_polars().with_columns(lift=pl.lit("high"))
    with pytest.raises(RuleError, match="column 'lift' cannot have type String in a rule file"):
        RuleSet.from_polars(frame)
    with pytest.raises(RuleError, match="expected columns of 3 rules, got another length for 'lift'"):
        rules.replace(lift=np.zeros(2))


def test_rules_are_chosen_and_sorted_by_their_measures(rules: RuleSet) -> None:
    assert rules.filter(min_pca_confidence=0.8).support.tolist() == [8, 4]
    assert rules.filter(min_head_coverage=0.2, min_lift=1.5).support.tolist() == [2]
    assert rules.top(3, by="pca-confidence").support.tolist() == [4, 8, 2]
    assert rules.top(3, by="head-coverage").support.tolist() == [2, 4, 8]
    assert rules.top(1, by="lift").support.tolist() == [8]


def test_rules_without_measures_say_where_to_get_them(rules: RuleSet) -> None:
    plain = rules.replace(**dict.fromkeys(MEASURES))
    expected = r"the rules have no pca_confidence: add it with anyburl.measure\(rules, table\)"
    with pytest.raises(RuleError, match=expected):
        plain.filter(min_pca_confidence=0.5)
    with pytest.raises(RuleError, match=expected):
        plain.top(1, by="pca-confidence")


def test_counting_again_leaves_no_old_measure(rules: RuleSet) -> None:
    dataset = load_dataset(TRIPLES)
    moved = rules.with_vocabulary(dataset.vocabulary)
    assert rescore(moved, dataset.train).measures == ()
    assert columns(rescore(moved, dataset.train, measures=True))[0] == [1, 1, 1]


def test_some_measures_can_be_added_alone(rules: RuleSet) -> None:
    dataset = load_dataset(TRIPLES)
    moved = rules.replace(**dict.fromkeys(MEASURES)).with_vocabulary(dataset.vocabulary)
    done: list[int] = []
    assert measure(moved, dataset.train, only=["lift"], progress=done.append).measures == ("lift",)
    assert done == []
    assert measure(moved, dataset.train, progress=done.append).measures == MEASURES
    assert sum(done) == 3
    with pytest.raises(InvalidOptionError, match=r"only must be some of pca_confidence, .* got 'luck'"):
        measure(moved, dataset.train, only=["luck"])


def test_a_budget_is_for_rules_that_have_estimates() -> None:
    """Half of 100 predictions are right and all can be judged; a budget of one edge allows only one of them."""
    triples = [(f"s{x}", "r", f"o{x}") for x in range(100)]
    triples += [(f"s{x}", "h", f"o{x if x < 50 else x - 50}") for x in range(100)]
    dataset = load_dataset(triples)
    rule = make_rules([("h(X,Y) <= r(X,Y)", (100, 50))]).with_vocabulary(dataset.vocabulary)
    for exact, expected in ((True, {0.5}), (False, {0.0, 1.0})):
        [[found]] = columns(measure(rule.replace(exact=[exact]), dataset.train, only=["pca_confidence"], budget=1))
        assert found in expected
