"""Rules in AnyBURL's text."""

from __future__ import annotations

import contextlib
import gzip
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import RuleError
from anyburl.data import Vocabulary
from anyburl.rules import text as anyburl_text
from anyburl.rules.labels import float_texts
from anyburl.rules.rule import Atom, Constant, Rule, Variable, entity_fault, parse_rule, relation_fault
from anyburl.rules.ruleset import RuleSet
from kernels import examples
from rules.samples import assert_same, make_rules, rule_sets
from rules.strategies import writable_entities, writable_relations


def read(tmp_path: Path, lines: str) -> tuple[list[str], list[tuple[int, str]], int]:
    path = tmp_path / "rules.txt"
    path.write_bytes(lines.encode())
    rules, report = RuleSet.read(path)
    assert report.n_rules == len(rules)
    return rules.texts().to_list(), report.rejected, report.n_comments


@settings(max_examples=examples(40))
@given(rule_sets(writable_entities, writable_relations), st.sampled_from([".txt", ".tsv", ".txt.gz", ".txt.zst"]))
def test_writable_rules_come_back_as_they_were(rules: RuleSet, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"rules{suffix}"
        rules.save(path)
        loaded, report = RuleSet.read(path)
        assert [entry.name for entry in Path(folder).iterdir()] == [path.name]
    assert report.rejected == []
    assert_same(loaded, rules.merge(), same_exact=False)


@settings(max_examples=examples(40))
@given(rule_sets())
def test_any_rules_come_back_if_escaped(rules: RuleSet) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.txt"
        rules.save(path, escaped=True)
        loaded, report = RuleSet.read(path, escaped=True)
    assert report.rejected == []
    assert_same(loaded, rules.merge(), same_exact=False)


@settings(max_examples=examples(40))
@given(rule_sets())
def test_labels_that_text_cannot_carry_are_refused_when_writing(rules: RuleSet) -> None:
    terms = [term for rule in rules for atom in (rule.head, *rule.body) for term in (atom.subject, atom.object)]
    entities = {term.label for term in terms if isinstance(term, Constant) and not term.is_self}
    relations = {atom.relation for rule in rules for atom in (rule.head, *rule.body)}
    faulty = any(map(entity_fault, entities)) or any(map(relation_fault, relations))
    refusal = pytest.raises(RuleError, match="escaped=True") if faulty else contextlib.nullcontext()
    with tempfile.TemporaryDirectory() as folder:
        with refusal:
            rules.save(Path(folder) / "rules.txt")
        assert len(list(Path(folder).iterdir())) == (not faulty)


def test_lines_have_predictions_support_confidence_and_the_rule(tmp_path: Path) -> None:
    rules = make_rules(
        [
            ("h(X,Y) <= b(X,A), c(Y,A)", (3, 1)),
            ("h(X,c) <= ", (200000, 2)),
            ("h(me_myself_i,Y) <= b(Y,Paris (Texas))", (2, 2)),
            ("h(X,Paris,Texas) <= b(X,A)", (0, 0)),
        ]
    )
    rules.save(tmp_path / "rules.txt")
    assert (tmp_path / "rules.txt").read_text() == (
        "3\t1\t0.3333333333333333\th(X,Y) <= b(X,A), c(Y,A)\n"
        "200000\t2\t1e-05\th(X,c) <= \n"
        "2\t2\t1.0\th(me_myself_i,Y) <= b(Y,Paris (Texas))\n"
        "0\t0\t0.0\th(X,Paris,Texas) <= b(X,A)\n"
    )
    assert_same(RuleSet.load(tmp_path / "rules.txt"), rules, same_exact=False)


@given(st.lists(st.fractions(0, 1).map(float)))
def test_confidences_are_written_as_python_writes_them(values: list[float]) -> None:
    assert float_texts(np.array(values, dtype=np.float64)).to_list() == [repr(value) for value in values]


def test_comments_blank_lines_and_line_ends_of_windows(tmp_path: Path) -> None:
    rules, rejected, n_comments = read(
        tmp_path, "\ufeff# AnyBURL\r\n\r\n2\t1\t0.5\th(X,c) <= \r\n  \n#\n2\t1\t0.5\th(X,d) <= b(X,A)"
    )
    assert (rules, rejected, n_comments) == (["h(X,c) <= ", "h(X,d) <= b(X,A)"], [], 2)


def test_every_other_line_is_a_rule_or_reported(tmp_path: Path) -> None:
    lines = {
        "h(X,Y) <= b(X,Y)": "4 tab-separated fields, got 1",
        "2\t1\t0.5\th(X,c) <= \tmore": "4 tab-separated fields, got 5",
        "two\t1\t0.5\th(X,c) <= ": "whole number of predictions, got 'two'",
        "2\t1.5\t0.5\th(X,c) <= ": "whole number as support, got '1.5'",
        "2\t1\thalf\th(X,c) <= ": "number as confidence, got 'half'",
        "1\t2\t0.5\th(X,c) <= ": "support <= predictions, got 2 and 1",
        "2\t-1\t0.5\th(X,c) <= ": "support <= predictions",
        f"{2**40}\t{2**40}\t0.5\th(X,c) <= ": "too large",
        "2\t1\t0.5\th(X,c\0) <= ": "NUL",
        "2\t1\t0.5\tno rule": "expected a head",
        "2\t1\t0.5\th(X,X) <= b(X,A)": "two different variables",
        "2\t1\t0.5\th(X,Y) <= ": "needs a body",
        "2\t1\t0.5\th(X,Y) <= b(X,A), c(B,Y)": "not one path",
        "2\t1\t0.5\th(X,c) <= b(X,d), e(d,A)": "not one path",
    }
    for line in lines:
        assert len(read(tmp_path, f"2\t1\t0.5\tg(X,c) <= \n{line}\n")[0]) == 1
    rules, rejected, _ = read(tmp_path, "\n".join(["2\t1\t0.5\tg(X,c) <= ", *lines, "2\t1\t0.5\tg(X,d) <= "]))
    assert rules == ["g(X,c) <= ", "g(X,d) <= "]
    assert [number for number, _ in rejected] == list(range(2, len(lines) + 2))
    for (_, reason), expected in zip(rejected, lines.values(), strict=True):
        assert expected in reason


def test_loading_warns_of_lines_that_are_not_rules(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("2\t1\t0.5\th(X,c) <= \noops\n")
    with pytest.warns(UserWarning, match=r"rules.txt: 1 rule read; 1 line is not a rule \(line 2: expected 4"):
        RuleSet.load(tmp_path / "rules.txt")


def test_bodies_in_another_order_are_put_in_order_in_their_line(tmp_path: Path) -> None:
    given_texts = [
        "h(X,Y) <= b(X,A), c(A,Y)",
        "h(X,Y) <= d(A,Y), b(X,A)",
        "h(X,a) <= b(X,A)",
        "h(c,Y) <= b(Y,V)",
        "h(X,Paris, Texas) <= b(X,B), c(B,f (g))",
        "h(X,b) <= b(A,X)",
    ]
    texts, rejected, _ = read(tmp_path, "".join(f"2\t1\t0.5\t{rule}\n" for rule in given_texts))
    assert rejected == []
    assert texts == [str(parse_rule(rule)) for rule in given_texts]
    assert texts[1] == "h(X,Y) <= b(X,A), d(A,Y)"


@settings(max_examples=examples(40))
@given(st.lists(st.text("hbXYAc(), <=me_myself_i", max_size=20), max_size=5))
def test_reading_by_columns_agrees_with_reading_one_by_one(texts: list[str]) -> None:
    shapes = ["{}", "h(X,{}) <= b(X,{})", "{}(X,Y) <= {}(Y,X)", "h({},Y) <= b(A,Y), c({},A)", "h(X,c) <= {}"]
    candidates = [shape.replace("{}", piece) for piece in texts for shape in shapes]
    expected = []
    for candidate in candidates:
        try:
            expected.append(parse_rule(candidate))
        except RuleError:
            continue
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rules.txt"
        path.write_text("".join(f"2\t1\t0.5\t{candidate}\n" for candidate in candidates))
        rules, report = RuleSet.read(path)
    assert list(rules) == list(dict.fromkeys(expected))
    assert len(report.rejected) == len(candidates) - len(expected)


def test_names_of_one_capital_letter_need_escapes(tmp_path: Path) -> None:
    rules = make_rules([(Rule(Atom("R", Variable("X"), Constant("Y")), ()), (2, 1))])
    with pytest.raises(
        RuleError, match="the text format cannot represent 1 label of these rules \\('Y' reads as a variable\\)"
    ):
        rules.save(tmp_path / "rules.txt")
    rules.save(tmp_path / "rules.txt", escaped=True)
    assert (tmp_path / "rules.txt").read_text() == "2\t1\t0.5\tR(X,%59) <= \n"
    assert_same(RuleSet.load(tmp_path / "rules.txt", escaped=True), rules, same_exact=False)


def test_only_labels_in_use_are_looked_at(tmp_path: Path) -> None:
    rules = make_rules([("h(X,me_myself_i) <= b(X,A)", (2, 1))]).with_vocabulary(
        Vocabulary.from_labels(["X", "a)"], ["b", "h", "a\tb"])
    )
    rules.save(tmp_path / "rules.txt")
    assert (tmp_path / "rules.txt").read_text() == "2\t1\t0.5\th(X,me_myself_i) <= b(X,A)\n"


def test_a_vocabulary_may_be_given(tmp_path: Path) -> None:
    rules = make_rules([("h(X,c) <= b(X,A)", (2, 1)), ("h(X,d) <= ", (2, 1)), ("g(X,c) <= ", (2, 1))])
    rules.save(tmp_path / "rules.txt")
    vocabulary = Vocabulary.from_labels(["c", "e"], ["b", "h"])
    loaded, report = RuleSet.read(tmp_path / "rules.txt", vocabulary)
    assert_same(loaded, rules.take([0]), same_exact=False)
    assert (loaded.vocabulary is vocabulary, report.n_rules, report.n_unknown) == (True, 1, 2)


def test_many_lines_are_read_and_written_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anyburl_text, "SLICE_LINES", 3)
    rules = make_rules([(f"h(X,c{n}) <= {'b(X,A), ' * (n % 2)}b({'XA'[n % 2]},d)", (n + 2, n)) for n in range(20)])
    rules.save(tmp_path / "rules.txt")
    assert_same(RuleSet.load(tmp_path / "rules.txt"), rules, same_exact=False)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"# nothing\n"])
