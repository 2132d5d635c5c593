"""Promises hold: on graphs whose whole truth is known, so many proposals are true as is promised."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
import polars as pl
import pytest

from anyburl import DataError, Dataset, Reasoner
from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import SPLITS
from anyburl.models.calibration import N_CONTEXTS, narrow_bins
from anyburl.reasoning.completion.facts import FactColumns
from anyburl.reasoning.completion.hiding import Hiding, Tally, hide_facts, play
from anyburl.reasoning.completion.judging import Judge, known_properties
from anyburl.reasoning.completion.promises import assumed_missing, check_promises, most_missing
from anyburl.reasoning.completion.search import missing_facts
from reasoning.completion.test_conflicts import as_sets
from reference.completion import contexts, contradicting
from rules.samples import make_rules

Fact = tuple[str, str, str]

N_PEOPLE, N_THINGS, N_PLACES = 2400, 500, 100
FOLLOWS = {
    "buys": ("likes", 0.3),
    "praises": ("likes", 0.6),
    "rates": ("likes", 0.95),
    "sees": ("visits", 0.8),
    "shops": ("visits", 0.5),
}
"""Relations that hold for a share of the pairs of another one."""

FAMILIES = [("likes", "buys", "praises", "rates", "award"), ("visits", "sees", "shops"), ("home", "registered")]
TEXTS = [
    *(f"{head}(X,Y) <= {body}(X,Y)" for family in FAMILIES for head in family for body in family if head != body),
    *(f"speaks(X,Y) <= {body}(X,A), lang(A,Y)" for body in ("home", "registered", "sees")),
    "award(X,Y) <= rates(A,Y), praises(A,B), likes(X,B)",
]


@cache
def truth() -> tuple[Fact, ...]:
    """Everything that is true of 3,000 entities: relations that follow from others in 30 to 95 % of all cases, one
    that most subjects lack, and three with one object.
    """
    rng = np.random.default_rng(0)
    facts: set[Fact] = {(f"place{i}", "lang", f"lang{i % 5}") for i in range(N_PLACES)}
    for i in range(N_PEOPLE):
        person, home = f"p{i}", int(rng.integers(N_PLACES))
        other = home if rng.random() < 0.95 else int(rng.integers(N_PLACES))
        facts |= {(person, "home", f"place{home}"), (person, "registered", f"place{other}")}
        facts.add((person, "speaks", f"lang{home % 5 if rng.random() < 0.9 else int(rng.integers(5))}"))
        pairs = [("likes", f"t{t}") for t in rng.integers(N_THINGS, size=2)]
        pairs += [("visits", f"place{p}") for p in rng.integers(N_PLACES, size=2)]
        for relation, value in pairs:
            facts.add((person, relation, value))
            facts |= {
                (person, head, value)
                for head, (body, share) in FOLLOWS.items()
                if body == relation and rng.random() < share
            }
        if rng.random() < 0.1:
            facts.add((person, "award", pairs[0][1]))
    return tuple(sorted(facts))


class World(NamedTuple):
    """What is stated, and what is true beyond it."""

    reasoner: Reasoner
    hidden: frozenset[Fact]

    def promised_and_true(self, least: float, **options: object) -> tuple[int, float, float]:
        """Return how many facts are at least so likely, how many of them should be true, and how many are."""
        found = pl.concat(list(self.reasoner.complete(min_probability=least, **options)))  # type: ignore[arg-type]
        true = [fact in self.hidden for fact in found.select("subject", "relation", "object").rows()]
        return len(found), float(found["probability"].mean()), float(np.mean(true))  # type: ignore[arg-type]


def world(
    hidden: float | Mapping[str, float] = 0.1,
    valid: float | Mapping[str, float] = 0.1,
    test: float = 0.0,
    aggregation: str = "max",
) -> World:
    """Keep a share of the facts from the data, of all or by relation; the rest is drawn into splits."""
    facts, rng = truth(), np.random.default_rng(1)
    drawn, split = rng.random(len(facts)), rng.random(len(facts))
    shares, held_out = (
        given if isinstance(given, Mapping) else dict.fromkeys({r for _, r, _ in facts}, given)
        for given in (hidden, valid)
    )
    lost = [chance < shares[r] for chance, (_, r, _) in zip(drawn, facts, strict=True)]
    left = [(fact, place) for fact, place, gone in zip(facts, split, lost, strict=True) if not gone]
    parts: list[list[Fact]] = [[], [], []]
    for fact, place in left:
        bound = held_out[fact[1]]
        parts[1 if place < bound else 2 if place < bound + test else 0].append(fact)
    data = Dataset.from_triples(*parts, name="world")
    rules = make_rules([(text, (1, 1)) for text in TEXTS])
    counted = Reasoner(rules, data, aggregation=aggregation, threads=1)
    rules = rescore(counted.rules, data.train, object_identity=True, threads=1)
    return World(
        Reasoner(rules, data, aggregation=aggregation, threads=1),
        frozenset(fact for fact, gone in zip(facts, lost, strict=True) if gone),
    )


@pytest.mark.parametrize(
    ("hidden", "valid", "test", "told", "aggregation"),
    [
        (0.1, 0.1 / 0.9, 0.0, None, "max"),
        (0.1, 0.1 / 0.9, 0.0, 0.1, "noisy-or"),
        (0.1, 0.1 / 0.9, 0.1, None, "max"),
        (0.05, 0.1, 0.0, 0.05, "max"),
        (0.2, 0.1, 0.0, 0.2, "max"),
        (0.1, 0.0, 0.0, 0.1, "max"),
        (0.2, 0.0, 0.1, 0.2, "noisy-or"),
    ],
)
def test_so_many_proposals_are_true_as_is_promised(
    hidden: float, valid: float, test: float, told: float | None, aggregation: str
) -> None:
    """By default, as many facts are missing as valid has, which is so; without a valid split, train is played with.

    A few hundred hidden facts tell little: then, rather too little is promised.
    """
    made = world(hidden, valid, test, aggregation)
    report = made.reasoner.calibrate(missing=told)
    for least, fewest in ((0.5, 300), (0.8, 100)):
        n_facts, promised, true = made.promised_and_true(least)
        assert n_facts >= fewest
        assert -0.08 <= promised - true <= 0.05, least
        told_before = report.promises[str(least)]
        if test == 0 and valid:
            assert (told_before.facts, told_before.promised) == (n_facts, pytest.approx(promised))


def test_what_is_missing_may_differ_by_relation() -> None:
    """A third of the homes is unknown, and hardly anything else: known later than the calibration, it holds as well."""
    shares = {relation: 0.05 for relation in {fact[1] for fact in truth()}} | {"home": 0.35, "rates": 0.2}
    made = world(shares)
    made.reasoner.calibrate()
    for least in (0.5, 0.8):
        n_facts, promised, true = made.promised_and_true(least, missing=shares)
        assert n_facts > 300
        assert promised == pytest.approx(true, abs=0.05)


def test_splits_need_not_be_drawn_from_all_relations_alike() -> None:
    """As many facts of each relation are missing as valid has: few of some, and many of others."""
    few = ["buys", "praises", "rates", "sees", "shops"]
    shares = {relation: 0.03 if relation in few else 0.25 for relation in {fact[1] for fact in truth()}}
    made = world(shares, {relation: share / (1 - share) for relation, share in shares.items()})
    report = made.reasoner.calibrate()
    missing = {row["relation"]: row["missing"] for row in report.by_relation}
    assert max(missing[relation] for relation in few) < 0.05 < 0.2 < missing["home"]
    n_facts, promised, true = made.promised_and_true(0.3, relations=few)
    assert n_facts > 100
    assert promised == pytest.approx(true, abs=0.1)


N_SMALL = 60


def small(n_valid: int = 60, n_test: int = 40) -> Reasoner:
    """Sixty people who speak two languages of their city, of which some facts are missing."""
    rng = np.random.default_rng(3)
    facts = [(f"p{i}", "lives", f"c{i % 6}") for i in range(N_SMALL)]
    facts += [(f"p{i}", "speaks", f"l{(i + k) % 6}") for i in range(N_SMALL) for k in (0, 1) if rng.random() < 0.8]
    facts += [(f"p{i}", "works", f"c{i % 6 if rng.random() < 0.9 else 0}") for i in range(N_SMALL) if i % 10]
    facts += [(f"c{c}", "lang", f"l{(c + k) % 6}") for c in range(6) for k in (0, 1)]
    order = rng.permutation(len(facts))
    shuffled = [facts[place] for place in order]
    train, valid, test = shuffled[n_valid + n_test :], shuffled[:n_valid], shuffled[n_valid : n_valid + n_test]
    rules = make_rules(
        [
            ("speaks(X,Y) <= lives(X,A), lang(A,Y)", (100, 80)),
            ("speaks(X,Y) <= works(X,A), lang(A,Y)", (100, 60)),
            ("works(X,Y) <= lives(X,Y)", (100, 85)),
            ("works(X,c0) <= lives(X,A)", (100, 20)),
            ("lives(X,Y) <= works(X,Y)", (100, 90)),
            ("lives(X,c1) <= speaks(X,A)", (100, 15)),
        ]
    )
    data = Dataset.from_triples(train, valid, test, name="small")
    return Reasoner(rules, data, smoothing=0, threads=1)


def test_the_tally_counts_as_one_would_by_hand() -> None:
    """What train states is not proposed, and what it or a hidden fact contradicts is not counted; the rest is, by
    relation, context and score, and by whether it was hidden, or else a fact of the test split.
    """
    reasoner = small()
    data, properties = reasoner.dataset, known_properties(reasoner.dataset)
    known = as_sets(properties, data.vocabulary.n_entities)
    assert known.one_object
    tally = play(Hiding(reasoner.ranker, data, "valid"), properties, 0, None)
    least = np.full(data.vocabulary.n_relations, 0.05)
    every = FactColumns.concat(list(missing_facts(reasoner.ranker, data, least, stated=("train",))))
    found = {
        (s, r, o): (score, rule, n_rules)
        for (s, r, o), score, rule, n_rules in zip(
            every.triples.tolist(), every.scores.tolist(), every.rules.tolist(), every.n_rules.tolist(), strict=True
        )
    }
    train, valid, test = ({tuple(row) for row in data.split(name).triples.tolist()} for name in SPLITS)
    places = contexts(found, train, known.one_object)
    shape = tally.counts.proposed.shape
    halves, of_test = np.zeros((2, 2, *shape)), np.zeros((2, *shape))
    for fact, (score, *_) in found.items():
        if contradicting(fact, train | valid, known):
            continue
        cell = fact[1], places[fact], narrow_bins(np.array([score]))[0]
        halves[(fact[0] % 2, 0, *cell)] += 1
        halves[(fact[0] % 2, 1, *cell)] += fact in valid
        if fact not in valid:
            of_test[(0, *cell)] += 1
            of_test[(1, *cell)] += fact in test
    assert tally.test.back.sum() > 5
    for counts, expected in zip((*tally.halves, tally.test), (*halves, of_test), strict=True):
        assert np.array_equal(counts.proposed, expected[0])
        assert np.array_equal(counts.back, expected[1])
    assert np.array_equal(tally.counts.back, halves[:, 1].sum(axis=0))
    assert tally.n_hidden.sum() == len(valid)
    assert tally.n_test.sum() == len(test)


def test_a_sample_of_subjects_decides_which_scores_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left out is hardly likely: the shares of the rest are the same."""
    reasoner = small()
    properties, hiding = known_properties(reasoner.dataset), Hiding(reasoner.ranker, reasoner.dataset, "valid")
    every = play(hiding, properties, 0, None).counts
    monkeypatch.setattr("anyburl.reasoning.completion.hiding.MANY_HIDDEN", 30)
    some = play(hiding, properties, 0, None).counts
    assert np.all(some.proposed <= every.proposed)
    whole = some.proposed == every.proposed
    assert every.back[~whole].sum() <= 0.05 * every.back.sum()
    assert np.array_equal(some.back[whole], every.back[whole])


