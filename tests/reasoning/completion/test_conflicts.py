"""What data shows about its relations, and what contradicts a fact: as an obvious loop tells it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from anyburl import Dataset
from anyburl.reasoning.completion import conflicts as module
from anyburl.reasoning.completion.conflicts import ITSELF, NOTHING, Conflicts, Properties, find_properties
from anyburl.reasoning.completion.judging import known_properties
from kernels import examples
from ranked import as_table
from reference.completion import Known, Limits, contradicting, properties
from reference.graph import Triple

N_ENTITIES, N_RELATIONS = 5, 3
NAMES = ("one_object", "one_subject", "asymmetric", "irreflexive")

triples = st.tuples(st.integers(0, N_ENTITIES - 1), st.integers(0, N_RELATIONS - 1), st.integers(0, N_ENTITIES - 1))
some = st.sets(st.integers(0, N_RELATIONS - 1))
pairs = st.sets(
    st.tuples(st.integers(0, N_RELATIONS - 1), st.integers(0, N_ENTITIES - 1), st.integers(0, N_ENTITIES - 1)).filter(
        lambda pair: pair[1] != pair[2]
    ),
    max_size=6,
)
knowns = st.builds(
    lambda one, two, three, four, apart: Known(
        one, two, three, four, {}, apart | {(r, other, value) for r, value, other in apart}
    ),
    some,
    some,
    some,
    some,
    pairs,
)


def as_arrays(known: Known) -> Properties:
    """The same properties in arrays."""

    def mask(relations: set[int]) -> NDArray[np.bool_]:
        return np.isin(np.arange(N_RELATIONS), list(relations))

    keys = [(value * N_ENTITIES + other) * N_RELATIONS + relation for relation, value, other in known.disjoint]
    return Properties(
        *(mask(getattr(known, name)) for name in NAMES),
        obligatory=np.full(N_RELATIONS, np.nan),
        disjoint=np.array(sorted(keys), np.int64),
    )


def as_sets(found: Properties, n_entities: int) -> Known:
    """The same properties in sets."""
    n_relations = len(found.one_object)
    obligatory = {r: float(share) for r, share in enumerate(found.obligatory) if not np.isnan(share)}
    disjoint = {
        (key % n_relations, key // n_relations // n_entities, key // n_relations % n_entities)
        for key in found.disjoint.tolist()
    }
    assert np.all(np.diff(found.disjoint) > 0)
    return Known(*(set(np.flatnonzero(getattr(found, name)).tolist()) for name in NAMES), obligatory, disjoint)


def everything() -> list[Triple]:
    return [(s, r, o) for s in range(N_ENTITIES) for r in range(N_RELATIONS) for o in range(N_ENTITIES)]


def check_conflicts(found: Conflicts, stated: list[Triple], known: Known) -> None:
    """Every fact that can be stated is asked for, those that are stated as well."""
    asked = everything()
    for row, fact in zip(found.find(as_table(asked)).tolist(), asked, strict=True):
        against = contradicting(fact, stated, known)
        if row == NOTHING:
            assert not against, fact
        else:
            assert found.fact(row, fact) in against, fact
            assert (row == ITSELF) == (fact in against), fact


@settings(max_examples=examples(150))
@given(st.lists(triples, max_size=25), knowns, some, st.none() | some)
def test_conflicts_are_those_of_an_obvious_loop(
    stated: list[Triple], known: Known, exempt: set[int], functional: set[int] | None
) -> None:
    """With facts stated twice, relations that nothing contradicts, and named ones that have one object."""
    found = Conflicts.of(as_table(stated), as_arrays(known), N_ENTITIES)
    check_conflicts(found, stated, known)
    chosen = as_arrays(known)
    if functional is not None:
        chosen = chosen.with_one_object(sorted(functional))
        known = known._replace(one_object=functional)
    chosen = chosen.exempting(sorted(exempt))
    known = Known(
        *(getattr(known, name) - exempt for name in NAMES),
        known.obligatory,
        {pair for pair in known.disjoint if pair[0] not in exempt},
    )
    assert as_sets(chosen, N_ENTITIES) == known
    check_conflicts(Conflicts.of(as_table(stated), chosen, N_ENTITIES), stated, known)


@given(st.lists(triples, max_size=25), knowns)
def test_the_order_of_the_facts_does_not_matter(stated: list[Triple], known: Known) -> None:
    first = Conflicts.of(as_table(stated), as_arrays(known), N_ENTITIES)
    second = Conflicts.of(as_table(stated[::-1] + stated), as_arrays(known), N_ENTITIES)
    asked = as_table(everything())
    assert np.array_equal(first.stated, second.stated)
    assert np.array_equal(first.find(asked), second.find(asked))


def test_nothing_contradicts_anything_where_nothing_is_stated() -> None:
    everywhere = {0, 1, 2}
    known = Known(everywhere, everywhere, everywhere, everywhere, {}, {(0, 1, 2), (0, 2, 1)})
    check_conflicts(Conflicts.of(np.empty((0, 3), np.int32), as_arrays(known), N_ENTITIES), [], known)
    assert Conflicts.of(as_table([(0, 0, 1)]), as_arrays(known), N_ENTITIES).find(as_table([])).tolist() == []


def test_which_of_several_facts_is_named() -> None:
    """That it contradicts itself comes first, then what is stated the other way round, then another value."""
    known = Known({0}, {0}, {0}, {0}, {}, set())
    found = Conflicts.of(as_table([(0, 0, 2), (1, 0, 0), (3, 0, 1)]), as_arrays(known), N_ENTITIES)
    rows = found.find(as_table([(0, 0, 0), (0, 0, 1), (0, 0, 4), (4, 0, 1)])).tolist()
    told = [found.fact(row, (9, 9, 9)) for row in rows]
    assert told == [(9, 9, 9), (1, 0, 0), (0, 0, 2), (3, 0, 1)]


LOW = {"MOST": 0.75, "FEWEST": 3, "REVERSED": 0.25, "OBLIGATORY": 0.6, "EXPECTED_TOGETHER": 0.5, "RARELY": 0.4}
"""Limits that graphs of a few facts reach."""


def low_properties(stated: NDArray[np.int32], n_entities: int, n_relations: int) -> Properties:
    """The properties that facts show with low limits."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in LOW.items():
            patch.setattr(module, name, value)
        return find_properties(stated, n_entities, n_relations)


