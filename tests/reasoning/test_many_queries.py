"""Many queries at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from anyburl.prediction import batch
from anyburl.prediction.batch import answer_queries
from anyburl.prediction.queries import Query, parse_query

from anyburl import Dataset, OptionError, RankOptions, RuleSet, make_ranker, predict

TRAIN = [
    ("ed", "lives", "holland"),
    ("lisa", "lives", "holland"),
    ("jan", "lives", "france"),
    ("holland", "lang", "dutch"),
    ("france", "lang", "french"),
    ("ed", "speaks", "dutch"),
    ("ed", "knows", "ed"),
    ("jan", "knows", "jan"),
]
TEST = [("lisa", "speaks", "dutch")]
RULES = """10\t8\t0.8\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
10\t5\t0.5\tspeaks(X,dutch) <= lives(X,A)
10\t9\t0.9\tknows(X,me_myself_i) <= lives(X,A)
"""
QUERIES = [
    Query("lisa", "speaks", None),
    Query("ed", "speaks", None),
    Query(None, "speaks", "dutch"),
    Query("dutch", "lang", None),
    Query("lisa", "knows", None),
    Query("lisa", "speaks", None),
]


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(TRAIN, [], TEST, name="speakers")


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    (tmp_path / "rules.txt").write_text(RULES)
    return RuleSet.load(tmp_path / "rules.txt")


@pytest.mark.parametrize("include_known", [False, True])
def test_answers_are_those_of_one_query_at_a_time(
    rules: RuleSet, dataset: Dataset, include_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "QUERIES_AT_A_TIME", 2)
    ranker = make_ranker(rules, dataset, RankOptions(threads=1))
    answered = list(answer_queries(ranker, dataset, QUERIES, top=2, include_known=include_known))
    assert [found.query for found in answered] == QUERIES
    for found in answered:
        expected = predict(rules, dataset, *found.query, top=2, include_known=include_known, ranker=ranker)
        assert [c.entity for c in found.candidates] == [answer.entity for answer in expected]
        assert [c.score for c in found.candidates] == pytest.approx([answer.score for answer in expected])
        assert [c.triple for c in found.candidates] == [answer.triple for answer in expected]
        assert [("train" in c.known) for c in found.candidates] == [answer.known for answer in expected]
        assert [c.rule for c in found.candidates] == [answer.reasons[0].rule for answer in expected]


def test_what_is_known_is_told_and_counted(rules: RuleSet, dataset: Dataset) -> None:
    ranker = make_ranker(rules, dataset, RankOptions(threads=1))
    lisa, ed, *_ = answer_queries(ranker, dataset, QUERIES)
    assert [(found.entity, found.known) for found in lisa.candidates] == [("dutch", ("test",))]
    assert (lisa.n_candidates, lisa.n_known) == (1, 0)
    assert (ed.candidates, ed.n_candidates, ed.n_known) == ((), 0, 1)


def test_a_rule_with_the_self_token_answers_with_the_entity_itself(rules: RuleSet, dataset: Dataset) -> None:
    ranker = make_ranker(rules, dataset, RankOptions(threads=1))
    (found,) = answer_queries(ranker, dataset, [Query("lisa", "knows", None)])
    assert [candidate.entity for candidate in found.candidates] == ["lisa"]
    assert str(found.candidates[0].rule) == "knows(X,me_myself_i) <= lives(X,A)"


def test_no_queries_have_no_answers(rules: RuleSet, dataset: Dataset) -> None:
    assert list(answer_queries(make_ranker(rules, dataset, RankOptions(threads=1)), dataset, [])) == []


def test_a_query_has_one_question_mark() -> None:
    assert parse_query("ed", "speaks", "?") == Query("ed", "speaks", None)
    assert str(parse_query("?", "speaks", "dutch")) == "(?, speaks, dutch)"
    for words in (("ed", "speaks", "dutch"), ("?", "speaks", "?"), ("ed", "?", "?")):
        with pytest.raises(OptionError):
            parse_query(*words)