def test_the_valid_split_is_hidden_or_a_tenth_of_train() -> None:
    reasoner = small()
    assert hide_facts(reasoner.ranker, reasoner.dataset, 0) == Hiding(reasoner.ranker, reasoner.dataset, "valid")
    alone = small(0, 20)
    hiding = hide_facts(alone.ranker, alone.dataset, 0)
    train, hidden = hiding.dataset.train.triples, hiding.dataset.valid.triples
    assert hiding.split == "train"
    assert len(hidden) == round(len(alone.dataset.train) / 10)
    joined = np.concatenate([train, hidden])
    assert np.array_equal(np.unique(joined, axis=0), np.unique(alone.dataset.train.triples, axis=0))
    assert len(joined) == len(alone.dataset.train)
    recounted = rescore(alone.rules, hiding.dataset.train)
    right = np.minimum(np.rint(recounted.support / 0.9), recounted.predictions)  # a tenth of them is hidden
    assert hiding.ranker.rules.support.tolist() == right.tolist()
    assert hiding.ranker.rules.predictions.tolist() == recounted.predictions.tolist()
    assert hiding.dataset.fingerprint != alone.dataset.fingerprint
    again, other = (hide_facts(alone.ranker, alone.dataset, seed).dataset.valid.triples for seed in (0, 1))
    assert np.array_equal(again, hidden)
    assert not np.array_equal(other, hidden)


