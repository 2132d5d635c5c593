"""More general and more special rules of a set."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.errors import InvalidOptionError
from anyburl.reasoning.explanation.relatives import RuleLattice
from anyburl.rules.ruleset import RuleSet
from kernels import examples
from reference.subsumption import is_more_general
from rules.samples import make_rules

SPEAKS = [
    "speaks(X,Y) <= lives(X,A), language(A,Y)",
    "speaks(X,dutch) <= lives(X,A), language(A,dutch)",
    "speaks(X,dutch) <= lives(X,A), language(A,B)",
    "speaks(X,dutch) <= lives(X,A)",
    "speaks(X,dutch) <= lives(X,nl)",
    "speaks(X,dutch) <= lives(X,A), in(A,europe)",
    "speaks(ed,Y) <= language(A,Y), lives(ed,A)",
    "speaks(X,french) <= lives(X,A)",
    "speaks(X,dutch) <= born(X,nl)",
]


def rules_of(texts: list[str]) -> RuleSet:
    return make_rules([(text, (10, 9 - i % 9)) for i, text in enumerate(texts)])


def texts_at(rules: RuleSet, rows: np.ndarray) -> list[str]:
    return [str(rules.rule(int(row))) for row in rows]


def row_of(rules: RuleSet, text: str) -> int:
    return [str(rule) for rule in rules].index(text)


def test_the_rules_of_the_paper_stand_above_and_below_each_other() -> None:
    rules = rules_of(SPEAKS)
    lattice = RuleLattice.build(rules)

    def above(text: str) -> list[str]:
        return texts_at(rules, lattice.generalisations(row_of(rules, text)))

    def below(text: str) -> list[str]:
        return sorted(texts_at(rules, lattice.specialisations(row_of(rules, text))[0]))

    assert above(SPEAKS[1]) == [SPEAKS[3], SPEAKS[0]]
    assert above(SPEAKS[4]) == [SPEAKS[3]]
    assert above(SPEAKS[5]) == [SPEAKS[3]]
    assert above(SPEAKS[6]) == [SPEAKS[0]]
    assert above(SPEAKS[0]) == above(SPEAKS[3]) == []
    assert below(SPEAKS[0]) == sorted([SPEAKS[1], SPEAKS[6]])
    assert below(SPEAKS[3]) == sorted([SPEAKS[1], SPEAKS[2], SPEAKS[4], SPEAKS[5]])
    assert below(SPEAKS[2]) == below(SPEAKS[4]) == []


def test_the_best_special_rules_come_first_and_all_are_counted() -> None:
    rules = rules_of(SPEAKS)
    found, n = RuleLattice.build(rules).specialisations(row_of(rules, SPEAKS[3]), top=2)
    assert n == 4
    assert texts_at(rules, found) == [SPEAKS[1], SPEAKS[2]]


def test_the_zero_rule_is_the_most_general() -> None:
    rules = rules_of([*SPEAKS, "speaks(X,dutch) <= "])
    lattice = RuleLattice.build(rules)
    zero = len(SPEAKS)
    assert lattice.generalisations(row_of(rules, SPEAKS[4])).tolist() == [3, zero]
    assert lattice.specialisations(zero)[1] == 6


def test_what_cannot_be_asked_is_refused() -> None:
    lattice = RuleLattice.build(rules_of(SPEAKS))
    with pytest.raises(InvalidOptionError, match="top must be at least 1"):
        lattice.specialisations(0, top=0)
    with pytest.raises(IndexError, match="expected the row of one of 9 rules, got 9"):
        lattice.generalisations(9)


@st.composite
def rule_texts(draw: st.DrawFn) -> str:
    constants = st.sampled_from(["c", "d", "me_myself_i"])
    relations = st.sampled_from(["h", "r"])
    length = draw(st.integers(1, 3))
    kind = draw(st.sampled_from(["B", "Uc", "Ud"]))
    constant = draw(constants)
    is_forward = draw(st.booleans()) or kind == "B" or constant == "me_myself_i"  # h(self,Y) is written h(X,self)
    start, end = ("X", "Y") if is_forward else ("Y", "X")
    far = end if kind == "B" else constant
    names = [start, *"ABC"[:length]]
    names[-1] = {"B": end, "Uc": draw(constants), "Ud": names[-1]}[kind]
    atoms = []
    for here, there in pairwise(names):
        pair = (here, there) if draw(st.booleans()) else (there, here)
        atoms.append(f"{draw(relations)}({pair[0]},{pair[1]})")
    head = f"h({start},{far})" if start == "X" else f"h({far},{start})"
    return f"{head} <= {', '.join(atoms)}"


@settings(max_examples=examples(150))
@given(st.lists(rule_texts(), min_size=1, max_size=12))
def test_the_lattice_is_subsumption_under_object_identity(texts: list[str]) -> None:
    rules = make_rules([(text, (10, 5)) for text in dict.fromkeys(texts)])
    rules = rules[np.unique([str(rule) for rule in rules], return_index=True)[1]]
    lattice = RuleLattice.build(rules)
    for row, rule in enumerate(rules):
        above = {other for other, one in enumerate(rules) if is_more_general(one, rule)}
        below = {other for other, one in enumerate(rules) if is_more_general(rule, one)}
        general, special = above - below, below - above  # b(A,self) and b(self,A) say the same
        assert set(lattice.generalisations(row).tolist()) == general
        assert set(lattice.specialisations(row)[0].tolist()) == special
