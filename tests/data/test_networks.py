"""Triples in the objects of other packages."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from anyburl.base.errors import DataError
from anyburl.data import load_dataset
from anyburl.data.options import ReadOptions

FACTS = [("ed", "speaks", "dutch"), ("lisa", "born in", "(A), \"B\"\n'é'"), ("lisa", "speaks", "dutch")]


def facts_of(data: Any, options: ReadOptions | None = None) -> list[tuple[str, ...]]:
    return load_dataset(data, options).train.to_polars().rows()


def refusal(data: Any) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(data)
    return str(caught.value)


def test_keys_or_an_attribute_of_networkx_are_the_relation() -> None:
    nx = pytest.importorskip("networkx")
    keyed, labelled, other = nx.MultiDiGraph(), nx.DiGraph(), nx.MultiDiGraph()
    for subject, relation, object in FACTS:
        keyed.add_edge(subject, object, key=relation, weight=1)
        labelled.add_edge(subject, object, relation=relation)
        other.add_edge(subject, object, kind=relation, label="x")
    assert facts_of(keyed) == facts_of(labelled) == FACTS
    assert facts_of(other, ReadOptions(columns=("source", "kind", "target"))) == FACTS


def test_networks_that_do_not_say_the_relation_are_refused() -> None:
    nx = pytest.importorskip("networkx")
    assert refusal(nx.Graph([("a", "b")])).startswith("train: expected a directed graph, got an undirected one")
    for graph in (nx.DiGraph([("a", "b")]), nx.MultiDiGraph([("a", "b"), ("a", "b")])):
        assert refusal(graph).startswith("train: expected edges with an attribute named relation or string keys")
    assert refusal(nx.DiGraph()).startswith("expected at least one triple")
    twice = nx.DiGraph()
    twice.add_edge("a", "b", label="x", relation="y")
    assert (
        refusal(twice)
        == "train: expected one edge attribute as the relation, got label and relation; choose one with columns"
    )
    with pytest.raises(
        DataError, match="expected an attribute 'kind' on every edge, got none on the edge from 'a' to 'b'"
    ):
        load_dataset(twice, ReadOptions(columns=("s", "kind", "o")))


def test_tables_and_streams_of_arrow_are_read() -> None:
    pa = pytest.importorskip("pyarrow")
    subjects, relations, objects = (list(column) for column in zip(*FACTS, strict=True))
    table = pa.table({"head": subjects, "relation": relations, "tail": objects})
    assert facts_of(table) == facts_of(table.to_reader()) == facts_of(table.to_batches()[0]) == FACTS
    weighted = table.append_column("weight", pa.array([1.0, 2.0, 3.0]))
    assert "expected three columns, got the columns head, relation, tail, weight" in refusal(weighted)
    assert facts_of(weighted, ReadOptions(columns=("head", "relation", "tail"))) == FACTS


@pytest.mark.parametrize("package", ["polars", "pandas"])
def test_frames_survive_the_way_back(package: str) -> None:
    frame = pl.DataFrame(FACTS, schema=["subject", "relation", "object"], orient="row")
    given = frame if package == "polars" else pytest.importorskip("pandas").DataFrame(FACTS)
    table = load_dataset(given).train
    assert table.to_polars().rows() == FACTS


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_graph_of_rdflib_is_read_as_its_file_would_be() -> None:
    rdflib = pytest.importorskip("rdflib")
    pytest.importorskip("pyoxigraph")
    start = "@prefix e: <http://e/> . "
    graph = rdflib.Graph().parse(data=f"{start} e:ed e:speaks e:dutch .", format="turtle")
    found = load_dataset(graph)
    assert found.train.to_polars().rows() == [("http://e/ed", "http://e/speaks", "http://e/dutch")]
    assert (found.name, found.source, found.names.prefixes["e"]) == ("rdflib", None, "http://e/")
    named = rdflib.Dataset()
    named.parse(data=f"{start} e:g {{ e:ed e:speaks e:dutch }} e:h {{ e:ed e:knows e:lisa }}", format="trig")
    assert len(load_dataset(named).train) == 2


def test_a_factory_of_pykeen_is_read() -> None:
    triples = pytest.importorskip("pykeen.triples")
    import numpy as np

    factory = triples.TriplesFactory.from_labeled_triples(np.array(FACTS, dtype=str))
    assert facts_of(factory) == FACTS
    without = triples.CoreTriplesFactory.create(factory.mapped_triples)
    assert refusal(without).startswith("train: expected a TriplesFactory, which knows its labels, got a Core")
