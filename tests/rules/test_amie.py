"""Rules in AMIE's text."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from anyburl import RuleError, RuleSet, Vocabulary

HEADER = (
    "Rule\tHead Coverage\tStd Confidence\tPCA Confidence\tPositive Examples\tBody size\tPCA Body size\t"
    "Functional variable\n"
)
OUTPUT = (
    "Loading files... \n"
    "Using HeadCoverage as pruning metric with minimum threshold 0.01\n"
    + HEADER
    + "?a  <livesIn>  ?b   => ?a  <wasBornIn>  ?b\t0.5\t0.333333333\t0.5\t1\t3\t2\t?a\n"
    "?e  capital of  ?b  ?a  lives in  ?e   => ?a  lives in  ?b\t0.1\t0.25\t0.4\t10.0\t40.0\t25\t?a\n"
    "?a  livesIn  New York   => ?a  speaks  English\t0.1\t0.9\t0.95\t9\t10\t9\t?a\n"
    "?b hasChild ?a => ?a hasParent ?b\t0.1\t0.5\t0.5\t1\t2\t2\t?a\n"
    "\n"
    "Mining done in 0.1 s\n"
    "4 rules mined.\n"
)
EXPECTED = [
    "<wasBornIn>(X,Y) <= <livesIn>(X,Y)",
    "lives in(X,Y) <= lives in(X,A), capital of(A,Y)",
    "speaks(X,English) <= livesIn(X,New York)",
    "hasParent(X,Y) <= hasChild(Y,X)",
]


def write(tmp_path: Path, text: str, name: str = "amie.txt") -> Path:
    path = tmp_path / name
    data = text.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("name", ["amie.txt", "amie.tsv.gz"])
def test_rules_are_read_with_their_counts(tmp_path: Path, name: str) -> None:
    rules, report = RuleSet.read(write(tmp_path, OUTPUT, name))
    assert rules.texts().to_list() == EXPECTED
    assert rules.support.tolist() == [1, 10, 9, 1]
    assert rules.predictions.tolist() == [3, 40, 10, 2]
    assert (report.n_rules, report.n_comments, report.rejected) == (4, 5, [])


def test_a_header_is_not_needed_and_columns_may_be_elsewhere(tmp_path: Path) -> None:
    line = "?a  b  ?b   => ?a  h  ?b"
    assert RuleSet.load(write(tmp_path, f"{line}\t0.5\t0.3\t0.5\t1\t3\t2\t?a\n")).predictions.tolist() == [3]
    moved = f"Rule\tHead Coverage\tBody size\tPositive Examples\n{line}\t0.5\t7\t5\n"
    assert RuleSet.load(write(tmp_path, moved)).support.tolist() == [5]


def test_rules_of_another_language_are_reported(tmp_path: Path) -> None:
    scores = "\t0.5\t0.3\t0.5\t1\t3\t2\t?a\n"
    text = (
        HEADER
        + f"?a  b  ?c  ?a  d  ?b   => ?a  h  ?b{scores}"
        + f"?a  b  ?b   => ?a  h  ?b{scores}"
        + "?a  b  ?b   => ?a  h  ?b\t0.5\t0.3\t0.5\t4\t3\t2\t?a\n"
        + "?a  b  ?b   => ?a  h  ?b\t0.5\n"
        + f"?a  b   => ?a  h  ?b{scores}"
        + "?a  b  ?b   => ?a  h  ?b\t0.5\t0.3\t0.5\tmany\t3\t2\t?a\n"
        + f"?a  b  ?b   => ?a  h  ?b  ?a  i  ?b{scores}"
    )
    rules, report = RuleSet.read(write(tmp_path, text))
    assert len(rules) == 1
    assert dict(report.rejected) == {
        2: "the body is not one path from a: b(a,c), d(a,b)",
        4: "expected 0 <= positive examples <= body size, got 4 and 3",
        5: "expected AMIE's columns, with Positive Examples, got 2",
        6: "expected atoms of subject, relation and object, got '?a  b'",
        7: "expected a number as Positive Examples, got 'many'",
        8: "expected one atom after =>, got '?a  h  ?b  ?a  i  ?b'",
    }


def test_rules_with_labels_that_the_data_lack_are_left_out(tmp_path: Path) -> None:
    known = Vocabulary.from_labels(["New York", "English"], ["livesIn", "speaks"])
    rules, report = RuleSet.read(write(tmp_path, OUTPUT), known)
    assert rules.texts().to_list() == EXPECTED[2:3]
    assert report.n_unknown == 3


def test_a_header_alone_is_a_file_without_rules(tmp_path: Path) -> None:
    rules, report = RuleSet.read(write(tmp_path, HEADER))
    assert (len(rules), report.n_comments) == (0, 1)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_bytes(b"\xff\xfe\x00?a  b  ?b   => ?a  h  ?b\n")
    with pytest.raises(RuleError, match="expected UTF-8 text"):
        RuleSet.load(tmp_path / "rules.txt")


def test_a_rule_that_occurs_again_counts_once(tmp_path: Path) -> None:
    line = OUTPUT.splitlines()[3]
    path = tmp_path / "amie.tsv"
    path.write_text(f"{HEADER}{line}\n{line}\n", "utf-8")
    with pytest.warns(UserWarning, match="1 line repeats an earlier rule and was left out"):
        assert len(RuleSet.load(path)) == 1