def tally_of(reasoner: Reasoner, proposed: int, back: int, n_hidden: float, n_test: float = 0.0) -> Tally:
    """A tally of proposals with one score, half of them of each half of the subjects."""
    properties = known_properties(reasoner.dataset)
    tally = Tally(Hiding(reasoner.ranker, reasoner.dataset, "valid"), properties)
    for half in tally.halves:
        half.proposed[0, 0, 100], half.back[0, 0, 100] = proposed / 2, back / 2
    tally.n_hidden[:], tally.n_test[:] = 0, 0
    tally.n_hidden[0], tally.n_test[0] = n_hidden, n_test
    return tally


def left_of(proposed: int, back: int) -> float:
    """Return how many proposals there are beside each that came back, if that share is a standard error too high."""
    share = back / proposed
    return 1 / (share - math.sqrt(share * (1 - share) / proposed)) - 1


def test_no_more_can_be_missing_than_is_left_of_the_surest_proposals() -> None:
    """Of 300 proposals, 100 come back: about two are missing for each, or fewer where test states one of them."""
    reasoner = small()
    assert left_of(300, 100) == pytest.approx(2.2667, abs=1e-4)
    assert most_missing(tally_of(reasoner, 300, 100, 50)) == pytest.approx(left_of(300, 100))
    assert most_missing(tally_of(reasoner, 300, 100, 50, 25)) == pytest.approx(left_of(300, 100) - 0.5)
    assert most_missing(tally_of(reasoner, 100, 100, 50, 25)) == 0


