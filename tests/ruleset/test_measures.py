"""PCA confidence, head coverage and lift: AMIE's definitions, worked out by hand and by the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl import Dataset, InvalidOptionError, RuleError, RuleSet, learn, load_dataset, measure, rescore
from anyburl.ruleset.measures import MEASURES
from kernels import examples, table_of
from reference.measures import measures
from reference.scoring import RuleLike
from ruleset.samples import make_rules
from ruleset.test_rescore import graphs_with_rules, rule_set
from strategies import RuleTuple, SmallGraph

TYPES = ("B", "Uc", "Ud", "Z")

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
    rules, n_unknown = make_rules([(text, (0, 0)) for text in texts]).with_vocabulary(dataset.vocabulary)
    assert n_unknown == 0
    return rescore(rules, dataset.train, measures=True)


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
    """isMotherOf has fewer subjects than objects: each child has one mother, so that the child must have a known one."""
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


def test_a_constant_that_decides_judges_all_predictions_or_none() -> None:
    """Every person has one gender: X decides. Of a nation's members, the nation would decide: none is known."""
    dataset = load_dataset(
        [
            ("Al", "gender", "male"),
            ("Bo", "gender", "male"),
            ("Cy", "gender", "female"),
            ("Al", "plays", "chess"),
            ("Cy", "plays", "chess"),
            ("Di", "plays", "chess"),
            ("chess", "fans", "Al"),
            ("chess", "fans", "Di"),
        ]
    )
    by_variable, by_constant = "gender(X,male) <= plays(X,chess)", "fans(chess,Y) <= plays(Y,chess)"
    unknown = "fans(male,Y) <= plays(Y,chess)"
    found = measured(dataset, by_variable, by_constant, unknown)
    assert found.predictions.tolist() == [3, 3, 3]
    assert found.support.tolist() == [1, 2, 0]
    # Di has no gender; fans has one subject and two objects, so that Y decides, and Cy is in nobody's list.
    assert [row[0] for row in counted(found)] == [1 / 2, 1, 0]
    assert [row[1] for row in counted(found)] == [1 / 3, 1, 0]
    # Two of the seven entities are male.
    assert counted(found)[0][2] == pytest.approx(1 / 3 / (2 / 7))


def test_a_lift_of_1_is_independence() -> None:
    """Half of the entities have p, half have q, and a quarter both."""
    labels = ["a", "b", "c", "d"]
    with_p, with_q = {"a", "b"}, {"a", "c"}
    facts = [(x, "p", "one") for x in labels if x in with_p] + [(x, "q", "two") for x in labels if x in with_q]
    facts += [("one", "r", "two"), ("two", "r", "d"), ("d", "r", "one")]
    dataset = load_dataset(facts)
    assert counted(measured(dataset, "q(X,two) <= p(X,one)"))[0][2] == pytest.approx(1 / 2 / (2 / 6))


@settings(max_examples=examples(150, 20))
@given(graphs_with_rules(), st.booleans())
def test_every_rule_gets_the_measures_of_the_reference(
    drawn: tuple[SmallGraph, list[RuleTuple]], object_identity: bool
) -> None:
    graph, wanted = drawn
    n_entities, n_relations, triples = graph
    table = table_of(graph)
    found = rescore(rule_set(table, wanted), table, object_identity=object_identity, measures=True, threads=1)
    assert_as_expected(found, [measures(triples, n_entities, n_relations, rule, object_identity) for rule in wanted])
    again = measure(found.replace(**dict.fromkeys(MEASURES)), table, object_identity=object_identity)
    assert counted(again) == counted(found)


def assert_as_expected(found: RuleSet, expected: list) -> None:
    assert [row[:2] for row in counted(found)] == [(one.pca_confidence, one.head_coverage) for one in expected]
    assert [row[2] for row in counted(found)] == pytest.approx([one.lift for one in expected], rel=1e-12)


@pytest.mark.parametrize("name", ["nations", "umls"])
def test_the_rules_of_a_benchmark_have_the_measures_of_the_reference(
    name: str, shared_data: Callable[[str], Path]
) -> None:
    """Some of every type and length; `benchmarks/check_measures.py` looks at all rules."""
    dataset = load_dataset(shared_data(name))
    rules = learn(dataset, paths=4_000, seed=1, max_acyclic=2, threads=1)
    few = rules.take(np.random.default_rng(1).permutation(len(rules))[:60])
    table = dataset.train
    triples = [tuple(row) for row in table.triples.tolist()]
    sizes = (table.vocabulary.n_entities, table.vocabulary.n_relations)
    found = measure(few, table)
    assert_as_expected(found, [measures(triples, *sizes, rule) for rule in reference_rules(few)])


def reference_rules(rules: RuleSet) -> list[RuleLike]:
    """The rules as the reference writes them."""
    found: list[RuleLike] = []
    for row in range(len(rules)):
        body = tuple(int(step) for step in rules.bodies[rules.body[row]] if step >= 0)
        constants = [int(column[row]) for column in (rules.head_constant, rules.body_constant)]
        head_constant, body_constant = (None if one < 0 else one for one in constants)
        found.append((TYPES[rules.type[row]], int(rules.head[row]), head_constant, body, body_constant))
    return found
