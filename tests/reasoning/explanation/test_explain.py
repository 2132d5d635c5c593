"""`explain` on small examples: what it says, and what it refuses."""

from __future__ import annotations

import json

import pytest

from anyburl import Reasoner, explain
from anyburl.base.errors import OptionError, UnknownLabelError
from anyburl.data import Dataset
from anyburl.ranking.options import RankOptions
from anyburl.rules.rule import parse_rule
from anyburl.rules.ruleset import RuleSet
from rules.samples import make_rules

FACTS = [
    ("ed", "born_in", "hague"),
    ("lisa", "born_in", "hague"),
    ("lisa", "speaks", "dutch"),
    ("lisa", "married_to", "ed"),
    ("ed", "lives_in", "holland"),
]
TRIPLE = ("ed", "speaks", "dutch")
RULES = [
    ("speaks(X,Y) <= married_to(A,X), speaks(A,Y)", (45, 40)),
    ("speaks(X,Y) <= born_in(X,A), born_in(B,A), speaks(B,Y)", (45, 20)),
    ("speaks(X,dutch) <= lives_in(X,holland)", (15, 10)),
    ("speaks(X,dutch) <= lives_in(X,A)", (45, 5)),
    ("born_in(X,hague) <= speaks(X,dutch)", (5, 5)),
]


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_triples(FACTS, test=[TRIPLE])


@pytest.fixture
def rules() -> RuleSet:
    return make_rules(RULES)


def test_reasons_come_best_first_with_their_facts(rules: RuleSet, dataset: Dataset) -> None:
    found = explain(rules, dataset, TRIPLE)
    assert [str(reason.rule) for reason in found] == [RULES[i][0] for i in (0, 2, 1, 3)]
    assert [reason.type for reason in found] == ["B", "Uc", "B", "Ud"]
    assert [reason.confidence for reason in found] == [0.8, 0.5, 0.4, 0.1]
    assert found.reasons[0].groundings == ((("lisa", "married_to", "ed"), ("lisa", "speaks", "dutch")),)
    assert found.known == ("test",)
    assert (found.rank, found.rank_subject, found.n_reasons) == (1.0, 1.0, 4)
    assert found.near_miss is None


def test_top_and_groundings_bound_what_is_given(rules: RuleSet, dataset: Dataset) -> None:
    found = explain(rules, dataset, TRIPLE, top=2, groundings=0)
    assert len(found.reasons) == 2
    assert found.n_reasons == 4
    assert all(reason.groundings == () for reason in found)


def test_by_maximum_the_best_rule_has_all_and_the_others_break_ties(rules: RuleSet, dataset: Dataset) -> None:
    found = explain(rules, dataset, TRIPLE)
    assert [reason.contribution for reason in found] == [1, 0, 0, 0]
    assert [reason.breaks_ties for reason in found] == [False, True, True, True]
    assert found.score == found.reasons[0].confidence == 0.8


def test_by_noisy_or_rules_share_the_score(rules: RuleSet, dataset: Dataset) -> None:
    options = RankOptions(aggregation="noisy-or-top:2")
    found = explain(rules, dataset, TRIPLE, options=options)
    assert found.score == pytest.approx(1 - 0.2 * 0.5)
    assert [reason.contribution for reason in found] == pytest.approx([0.69897, 0.30103, 0, 0], abs=1e-5)
    assert not any(reason.breaks_ties for reason in found)


def test_confidence_is_smoothed_and_weighted(rules: RuleSet, dataset: Dataset) -> None:
    options = RankOptions(weights={"B": 0.1})
    found = explain(rules, dataset, TRIPLE, options=options)
    assert found.reasons[0].rule == parse_rule(RULES[2][0])
    assert {reason.type: reason.confidence for reason in found}["Ud"] == 0.1
    assert min(reason.confidence for reason in found) == pytest.approx(0.04)