@settings(max_examples=examples(150))
@given(st.lists(triples, max_size=60))
def test_properties_are_those_of_an_obvious_loop(stated: list[Triple]) -> None:
    found = as_sets(low_properties(as_table(stated), N_ENTITIES, N_RELATIONS), N_ENTITIES)
    expected = properties(stated, N_RELATIONS, Limits(*LOW.values()))
    assert found._replace(obligatory={}) == expected._replace(obligatory={})
    assert found.obligatory == pytest.approx(expected.obligatory)


def test_only_the_most_frequent_relations_and_values_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    facts = with_noise(DISJOINT, 0.0, rng) | {(s, 1, o) for s, o in enumerate(range(100, 400))}
    monkeypatch.setattr(module, "MOST_VALUES", 3)
    values = {value for _, *pair in as_sets(find_of(facts), N).disjoint for value in pair}
    frequent = sorted(range(4), key=lambda value: (-sum(o == value and r == 0 for _, r, o in facts), value))
    assert values <= set(frequent[:3])
    monkeypatch.setattr(module, "MOST_COMPARED", 1)
    assert not as_sets(find_of(facts), N).obligatory


N = 600  # entities of the graphs below
Pairs = set[tuple[int, int]]
PEOPLE = range(300, 600)
FUNCTIONAL = {(s, s % 7) for s in PEOPLE}
ONE_SUBJECT = {(s % 40 + 300, s) for s in range(300)}
ASYMMETRIC = {(s, o) for s in range(300, 340) for o in range(s + 1, 340) if (s * o) % 3}
DISJOINT = {(s, s % 2) for s in PEOPLE} | {(s, 2 + s % 3 % 2) for s in PEOPLE} | {(s, 4 + s % 5) for s in PEOPLE}


def with_noise(known: Pairs, noise: float, rng: np.random.Generator, relation: int = 0) -> set[Triple]:
    """The pairs as facts, and a few more of pairs of their entities that are drawn at random."""
    subjects, objects = (sorted({pair[end] for pair in known}) for end in (0, 1))
    drawn = {(int(rng.choice(subjects)), int(rng.choice(objects))) for _ in range(round(noise * len(known)))}
    return {(s, relation, o) for s, o in known | drawn}


