"""PCA confidence, head coverage and lift: AMIE's definitions, worked out by hand and by the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import Dataset, RuleSet, learn, load_dataset, measure, rescore
from anyburl.bodies.rescore import BY_DEFAULT as MEASURES
from anyburl.bodies.rescore import count_rules, counting_limits
from anyburl.graph.build import build_graph
from anyburl.rules.columns import confidence, lift, value
from kernels import examples, table_of
from reference.measures import Measurer, Measures
from reference.scoring import RuleLike
from rules.samples import make_rules
from rules.test_rescore import graphs_with_rules, rule_set
from strategies import RuleTuple, SmallGraph

TYPES = ("B", "Uc", "Ud", "Z")

GENDERS = [("Al", "gender", "male"), ("Bo", "gender", "male"), ("Cy", "gender", "female")]
LIVES_IN = [  # AMIE's example, see below
    ("Adam", "livesIn", "Paris"),
    ("Adam", "livesIn", "Rome"),
    ("Bob", "livesIn", "Zurich"),
    ("Adam", "wasBornIn", "Paris"),
    ("Carl", "wasBornIn", "Rome"),
]


def counted(rules: RuleSet) -> list[tuple[float, float, float]]:
    assert rules.measures == MEASURES
    columns = (rules.pca_confidence, rules.head_coverage, rules.lift)
    return list(zip(*(column.tolist() for column in columns if column is not None), strict=True))


def measured(dataset: Dataset, *texts: str) -> RuleSet:
    """Count rules given as text on the train split."""
    rules = make_rules([(text, (0, 0)) for text in texts]).with_vocabulary(dataset.vocabulary)
    assert len(rules) == len(texts)
    return rescore(rules, dataset.train, measures=True)


def test_confidence_is_support_by_predictions_and_what_smoothing_adds() -> None:
    """1/2 and 3/4; with five more predictions, 1/7 and 3/9. Where nothing is predicted, 0, smoothed or not."""
    support, predictions = np.array([1, 3, 0]), np.array([2, 4, 0])
    assert confidence(support, predictions).tolist() == [1 / 2, 3 / 4, 0]
    assert confidence(support, predictions, 5).tolist() == [1 / 7, 3 / 9, 0]
    assert confidence(np.array([2]), np.array([0]), 5).tolist() == [0]
    assert predictions.tolist() == [2, 4, 0]


def test_value_is_support_times_confidence() -> None:
    assert value(np.array([1, 6, 0]), np.array([2, 8, 0])).tolist() == [1 / 2, 36 / 8, 0]


def test_lift_is_confidence_by_the_probability_of_the_head() -> None:
    """1/2 where a quarter is expected, 1/2 where all are, and a head that never holds."""
    counts = np.array([2, 2, 0]), np.array([4, 4, 4])
    assert lift(*counts, np.array([0.25, 1.0, 0.0])).tolist() == [2, 1 / 2, 0]


def test_the_example_of_amie() -> None:
    """AMIE (Galárraga et al. 2013), table 1: livesIn(x, y) => wasBornIn(x, y).

    It predicts Paris (true) and Rome for Adam, and Zurich for Bob: a confidence of 1/3. Nothing is known of where Bob
    was born, so only Adam's two count against the rule: a PCA confidence of 1/2. One of the two facts of wasBornIn is
    predicted: a head coverage of 1/2.
    """
    found = measured(load_dataset(LIVES_IN), "wasBornIn(X,Y) <= livesIn(X,Y)")
    assert (found.predictions.tolist(), found.support.tolist()) == ([3], [1])
    n_entities, n_facts = 6, 2
    assert counted(found) == [(1 / 2, 1 / 2, pytest.approx(1 / 3 / (n_facts / n_entities**2)))]


def test_the_more_functional_direction_decides() -> None:
    """isMotherOf has fewer subjects than objects, for every child has one mother: the child must have a known one."""
    dataset = load_dataset(
        [
            ("Ann", "isMotherOf", "Bea"),
            ("Ann", "isMotherOf", "Cleo"),
            ("Ann", "raised", "Bea"),
            ("Ann", "raised", "Dora"),
            ("Eve", "raised", "Cleo"),
        ]
    )
    forward, backward = "isMotherOf(X,Y) <= raised(X,Y)", "raised(X,Y) <= isMotherOf(X,Y)"
    found = measured(dataset, forward, backward)
    # Of Ann-Bea, Ann-Dora and Eve-Cleo, no mother of Dora is known. Eve as a mother is judged, by Cleo.
    assert counted(found)[0][:2] == (1 / 2, 1 / 2)
    # raised has 2 subjects and 3 objects. Of Ann-Bea and Ann-Cleo, both have someone who raised them.
    assert counted(found)[1][:2] == (1 / 2, 1 / 3)


def test_a_variable_that_decides_must_have_a_fact() -> None:
    """Everyone has one gender, so that X decides; nothing is known of Di's."""
    dataset = load_dataset([*GENDERS, *((x, "plays", "chess") for x in ("Al", "Cy", "Di"))])
    found = measured(dataset, "gender(X,male) <= plays(X,chess)")
    assert (found.predictions.tolist(), found.support.tolist()) == ([3], [1])
    n_entities, n_male = 7, 2
    assert counted(found) == [(1 / 2, 1 / 3, pytest.approx(1 / 3 / (n_male / n_entities)))]


