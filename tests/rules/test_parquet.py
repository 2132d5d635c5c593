"""Rules in Parquet files: lossless for any label."""

from __future__ import annotations

import tempfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings

from anyburl.base.errors import RuleError, RunError
from anyburl.data import Vocabulary
from anyburl.rules import labels, parquet
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Variable
from anyburl.rules.ruleset import RuleSet
from kernels import examples
from rules.samples import assert_same, make_rules, rule_sets

X = Variable("X")


@pytest.fixture
def rules() -> RuleSet:
    return make_rules(
        [
            ("h(X,Y) <= b(X,A), c(A,Y)", (10, 8)),
            ("h(X,c) <= b(X,d)", (5, 4)),
            ("h(c,Y) <= b(Y,A)", (5, 3)),
            ("h(X,me_myself_i) <= ", (5, 2)),
        ]
    )


@settings(max_examples=examples(40))
@given(rule_sets())
def test_any_rules_come_back_as_they_were(rules: RuleSet) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.parquet"
        rules.save(path)
        loaded, report = RuleSet.read(path)
        assert [entry.name for entry in Path(folder).iterdir()] == ["rules.parquet"]
    assert_same(loaded, rules)
    assert loaded.vocabulary == rules.vocabulary
    assert (report.n_rules, report.is_complete) == (len(rules), True)


@settings(max_examples=examples(40))
@given(rule_sets())
def test_strings_and_categories_are_read_like_dictionaries(rules: RuleSet) -> None:
    labels = ["type", "head", "subject", "object", "constant"]
    for dtype in (pl.String, pl.Categorical):
        columns = rules.to_polars().with_columns(pl.col(labels).cast(pl.String).cast(dtype))
        columns = columns.with_columns(pl.col("body").cast(pl.List(pl.String)).cast(pl.List(dtype)))
        assert_same(RuleSet.from_polars(columns), rules)


def test_the_vocabulary_of_the_data_comes_back_whole(tmp_path: Path, rules: RuleSet) -> None:
    vocabulary = Vocabulary.from_labels([*"abcde"], [*"abch"])
    moved = rules.with_vocabulary(vocabulary)
    moved.save(tmp_path / "rules.parquet")
    loaded = RuleSet.load(tmp_path / "rules.parquet")
    assert loaded.vocabulary == vocabulary
    assert loaded.head.tolist() == moved.head.tolist()


