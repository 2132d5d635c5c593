"""Checks that count: unseen labels, reflexive facts, functional relations, types, degrees, labels."""

from __future__ import annotations

import pytest

from anyburl import UnknownLabelError
from anyburl.tools.doctor.evidence import check_functional, find_functional
from anyburl.tools.doctor.labels import LONGEST, check_ambiguous, check_literals, find_label_faults
from anyburl.tools.doctor.structure import check_degrees, check_reflexive, check_types, check_unseen
from doctor.examined import facts_of, rows_of


def test_unseen_entities_and_relations_are_counted_by_split() -> None:
    facts = facts_of(
        [("a", "r", "b")], valid=[("a", "r", "new")], test=[("x", "r", "y"), ("x", "r", "a"), ("a", "q", "b")]
    )
    valid, entities, relations = check_unseen(facts, 10)
    assert valid.sentence == "1 valid fact has an entity that train lacks (1 entity)"
    assert entities.sentence == "2 test facts have an entity that train lacks (2 entities)"
    assert [row["unseen"] for row in rows_of(entities)] == ["subject", "both"]
    assert relations.sentence == "1 test fact has a relation that train lacks (1 relation)"


def test_where_train_has_everything_nothing_is_unseen() -> None:
    assert check_unseen(facts_of([("a", "r", "b")], test=[("b", "r", "a")]), 10) == []


def test_reflexive_facts_are_listed_by_relation_the_rarest_first() -> None:
    train = [*((f"a{i}", "likes", f"b{i}") for i in range(9)), ("c", "likes", "c"), ("d", "is", "d")]
    (finding,) = check_reflexive(facts_of(train), 10)
    assert finding.count == 2
    assert [(row["relation"], row["reflexive facts"], row["facts"]) for row in rows_of(finding)] == [
        ("likes", 1, 10),
        ("is", 1, 1),
    ]
    assert check_reflexive(facts_of([("a", "r", "b")]), 10) == []


def test_facts_that_break_a_nearly_functional_relation() -> None:
    train = [*((f"person {i}", "born in", f"town {i % 7}") for i in range(40)), ("person 3", "born in", "town 0")]
    facts = facts_of(train)
    forward, backward = (find_functional(facts, back=back) for back in (False, True))
    (finding,) = check_functional(facts, [forward, backward], 10)
    assert finding.count == 2
    assert {row["object"] for row in rows_of(finding)} == {"town 0", "town 3"}
    assert finding.sentence == "1 relation has one object for (nearly) every subject; 2 facts break this"


def test_a_functional_relation_that_nothing_breaks_is_a_note() -> None:
    facts = facts_of((f"person {i}", "born in", f"town {i % 7}") for i in range(40))
    (finding,) = check_functional(facts, [find_functional(facts, back=False)], 10)
    assert (finding.severity, finding.count) == ("note", 0)


def test_few_questions_show_nothing() -> None:
    facts = facts_of((f"person {i}", "born in", f"town {i % 7}") for i in range(19))
    assert check_functional(facts, [find_functional(facts, back=False)], 10) == []


def test_types_that_do_not_stand_at_a_place_do_not_fit() -> None:
    train = [(f"person {i}", "type", "person") for i in range(150)] + [(f"town {i}", "type", "town") for i in range(9)]
    train += [(f"person {i}", "born in", f"town {i % 9}") for i in range(150)]
    train += [("person 1", "born in", "person 2"), ("person 1", "born in", "untyped")]
    (finding,) = check_types(facts_of(train), "type", 10)
    assert rows_of(finding) == [
        {"subject": "person 1", "relation": "born in", "object": "person 2", "does not fit": "object"}
    ]
    with pytest.raises(UnknownLabelError, match="typ"):
        check_types(facts_of(train), "typ", 10)