def test_a_file_without_rules_is_an_empty_set(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "rules.txt").write_bytes(content)
    assert len(RuleSet.load(tmp_path / "rules.txt")) == 0
    (tmp_path / "rules.txt.gz").write_bytes(gzip.compress(content))
    assert len(RuleSet.load(tmp_path / "rules.txt.gz")) == 0


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_bytes(b"2\t1\t0.5\th(X,\xff) <= \n")
    with pytest.raises(RuleError, match=r"rules.txt: expected UTF-8 text"):
        RuleSet.load(tmp_path / "rules.txt")
    (tmp_path / "rules.txt.gz").write_bytes(gzip.compress(b"2\t1\t0.5\th(X,c) <= \n" * 99)[:-20])
    with pytest.raises(RuleError, match=r"rules.txt.gz: "):
        RuleSet.load(tmp_path / "rules.txt.gz")


# Lines that are odd.


def test_equal_lines_are_one_rule(tmp_path: Path) -> None:
    """As rules of their own, they would count twice in noisy-or."""
    path = tmp_path / "rules.txt"
    lines = [
        "10\t5\t0.5\th(X,Y) <= b(X,Y)",
        "10\t5\t0.5\th(X,Y) <= b(X,Y)",
        "20\t5\t0.25\th(X,Y) <= b(X,A), c(A,Y)",
        "10\t5\t0.5\th(U,V) <= b(U,V)",
        "40\t5\t0.125\th(X,Y) <= c(Z,Y), b(X,Z)",
        "10\t5\t0.5\th(X,c) <= b(X,Y)",
    ]
    path.write_text("\n".join(lines))
    with pytest.warns(UserWarning, match=r"3 rules read; 3 lines repeat earlier rules and were left out"):
        rules = RuleSet.load(path)
    assert [str(rule) for rule in rules] == ["h(X,Y) <= b(X,Y)", "h(X,Y) <= b(X,A), c(A,Y)", "h(X,c) <= b(X,A)"]
    assert rules.predictions.tolist() == [10, 20, 10]