def test_large_sets_are_written_and_read_in_parts(
    tmp_path: Path, rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = rules.take([*range(4)] * 25)
    monkeypatch.setattr(parquet, "SLICE_ROWS", 7)
    monkeypatch.setattr(parquet.FrameWriter.slices, "__defaults__", (7,))
    many.save(tmp_path / "rules.parquet")
    assert_same(RuleSet.load(tmp_path / "rules.parquet"), many)


def test_large_vocabularies_are_written_as_strings(
    tmp_path: Path, rules: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labels, "MOST_ENUM_LABELS", 0)
    rules.save(tmp_path / "rules.parquet")
    assert pl.read_parquet_schema(tmp_path / "rules.parquet")["constant"] == pl.String
    assert_same(RuleSet.load(tmp_path / "rules.parquet"), rules)


def test_self_and_an_entity_of_its_name_stay_apart(tmp_path: Path) -> None:
    name = Constant("me_myself_i")
    heads = [Rule(Atom("h", X, term), (Atom("b", X, other),)) for term, other in ((SELF, name), (name, SELF))]
    rules = make_rules([(rule, (2, 1)) for rule in heads])
    rules.save(tmp_path / "rules.parquet")
    assert list(RuleSet.load(tmp_path / "rules.parquet")) == heads


def test_rules_with_labels_outside_a_vocabulary_are_dropped_and_counted(tmp_path: Path, rules: RuleSet) -> None:
    path = tmp_path / "rules.parquet"
    rules.save(path)
    vocabulary = Vocabulary.from_labels(["c", "x"], ["a", "b", "h"])
    loaded, report = RuleSet.read(path, vocabulary)
    assert_same(loaded, rules.take([2, 3]))
    assert loaded.vocabulary is vocabulary
    assert (report.n_rules, report.n_unknown, report.rejected) == (2, 2, [])
    with pytest.warns(UserWarning, match="2 rules read; 2 rules use labels that are not in the data"):
        RuleSet.load(path, vocabulary)


def test_columns_that_can_be_derived_may_be_missing(tmp_path: Path, rules: RuleSet) -> None:
    rules.to_polars().drop("exact", "confidence").write_parquet(tmp_path / "rules.parquet")
    loaded = RuleSet.load(tmp_path / "rules.parquet")
    assert_same(loaded, rules, same_exact=False)
    assert not loaded.exact.any()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (pl.lit("Q").alias("type"), "row 1: expected a type B, Uc, Ud, Z, Uv or Bv"),
        (pl.lit("Uc").alias("type"), "row 1: a unary rule has either a subject or an object"),
        (pl.lit(None, pl.String).alias("head"), "row 1: expected a head"),
        (pl.lit("c").alias("subject"), "row 1: a rule of type B or Bv has no subject"),
        (pl.lit("c").alias("constant"), "row 1: rules of type Uc, and no others, have a constant"),
        (pl.lit([], pl.List(pl.String)).alias("body"), "row 1: body and forward have different lengths"),
        (pl.lit(1).alias("predictions"), "row 1: expected 0 <= support <= predictions"),
        (pl.lit(2**63, pl.UInt64).alias("predictions"), "row 1: expected 0 <= support <= predictions"),
        (pl.lit(2**70, pl.Int128).alias("support"), "row 1: expected 0 <= support <= predictions"),
        (pl.lit(1.5).alias("predictions"), "column 'predictions' cannot have type Float64"),
        (pl.lit("b").alias("body"), "column 'body' cannot have type String"),
        (pl.lit(3).alias("head"), "column 'head' cannot have type Int32"),
        (pl.lit("").alias("head"), "got an empty one"),
    ],
)
def test_wrong_contents_are_told_by_column_and_row(
    tmp_path: Path, rules: RuleSet, change: pl.Expr, reason: str
) -> None:
    path = tmp_path / "rules.parquet"
    columns = rules.to_polars().with_columns(change)
    columns.write_parquet(path)
    with pytest.raises(RuleError, match=reason) as caught:
        RuleSet.load(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_only_frames_are_read_as_frames(rules: RuleSet) -> None:
    for wrong in ({}, rules.to_polars().lazy(), None):
        with pytest.raises(RuleError, match="expected a Polars frame of rules, got"):
            RuleSet.from_polars(wrong)  # type: ignore[arg-type]


def test_files_that_are_no_rules_are_told_apart(tmp_path: Path, rules: RuleSet) -> None:
    with pytest.raises(RuleError, match="no such file"):
        RuleSet.load(tmp_path / "none.parquet")
    with pytest.raises(RunError, match="is not a run folder"):
        RuleSet.load(tmp_path)
    (tmp_path / "junk.parquet").write_bytes(b"\x00junk" * 10)
    with pytest.raises(RuleError, match="cannot be read as Parquet"):
        RuleSet.load(tmp_path / "junk.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "other.parquet")
    with pytest.raises(RuleError, match="got no column type, head"):
        RuleSet.load(tmp_path / "other.parquet")


def test_a_file_is_parquet_by_its_contents_too(tmp_path: Path, rules: RuleSet) -> None:
    rules.save(tmp_path / "rules.parquet")
    (tmp_path / "rules.parquet").rename(tmp_path / "rules-100")
    assert_same(RuleSet.load(tmp_path / "rules-100"), rules)


def test_what_cannot_be_written_leaves_the_old_file(tmp_path: Path, rules: RuleSet) -> None:
    with pytest.raises(RuleError, match="cannot be written"):
        rules.save(tmp_path / "no folder" / "rules.parquet")
    with pytest.raises(RuleError, match=r"ends in one of \.parquet, \.txt"):
        rules.save(tmp_path / "rules.csv")
    assert list(tmp_path.iterdir()) == []
