"""Many queries at once: as one at a time; in frames; from tuples, Polars and pandas."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl import DataError, Dataset, OptionError, Reasoner, RuleSet
from anyburl.data.names import Names
from anyburl.reasoning import queries
from anyburl.reasoning.queries import Query, make_query, read_queries

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
VALID = [("jan", "speaks", "french")]
TEST = [("lisa", "speaks", "dutch"), ("jan", "speaks", "french")]
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
COLUMNS = ["query", "subject", "relation", "object", "rank", "entity", "score", "known", "rule", "rules"]


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(TRAIN, VALID, TEST, name="speakers")


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    (tmp_path / "rules.txt").write_text(RULES)
    return RuleSet.load(tmp_path / "rules.txt")


@pytest.fixture
def reasoner(rules: RuleSet, dataset: Dataset) -> Reasoner:
    return Reasoner(rules, dataset, threads=1)


def one_at_a_time(reasoner: Reasoner, queries: list[Query], **options: Any) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for number, query in enumerate(queries):
        for answer in reasoner.predict(*query, **options):
            told = (answer.rank, answer.entity, answer.score, ",".join(answer.known), str(answer.rule), answer.n_rules)
            rows.append((number, *answer.triple, *told))
    return rows


@pytest.mark.parametrize("block", ["on", "off"])
@pytest.mark.parametrize("include_known", [False, True])
@pytest.mark.parametrize("aggregation", ["max", "noisy-or"])
def test_answers_are_those_of_one_query_at_a_time(
    rules: RuleSet,
    dataset: Dataset,
    include_known: bool,
    block: str,
    aggregation: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also when they are answered in parts."""
    monkeypatch.setattr(queries, "FEWEST_QUESTIONS", 2)
    monkeypatch.setattr(queries, "MOST_QUESTIONS", 2)
    reasoner = Reasoner(rules, dataset, threads=1, block_connected=block, aggregation=aggregation)
    chosen: dict[str, Any] = {"top": 2, "include_known": include_known}
    frame = reasoner.predict(QUERIES, **chosen)
    assert frame.columns == COLUMNS
    assert frame.rows() == one_at_a_time(reasoner, QUERIES, **chosen)
    assert frame["query"].n_unique() >= 2
    parts = list(reasoner.predict_frames(QUERIES, **chosen))
    assert len(parts) == 3
    assert pl.concat(parts).equals(frame)


def test_the_first_reason_of_an_answer_is_its_best_rule(reasoner: Reasoner) -> None:
    for query in QUERIES:
        for answer in reasoner.predict(*query, include_known=True):
            assert answer.reasons[0].rule == answer.rule
            assert answer.explanation.n_reasons == answer.n_rules
            assert answer.explanation.known == answer.known
            assert answer.explanation.score == pytest.approx(answer.score)


def test_what_is_known_is_told_and_counted(reasoner: Reasoner) -> None:
    lisa = reasoner.predict("lisa", "speaks", None)
    assert [(found.entity, found.known) for found in lisa] == [("dutch", ("test",))]
    assert (lisa.n_candidates, lisa.n_known) == (1, 0)
    ed = reasoner.predict("ed", "speaks", None)
    assert (list(ed), ed.n_candidates, ed.n_known) == ([], 0, 1)
    jan = reasoner.predict("jan", "speaks", None)
    assert [(found.entity, found.known) for found in jan] == [("french", ("valid", "test")), ("dutch", ())]
    kept = reasoner.predict("ed", "speaks", None, include_known=True)
    assert [(found.entity, found.known) for found in kept] == [("dutch", ("train",))]
    assert kept.n_known == 0


def test_known_answers_are_kept_with_and_without_blocking(rules: RuleSet, dataset: Dataset) -> None:
    """Blocking leaves out what is connected; what the query's own relation states is asked for, and stays."""
    for block in ("on", "off"):
        reasoner = Reasoner(rules, dataset, threads=1, block_connected=block)
        kept = reasoner.predict("ed", "speaks", None, include_known=True)
        assert [(found.entity, found.known) for found in kept] == [("dutch", ("train",))]
        assert reasoner.predict("ed", "speaks", None) == []
        reflexive = reasoner.predict("ed", "knows", None, include_known=True)
        assert [(found.entity, found.known) for found in reflexive] == [("ed", ("train",))]


