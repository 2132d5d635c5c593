"""Rule objects: order, names and types."""

from __future__ import annotations

import pickle
from itertools import pairwise

import pytest

from anyburl.base.errors import RuleError
from anyburl.rules.rule import SELF, Atom, Constant, Rule, Variable, parse_rule
from anyburl.rules.types import RuleType

X, Y, A, B = map(Variable, "XYAB")


@pytest.mark.parametrize(
    ("text", "type", "length"),
    [
        ("h(X,Y) <= b(X,A), c(A,Y)", RuleType.BINARY, 2),
        ("h(X,c) <= b(X,A)", RuleType.UNARY_DANGLING, 1),
        ("h(c,Y) <= b(d,Y)", RuleType.UNARY_CONSTANT, 1),
        ("h(c,Y) <= b(c,Y)", RuleType.UNARY_CONSTANT, 1),
        ("h(X,c) <= b(A,X), b(A,B), b(d,B)", RuleType.UNARY_CONSTANT, 3),
        ("h(X,me_myself_i) <= b(me_myself_i,X)", RuleType.UNARY_CONSTANT, 1),
        ("h(X,c) <= ", RuleType.ZERO, 0),
    ],
)
def test_the_type_follows_from_the_shape(text: str, type: RuleType, length: int) -> None:
    rule = parse_rule(text)
    assert (rule.type, rule.length, str(rule)) == (type, length, text)


def test_a_body_in_another_order_is_put_in_order() -> None:
    path = parse_rule("h(X,Y) <= b(X,A), c(B,A), d(B,Y)")
    assert parse_rule("h(X,Y) <= d(B,Y), c(B,A), b(X,A)") == path
    assert parse_rule("h(X,Y) <= d(U,Y), b(X,Q), c(U,Q)") == path
    assert parse_rule("h(P,Q) <= b(P,A), c(B,A), d(B,Q)") == path
    assert str(parse_rule("h(X,c) <= d(B,e), b(X,B)")) == "h(X,c) <= b(X,A), d(A,e)"


def test_rules_can_be_hashed_and_pickled() -> None:
    rule = Rule(Atom("h", X, Y), (Atom("b", X, Y),))
    assert {rule: 1}[parse_rule("h(X,Y) <= b(X,Y)")] == 1
    copy = pickle.loads(pickle.dumps(rule))
    assert (copy, copy.type) == (rule, RuleType.BINARY)


def test_self_is_not_the_entity_of_that_name() -> None:
    assert Constant("me_myself_i") != SELF
    assert str(SELF) == "me_myself_i"
    assert Atom("h", X, SELF) != Atom("h", X, Constant("me_myself_i"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("h(X,X) <= b(X,A)", "two different variables"),
        ("h(X,Y) <= ", "needs a body"),
        ("h(X,Y) <= b(X,A)", "does not lead from X to Y"),
        ("h(X,Y) <= b(X,c)", "does not lead from X to Y"),
        ("h(X,Y) <= b(X,A), c(B,Y)", "not one path"),
        ("h(X,Y) <= b(X,A), c(X,Y)", "not one path"),
        ("h(X,Y) <= b(X,Y), c(Y,A)", "not one path"),
        ("h(X,Y) <= b(X,A), c(A,X)", "not one path"),
        ("h(X,c) <= b(X,A), c(A,A)", "returns to A"),
        ("h(X,c) <= b(X,X)", "returns to X"),
        ("h(X,c) <= b(X,d), e(d,A)", "not one path"),
        ("h(X,c) <= b(A,B)", "not one path"),
    ],
)
def test_other_shapes_are_refused_with_a_reason(text: str, reason: str) -> None:
    with pytest.raises(RuleError, match=reason):
        parse_rule(text)


def test_a_head_without_a_variable_is_refused() -> None:
    with pytest.raises(RuleError, match="one or two variables in the head, got h"):
        Rule(Atom("h", Constant("c"), Constant("d")), ())


def test_a_body_with_more_atoms_than_letters_is_refused() -> None:
    names = [Variable("X"), *(Variable(f"V{n}") for n in range(30))]
    body = tuple(Atom("b", here, there) for here, there in pairwise(names))
    assert Rule(Atom("h", X, Constant("c")), body[:24]).body[-1].object == Variable("Z")
    with pytest.raises(RuleError, match="at most 24 body atoms, got 25"):
        Rule(Atom("h", X, Constant("c")), body[:25])