def test_reflexive_triples_are_explained_and_shown_as_such() -> None:
    dataset = Dataset.from_triples([("b", "knows", "b"), ("a", "likes", "a"), ("a", "friend", "b")])
    rules = make_rules(
        [
            ("likes(X,me_myself_i) <= knows(X,me_myself_i)", (5, 5)),
            ("likes(X,me_myself_i) <= friend(X,A), knows(A,me_myself_i)", (5, 4)),
        ]
    )
    assert explain(rules, dataset, ("b", "likes", "b")).reasons[0].groundings == ((("b", "knows", "b"),),)
    facts = (("a", "friend", "b"), ("b", "knows", "b"))
    found = explain(rules, dataset, ("a", "likes", "a"))
    assert found.reasons[0].groundings == (facts,)
    assert found.known == ("train",)
    near = explain(rules, dataset, ("a", "friend", "a")).near_miss
    assert near is None


def test_a_blocked_triple_has_reasons_but_no_rank(rules: RuleSet) -> None:
    dataset = Dataset.from_triples([*FACTS, ("ed", "heard", "dutch")])
    options = RankOptions(block_connected="on")
    found = explain(rules, dataset, TRIPLE, options=options)
    assert found.blocked
    assert found.rank is None
    assert found.reasons


def test_json_is_what_the_interface_says(rules: RuleSet, dataset: Dataset) -> None:
    result = json.loads(json.dumps(explain(rules, dataset, TRIPLE).to_json()))
    assert {"triple", "known", "rank", "score", "reasons", "near_miss", "aggregation"} <= result.keys()
    assert result["triple"] == list(TRIPLE)
    assert result["known"] == ["test"]
    for reason in result["reasons"]:
        assert {"rule", "type", "confidence", "predictions", "support", "groundings", "contribution"} <= reason.keys()
        assert parse_rule(reason["rule"]).type == reason["type"]
        for grounding in reason["groundings"]:
            assert len(grounding) == parse_rule(reason["rule"]).length
            assert all(len(fact) == 3 and tuple(fact) in FACTS for fact in grounding)


def test_without_any_reason_it_says_so(dataset: Dataset) -> None:
    found = explain(make_rules([]), dataset, TRIPLE)
    assert (found.rank, found.score, found.n_reasons, found.near_miss) == (None, 0.0, 0, None)


def test_unknown_labels_are_named(rules: RuleSet, dataset: Dataset) -> None:
    with pytest.raises(UnknownLabelError, match="unknown entity 'edd'; did you mean 'ed'"):
        explain(rules, dataset, ("edd", "speaks", "dutch"))
    with pytest.raises(UnknownLabelError, match="unknown relation 'speak'"):
        explain(rules, dataset, ("ed", "speak", "dutch"))


def test_wrong_options_are_refused(rules: RuleSet, dataset: Dataset) -> None:
    with pytest.raises(OptionError, match="top must be at least 1, got 0"):
        explain(rules, dataset, TRIPLE, top=0)
    with pytest.raises(OptionError, match="groundings must be at least 0, got -1"):
        explain(rules, dataset, TRIPLE, groundings=-1)
    reasoner = Reasoner(rules, dataset)
    with pytest.raises(OptionError, match="has its own options"):
        explain(rules, dataset, TRIPLE, reasoner=reasoner, options=RankOptions(smoothing=1))
    with pytest.raises(OptionError, match="other data"):
        explain(rules, Dataset.from_triples([("ed", "speaks", "dutch")]), TRIPLE, reasoner=reasoner)


def test_no_grounding_passes_through_its_end_or_back() -> None:
    facts = [("s", "r", "a"), ("a", "r", "b"), ("b", "r", "o"), ("s", "r", "o"), ("o", "r", "b"), ("b", "r", "s")]
    dataset = Dataset.from_triples([*facts, ("x", "h", "y")])
    rules = make_rules([("h(X,Y) <= r(X,A), r(A,B), r(B,Y)", (9, 8))])
    found = explain(rules, dataset, ("s", "h", "o"), groundings=9)
    assert found.reasons[0].groundings == (tuple(facts[:3]),)
