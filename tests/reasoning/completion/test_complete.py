"""`Reasoner.complete`: which facts, in which frames, with which reasons."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import DataError, Dataset, OptionError, Reasoner, RuleSet
from anyburl.base.errors import InvalidOptionError
from anyburl.data.names import Names
from anyburl.models.calibration import N_CONTEXTS, Calibration, narrow_bins
from anyburl.reasoning.completion import complete
from anyburl.reasoning.completion import facts as selection

TRAIN = [
    ("ed", "lives", "holland"),
    ("lisa", "lives", "holland"),
    ("jan", "lives", "france"),
    ("mia", "lives", "france"),
    ("holland", "lang", "dutch"),
    ("france", "lang", "french"),
    ("ed", "speaks", "dutch"),
    ("jan", "knows", "jan"),
    *((person, "type", "person") for person in ("ed", "lisa", "jan")),
    ("dutch", "type", "language"),
    ("french", "type", "language"),
]
VALID = [("jan", "speaks", "french")]
TEST = [("ed", "knows", "ed")]
RULES = """10\t8\t0.8\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
10\t5\t0.5\tspeaks(X,dutch) <= lives(X,A)
10\t9\t0.9\tknows(X,me_myself_i) <= lives(X,A)
10\t4\t0.4\tspeaks(X,Y) <= lives(X,Y)
"""
COLUMNS = ["subject", "relation", "object", "score", "probability", "rule", "rules"]
BY_COUNTRY = "speaks(X,Y) <= lives(X,A), lang(A,Y)"


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(TRAIN, VALID, TEST, name="speakers")


@pytest.fixture
def rules(tmp_path: Path) -> RuleSet:
    (tmp_path / "rules.txt").write_text(RULES)
    return RuleSet.load(tmp_path / "rules.txt")


@pytest.fixture
def reasoner(rules: RuleSet, dataset: Dataset) -> Reasoner:
    return Reasoner(rules, dataset, smoothing=0, block_connected="off", threads=1)


def facts(reasoner: Reasoner, **options: Any) -> dict[tuple[str, str, str], float]:
    frame = pl.concat(list(reasoner.complete(**options)))
    return {(s, r, o): score for s, r, o, score in frame.select(COLUMNS[:4]).iter_rows()}


def test_facts_that_no_split_states(reasoner: Reasoner) -> None:
    assert facts(reasoner) == {
        ("lisa", "speaks", "dutch"): 0.8,
        ("mia", "speaks", "french"): 0.8,
        ("lisa", "knows", "lisa"): 0.9,
        ("mia", "knows", "mia"): 0.9,
    }


def test_what_is_said_of_a_fact(reasoner: Reasoner) -> None:
    (frame,) = reasoner.complete(min_score=0.5, subjects=["lisa"], relations=["speaks"])
    assert frame.columns == COLUMNS
    assert frame.rows() == [("lisa", "speaks", "dutch", 0.8, None, BY_COUNTRY, 2)]


def test_with_max_rules_below_the_least_score_are_not_grounded(reasoner: Reasoner) -> None:
    (frame,) = reasoner.complete(min_score=0.8, subjects=["lisa"], relations=["speaks"])
    assert frame["rules"].to_list() == [1]


def test_a_frame_without_facts(reasoner: Reasoner) -> None:
    (frame,) = reasoner.complete(min_score=0.95, reasons=True, conflicts=True)
    assert frame.columns == [*COLUMNS, "conflict", "facts"]
    assert not len(frame)


def test_frames_come_in_parts(reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = pl.concat(list(reasoner.complete(min_score=0, reasons=True)))
    monkeypatch.setattr(complete, "FACTS_AT_A_TIME", 1)
    monkeypatch.setattr(anyburl.reasoning.completion.search, "SUBJECTS_AT_A_TIME", 1)
    parts = list(reasoner.complete(min_score=0, reasons=True))
    assert len(parts) > 3
    assert pl.concat(parts).equals(whole)


@pytest.mark.parametrize("per", ["relation", "subject", "question"])
@pytest.mark.parametrize("top", [1, 2, 100])
@pytest.mark.parametrize("aggregation", ["max", "noisy-or"])
def test_the_best_of_each(reasoner: Reasoner, per: str, top: int, aggregation: str) -> None:
    reasoner = reasoner.with_aggregation(aggregation)
    found = pl.concat(list(reasoner.complete(top=top, per=per, min_score=0.1)))
    keys = {"relation": ["relation"], "subject": ["subject"], "question": ["subject", "relation"]}[per]
    every = pl.concat(list(reasoner.complete(min_score=0.1)))
    best = every.sort("score", descending=True).group_by(keys).head(top)
    assert found.group_by(keys).agg(pl.len()).sort(keys).equals(best.group_by(keys).agg(pl.len()).sort(keys))
    assert sorted(found["score"]) == sorted(best["score"])


def test_the_best_of_each_relation_among_many(reasoner: Reasoner, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = facts(reasoner, top=2)
    monkeypatch.setattr(selection, "SELECTED_AT_A_TIME", 1)
    monkeypatch.setattr(anyburl.reasoning.completion.search, "SUBJECTS_AT_A_TIME", 1)
    assert facts(reasoner, top=2) == whole


def test_functional_relations_get_one_object(reasoner: Reasoner) -> None:
    every = facts(reasoner, min_score=0.1, relations=["speaks"])
    assert every[("ed", "speaks", "holland")] == 0.4
    assert every[("mia", "speaks", "dutch")] == 0.5
    assert facts(reasoner, min_score=0.1, functional=["speaks"], relations=["speaks"]) == {
        ("lisa", "speaks", "dutch"): 0.8,  # ed and, in valid, jan speak something already
        ("mia", "speaks", "french"): 0.8,
    }


@pytest.fixture
def settled(rules: RuleSet) -> Reasoner:
    """Thirty more people who live in one country each; ed might live in a second one."""
    more = [(f"p{i}", "lives", "holland" if i % 2 else "france") for i in range(30)]
    data = Dataset.from_triples([*TRAIN, ("ed", "visits", "france"), ("sue", "visits", "france"), *more], VALID, TEST)
    made = parse_rules("10\t9\t0.9\tlives(X,Y) <= visits(X,Y)\n10\t8\t0.8\tlives(X,holland) <= visits(X,A)\n")
    return Reasoner(made, data, smoothing=0, block_connected="off", threads=1)


def parse_rules(text: str) -> RuleSet:
    with TemporaryDirectory() as folder:
        (Path(folder) / "rules.txt").write_text(text)
        return RuleSet.load(Path(folder) / "rules.txt")


def test_functional_relations_are_found_in_the_data_unless_one_says_otherwise(settled: Reasoner) -> None:
    assert settled.properties().filter("one_object")["relation"].to_list() == ["lives"]
    sue = {("sue", "lives", "france"): 0.9}
    second = {("ed", "lives", "france"): 0.9, ("sue", "lives", "holland"): 0.8}
    assert facts(settled) == facts(settled, functional="auto") == facts(settled, functional=["lives"]) == sue
    for chosen in ({"functional": ()}, {"functional": ["visits"]}, {"exempt": ["lives"]}):
        assert facts(settled, **chosen) == {**sue, **second}, chosen


def test_conflicts_are_told_with_the_stated_fact(settled: Reasoner) -> None:
    (frame,) = settled.complete(conflicts=True)
    assert frame.columns == [*COLUMNS, "conflict"]
    assert {row[:3]: row[-1] for row in frame.rows()} == {
        ("ed", "lives", "france"): ["ed", "lives", "holland"],
        ("sue", "lives", "france"): None,
        ("sue", "lives", "holland"): None,
    }


def test_a_verdict_is_what_is_said_of_a_proposal(settled: Reasoner) -> None:
    """Also of a fact that contradicts itself, and of one that no rule predicts."""
    known = ("ed", "lives", "holland")
    assert settled.verdict(("ed", "lives", "france")) == (None, known)
    assert settled.verdict(known) == (None, None)
    settled.calibration = calibration_of(settled)
    assert settled.verdict(("ed", "lives", "france")) == (None, known)
    assert settled.verdict(("sue", "lives", "france")) == (pytest.approx(0.45), None)
    assert settled.verdict(("sue", "lives", "dutch")) == (None, None)
    (frame,) = settled.complete(subjects=["sue"])
    assert frame["probability"].to_list() == pytest.approx([0.45])


def calibration_of(reasoner: Reasoner) -> Calibration:
    """Scores below 0.5 mean 0.1, those below 0.85 mean 0.4, and others 0.45, if a tenth of all facts is missing."""
    n = reasoner.vocabulary.n_relations
    starts = np.concatenate([[0], narrow_bins(np.array([0.5, 0.85]))])
    shares = np.array([0.1, 0.4, 0.45]) / (1 + np.array([0.1, 0.4, 0.45]))
    sizes = (np.full(n, value) for value in (10.0, 90.0, 0.0, 0.1, 0.0, 0.0))
    return Calibration(starts, np.tile(shares, (n, N_CONTEXTS, 1)), *sizes)


def test_types_that_were_seen_at_their_place(reasoner: Reasoner) -> None:
    """Only persons speak, and only languages are spoken; mia has no type."""
    assert set(facts(reasoner, min_score=0.1, types="type", relations=["speaks"])) == {
        ("lisa", "speaks", "dutch"),
        ("jan", "speaks", "dutch"),
    }


def test_the_object_of_a_functional_relation_is_the_best_that_has_a_fitting_type(
    rules: RuleSet, dataset: Dataset
) -> None:
    """Where lisa lives scores higher than what she speaks, but nobody speaks a country."""
    sure = rules.replace(support=[9 if "lives(X,Y)" in str(rule) else 8 for rule in rules])
    reasoner = Reasoner(sure, dataset, smoothing=0, block_connected="off", threads=1)
    chosen = {"relations": ["speaks"], "functional": ["speaks"], "subjects": ["lisa"]}
    assert facts(reasoner, **chosen) == {("lisa", "speaks", "holland"): 0.9}
    assert facts(reasoner, **chosen, types="type") == {("lisa", "speaks", "dutch"): 0.8}


@pytest.mark.parametrize(("aggregation", "object_identity"), [("max", True), ("noisy-or", False)])
def test_reasons_are_facts_of_train_that_ground_the_rule(object_identity: bool, aggregation: str) -> None:
    data = anyburl.load_dataset("geo")
    rules = anyburl.learn(data, paths=3000, seed=1)
    reasoner = Reasoner(rules, data, aggregation=aggregation, object_identity=object_identity)
    frame = pl.concat(list(reasoner.complete(top=3, per="subject", min_score=0.2, reasons=True)))
    train = set(data.train.to_polars().rows())
    assert len(frame) > 100
    for subject, relation, object, rule, told in frame.select(*COLUMNS[:3], "rule", "facts").sample(60, seed=1).rows():
        assert {tuple(fact) for fact in told} <= train
        explanation = reasoner.explain((subject, relation, object), top=1, groundings=1)
        assert str(explanation.reasons[0].rule) == rule
        assert len(explanation.reasons[0].groundings[0]) == len(told)
        assert {subject, object} & {entity for fact in told for entity in (fact[0], fact[2])}


def test_names_are_understood_and_told(rules: RuleSet, dataset: Dataset) -> None:
    names = Names({"lisa": "Lisa B.", "speaks": "can speak"})
    reasoner = Reasoner(rules, dataset, names=names, smoothing=0, block_connected="off")
    (frame,) = reasoner.complete(subjects=["Lisa B."], relations=["can speak"])
    told = frame.select("subject", "relation", "subject_name", "relation_name", "object_name").rows()
    assert told == [("lisa", "speaks", "Lisa B.", "can speak", "dutch")]


def test_probabilities_are_told_and_asked_for(reasoner: Reasoner) -> None:
    """What is missing may be said as well: of twice as many facts, twice as many are true."""
    reasoner.calibration = calibration_of(reasoner)
    (frame,) = reasoner.complete(min_probability=0.42)
    assert set(frame["relation"]) == {"knows"}
    assert frame["probability"].to_list() == pytest.approx([0.45] * len(frame))
    (frame,) = reasoner.complete(min_score=0.85)
    assert frame["probability"].to_list() == pytest.approx([0.45] * len(frame))
    (every,) = reasoner.complete(min_probability=0.82, missing=2 / 11)
    assert every["probability"].to_list() == pytest.approx([0.9] * len(frame))
    assert set(every["relation"]) == {"knows"}
    (speaking,) = reasoner.complete(min_probability=0.42, missing={"knows": 0.05, "speaks": 2 / 11})
    assert set(speaking["relation"]) == {"speaks"}
    assert speaking["probability"].to_list() == pytest.approx([0.8] * len(speaking))
    assert reasoner.calibration.missing[0] == 0.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_score": 1.5}, "min_score must be from 0 to 1"),
        ({"min_score": float("nan")}, "min_score must be from 0 to 1"),
        ({"min_probability": -1}, "min_probability must be from 0 to 1"),
        ({"top": 0}, "top must be at least 1"),
        ({"per": "object"}, "per must be one of relation, subject, question"),
        ({"relations": "speaks"}, "relations must be a list of labels"),
        ({"functional": "speaks"}, "functional must be a list of labels"),
        ({"exempt": "speaks"}, "exempt must be a list of labels"),
        ({"conflicts": "no"}, "conflicts must be"),
        *(
            ({"missing": wrong}, r"missing must be a share from 0 to 0\.9, or one for each of some relations, got")
            for wrong in (
                1,
                1.0,
                -0.1,
                float("nan"),
                "much",
                {"speaks": 1},
                {"speaks": float("nan")},
                {3: 0.1},
                [0.1],
                True,
            )
        ),
    ],
)
def test_wrong_options_are_refused(reasoner: Reasoner, options: dict[str, Any], message: str) -> None:
    with pytest.raises((OptionError, InvalidOptionError), match=message):
        reasoner.complete(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"relations": ["speak"]},
        {"subjects": ["lise"]},
        {"functional": ["x"]},
        {"types": "x"},
        {"exempt": ["x"]},
        {"missing": {"x": 0.1}},
    ],
)
def test_unknown_labels_are_refused(reasoner: Reasoner, options: dict[str, Any]) -> None:
    reasoner.calibration = calibration_of(reasoner)
    with pytest.raises(DataError, match=r"unknown (entity|relation)"):
        list(reasoner.complete(**options))


@pytest.mark.parametrize("option", ["min_probability", "missing"])
def test_a_probability_needs_a_calibration(reasoner: Reasoner, option: str) -> None:
    with pytest.raises(OptionError, match=f"^{option} needs calibrated scores: first run `anyburl calibrate`"):
        list(reasoner.complete(**{option: 0.5}))
