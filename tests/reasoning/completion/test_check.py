"""`Reasoner.check` and verdicts: what is said of facts from elsewhere, and what people's judgements change."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from anyburl import DataError, Dataset, Reasoner
from anyburl.base.errors import InvalidOptionError
from anyburl.models.calibration import N_CONTEXTS, Calibration
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.tools.review import ReviewLog, review_order
from rules.samples import make_rules

PEOPLE = [f"p{number:02d}" for number in range(40)]
FACTS = [
    *((person, "lives", "nl" if number < 30 else "fr") for number, person in enumerate(PEOPLE)),
    *((person, "speaks", "dutch") for person in PEOPLE[:10]),
    *((person, "born", "town") for person in PEOPLE[:25]),
    ("p30", "speaks", "french"),
]
RULES = [
    ("speaks(X,dutch) <= lives(X,nl)", (100, 90)),
    ("speaks(X,french) <= lives(X,nl)", (100, 20)),
    ("born(X,town) <= lives(X,nl)", (100, 80)),
    ("born(X,dutch) <= lives(X,nl)", (100, 40)),
]


@pytest.fixture
def reasoner() -> Reasoner:
    return Reasoner(make_rules(RULES), Dataset.from_triples(FACTS, name="people"), smoothing=0, threads=1)


def simple_calibration(n_relations: int) -> Calibration:
    """Half of what has a score of .5 or more came back, nothing of the rest: as many are missing."""
    shares = np.full((n_relations, N_CONTEXTS, 2), 1e-6)
    shares[:, :, 1] = 0.4
    some = np.full(n_relations, 100.0)
    nothing = np.zeros(n_relations)
    starts = np.array([0, 34])  # a score of .49
    return Calibration(starts, shares, some, 9 * some, nothing, nothing + 0.1, nothing, nothing)


def test_every_verdict_with_its_reasons(reasoner: Reasoner) -> None:
    asked = [
        ("p01", "speaks", "dutch"),
        ("p11", "speaks", "dutch"),
        ("p11", "speaks", "french"),
        ("p35", "speaks", "dutch"),
        ("p01", "born", "dutch"),
        ("p26", "born", "dutch"),
        ("p26", "born", "town"),
        ("nobody", "speaks", "klingon"),
        ("p01", "hates", "p02"),
    ]
    frame = reasoner.check(pl.DataFrame(asked, schema=["subject", "relation", "object"], orient="row"))
    assert frame.select("subject", "relation", "object").rows() == asked
    assert frame["verdict"].to_list() == [
        "stated",
        "supported",
        "unknown",
        "unknown",
        "contradicted",
        "unknown",
        "supported",
        "unknown",
        "unknown",
    ]
    rows = frame.rows(named=True)
    assert rows[1]["score"] == pytest.approx(0.9)
    assert rows[1]["rule"] == "speaks(X,dutch) <= lives(X,nl)"
    assert rows[1]["facts"] == [["p11", "lives", "nl"]]
    assert rows[3]["note"] == "no rule predicts it"
    assert rows[4]["conflict"] == ["p01", "born", "town"]
    assert rows[5]["instead"] == "town"
    assert rows[6]["instead"] is None
    assert rows[7]["note"] == "the entity 'nobody' and the entity 'klingon' are not in the data"
    assert rows[8]["note"] == "the relation 'hates' is not in the data"
    assert frame["probability"].null_count() == len(frame)


def test_calibrated_facts_have_a_probability_unless_they_are_stated_or_contradicted(reasoner: Reasoner) -> None:
    reasoner.calibration = simple_calibration(reasoner.vocabulary.n_relations)
    asked = [("p01", "speaks", "dutch"), ("p11", "speaks", "dutch"), ("p11", "speaks", "french"), ("p01", "born", "fr")]
    frame = reasoner.check(asked).sort("subject", "relation", "object")
    said = {row[:3]: row[3:] for row in frame.select("subject", "relation", "object", "verdict", "probability").rows()}
    expected = 0.4 / 0.6
    assert said[asked[0]] == ("stated", None)
    assert said[asked[1]] == ("supported", pytest.approx(expected))
    assert said[asked[2]][0] == "unknown"
    assert said[asked[2]][1] < 0.001
    assert said[asked[3]] == ("contradicted", None)
    assert reasoner.check(asked[1:2], min_probability=0.7)["verdict"].to_list() == ["unknown"]


def test_facts_of_files_keep_their_order(reasoner: Reasoner, tmp_path: Path) -> None:
    asked = [("p11", "speaks", "french"), ("p01", "speaks", "dutch"), ("p11", "speaks", "french")]
    path = tmp_path / "facts.tsv"
    path.write_text("".join("\t".join(fact) + "\n" for fact in asked), "utf-8")
    for given in (path, asked):
        assert reasoner.check(given).select("subject", "relation", "object").rows() == asked


def test_held_out_facts_are_judged_as_if_nobody_stated_them() -> None:
    """By train alone: neither the fact itself counts, nor what valid and test state against it."""
    held_out = [("p28", "born", "town"), ("p29", "born", "dutch")]
    data = Dataset.from_triples(FACTS, held_out[:1], held_out[1:], name="people")
    reasoner = Reasoner(make_rules(RULES), data, smoothing=0, threads=1)
    reasoner.calibration = simple_calibration(reasoner.vocabulary.n_relations)
    asked = [*held_out, ("p01", "born", "town"), ("p29", "born", "town")]
    assert reasoner.check(asked)["verdict"].to_list() == ["stated", "stated", "stated", "contradicted"]
    frame = reasoner.check(asked, as_if_unstated=True)
    assert frame["verdict"].to_list() == ["supported", "unknown", "stated", "supported"]
    assert frame["probability"].is_null().to_list() == [False, False, True, False]


def test_what_cannot_be_checked_is_refused(reasoner: Reasoner) -> None:
    with pytest.raises(DataError, match="without object"):
        reasoner.check(pl.DataFrame({"subject": ["a"], "relation": ["b"]}))
    with pytest.raises(DataError, match="got none"):
        reasoner.check(pl.DataFrame({name: [] for name in ("subject", "relation", "object")}))
    with pytest.raises(InvalidOptionError, match="from 0 to 1"):
        reasoner.check([("p01", "speaks", "dutch")], min_probability=2)


def test_verdicts_change_what_is_proposed_and_how_likely_it_is(reasoner: Reasoner, tmp_path: Path) -> None:
    reasoner.calibration = simple_calibration(reasoner.vocabulary.n_relations)
    log = ReviewLog.of_run(tmp_path)
    first = pl.concat(list(reasoner.complete(min_probability=0.5, relations=["speaks"])))
    assert set(first["subject"]) == set(PEOPLE[10:30])
    for person in PEOPLE[10:14]:
        log.record((person, "speaks", "dutch"), "rejected")
    log.record(("p14", "speaks", "dutch"), "accepted")
    log.apply_to(reasoner)
    left = pl.concat(list(reasoner.complete(min_score=0.5, relations=["speaks"])))
    assert set(left["subject"]) == set(PEOPLE[15:30])
    assert left["probability"].max() < 0.5 < first["probability"].min()
    born = pl.concat(list(reasoner.complete(min_probability=0.5, relations=["born"])))
    assert born["probability"].to_list() == pytest.approx([0.4 / 0.6] * len(born))
    row = first["rule"].to_list()[0]
    assert {str(reasoner.rules.rule(rule)): counts for rule, counts in log.by_rule(reasoner).items()} == {row: (1, 5)}
    for person in PEOPLE[10:15]:
        log.record((person, "speaks", "dutch"), "withdrawn")
    log.apply_to(reasoner)
    again = pl.concat(list(reasoner.complete(min_probability=0.5, relations=["speaks"])))
    assert again.equals(first)


def test_an_accepted_value_contradicts_others(reasoner: Reasoner) -> None:
    assert reasoner.verdict(("p26", "born", "dutch")).conflict is None
    reasoner.apply_verdicts([("p26", "born", "town")], [])
    assert reasoner.verdict(("p26", "born", "dutch")).conflict == ("p26", "born", "town")


def test_a_shift_is_the_most_likely_one() -> None:
    """Compared with a search over many shifts."""
    calibration = simple_calibration(2)
    probabilities, is_true = np.array([0.8, 0.8, 0.6, 0.9]), np.array([False, False, True, True])
    found = calibration.with_verdicts(np.array([0, 0, 0, 1]), probabilities, is_true).shift
    logits, shifts = np.log(probabilities / (1 - probabilities)), np.linspace(-4, 4, 8001)
    for relation, rows in ((0, [0, 1, 2]), (1, [3])):
        likely = 1 / (1 + np.exp(-(logits[rows][:, None] + shifts)))
        fit = np.where(is_true[rows][:, None], np.log(likely), np.log(1 - likely)).sum(axis=0) - shifts**2 / 2
        assert found[relation] == pytest.approx(shifts[fit.argmax()], abs=2e-3)
    assert found[0] < 0 < found[1]


def test_the_order_of_cards_is_by_steps_of_probability_and_turns_of_relations() -> None:
    triples = np.array([[0, 0, 9], [1, 0, 9], [2, 0, 9], [3, 1, 9], [4, 1, 9], [5, 2, 9]], np.int32)
    likely = np.array([0.99, 0.98, 0.61, 0.96, 0.62, 0.97])
    some = np.ones(6, np.int32)
    facts = FactColumns(triples, likely, some, some)
    assert triples[review_order(facts, likely)][:, 0].tolist() == [0, 5, 3, 1, 4, 2]
    without = replace(facts, scores=likely[::-1].copy())
    assert triples[review_order(without, np.full(6, np.nan))][:, 0].tolist() == [5, 4, 0, 2, 1, 3]
