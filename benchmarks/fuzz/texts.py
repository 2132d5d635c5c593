"""Parsers of text: triples, RDF, dumps, names, rules, queries, addresses, the registry."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import polars as pl

from anyburl.base.errors import AnyburlError
from anyburl.data.catalogue import registry
from anyburl.data.files import read_batches, read_triples, write_triples
from anyburl.data.names import Names, read_names
from anyburl.data.options import Gathered, ReadOptions
from anyburl.data.remote.addresses import find_address
from anyburl.data.remote.endpoint import GraphQueries, Statements
from anyburl.data.remote.http import ServerResponse, _rows
from anyburl.data.vocabulary import Vocabulary
from fuzz.target import Target, chosen, text, written

TABS = b'ed\tspeaks\tdutch\nlisa\tlives in\tnl\n\n\xc3\xa4\tis\t"q"\r\n'
TURTLE = (
    b"@prefix e: <http://e/> . @base <http://b/> .\ne:a e:p e:b , [ e:q 'x'@en ] ; a e:C .\n"
    b'<s> e:n "1.5"^^<http://www.w3.org/2001/XMLSchema#decimal> . (1 2.0 true) e:r _:z .\n'
)
NQUADS = (
    b"<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n"
    b'_:x <http://www.w3.org/2000/01/rdf-schema#label> "n"@de .\n'
    b'<http://e/a> <http://e/d> "2020-02-30"^^<http://www.w3.org/2001/XMLSchema#date> .\n'
    b"<urn:anyburl:a%20b> <urn:p> <urn:o> .\n"
)
XML = (
    b'<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x "y">]><rdf:RDF '
    b'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    b'xmlns:e="http://e/"><rdf:Description rdf:about="http://e/a"><e:p '
    b'rdf:resource="http://e/b"/><e:q xml:lang="en">t</e:q>'
    b"</rdf:Description></rdf:RDF>"
)
JSON_LD = b'{"@context": {"e": "http://e/"}, "@id": "e:a", "e:p": {"@id": "e:b"}, "e:n": [1, 2.5, true, "x"]}'
RDF_KINDS = (".nt", ".nq", ".ttl", ".trig", ".rdf", ".jsonld", ".n3")
WIKIDATA = (
    b"<http://www.wikidata.org/entity/Q1> <http://www.wikidata.org/prop/direct/P1> "
    b"<http://www.wikidata.org/entity/Q2> .\n"
    b'<http://www.wikidata.org/entity/P1> <http://www.w3.org/2000/01/rdf-schema#label> "na\\u00efve"@en .\n'
)
FREEBASE = b"<http://rdf.freebase.com/ns/m.1>\t<http://rdf.freebase.com/ns/p.q>\t<http://rdf.freebase.com/ns/m.2>\t.\n"
TOML = (
    b'[mine]\nabout = "x"\ntriples = [1, 2, 3]\nentities = 4\n[mine.files.train]\n'
    b'url = "https://e.org/t.txt"\nsha256 = "'
    + (b"0" * 64 + b'"\nlines = 3\ncolumns = ["object", "relation", "subject"]\n')
)
RESULTS = json.dumps(
    {
        "head": {"vars": ["s", "p", "o"]},
        "results": {
            "bindings": [
                {name: {"type": "uri", "value": f"http://e/{name}"} for name in "spo"},
                {
                    "s": {"type": "bnode", "value": "b"},
                    "p": {"type": "uri", "value": "http://www.w3.org/2000/01/rdf-schema#label"},
                    "o": {"type": "literal", "value": 'a"\n', "xml:lang": "en"},
                },
                {
                    "s": {"type": "uri", "value": "u:s"},
                    "p": {"type": "uri", "value": "u:p"},
                    "o": {
                        "type": "typed-literal",
                        "value": "7",
                        "datatype": "http://www.w3.org/2001/XMLSchema#integer",
                    },
                },
            ]
        },
    }
).encode()
VOCABULARY = Vocabulary.from_labels(["Ed", "ed", "dutch", "http://e/a", "?"], ["speaks", "http://e/p"])
NAMES = Names({"http://e/a": "Anna", "ed": "Eduard", "dutch": "anna"}, {"e": "http://e/"})


def lines(folder: Path, data: bytes) -> None:
    """Text is the same triples whole, in pieces and compressed, and reads back as it was written.

    The bytes choose which of these is tried: each takes as long as reading the text.
    """
    path = written(folder, "train.txt", data)
    found = read_triples(path)
    tried = sum(data) % 3
    if tried == 0:
        _in_pieces(found, path, data)
    elif tried == 1 and not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        assert read_triples(written(folder, "train.txt.gz", gzip.compress(data, 1))).rows() == found.rows()
    elif tried == 2:
        _round_trip(found, folder / "again.tsv")


def tables(folder: Path, data: bytes) -> None:
    """CSV, and chosen columns of lines with tabs."""
    kind, rest = chosen(data, ".csv", ".tsv", ".csv.gz")
    columns = ("head", "relation", "tail") if kind == ".tsv" else None
    path = written(folder, f"train{kind}", rest)
    options = ReadOptions(columns=columns)
    found = read_triples(path, options)
    if sum(rest) % 2:
        _in_pieces(found, path, rest, options)
    else:
        _round_trip(found, folder / "again.csv")


def _in_pieces(found: pl.DataFrame, path: Path, data: bytes, options: ReadOptions | None = None) -> None:
    """Text is the same triples in up to five pieces, of at least 8 bytes."""
    pieces = read_batches(path, options, size=max(8, len(data) // 4))
    assert pl.concat(list(pieces)).rows() == found.rows()


def _round_trip(found: pl.DataFrame, path: Path) -> None:
    try:
        write_triples(found, path)
    except AnyburlError:  # a label that lines cannot hold
        return
    assert read_triples(path).rows() == found.rows()


def edges(folder: Path, data: bytes) -> None:
    """Edges and nodes of KGX."""
    kind, rest = chosen(data, "tsv", "jsonl")
    first, _, second = rest.partition(b"\n--\n")
    written(folder, f"nodes.{kind}", second)
    read_triples(written(folder, f"edges.{kind}", first))


def rdf(folder: Path, data: bytes) -> None:
    """Files of RDF, with literals skipped, kept, and in ranges; what is kept is written and read again."""
    kind, rest = chosen(data, *RDF_KINDS)
    literals, rest = chosen(rest, "skip", "keep", "ranges")
    path = written(folder, f"train{kind}", rest)
    graphs = ("default",) if rest[:1] == b"#" else ()
    found = read_triples(path, ReadOptions(literals=literals, graphs=graphs))
    read_names(path)
    if kind in (".nt", ".nq"):
        write_triples(found, folder / "again.nt")
        read_triples(folder / "again.nt", ReadOptions(literals="keep"))


def dumps(folder: Path, data: bytes) -> None:
    """Dumps of Wikidata and Freebase."""
    kind, rest = chosen(data, "wikidata", "freebase")
    read_triples(written(folder, "dump.nt", rest), ReadOptions(dump=kind))


def names(folder: Path, data: bytes) -> None:
    """A file of names; and texts that mean labels, by a prefix, a name or themselves."""
    kind, rest = chosen(data, "file", "text")
    if kind == "file":
        found = read_names(written(folder, "names.tsv", rest))
        assert all(found.values())
        return
    for word in text(rest).split("\n"):
        label = NAMES.label_of(word, VOCABULARY.entities, "entity")
        assert label == word or label in {"http://e/a", "ed", "dutch"} or word.startswith(("<", "a"))
        NAMES.entity_id(word, VOCABULARY)


def addresses(folder: Path, data: bytes) -> None:
    """Addresses of databases and endpoints, and queries for them."""
    kind, rest = chosen(data, "address", "query", "graph")
    if kind == "address":
        if found := find_address(text(rest)):
            assert find_address(found.text) == found
            assert found.name is not None
        return
    option = {"query": text(rest)} if kind == "query" else {"graphs": (text(rest),)}
    GraphQueries.of(ReadOptions(**option)).count("?p")  # type: ignore[arg-type]


def results(folder: Path, data: bytes) -> None:
    """What an endpoint answers."""
    literals, rest = chosen(data, "skip", "keep", "ranges")
    try:
        rows = _rows("http://e/sparql", ServerResponse("application/sparql-results+json", rest))
    except Exception as error:
        if type(error).__name__ != "HTTPException":  # which is tried again, then told
            raise
        return
    if all({"s", "p", "o"} <= row.keys() for row in rows):
        statements = Statements(ReadOptions(literals=literals), Gathered())
        statements.triples(rows)
        list(statements.ranges())


def datasets(folder: Path, data: bytes) -> None:
    """The registry of data sets."""
    written(folder, "datasets.toml", data)
    os.environ["ANYBURL_DATA"] = str(folder)
    assert all(entry.name == name for name, entry in registry().items())


TARGETS = (
    Target(
        "lines",
        "triples in lines of text",
        lines,
        (TABS, b"a b c\n  d  e f\n", gzip.compress(TABS), b"\xef\xbb\xbfa\tb\tc"),
    ),
    Target(
        "tables",
        "triples in CSV and chosen columns",
        tables,
        (
            b'\0subject,relation,object\na,"b""\n",c\n',
            b"\1head\tx\trelation\ttail\na\tb\tc\td\n",
            b"\0a,b,c\r\n\r\nd,e,f",
        ),
    ),
    Target(
        "edges",
        "edges and nodes of KGX",
        edges,
        (
            b"\0id\tsubject\tpredicate\tobject\n1\ta\tb\tc\n\n--\nid\tname\tcategory\na\tA\tx|y\n",
            b'\1{"subject":"a","predicate":"b","object":"c"}\n\n--\n{"id":"a","name":"A","category":["x"]}\n',
        ),
    ),
    Target(
        "rdf",
        "RDF: N-Triples, N-Quads, Turtle, TriG, XML, JSON-LD, N3",
        rdf,
        tuple(
            bytes([place, literals]) + given
            for place, given in enumerate((NQUADS, NQUADS, TURTLE, TURTLE, XML, JSON_LD, TURTLE))
            for literals in range(3)
        ),
    ),
    Target("dumps", "dumps of Wikidata and Freebase", dumps, (b"\0" + WIKIDATA, b"\1" + FREEBASE)),
    Target(
        "names",
        "readable names and prefixed names",
        names,
        (b"\0a\tAnna\tx\n\nb\tBo\n", b"\1e:a\nanna\n<http://e/a>\nEduard\na"),
    ),
    Target(
        "addresses",
        "addresses of databases and endpoints, SPARQL queries",
        addresses,
        (
            b"\0sparql:http://h:1/p?q=1#x",
            b"\0postgresql://u@h/d?x=1#t",
            b"\0duckdb:a/b.db#t",
            b"\1PREFIX e: <http://e/> # c\nSELECT ?s ?p ?o { ?s ?p ?o }",
            b"\2e:g",
        ),
    ),
    Target("results", "results of SPARQL endpoints", results, tuple(bytes([number]) + RESULTS for number in range(3))),
    Target("datasets", "the registry of data sets", datasets, (TOML,)),
)
