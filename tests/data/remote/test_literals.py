"""Literals behind an endpoint, as the options say."""

from __future__ import annotations

from anyburl.data.dataset import load_dataset
from anyburl.data.options import ReadOptions
from sparql_server import SparqlServer

EX = "http://example.org/"
FACTS = [
    (f"<{EX}a>", f"<{EX}knows>", f"<{EX}b>"),
    (f"<{EX}a>", f"<{EX}height>", '"1.8"^^<http://www.w3.org/2001/XMLSchema#decimal>'),
    (f"<{EX}a>", f"<{EX}motto>", '"Say \\"hello\\"\\nto all"@en'),
]


def test_numbers_are_attributes_and_text_is_skipped_and_counted(endpoint: SparqlServer) -> None:
    endpoint.fill(FACTS)
    data = load_dataset(endpoint.url)
    assert data.train.to_polars().rows() == [(f"{EX}a", f"{EX}knows", f"{EX}b")]
    assert data.left_out == {"literals": 1}
    assert data.attributes.to_polars(data.vocabulary).rows() == [(f"{EX}a", f"{EX}height", "number", 1.8)]
    assert load_dataset(endpoint.url, ReadOptions(literals="skip")).left_out == {"literals": 2}


def test_numbers_become_ranges_and_labels_names(endpoint: SparqlServer) -> None:
    name = "http://www.w3.org/2000/01/rdf-schema#label"
    endpoint.fill([*FACTS, (f"<{EX}a>", f"<{name}>", '"Anna"@en'), (f"<{EX}a>", f"<{name}>", '"Anne"@fr')])
    data = load_dataset(endpoint.url, ReadOptions(literals="ranges", language="fr"))
    assert data.names[f"{EX}a"] == "Anne"
    assert [row[1] for row in data.train.to_polars().rows()] == [f"{EX}height", f"{EX}knows"]
    assert data.left_out == {"literals": 1, "exact numbers and dates": 1}


def test_literals_are_kept_as_files_have_them(endpoint: SparqlServer) -> None:
    endpoint.fill(FACTS)
    data = load_dataset(endpoint.url, ReadOptions(literals="keep"))
    assert sorted(data.train.to_polars()["object"].to_list()) == sorted([f"{EX}b", FACTS[1][2], FACTS[2][2]])
