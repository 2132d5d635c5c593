"""Folders as KGX and OGB lay them out."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from anyburl.base.errors import DataError
from anyburl.data import load_dataset, read_triples
from anyburl.data.options import ReadOptions
from anyburl.graph.stored import build_index

EDGES = [("HGNC:11603", "biolink:contributes_to", "MONDO:5002"), ("HGNC:1", "biolink:related_to", "x|y")]
NODES = [
    ("HGNC:11603", ["biolink:NamedThing", "biolink:Gene"], 'TBX4, "the gene"'),
    ("MONDO:5002", ["biolink:Disease"], None),
    ("HGNC:1", [], "Ελλάδα"),
]
CATEGORIES = [
    ("HGNC:11603", "category", "biolink:Gene"),
    ("HGNC:11603", "category", "biolink:NamedThing"),
    ("MONDO:5002", "category", "biolink:Disease"),
]
NAMES = {"HGNC:11603": 'TBX4, "the gene"', "HGNC:1": "Ελλάδα"}


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def write_tables(folder: Path, packed: str = "") -> Path:
    edges = "".join(f"u{n}\t{s}\t{p}\t\t{o}\n" for n, (s, p, o) in enumerate(EDGES))
    nodes = "".join(f"{id}\t{'|'.join(kinds)}\t{name or ''}\n" for id, kinds, name in NODES)
    write(folder / f"kg_nodes.tsv{packed}", f"id\tcategory\tname\n{nodes}")
    return write(folder / f"kg_edges.tsv{packed}", f"id\tsubject\tpredicate\tweight\tobject\n{edges}")


def write_lines(folder: Path) -> Path:
    edges = [{"id": "u", "subject": s, "predicate": p, "object": o, "publications": ["a"]} for s, p, o in EDGES]
    nodes = [{"id": id, "category": kinds, "name": name} for id, kinds, name in NODES]
    write(folder / "nodes.jsonl", "".join(f"{json.dumps(node)}\n" for node in nodes))
    return write(folder / "edges.jsonl", "\n".join(map(json.dumps, edges)))


def refusal(data: Path) -> str:
    with pytest.raises(DataError) as caught:
        load_dataset(data)
    return str(caught.value)


@pytest.mark.parametrize("layout", ["tsv", "tsv.gz", "jsonl"])
def test_kgx_gives_edges_categories_and_names(tmp_path: Path, layout: str) -> None:
    edges = write_lines(tmp_path) if layout == "jsonl" else write_tables(tmp_path, layout.removeprefix("tsv"))
    for data in (tmp_path, edges):
        found = load_dataset(data)
        assert sorted(found.train.to_polars().rows()) == sorted(EDGES + CATEGORIES)
        assert dict(found.names) == NAMES
    built = build_index(tmp_path, tmp_path / "index")
    assert (len(built.train), dict(built.names)) == (5, NAMES)


def test_nasty_labels_survive_lines_of_json(tmp_path: Path) -> None:
    nasty = ["a,b", '"', "(x)", "a\tb", "one\r\ntwo", "東京", "http://e/a#b", "_:b0", "n" * 5000, " "]
    rows = [(label, f"r {label}", f"{label}.") for label in nasty]
    lines = [json.dumps(dict(zip(("subject", "predicate", "object"), row, strict=True))) for row in rows]
    assert read_triples(write(tmp_path / "edges.jsonl.gz", "\n".join(lines))).rows() == rows


def test_kgx_properties_that_are_values_are_attributes(tmp_path: Path) -> None:
    (tmp_path / "edges.tsv").write_text("subject\tpredicate\tobject\na\tr\tb\n")
    (tmp_path / "nodes.tsv").write_text("id\tcategory\tmass\tnote\tapproved\na\tK\t1.5\t3\ttrue\nb\tK\t\tsome\tfalse\n")
    table = load_dataset(tmp_path)
    (tmp_path / "edges.tsv").unlink()
    (tmp_path / "edges.jsonl").write_text('{"subject": "a", "predicate": "r", "object": "b"}\n')
    nodes = [
        {"id": "a", "category": "K", "mass": 1.5, "approved": True},
        {"id": "b", "category": "K", "approved": False},
    ]
    (tmp_path / "nodes.jsonl").write_text("".join(f"{json.dumps(node)}\n" for node in nodes))
    expected = [("b", "approved", "boolean", 0.0), ("a", "approved", "boolean", 1.0), ("a", "mass", "number", 1.5)]
    for data in (table, load_dataset(tmp_path)):
        assert data.attributes.to_polars(data.vocabulary).rows() == expected
        assert not data.left_out


def test_kgx_without_nodes_or_with_chosen_columns_gives_edges_alone(tmp_path: Path) -> None:
    edges = write_tables(tmp_path)
    chosen = ReadOptions(columns=("subject", "predicate", "object"))
    assert read_triples(edges, chosen).rows() == EDGES
    (tmp_path / "kg_nodes.tsv").unlink()
    assert read_triples(edges).rows() == EDGES


def test_a_file_of_edges_that_is_not_kgx_is_read_as_ever(tmp_path: Path) -> None:
    assert read_triples(write(tmp_path / "edges.tsv", "a\tb\tc\n")).rows() == [("a", "b", "c")]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        (
            "edges.jsonl",
            '{"subject": "a"}\n',
            "edges.jsonl:1: expected an edge with subject, predicate and object",
        ),
        ("edges.jsonl", "\n{]\n", "edges.jsonl:2: expected a line of JSON, got '{]'"),
        ("edges.jsonl", "[1]\n", "edges.jsonl:1: expected an object, got '[1]'"),
        ("nodes.jsonl", '{"name": "a"}\n', "nodes.jsonl:1: expected a node with an id, got"),
        (
            "kg_edges.tsv",
            "subject\tpredicate\tobject\na\t\tc\n",
            "tsv:2: expected a label, got an empty relation",
        ),
        ("kg_nodes.tsv", "id\tname\na\tb\n", "kg_nodes.tsv:1: expected a column 'category' of nodes"),
    ],
)
def test_what_is_wrong_with_kgx_is_said(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    (write_lines if name.endswith("jsonl") else write_tables)(tmp_path)
    write(tmp_path / name, text)
    assert sentence in refusal(tmp_path)


def test_two_files_of_edges_are_refused(tmp_path: Path) -> None:
    write_tables(tmp_path)
    write_lines(tmp_path)
    assert refusal(tmp_path).endswith("expected one edge file, got edges.jsonl and kg_edges.tsv")


def write_wikikg(folder: Path) -> None:
    write(folder / "raw" / "edge.csv.gz", "0,1\n2,1\n")
    write(folder / "raw" / "edge_reltype.csv.gz", "0\n1\n")
    write(folder / "mapping" / "nodeidx2entityid.csv.gz", "node idx,entity id\n0,Q5\n2,Q7\n1,Q6\n")
    write(folder / "mapping" / "reltype2relid.csv.gz", "reltype,rel id\n0,P31\n1,P279\n")
    for split in ("train", "valid", "test"):
        write(folder / "split" / "time" / f"{split}.pt", "pickled")


def test_ogb_gives_train_with_labels_and_says_what_is_pickled(tmp_path: Path) -> None:
    write_wikikg(tmp_path)
    found = load_dataset(tmp_path)
    assert found.train.to_polars().rows() == [("Q5", "P31", "Q6"), ("Q7", "P279", "Q6")]
    assert found.left_out == {"pickled files of splits (.pt)": 2}
    (tmp_path / "mapping" / "nodeidx2entityid.csv.gz").unlink()
    assert load_dataset(tmp_path).train.to_polars().rows() == [("0", "P31", "1"), ("2", "P279", "1")]


def test_ogb_with_types_of_nodes_puts_them_before_names(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "relations" / "drug___treats___disease" / "edge.csv.gz", "0,1\n1,0\n")
    write(tmp_path / "mapping" / "drug_entidx2name.csv.gz", "ent idx,ent name\n0,CID1\n1,CID2\n")
    write(tmp_path / "mapping" / "disease_entidx2name.csv.gz", "ent idx,ent name\n0,C1\n1,CID1\n")
    assert load_dataset(tmp_path).train.to_polars().rows() == [
        ("drug:CID1", "treats", "disease:CID1"),
        ("drug:CID2", "treats", "disease:C1"),
    ]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("raw/edge_reltype.csv.gz", "0\n", "expected a relation for each of 2 edges, got 1"),
        ("raw/edge.csv.gz", "0,x\n", "edge.csv.gz: expected 2 indices per line"),
        ("raw/edge.csv.gz", "0,1\n7,1\n", "edge.csv.gz: expected indices below 3, got 7"),
        ("mapping/reltype2relid.csv.gz", "i,n\n1,a\n", "reltype2relid.csv.gz: expected a label for every index from 0"),
    ],
)
def test_what_is_wrong_with_ogb_is_said(tmp_path: Path, name: str, text: str, sentence: str) -> None:
    write_wikikg(tmp_path)
    write(tmp_path / name, text)
    assert sentence in refusal(tmp_path)


def test_edges_of_ogb_without_relations_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "raw" / "edge.csv.gz", "0,1\n")
    assert "expected raw/edge_reltype.csv.gz, which every OGB knowledge graph has" in refusal(tmp_path)


def test_pickled_files_are_refused(tmp_path: Path) -> None:
    write_wikikg(tmp_path)
    assert "reading a pickled file can run arbitrary code" in refusal(tmp_path / "split" / "time" / "train.pt")
