"""Answers as a list, a frame and a table."""

from __future__ import annotations

import polars as pl
import pytest

from anyburl import Answers, Dataset, RuleSet, predict
from rules.samples import make_rules

TRAIN = [
    ("ed", "lives", "holland"),
    ("lisa", "lives", "holland"),
    ("holland", "lang", "dutch"),
    ("holland", "lang", "<frisian>"),
    ("ed", "speaks", "dutch"),
]


@pytest.fixture
def answers() -> Answers:
    rules: RuleSet = make_rules([("speaks(X,Y) <= lives(X,A), lang(A,Y)", (10, 8)), ("speaks(X,dutch) <= ", (10, 5))])
    return predict(rules, Dataset.from_triples(TRAIN), "ed", "speaks", None, include_known=True)


def test_answers_are_a_list(answers: Answers) -> None:
    assert isinstance(answers, list)
    assert [answer.entity for answer in answers] == ["dutch", "<frisian>"]
    assert repr(answers[0]).startswith("Answer(entity='dutch', score=0.53")


def test_answers_are_a_frame(answers: Answers) -> None:
    frame = answers.to_polars()
    assert frame.columns == ["rank", "entity", "score", "known", "rule", "rules"]
    assert frame["known"].to_list() == ["train", ""]
    assert frame["rules"].to_list() == [2, 1]
    assert frame["rule"].to_list() == ["speaks(X,Y) <= lives(X,A), lang(A,Y)"] * 2


def test_no_answers_are_an_empty_frame() -> None:
    assert Answers().to_polars().schema["score"] == pl.Float64


def test_notebooks_show_answers_as_a_table(answers: Answers) -> None:
    shown = answers._repr_html_()
    assert shown.count("<tr>") == 3
    assert "&lt;frisian&gt;" in shown
    assert "<frisian>" not in shown


def test_notebooks_draw_the_proof_of_an_answer(answers: Answers) -> None:
    shown = answers[0]._repr_html_()
    assert "<svg" in shown
    assert "holland" in shown
    assert answers[0].reasons == answers[0].explanation.reasons


def test_reasons_and_explanations_are_one_line(answers: Answers) -> None:
    why = answers[0].explanation
    reason = why.reasons[0]
    assert str(reason) == "0.533 speaks(X,Y) <= lives(X,A), lang(A,Y) since ed lives holland, holland lang dutch"
    assert repr(reason) == "Reason('speaks(X,Y) <= lives(X,A), lang(A,Y)', confidence=0.533, groundings=1)"
    assert repr(why) == (
        "Explanation(('ed', 'speaks', 'dutch'): score 0.533, 2 rules, best 'speaks(X,Y) <= lives(X,A), lang(A,Y)')"
    )
    assert repr(reason.rule) == "Rule('speaks(X,Y) <= lives(X,A), lang(A,Y)')"