def find_of(facts: set[Triple], n_relations: int = 2) -> Properties:
    return find_properties(as_table(sorted(facts)), N, n_relations)


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.05])
def test_properties_that_graphs_have_are_found(noise: float) -> None:
    """Whatever the errors in the data, up to a twentieth of the facts."""
    rng = np.random.default_rng(1)
    assert find_of(with_noise(FUNCTIONAL, noise, rng)).one_object[0]
    assert find_of(with_noise(ONE_SUBJECT, noise, rng)).one_subject[0]
    loops = {(s, 0, s) for s in range(300, 300 + round(noise * len(ASYMMETRIC)))}
    assert find_of(with_noise(ASYMMETRIC, noise, rng)).asymmetric[0]
    assert find_of(with_noise(ASYMMETRIC, 0, rng) | loops).irreflexive[0]
    both = with_noise(FUNCTIONAL, 0, rng) | {(s, 1, s) for s in PEOPLE if rng.random() >= noise}
    assert find_of(both).obligatory[1] == pytest.approx(1 - noise, abs=0.03)
    apart = as_sets(find_of(with_noise(DISJOINT, noise, rng)), N).disjoint
    assert {(0, 0, 1), (0, 1, 0), (0, 2, 3), (0, 3, 2)} <= apart
    assert not {(value, other) for _, value, other in apart} & {(0, 2), (0, 3), (1, 2), (1, 3), (0, 4), (2, 4)}


def test_one_object_is_not_one_subject() -> None:
    found = find_of(with_noise(FUNCTIONAL, 0, np.random.default_rng(1)))
    assert not found.one_subject[0]
    assert not len(found.disjoint)  # values of a relation with one object need not be compared
    assert not find_of(with_noise(ONE_SUBJECT, 0, np.random.default_rng(1))).one_object[0]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("n_objects", [30, 60])
def test_random_graphs_have_no_properties(seed: int, n_objects: int) -> None:
    """Any pair of entities may be stated, also the other way round, and all of them stand to themselves; a third of
    the subjects has no value.
    """
    rng = np.random.default_rng(seed)
    facts = {
        (int(s), r, int(o))
        for r in (0, 1)
        for s, o in zip(rng.integers(0, 60, 900), rng.integers(0, n_objects, 900), strict=True)
    }
    facts |= {(s, r, s) for r in (0, 1) for s in range(60)}
    found = find_of({fact for fact in facts if (fact[0] + 20 * fact[1]) % 60 < 40})
    assert as_sets(found, N) == Known(set(), set(), set(), set(), {}, set())


def test_a_relation_of_other_kinds_of_entities_shows_nothing_of_directions() -> None:
    """People live in cities: that no city lives in anybody is not worth a word."""
    found = find_of({(s, 0, o) for s in PEOPLE for o in (s % 7, s % 11)})
    assert not found.asymmetric[0]
    assert not found.irreflexive[0]


def test_directions_are_told_by_the_facts_that_might_be_stated_both_ways() -> None:
    """Six hundred people know one of thirty, who all know each other: that is not asymmetric."""
    thirty = range(30)
    facts = {(s, 0, s % 30) for s in range(30, 600)} | {(s, 0, o) for s in thirty for o in thirty if (s + o) % 15 == 0}
    assert sum((o, 0, s) in facts for s, _, o in facts) < 0.1 * len(facts)
    assert not find_of(facts).asymmetric[0]
    assert find_of({fact for fact in facts if fact[0] >= fact[2]} | {(s, 0, s - 1) for s in thirty[1:]}).asymmetric[0]


def test_what_is_missing_is_told_by_obligatory_relations_with_one_object() -> None:
    """All people have a birthday, of which 10 % are not stated; that most have a job as well tells nothing."""
    facts = with_noise(FUNCTIONAL, 0, np.random.default_rng(0)) | {(s, 1, s % 9) for s in PEOPLE if s % 10}
    found = find_of(facts)
    assert found.missing(np.array([300.0, 270.0])) == pytest.approx((0 * 300 + 0.1 * 270) / 570, abs=1e-9)
    assert found.with_one_object([1]).missing(np.array([300.0, 270.0])) == pytest.approx(0.1)
    assert found.with_one_object(None).missing(np.array([300.0, 270.0])) is None


def test_properties_are_shown_by_train_and_valid_and_told_by_label() -> None:
    people = [(f"p{i}", "lives", f"c{i % 3}") for i in range(30)]
    twice = [(f"p{i}", "lives", f"c{(i + 1) % 3}") for i in range(30)]
    for splits, expected in (((people[:15], people[15:], twice), ["lives"]), ((people, twice, []), [])):
        data = Dataset.from_triples(*splits)
        frame = known_properties(data).to_frame(data.vocabulary)
        assert frame.filter("one_object")["relation"].to_list() == expected
    assert frame.columns == ["relation", *NAMES, "obligatory", "disjoint_values"]


def test_no_facts_show_nothing() -> None:
    found = find_properties(np.empty((0, 3), np.int32), 0, 0)
    assert as_sets(found, 1) == Known(set(), set(), set(), set(), {}, set())
