"""What is known about the benchmark data sets."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from anyburl import Finding, load_dataset
from anyburl.tools.doctor.findings import DatasetFacts
from anyburl.tools.doctor.structure import check_leakage, check_similar, check_unseen, overlaps
from doctor.examined import rows_of

Find = Callable[[str], Path]


def similar(facts: DatasetFacts, check: str) -> Finding:
    found = check_similar(facts, overlaps(facts), 1000)
    return next(finding for finding in found if finding.check == check)


@pytest.mark.parametrize(("name", "n_facts"), [("WN18RR", 210), ("FB15k-237", 28)])
def test_test_facts_with_unseen_entities(shared_data: Find, name: str, n_facts: int) -> None:
    found = check_unseen(DatasetFacts(load_dataset(shared_data(name))), 10)
    (finding,) = (finding for finding in found if "test" in finding.sentence)
    assert finding.count == n_facts


def test_the_inverse_relations_of_wn18(shared_data: Find) -> None:
    found = similar(DatasetFacts(load_dataset(shared_data("WN18"))), "inverse")
    pairs = {(row["relation"], row["other"]) for row in rows_of(found)}
    assert pairs == {
        ("_has_part", "_part_of"),
        ("_hypernym", "_hyponym"),
        ("_instance_hypernym", "_instance_hyponym"),
        ("_member_holonym", "_member_meronym"),
        ("_member_of_domain_region", "_synset_domain_region_of"),
        ("_member_of_domain_topic", "_synset_domain_topic_of"),
        ("_member_of_domain_usage", "_synset_domain_usage_of"),
    }


def test_the_inverse_relations_of_fb15k_leak(shared_data: Find) -> None:
    facts = DatasetFacts(load_dataset(shared_data("FB15k")))
    pairs = {(row["relation"], row["other"]) for row in rows_of(similar(facts, "inverse"))}
    assert ("/film/actor/film./film/performance/film", "/film/film/starring./film/performance/actor") in pairs
    assert len(pairs) > 200
    (leak,) = (finding for finding in check_leakage(facts, overlaps(facts), 1) if "test" in finding.sentence)
    assert leak.count > 0.7 * len(facts.dataset.test)


def test_fb15k_237_has_no_inverse_relations(shared_data: Find) -> None:
    facts = DatasetFacts(load_dataset(shared_data("FB15k-237")))
    found = check_similar(facts, overlaps(facts), 10)
    assert not [finding for finding in found if finding.check == "inverse"]
