"""What a rule says, with its inequalities."""

from __future__ import annotations

import pytest

from anyburl import parse_rule
from anyburl.tools.export_languages import Clause, Scores, make_clause


def said(text: str, *, object_identity: bool = True) -> str:
    """Return head, body and inequalities of a rule in words."""
    clause: Clause = make_clause(parse_rule(text), Scores(2, 1, 0.5), object_identity=object_identity)
    body = ", ".join(map(str, clause.body))
    return f"{clause.head} <= {body}; {', '.join(f'{a}#{b}' for a, b in clause.different)}"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h(X,Y) <= b(X,Y)", "h(X,Y) <= b(X,Y); X#Y"),
        ("h(X,Y) <= b(A,X), c(A,Y)", "h(X,Y) <= b(A,X), c(A,Y); A#X, A#Y, X#Y"),
        ("h(X,d) <= b(X,c)", "h(X,d) <= b(X,c); X#c, X#d"),
        ("h(X,c) <= b(X,c)", "h(X,c) <= b(X,c); X#c"),
        ("h(c,Y) <= b(Y,A)", "h(c,Y) <= b(Y,A); Y#A, Y#c, A#c"),
        ("h(X,me_myself_i) <= b(X,A)", "h(X,X) <= b(X,A); X#A"),
        ("h(X,c) <= b(X,me_myself_i)", "h(X,c) <= b(X,X); X#c"),
        ("h(me_myself_i,Y) <= b(me_myself_i,Y)", "h(Y,Y) <= b(Y,Y); "),
        ("h(X,c) <= ", "h(X,c) <= h(X,_); X#c"),
        ("h(c,Y) <= ", "h(c,Y) <= h(_,Y); Y#c"),
    ],
)
def test_every_two_terms_differ_under_object_identity(rule: str, expected: str) -> None:
    assert said(rule) == expected


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("h(X,Y) <= b(X,A), c(A,B), d(B,Y)", "h(X,Y) <= b(X,A), c(A,B), d(B,Y); "),
        ("h(X,d) <= b(X,c)", "h(X,d) <= b(X,c); "),
        ("h(X,c) <= b(X,me_myself_i)", "h(X,c) <= b(X,X); "),
        ("h(X,c) <= ", "h(X,c) <= h(X,_); "),
    ],
)
def test_without_object_identity_all_terms_may_stand_for_the_same(rule: str, expected: str) -> None:
    assert said(rule, object_identity=False) == expected
