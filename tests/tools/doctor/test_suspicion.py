"""Facts that look wrong."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import anyburl
from anyburl import Dataset, Report
from anyburl.tools.doctor.evidence import Kinds, log_odds_of_facts, make_wrong
from anyburl.tools.doctor.findings import DatasetFacts
from doctor.examined import area_under_curve, facts_of, rows_of

N_WRONG = 50


def test_what_most_facts_have_and_wrong_ones_lack_speaks_for_a_fact() -> None:
    right, wrong = np.r_[np.ones(95), np.zeros(5)], np.zeros(100)
    none = np.zeros(100, np.int32)
    odds = log_odds_of_facts(right, none, wrong, none, 1)
    assert odds[0] > 2
    assert odds[-1] < -2


def test_a_relation_without_support_loses_nothing_by_that() -> None:
    relations = np.repeat(np.array([0, 1], np.int32), 200)
    right = np.r_[np.ones(190), np.zeros(10), np.zeros(200)]
    odds = log_odds_of_facts(right, relations, np.zeros(400), relations, 2)
    assert odds[199] < -2
    assert abs(odds[-1]) < 0.3


def test_a_higher_score_never_speaks_against_a_fact() -> None:
    rng = np.random.default_rng(1)
    right, none = rng.random(300), np.zeros(300, np.int32)
    odds = log_odds_of_facts(right, none, rng.random(300), none, 1)
    assert (np.diff(odds[np.argsort(right)]) >= 0).all()


def test_wrong_facts_are_none_that_a_split_states() -> None:
    facts = facts_of([(f"a{i}", "r", f"b{j}") for i in range(6) for j in range(6) if i != j], test=[("a1", "r", "b1")])
    stated = {tuple(row) for row in facts.every.tolist()}
    wrong = make_wrong(facts, 1000, np.random.default_rng(1))
    assert not stated & {tuple(row) for row in wrong.triples.tolist()}
    assert len(make_wrong(facts, 7, np.random.default_rng(1)).triples) <= 7


def test_an_entity_of_another_kind_does_not_fit() -> None:
    train = [(f"p{i}", "born", f"t{i % 5}") for i in range(60)] + [(f"p{i}", "speaks", f"l{i % 4}") for i in range(60)]
    train += [(f"t{i}", "near", f"t{(i + 1) % 30}") for i in range(30)] + [("p0", "born", "l1"), ("t9", "born", "t1")]
    facts = facts_of(train)
    fits = Kinds(facts.train, facts.n_entities, facts.n_relations).fits(facts.train, stated=True)
    labels = facts.labels(facts.train).with_columns(subject_fit=fits[:, 0], object_fit=fits[:, 1])
    born = labels.filter(pl.col("relation") == "born")
    assert born.sort("subject_fit").row(0, named=True)["subject"] == "t9"


@pytest.fixture(scope="module")
def damaged() -> tuple[Report, Report, set[tuple[str, str, str]]]:
    """Reports on geo with fifty wrong objects, with rules and without; and the wrong facts."""
    rng, frame = np.random.default_rng(1), anyburl.load_dataset("geo").train.to_polars()
    rows = rng.choice(len(frame), N_WRONG, replace=False)
    entities = pl.concat([frame["subject"], frame["object"]]).unique().sort()
    objects = frame["object"].to_list()
    for row in rows:
        objects[row] = entities[int(rng.integers(len(entities)))]
    changed = frame.with_columns(object=pl.Series(objects))
    wrong = set(changed[rows.tolist()].rows()) - set(frame.rows())
    dataset = Dataset.from_triples(changed, name="damaged")
    rules = anyburl.learn(dataset, paths=20_000, threads=1, seed=1)
    return anyburl.examine(dataset, rules, threads=1), anyburl.examine(dataset, seconds=0), wrong


def test_wrong_facts_are_ranked_far_above_chance(damaged: tuple[Report, Report, set[tuple[str, str, str]]]) -> None:
    with_rules, without, wrong = damaged
    areas = []
    for report in (with_rules, without):
        labels = report.facts.labels(report.facts.train).rows()
        areas.append(area_under_curve(report.suspicion, np.array([fact in wrong for fact in labels])))
    assert areas[0] > 0.9
    assert areas[0] > areas[1] > 0.75


def test_suspects_come_with_reasons(damaged: tuple[Report, Report, set[tuple[str, str, str]]]) -> None:
    report, without, _ = damaged
    finding = next(finding for finding in report.findings if finding.check == "suspects")
    whys = [str(row["why"]) for row in rows_of(finding)]
    assert all(whys)
    assert any("no rule supports it" in why for why in whys)
    groups = {
        row["relation"]: [row2["suspicion"] for row2 in rows_of(finding) if row2["relation"] == row["relation"]]
        for row in rows_of(finding)
    }
    assert all(group == sorted(group, reverse=True) and len(group) <= 3 for group in groups.values())  # type: ignore[type-var]
    firsts = [group[0] for group in groups.values()]
    assert firsts == sorted(firsts, reverse=True)  # type: ignore[type-var]
    assert report.n_rules is not None
    assert without.n_rules is None


def test_the_list_is_that_of_the_numbers(damaged: tuple[Report, Report, set[tuple[str, str, str]]]) -> None:
    report, _, _ = damaged
    best = report.suspects(5)
    assert best["suspicion"].to_list() == sorted(report.suspicion, reverse=True)[:5]
    assert report.suspects().height == len(report.suspicion)


def test_strong_rules_contradict_a_fact_of_a_functional_relation() -> None:
    train = [(f"c{i}", "capital", f"k{i}") for i in range(60)]
    train += [(f"k{i}", "capital of", f"c{i}") for i in range(60)]
    train = [fact for fact in train if fact != ("c7", "capital", "k7")] + [("c7", "capital", "k9")]
    dataset = Dataset.from_triples(train)
    rules = anyburl.learn(dataset, paths=2_000, threads=1, seed=1)
    report = anyburl.examine(dataset, rules, threads=1)
    first = report.suspects(1).row(0)
    assert first[:3] == ("c7", "capital", "k9")
    finding = next(finding for finding in report.findings if finding.check == "suspects")
    assert "rules predict k7 instead" in str(rows_of(finding)[0]["why"])
    possible_errors = next(finding for finding in report.findings if finding.check == "conflicts")
    row = rows_of(possible_errors)[0]
    assert [row[name] for name in ("subject", "relation", "object")] == ["c7", "capital", "k9"]
    assert (row["for it"], row["or else"]) == ("no rule", "c7 capital k7")
    assert "capital(X,Y) <= capital of(Y,X)" in str(row["for that"])


def test_facts_that_rules_agree_with_are_no_possible_errors() -> None:
    train = [(f"c{i}", name, f"k{i}") for i in range(60) for name in ("capital", "seat")]
    dataset = Dataset.from_triples(train)
    report = anyburl.examine(dataset, anyburl.learn(dataset, paths=2_000, threads=1, seed=1), threads=1)
    assert "conflicts" not in {finding.check for finding in report.findings}


def test_an_examination_depends_on_its_seed_only() -> None:
    dataset = anyburl.load_dataset("geo")
    one, two = (anyburl.examine(dataset, seconds=0, seed=3) for _ in range(2))
    assert one.suspicion.tolist() == two.suspicion.tolist()
    assert DatasetFacts(dataset).train.shape[0] == len(one.suspicion)
