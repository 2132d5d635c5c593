"""Inverse, symmetric and duplicate relations, and what leaks through them."""

from __future__ import annotations

from anyburl import Finding
from anyburl.tools.doctor.findings import DatasetFacts
from anyburl.tools.doctor.structure import check_leakage, check_similar, overlaps
from doctor.examined import Fact, facts_of, rows_of


def pairs(relation: str, n: int, *, back: bool = False, first: int = 0) -> list[Fact]:
    """Facts between a0 and b0, a1 and b1 and so on."""
    return [(f"b{i}", relation, f"a{i}") if back else (f"a{i}", relation, f"b{i}") for i in range(first, first + n)]


def similar(facts: DatasetFacts) -> dict[str, list[Finding]]:
    found: dict[str, list[Finding]] = {}
    for finding in check_similar(facts, overlaps(facts), 10):
        found.setdefault(finding.check, []).append(finding)
    return found


def leaks(facts: DatasetFacts) -> list[Finding]:
    return check_leakage(facts, overlaps(facts), 10)


def test_inverse_relations_share_pairs_the_other_way_round() -> None:
    found = similar(facts_of(pairs("child", 10) + pairs("parent", 9, back=True)))
    (finding,) = found["inverse"]
    assert found.keys() == {"inverse"}
    assert (finding.count, finding.severity) == (1, "warning")
    (row,) = rows_of(finding)
    assert (row["relation"], row["share"], row["other"], row["share of the other"]) == ("child", 0.9, "parent", 1.0)


def test_relations_that_share_fewer_than_four_fifths_are_not_inverse() -> None:
    assert similar(facts_of(pairs("child", 10) + pairs("parent", 7, back=True) + pairs("parent", 3, first=20))) == {}


def test_a_symmetric_relation_is_its_own_inverse() -> None:
    found = similar(facts_of(pairs("married", 10) + pairs("married", 9, back=True)))
    assert found.keys() == {"symmetric"}
    assert rows_of(found["symmetric"][0]) == [{"relation": "married", "facts": 19, "share in both directions": 0.947}]


def test_facts_of_an_entity_with_itself_make_nothing_symmetric() -> None:
    assert similar(facts_of((f"a{i}", "is", f"a{i}") for i in range(10))) == {}


def test_duplicates_are_told_from_what_is_nearly_so_and_from_parts() -> None:
    found = similar(facts_of(pairs("r", 40) + pairs("same", 40) + pairs("near", 34) + pairs("part", 10)))
    same, part = found["duplicate"]
    kinds = {(row["relation"], row["other"]): row["kind"] for row in rows_of(same)}
    assert kinds == {
        ("r", "same"): "duplicate",
        ("near", "r"): "nearly duplicate",
        ("near", "same"): "nearly duplicate",
    }
    assert part.severity == "note"
    assert {row["relation"] for row in rows_of(part)} | {row["other"] for row in rows_of(part)} == {
        "r",
        "same",
        "near",
        "part",
    }


def test_all_splits_together_show_what_relations_say() -> None:
    facts = facts_of(pairs("child", 10) + pairs("parent", 5, back=True), test=pairs("parent", 5, back=True, first=5))
    assert similar(facts).keys() == {"inverse"}


def test_test_facts_whose_inverse_is_in_train_leak() -> None:
    facts = facts_of(
        pairs("child", 10) + pairs("parent", 8, back=True),
        test=[*pairs("parent", 2, back=True, first=8), ("x", "child", "y")],
    )
    (finding,) = leaks(facts)
    assert finding.sentence == "2 of 3 test facts (66.7 %) can be read off train"
    assert finding.severity == "problem"
    assert rows_of(finding)[0] == {
        "subject": "b8",
        "relation": "parent",
        "object": "a8",
        "in train": "a8 child b8",
        "how": "the other way round",
    }


def test_valid_facts_leak_by_symmetry_and_by_duplicates() -> None:
    train = [
        *pairs("near", 10),
        *pairs("near", 9, back=True),
        *pairs("in", 10, first=20),
        *pairs("within", 9, first=20),
    ]
    (finding,) = leaks(facts_of(train, valid=[("b9", "near", "a9"), ("a29", "within", "b29")]))
    assert {(row["in train"], row["how"]) for row in rows_of(finding)} == {
        ("a9 near b9", "the other way round"),
        ("a29 in b29", "another relation"),
    }


def test_a_fact_that_train_states_leaks_itself() -> None:
    (finding,) = leaks(facts_of(pairs("r", 3), test=pairs("r", 1)))
    assert [row["how"] for row in rows_of(finding)] == ["the fact itself"]


def test_a_part_tells_the_whole_but_not_the_other_way_round() -> None:
    whole, part = pairs("located in", 20), pairs("capital of", 6)
    assert leaks(facts_of(whole[1:] + part, test=whole[:1]))[0].count == 1
    assert leaks(facts_of(whole + part[1:], test=part[:1])) == []