def test_a_constant_that_decides_judges_all_predictions_or_none() -> None:
    """hasMember has two subjects and three objects: the country decides, and Chile is no member of anything."""
    dataset = load_dataset(
        [
            *(("UN", "hasMember", country) for country in ("France", "Peru", "Togo")),
            ("EU", "hasMember", "France"),
            *((x, "is", "union") for x in ("UN", "EU", "AU")),
            ("Chile", "is", "country"),
        ]
    )
    found = measured(dataset, "hasMember(X,Peru) <= is(X,union)", "hasMember(X,Chile) <= is(X,union)")
    assert (found.predictions.tolist(), found.support.tolist()) == ([3, 3], [1, 0])
    assert counted(found) == [(1 / 3, 1 / 4, pytest.approx(1 / 3 / (1 / 9))), (0, 0, 0)]


def test_self_stands_for_the_variable_on_both_sides() -> None:
    """knows(x, x): two subjects, three objects, so that x must be known by someone."""
    facts = [("a", "knows", "a"), ("a", "knows", "b"), ("c", "knows", "d"), ("c", "knows", "b")]
    dataset = load_dataset([*facts, *((x, "is", "human") for x in ("a", "b", "c", "d"))])
    found = measured(dataset, "knows(X,me_myself_i) <= is(X,human)")
    assert (found.predictions.tolist(), found.support.tolist()) == ([4], [1])
    n_entities, n_reflexive = 5, 1
    assert counted(found) == [(1 / 3, 1 / 4, pytest.approx(1 / 4 / (n_reflexive / n_entities)))]


def test_a_lift_of_1_is_independence() -> None:
    """Of six entities, three have p and two have q: one with both is what chance would give."""
    facts = [("a", "p", "b"), ("b", "p", "b"), ("c", "p", "b"), ("a", "q", "f"), ("d", "q", "f"), ("e", "r", "f")]
    assert counted(measured(load_dataset(facts), "q(X,f) <= p(X,A)"))[0][2] == pytest.approx(1 / 2 / (2 / 6))
    assert counted(measured(load_dataset(facts), "q(X,f) <= p(X,b)"))[0][2] == pytest.approx(1 / 2 / (2 / 6))


@settings(max_examples=examples(150, 20))
@given(graphs_with_rules(), st.booleans())
def test_every_rule_gets_the_measures_of_the_reference(
    drawn: tuple[SmallGraph, list[RuleTuple]], object_identity: bool
) -> None:
    graph, wanted = drawn
    n_entities, n_relations, triples = graph
    table = table_of(graph)
    found = rescore(rule_set(table, wanted), table, object_identity=object_identity, measures=True, threads=1)
    reference = Measurer(triples, n_entities, n_relations, object_identity)
    expected = [reference.measures(rule) for rule in wanted]
    assert_as_expected(found, expected)
    counts = count_rules(found, build_graph(table), counting_limits(object_identity, None, pca=True), threads=1)
    assert counts.pca_predictions.tolist() == [one.pca_predictions for one in expected]
    again = measure(found.replace(**dict.fromkeys(MEASURES)), table, object_identity=object_identity)
    assert counted(again) == counted(found)


def assert_as_expected(found: RuleSet, expected: list[Measures]) -> None:
    assert [row[:2] for row in counted(found)] == [(one.pca_confidence, one.head_coverage) for one in expected]
    assert [row[2] for row in counted(found)] == pytest.approx([one.lift for one in expected], rel=1e-12)


@pytest.mark.parametrize(("name", "n_heads"), [("nations", 3), ("umls", 1)])
def test_every_rule_of_a_short_run_has_the_measures_of_the_reference(
    name: str, n_heads: int, shared_data: Callable[[str], Path]
) -> None:
    dataset = load_dataset(shared_data(name))
    relations = tuple(dataset.vocabulary.relations[:n_heads])
    rules = learn(dataset, paths=200, seed=1, max_cyclic=2, relations=relations, threads=1)
    table = dataset.train
    triples = [(s, r, o) for s, r, o in table.triples.tolist()]
    reference = Measurer(triples, table.vocabulary.n_entities, table.vocabulary.n_relations)
    assert_as_expected(measure(rules, table), [reference.measures(rule) for rule in reference_rules(rules)])


def reference_rules(rules: RuleSet) -> list[RuleLike]:
    """The rules as the reference writes them."""
    found: list[RuleLike] = []
    for row in range(len(rules)):
        body = tuple(step for step in rules.bodies[rules.body[row]].tolist() if step >= 0)
        constants = [int(column[row]) for column in (rules.head_constant, rules.body_constant)]
        head_constant, body_constant = (None if one < 0 else one for one in constants)
        found.append((TYPES[rules.type[row]], int(rules.head[row]), head_constant, body, body_constant))
    return found


def test_surprise_is_how_far_a_rule_is_above_the_base_rate_of_its_head() -> None:
    facts = [(f"p{n}", "priority", "optional" if n < 8 else "extra") for n in range(10)]
    facts += [(f"p{n}", "section", "doc" if n < 6 else "net") for n in range(10)] + [("p9", "tag", "old")]
    dataset = Dataset.from_triples(facts)
    rules = make_rules(
        [
            ("priority(X,optional) <= section(X,doc)", (90, 90)),
            ("priority(X,extra) <= tag(X,A)", (1, 1)),
            ("priority(X,Y) <= section(X,Y)", (10, 9)),
        ]
    )
    found = measure(rules, dataset, only=["surprise"]).surprise
    assert found is not None
    assert found.tolist() == pytest.approx([90 / 95 - 8 / 10, 0, 9 / 15 - 10 / (10 * 2)])  # 1 / 6 is below 2 / 10