def test_a_confidence_that_contradicts_the_counts_is_told(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("10\t5\t0.5\th(X,Y) <= b(X,Y)\n20\t5\t0.9\th(X,Y) <= c(X,Y)\n3\t1\tNaN\th(X,Y) <= d(X,Y)\n")
    told = r"2 lines have confidences that contradict their counts, which are used \(line 2: 0\.9 for 5 of 20\)"
    with pytest.warns(UserWarning, match=told):
        rules = RuleSet.load(path)
    assert rules.confidence().tolist() == [5 / 10, 5 / 20, 1 / 3]


def test_confidences_may_be_rounded_and_zero_of_zero_is_anything(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("3\t2\t0.67\th(X,Y) <= b(X,Y)\n0\t0\t1.0\th(X,Y) <= c(X,Y)\n3\t1\t0.3333\th(X,Y) <= d(X,Y)\n")
    _, report = RuleSet.read(path)
    assert report.is_complete
    assert report.remarks == []


@pytest.mark.parametrize(
    "rule", ["h(X,Y,Z) <= b(X,Y)", "h(X,Y) <= b(X,A), c(A,B,Y)", "h(X,\u00a0) <= b(X,A)", "h(X, ) <= b(X,A)"]
)
def test_a_line_with_three_arguments_or_a_blank_is_no_rule(tmp_path: Path, rule: str) -> None:
    path = tmp_path / "rules.txt"
    path.write_text(f"10\t5\t0.5\t{rule}\n10\t5\t0.5\th(X,Y) <= b(X,Y)\n", "utf-8")
    with pytest.warns(
        UserWarning, match=r"1 rule read; 1 line is not a rule \(line 1: expected (two arguments|an atom)"
    ):
        assert len(RuleSet.load(path)) == 1
