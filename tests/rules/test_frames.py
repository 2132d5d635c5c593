"""Rules as frames of labels: what Polars and pandas users get, and what is read back."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import MissingExtraError
from anyburl.rules import labels
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Variable
from anyburl.rules.ruleset import RuleSet
from kernels import examples
from rules.samples import assert_same, make_rules, rule_sets

X = Variable("X")
LIKE_THE_TOKEN = ["me_myself_i", "\\me_myself_i", "\\\\me_myself_i", "\\me_myself_i\\", "me_myself_ii", "\\"]


@pytest.fixture
def rules() -> RuleSet:
    return make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)),
            ("speaks(X,dutch) <= lives(X,nl)", (5, 4)),
            ("speaks(ed,Y) <= lang(A,Y)", (20, 2)),
            ("married(X,me_myself_i) <= born(A,X)", (4, 0)),
            ("speaks(X,english) <= ", (100, 80)),
            ("born(X,Y) <= lives(X,Y)", (0, 0)),
        ]
    )


@settings(max_examples=examples(40))
@given(rule_sets() | rule_sets(entities=st.sampled_from(LIKE_THE_TOKEN)))
def test_any_rules_survive_a_frame(rules: RuleSet) -> None:
    assert_same(RuleSet.from_polars(rules.to_polars()), rules)


def test_an_entity_with_the_name_of_the_token_has_a_backslash() -> None:
    terms = [SELF, *map(Constant, LIKE_THE_TOKEN)]
    rules = make_rules([(Rule(Atom("h", X, term), ()), (2, 1)) for term in terms])
    assert rules.to_polars()["object"].to_list() == [
        "me_myself_i",
        "\\me_myself_i",
        "\\\\me_myself_i",
        "\\\\\\me_myself_i",
        "\\me_myself_i\\",
        "me_myself_ii",
        "\\",
    ]
    assert [rule.head.object for rule in RuleSet.from_polars(rules.to_polars())] == terms


@pytest.mark.parametrize("most_enum_labels", [0, 500_000], ids=["strings", "dictionaries"])
def test_the_contents_of_a_file_are_read_as_a_frame_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_enum_labels: int
) -> None:
    """In a file, nothing is quoted: a marker stands for the token self."""
    monkeypatch.setattr(labels, "MOST_ENUM_LABELS", most_enum_labels)
    terms = [SELF, *map(Constant, LIKE_THE_TOKEN)]
    rules = make_rules([(Rule(Atom("h", X, term), (Atom("b", X, SELF),)), (2, 1)) for term in terms])
    rules.save(tmp_path / "rules.parquet")
    assert_same(RuleSet.from_polars(pl.read_parquet(tmp_path / "rules.parquet")), rules)


def test_a_frame_may_be_written_and_loaded(tmp_path: Path, rules: RuleSet) -> None:
    rules.to_polars().write_parquet(tmp_path / "rules.parquet")
    assert_same(RuleSet.load(tmp_path / "rules.parquet"), rules)


def test_a_frame_may_be_filtered_and_sorted(rules: RuleSet) -> None:
    frame = rules.to_polars().filter(pl.col("head").str.contains("speak")).sort("support", descending=True)
    assert_same(RuleSet.from_polars(frame), rules.take([4, 0, 1, 2]))


def test_the_frame_has_labels_as_strings(rules: RuleSet) -> None:
    frame = rules.to_polars()
    assert frame.columns == [
        *("type", "head", "body", "forward", "subject", "object", "constant"),
        *("predictions", "support", "exact", "confidence"),
    ]
    labels = ("type", "head", "subject", "object", "constant")
    assert {frame.schema[name] for name in labels} == {pl.String()}
    assert frame.schema["body"] == pl.List(pl.String)
    assert frame.filter(pl.col("head").str.starts_with("sp")).height == 4
    assert frame.row(0)[:7] == ("B", "speaks", ["lives", "lang"], [True, True], None, None, None)
    assert frame.row(1)[:7] == ("Uc", "speaks", ["lives"], [True], None, "dutch", "nl")
    assert frame.row(2)[:7] == ("Ud", "speaks", ["lang"], [False], "ed", None, None)
    assert frame.row(3)[:7] == ("Ud", "married", ["born"], [False], None, "me_myself_i", None)
    assert frame.row(4) == ("Z", "speaks", [], [], None, "english", None, 100, 80, True, 0.8)


def test_pandas_is_optional(rules: RuleSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_: object) -> None:
        raise ModuleNotFoundError("pandas")

    monkeypatch.setattr(pl.DataFrame, "to_pandas", missing)
    with pytest.raises(MissingExtraError, match="to_pandas"):
        rules.to_pandas()


def test_a_pandas_frame_has_the_same_columns(rules: RuleSet) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = rules.to_pandas()
    assert list(frame.columns) == rules.to_polars().columns
    assert frame["head"].tolist() == rules.to_polars()["head"].to_list()
    assert frame["object"].str.startswith("me_").sum() == 1