def test_degrees_show_hubs_and_isolated_facts() -> None:
    train = [*((f"a{i}", "in", "hub") for i in range(120)), ("x", "in", "y"), ("z", "in", "z")]
    distribution, hubs, isolated = check_degrees(facts_of(train), 10)
    assert "most 120" in distribution.sentence
    assert [row["entities"] for row in rows_of(distribution)] == [123, 0, 0, 0, 0, 0, 1]
    assert [row["entity"] for row in rows_of(hubs)] == ["hub"]
    assert [row["subject"] for row in rows_of(isolated)] == ["x", "z"]


@pytest.mark.parametrize(
    ("label", "fault"),
    [
        ("New York", "spaces"),
        (" York", "spaces at the start or end"),
        ("York\u00a0", "spaces at the start or end"),
        ('the "best"', "quotes or backslashes"),
        ("Paris_(Texas)", "parentheses"),
        ("Paris,Texas", "commas"),
        ("Paris\u200b", "invisible characters"),
        ("Pa\x1bris", "control characters"),
        ("x" * (LONGEST + 1), "more than 255 characters"),
    ],
)
def test_labels_that_other_tools_cannot_read(label: str, fault: str) -> None:
    sentences = [finding.sentence for finding in find_label_faults(facts_of([("a", "r", label)]), 10)]
    assert any(fault in sentence for sentence in sentences), sentences
    sentences = [finding.sentence for finding in find_label_faults(facts_of([("a", label, "b")]), 10)]
    assert any(fault in sentence and "relation" in sentence for sentence in sentences), sentences


def test_plain_labels_have_no_fault() -> None:
    assert (
        find_label_faults(
            facts_of([("Aalborg", "in-state", "Nordjylland/Ø_1"), ("http://x.y/#z?a=1", "p:q", "日本")]), 10
        )
        == []
    )


def test_labels_that_look_alike_are_grouped() -> None:
    by_unicode, by_case = find_label_faults(facts_of([("\u00e9", "r", "e\u0301"), ("Paris", "r", "PARIS")]), 10)
    assert by_unicode.sentence == "1 group of entities with labels that differ only by Unicode normalization"
    assert by_case.sentence == "1 group of entities with labels that differ only by upper and lower case"
    assert rows_of(by_case) == [{"label": "PARIS | Paris"}]


def test_what_cannot_be_seen_is_written_out() -> None:
    (finding,) = find_label_faults(facts_of([("a", "r", "b\x07")]), 10)
    assert rows_of(finding) == [{"label": "'b\\x07'"}]


def test_relations_with_values_as_objects_are_told_with_what_to_do() -> None:
    facts = []
    for i in range(40):
        facts += [
            (f"p{i}", "description", f"a program number {i} for people"),
            (f"p{i}", "version", f"{i % 7}.{i}~rc{i}-1"),
            (f"p{i}", "size", str(1000 + i)),
            (f"p{i}", "homepage", f"https://p{i}.example.org/"),
            (f"p{i}", "section", f"section {i % 4}"),
            (f"p{i}", "maintainer", f"Person {i} Smith"),
            (f"p{i}", "depends", f"p{i // 2}"),
        ]
    (finding,) = check_literals(facts_of(facts), 10)
    told = {row["relation"]: (row["objects"], row["what to do"]) for row in rows_of(finding)}
    assert {name: kind for name, (kind, _) in told.items()} == {
        "description": "texts",
        "version": "versions",
        "size": "numbers",
        "homepage": "addresses",
    }
    assert told["size"][1].startswith("nothing: they are read as values")
    assert told["version"][1] == "leave these rows out, or keep the first number only"
    assert not check_literals(facts_of([fact for fact in facts if fact[1] not in told]), 10)


def test_a_label_for_two_sorts_of_things_is_told() -> None:
    facts = [(f"p{i}", "section", ("python", "games", "net", "text", "math", "doc")[i % 6]) for i in range(60)]
    facts += [("python", "depends", "p1"), ("python", "section", "python")]
    (finding,) = check_ambiguous(facts_of(facts), 10)
    (row,) = rows_of(finding)
    assert (row["relation"], row["also subjects"], row["such as"]) == ("section", 1, "python")
    assert row["what to do"] == "tell them apart, as in section:python"
    assert not check_ambiguous(facts_of(facts[:60]), 10)
