"""The built-in data set `geo`: its size, its split, its labels, and that its README tells the truth."""

from __future__ import annotations

import gzip
import re
from collections import Counter
from functools import cache
from importlib.resources import files

import pytest

Triple = tuple[str, ...]

FOLDER = files("anyburl") / "data" / "geo"
SPLITS = ("train", "valid", "test")
HELD_OUT = ("valid", "test")
RELATION_ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| `([^`|]+)` \| `([^`|]+)` \| (\d+) \|", re.MULTILINE)


@cache
def read_split(split: str) -> list[Triple]:
    """Return the triples of a split in the order of the file."""
    text = gzip.decompress((FOLDER / f"{split}.txt.gz").read_bytes()).decode("utf-8")
    return [tuple(line.split("\t")) for line in text.removesuffix("\n").split("\n")]


def all_triples() -> list[Triple]:
    """Return the triples of all splits."""
    return [triple for split in SPLITS for triple in read_split(split)]


def entities(triples: list[Triple]) -> set[str]:
    """Return the subjects and objects of triples."""
    return {triple[position] for triple in triples for position in (0, 2)}


def relations(triples: list[Triple]) -> set[str]:
    """Return the relations of triples."""
    return {triple[1] for triple in triples}


def readme() -> str:
    """Return the text of the data set's README."""
    return (FOLDER / "README.md").read_text(encoding="utf-8")


def test_every_line_has_three_fields() -> None:
    assert {len(triple) for triple in all_triples()} == {3}


def test_size_is_in_the_range_a_person_can_overlook() -> None:
    assert 5_000 <= len(all_triples()) <= 15_000
    assert 10 <= len(relations(all_triples())) <= 25
    assert sum(len((FOLDER / f"{split}.txt.gz").read_bytes()) for split in SPLITS) < 200_000


@pytest.mark.parametrize("split", HELD_OUT)
def test_held_out_splits_are_a_tenth_each(split: str) -> None:
    assert len(read_split(split)) == round(len(all_triples()) / 10)


@pytest.mark.parametrize("split", HELD_OUT)
def test_held_out_splits_have_no_entity_or_relation_that_train_lacks(split: str) -> None:
    assert entities(read_split(split)) <= entities(read_split("train"))
    assert relations(read_split(split)) <= relations(read_split("train"))


@pytest.mark.parametrize("split", HELD_OUT)
def test_held_out_splits_hold_every_relation(split: str) -> None:
    assert relations(read_split(split)) == relations(all_triples())


def test_no_triple_occurs_twice() -> None:
    assert len(set(all_triples())) == len(all_triples())


@pytest.mark.parametrize("split", SPLITS)
def test_files_are_sorted(split: str) -> None:
    assert read_split(split) == sorted(read_split(split))


@pytest.mark.parametrize("split", SPLITS)
def test_files_carry_no_time_stamp(split: str) -> None:
    assert (FOLDER / f"{split}.txt.gz").read_bytes()[4:8] == bytes(4)


def test_entity_labels_are_writable_in_every_rule_format() -> None:
    labels = entities(all_triples())
    assert [label for label in labels if re.search(r"[\s,()\"|<>=]", label)] == []
    assert [label for label in labels if len(label) < 2 or label == "me_myself_i"] == []
    assert [label for label in labels if label != label.strip("_'")] == []


def test_relation_names_are_lower_case_words() -> None:
    assert [name for name in relations(all_triples()) if not re.fullmatch(r"[a-z]+(_[a-z]+)*", name)] == []


def test_no_triple_relates_an_entity_to_itself() -> None:
    assert [triple for triple in all_triples() if triple[0] == triple[2]] == []


def test_borders_are_stated_in_both_directions() -> None:
    borders = {(subject, object_) for subject, relation, object_ in all_triples() if relation == "borders"}
    assert borders == {(object_, subject) for subject, object_ in borders}


@pytest.mark.parametrize("relation", ["located_in", "capital", "nearest_city", "in_region", "uses_script"])
def test_functional_relations_have_one_object_for_each_subject(relation: str) -> None:
    subjects = Counter(triple[0] for triple in all_triples() if triple[1] == relation)
    assert set(subjects.values()) == {1}


@pytest.mark.parametrize(
    "triple",
    [
        ("France", "official_language", "French"),
        ("Singapore", "capital", "Singapore_City"),
        ("Paris", "time_zone", "Europe/Paris"),
        ("Russian", "written_in", "Cyrillic_script"),
        ("Croatia", "currency", "Euro"),
        ("Tbilisi", "located_in", "Georgia"),
        ("Atlanta", "in_state", "Georgia_State"),
    ],
)
def test_well_known_facts_are_there(triple: Triple) -> None:
    assert triple in all_triples()


def test_readme_lists_exactly_the_relations_with_their_counts() -> None:
    documented = {relation: int(count) for relation, _, _, count in RELATION_ROW.findall(readme())}
    assert documented == Counter(relation for _, relation, _ in all_triples())


def test_readme_examples_are_in_the_data() -> None:
    examples = [(subject, relation, object_) for relation, subject, object_, _ in RELATION_ROW.findall(readme())]
    assert set(examples) <= set(all_triples())


@pytest.mark.parametrize("split", SPLITS)
def test_readme_gives_the_size_of_every_split(split: str) -> None:
    assert f"| {split} | {len(read_split(split))} |" in readme()


def test_readme_gives_the_number_of_entities_and_relations() -> None:
    triples = all_triples()
    counts = f"{len(entities(triples))} entities and {len(relations(triples))} relations"
    assert counts in readme()


@pytest.mark.parametrize("notice", ["geonames.org", "creativecommons.org/licenses/by/4.0", "UNICODE LICENSE V3"])
def test_readme_carries_the_notices_that_the_licences_ask_for(notice: str) -> None:
    assert notice in readme()
