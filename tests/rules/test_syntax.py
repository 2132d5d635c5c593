"""Rules as text, both ways."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from anyburl.base.errors import RuleError
from anyburl.rules.rule import (
    SELF,
    Atom,
    Constant,
    Rule,
    Variable,
    escape_label,
    format_rule,
    parse_rule,
    unescape_label,
    unwritable_labels,
)
from kernels import examples
from rules.strategies import labels, rules, writable_entities, writable_relations

X, Y, A = map(Variable, "XYA")


@settings(max_examples=examples(500))
@given(rules(writable_entities, writable_relations))
def test_a_rule_with_writable_labels_is_read_as_it_was_written(rule: Rule) -> None:
    assert parse_rule(format_rule(rule)) == rule


@given(rules())
def test_any_rule_is_read_as_it_was_written_if_escaped(rule: Rule) -> None:
    text = format_rule(rule, escaped=True)
    assert "\t" not in text
    assert len(text.splitlines()) == 1 or not set(text) & set("\r\n")
    assert parse_rule(text, escaped=True) == rule


@given(labels)
def test_an_escaped_label_is_writable_and_can_be_restored(label: str) -> None:
    entity, relation = escape_label(label), escape_label(label, is_entity=False)
    assert unwritable_labels([entity], [relation]) == []
    assert unescape_label(entity) == unescape_label(relation) == label


@given(writable_entities)
def test_only_percent_signs_are_escaped_in_writable_labels(label: str) -> None:
    assert escape_label(label) == label.replace("%", "%25")


def test_names_with_blanks_commas_and_parentheses_are_read() -> None:
    rule = parse_rule("born in (city)(X,Paris, Texas) <= lives in(Paris (Texas),X)")
    assert rule.head == Atom("born in (city)", X, Constant("Paris, Texas"))
    assert rule.body == (Atom("lives in", Constant("Paris (Texas)"), X),)
    rule = parse_rule("r (s)(X,Y) <= f(g)(X,A), k, l(A,Y)")
    assert [atom.relation for atom in (rule.head, *rule.body)] == ["r (s)", "f(g)", "k, l"]


def test_names_of_one_small_letter_are_entities_and_capitals_are_variables() -> None:
    assert parse_rule("h(X,y) <= b(X,a)").body == (Atom("b", X, Constant("a")),)
    assert parse_rule("h(X,y) <= b(X,Q)").body == (Atom("b", X, A),)
    assert parse_rule("h(X,%59) <= b(X,%41)", escaped=True).head == Atom("h", X, Constant("Y"))


def test_the_token_self_keeps_its_place() -> None:
    assert parse_rule("h(me_myself_i,Y) <= b(Y,me_myself_i)").head == Atom("h", SELF, Y)
    assert parse_rule("h(X,me_myself_i) <= b(me_myself_i,X)").body == (Atom("b", SELF, X),)


def test_blanks_around_the_parts_do_not_matter() -> None:
    rule = parse_rule("h(X,Y) <= b(X,A), c(A,Y)")
    assert parse_rule(" h( X , Y )<=b(X, A),c(A ,Y) ") == rule
    assert parse_rule("h(X,c) <=") == parse_rule("h(X,c) <= ")


@pytest.mark.parametrize(
    "text",
    ["", "h", "h(X,Y)", "h(X,Y) <= b", "h(X,Y) <= b(X)", "h(X,Y) <= b(X,Y", "(X,Y) <= b(X,Y)", "h(X,) <= "],
)
def test_what_is_no_rule_is_refused_with_what_was_expected(text: str) -> None:
    with pytest.raises(RuleError, match="expected"):
        parse_rule(text)


@given(labels)
def test_any_text_is_a_rule_or_refused(text: str) -> None:
    for attempt in (text, f"h(X,{text}) <= b({text},X)", f"{text}(X,Y) <= {text}(X,Y)"):
        try:
            parse_rule(attempt)
        except RuleError:
            continue


def test_labels_that_text_cannot_carry_are_told_with_the_reason() -> None:
    entities = [
        "X",
        "me_myself_i",
        "a\tb",
        " a",
        "a)",
        "f(a), g",
        "X,a",
        "a, Y",
        "Paris (Texas)",
        "a,b",
        "x",
        "Paris, Texas",
    ]
    relations = ["X", "me_myself_i", "a)", "f(a),g", "a\nb", "A)b", ") <= b"]
    assert dict(unwritable_labels(entities)) == {
        "X": "reads as a variable",
        "me_myself_i": "reads as the token self",
        "a\tb": "has a tab or a line break",
        " a": "starts or ends with a blank",
        "a)": "has parentheses that do not match",
        "f(a), g": "reads as the end of an atom",
        "X,a": "reads as two terms",
        "a, Y": "reads as two terms",
        "Paris, Texas": "has a comma and a blank, which other tools take for the end of a term",
    }
    assert [label for label, _ in unwritable_labels(relations=relations)] == relations[3:]


def test_escapes_that_are_no_text_are_left_alone() -> None:
    assert unescape_label("%FF%41%4") == "%FF%41%4"
    assert unescape_label("50%") == "50%"


@pytest.mark.parametrize(
    "text", ["h(X,Y,Z) <= b(X,Y)", "h(X,Y) <= b(X,A), c(A,B,Y)", "h(X,a,Y) <= b(X,A)", "h(X,Y, Z) <= "]
)
def test_an_atom_has_two_arguments(text: str) -> None:
    with pytest.raises(RuleError, match="expected two arguments, got three or more"):
        parse_rule(text)
    assert str(parse_rule("h(X,Paris,Texas) <= b(X,A)")) == "h(X,Paris,Texas) <= b(X,A)"


@pytest.mark.parametrize(
    "text", ["h(X, ) <= b(X,A)", "h(X,\u00a0) <= b(X,A)", " (X,a) <= b(X,A)", "h(X,a) <= \u2003(X,A)"]
)
def test_a_blank_is_no_label(text: str) -> None:
    with pytest.raises(RuleError, match="expected an atom like"):
        parse_rule(text)