def test_what_is_connected_otherwise_stays_blocked(dataset: Dataset, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("10\t8\t0.8\tspeaks(X,Y) <= lives(X,Y)\n10\t7\t0.7\tspeaks(X,dutch) <= \n")
    rules = RuleSet.load(tmp_path / "rules.txt")
    found = {
        block: Reasoner(rules, dataset, block_connected=block).predict("ed", "speaks", None, include_known=True)
        for block in ("on", "off")
    }
    assert [answer.entity for answer in found["off"]] == ["holland", "dutch"]
    assert [answer.entity for answer in found["on"]] == ["dutch"]


def test_a_rule_with_the_self_token_answers_with_the_entity_itself(reasoner: Reasoner) -> None:
    (found,) = reasoner.predict("lisa", "knows", None)
    assert found.entity == "lisa"
    assert str(found.rule) == "knows(X,me_myself_i) <= lives(X,A)"


def test_no_queries_have_no_answers_in_the_same_columns(reasoner: Reasoner) -> None:
    nothing = reasoner.predict([])
    assert nothing.shape == (0, len(COLUMNS))
    assert nothing.schema == reasoner.predict(QUERIES).schema
    assert [len(frame) for frame in reasoner.predict_frames([])] == [0]
    assert reasoner.predict([("dutch", "lang", None)]).schema == nothing.schema


def test_frames_of_polars_and_pandas_hold_queries(reasoner: Reasoner) -> None:
    expected = reasoner.predict(QUERIES)
    columns = ["subject", "relation", "object"]
    frame = pl.DataFrame([tuple(query) for query in QUERIES], schema=columns, orient="row")
    assert reasoner.predict(frame).equals(expected)
    assert reasoner.predict(frame.fill_null("?").select("object", "relation", "subject")).equals(expected)
    assert reasoner.predict(frame.cast(pl.Categorical)).equals(expected)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert reasoner.predict(pandas.DataFrame(QUERIES, columns=columns)).equals(expected)
    assert reasoner.predict(pandas.DataFrame(QUERIES, columns=columns).fillna("?")).equals(expected)


def test_progress_counts_every_query(reasoner: Reasoner) -> None:
    done: list[int] = []
    list(reasoner.predict_frames(QUERIES, progress=done.append))
    assert sum(done) == len(QUERIES)


@pytest.mark.parametrize(
    ("queries", "sentence"),
    [
        ([QUERIES[0], ("edd", "speaks", None)], "query 2: unknown entity 'edd'; did you mean 'ed'"),
        ([("ed", "speak", None)], "query 1: unknown relation 'speak'"),
        ([("ed", "speaks", "dutch")], "query 1: expected a ? for either the subject or the object"),
        ([QUERIES[0], QUERIES[1], (None, "speaks", None)], "query 3: expected a ?"),
        ([("ed", "speaks")], "expected queries with three parts"),
        (pl.DataFrame({"subject": ["ed"], "relation": ["speaks"]}), "object is missing"),
        (7, "expected queries as tuples or a frame, got int"),
    ],
)
def test_what_is_wrong_with_a_query_is_told_with_its_number(reasoner: Reasoner, queries: Any, sentence: str) -> None:
    with pytest.raises(DataError) as wrong:
        reasoner.predict(queries)
    assert sentence in str(wrong.value)


@pytest.mark.parametrize("top", [0, -3])
def test_top_is_at_least_one(reasoner: Reasoner, top: int) -> None:
    with pytest.raises(OptionError, match=f"top must be at least 1, got {top}"):
        reasoner.predict("ed", "speaks", None, top=top)
    with pytest.raises(OptionError, match=f"top must be at least 1, got {top}"):
        reasoner.predict(QUERIES, top=top)


def test_a_query_has_one_question_mark() -> None:
    assert make_query("ed", "speaks", "?") == Query("ed", "speaks", None)
    assert str(make_query("?", "speaks", "dutch")) == "(?, speaks, dutch)"
    for words in (("ed", "speaks", "dutch"), ("?", "speaks", "?"), ("ed", "?", "?")):
        with pytest.raises(OptionError):
            make_query(*words)


def test_a_file_of_queries_names_the_line_of_an_unknown_label(reasoner: Reasoner, tmp_path: Path) -> None:
    file = tmp_path / "queries.tsv"
    file.write_text("ed\tspeaks\t?\n\n?\tspeaks\tduch\n")
    with pytest.raises(DataError, match=r"queries\.tsv:3: unknown entity 'duch'"):
        read_queries(file, reasoner.vocabulary)


def test_a_file_of_queries_names_the_line_of_an_ambiguous_name(reasoner: Reasoner, tmp_path: Path) -> None:
    file = tmp_path / "queries.tsv"
    file.write_text("ed\tspeaks\t?\n\nEdward\tspeaks\t?\n")
    with pytest.raises(DataError, match=r"queries\.tsv:3: the entity 'Edward' is ambiguous; it could be ed, jan"):
        read_queries(file, reasoner.vocabulary, Names({"ed": "Edward", "jan": "Edward"}))