def test_why_so_much_is_taken_to_be_missing() -> None:
    with_valid, without = small(), small(0, 0)
    stated = len(with_valid.dataset.train) + len(with_valid.dataset.valid) + len(with_valid.dataset.test)
    plenty = tally_of(with_valid, 10**6, 100, 100)
    properties = known_properties(with_valid.dataset)
    share, reason = assumed_missing(with_valid.dataset, properties, plenty)
    assert (share, reason) == (pytest.approx(60 / (stated + 60)), "as many as the valid split has")
    share, reason = assumed_missing(with_valid.dataset, properties, tally_of(with_valid, 110, 100, 100))
    most = 100 * left_of(110, 100)
    assert share == pytest.approx(most / (stated + most))
    assert reason.startswith("if there were more")
    properties = known_properties(without.dataset)
    share, reason = assumed_missing(without.dataset, properties, plenty)
    assert reason == "so many values of obligatory relations are"
    assert 0.01 <= share < 0.1
    nothing = replace(properties, obligatory=np.full_like(properties.obligatory, np.nan))
    assert assumed_missing(without.dataset, nothing, plenty) == (0.1, "nothing in the data tells more")


def test_promises_are_checked_on_test_or_by_halves() -> None:
    for reasoner in (small(), small(80, 0)):
        hiding = Hiding(reasoner.ranker, reasoner.dataset, "valid")
        tally = play(hiding, known_properties(reasoner.dataset), 0, None)
        checked = check_promises(tally)
        has_test = bool(len(reasoner.dataset.test))
        assert checked.proposed.shape[1] == N_CONTEXTS * (1 if has_test else 2)
        assert checked.true.sum() == ((tally.test if has_test else tally.counts).back * tally.is_made).sum()
        n, promised, true = checked.above(0.0, slice(None))
        assert n == checked.proposed.sum()
        assert promised == pytest.approx((checked.proposed * checked.promised).sum() / n)
        assert true == pytest.approx(checked.true.sum() / n)


def test_with_too_few_facts_there_is_nothing_to_calibrate_on() -> None:
    with pytest.raises(DataError, match=r"small has too few facts to calibrate on: \d+ of 20 hidden facts come back"):
        small(20, 0).calibrate()


def test_a_judge_looks_facts_up_as_they_are_proposed() -> None:
    """Of all facts that are proposed, the same probability; of all that are stated or unheard of, none."""
    reasoner = small()
    reasoner.calibrate()
    frame = pl.concat(list(reasoner.complete(min_score=0.1)))
    assert len(frame) >= 10
    for *fact, probability in frame.select("subject", "relation", "object", "probability").rows():
        verdict = reasoner.verdict(tuple(fact))
        assert verdict == (pytest.approx(probability), None)
    assert reasoner.verdict(("l0", "speaks", "l1")) == (None, None)
    judge = Judge.of(reasoner.ranker, reasoner.dataset, known_properties(reasoner.dataset))
    likely, rows = judge.probabilities(reasoner.calibration, np.empty((0, 3), np.int32))
    assert (len(likely), len(rows), judge.verdicts(None, np.empty((0, 3), np.int32))) == (0, 0, [])
