"""RDF files."""

from __future__ import annotations

import bz2
import gzip
import sys
from pathlib import Path

import pytest

from anyburl import DataError, MissingExtraError, ReadOptions, load_dataset
from anyburl.data.files import read_batches, read_triples
from anyburl.data.formats.rdf import read_labels

KEEP = ReadOptions(literals="keep")
EX = "http://example.org/"
TURTLE = """@prefix ex: <http://example.org/> .
ex:ed ex:speaks ex:dutch ; ex:name "Ed, \\"the\\" first"@en .
_:b ex:knows ex:ed .
"""
EXPECTED = [
    (f"{EX}ed", f"{EX}speaks", f"{EX}dutch"),
    (f"{EX}ed", f"{EX}name", '"Ed, \\"the\\" first"@en'),
    ("_:b", f"{EX}knows", f"{EX}ed"),
]


@pytest.fixture(autouse=True)
def _needs_rdf(request: pytest.FixtureRequest) -> None:
    if "without" not in request.node.name:
        pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")


@pytest.mark.parametrize("name", ["people.ttl", "people.TTL.gz"])
def test_turtle_is_read_by_its_suffix(tmp_path: Path, name: str) -> None:
    text = TURTLE.encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_triples(tmp_path / name, KEEP).rows() == EXPECTED


def test_other_forms_say_the_same(tmp_path: Path) -> None:
    statement = f"<{EX}ed> <{EX}speaks> <{EX}dutch>"
    (tmp_path / "a.nt").write_text(f"{statement} .\n")
    (tmp_path / "a.nq").write_text(f"{statement} <{EX}graph> .\n")
    (tmp_path / "a.rdf").write_text(
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="{EX}"><rdf:Description '
        f'rdf:about="{EX}ed"><ex:speaks rdf:resource="{EX}dutch"/></rdf:Description></rdf:RDF>'
    )
    for name in ("a.nt", "a.nq", "a.rdf"):
        assert read_triples(tmp_path / name).rows() == EXPECTED[:1]


def test_rdf_is_read_in_pieces(tmp_path: Path) -> None:
    (tmp_path / "people.ttl").write_text(TURTLE)
    frames = list(read_batches(tmp_path / "people.ttl", KEEP, size=1))
    assert [frame.rows() for frame in frames] == [[row] for row in EXPECTED]


def test_a_folder_may_hold_rdf(tmp_path: Path) -> None:
    (tmp_path / "train.nt").write_text(f"<{EX}ed> <{EX}speaks> <{EX}dutch> .\n")
    (tmp_path / "test.ttl").write_text(TURTLE)
    data = load_dataset(tmp_path, KEEP)
    assert (len(data.train), len(data.valid), len(data.test)) == (1, 0, 3)
    assert load_dataset(tmp_path / "test.ttl").name == "test"


def test_what_is_wrong_is_named_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "bad.nt").write_text(f"<{EX}ed> <{EX}speaks> <{EX}dutch> .\n<{EX}ed> speaks .\n")
    with pytest.raises(DataError, match=r"bad\.nt:2: expected N-TRIPLES, cannot read it"):
        read_triples(tmp_path / "bad.nt")
    (tmp_path / "empty.ttl").write_text("# nothing\n")
    with pytest.raises(DataError, match="no triples"):
        read_triples(tmp_path / "empty.ttl")
    (tmp_path / "cut.nt.gz").write_bytes(gzip.compress(b"x" * 1000)[:20])
    with pytest.raises(DataError, match="cannot be read"):
        read_triples(tmp_path / "cut.nt.gz")


def test_without_the_parser_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyoxigraph", None)
    (tmp_path / "a.nt").write_text(f"<{EX}ed> <{EX}speaks> <{EX}dutch> .\n")
    with pytest.raises(MissingExtraError, match=r"pip install 'anyburl\[rdf\]'"):
        read_triples(tmp_path / "a.nt")


def test_more_forms(tmp_path: Path) -> None:
    (tmp_path / "a.jsonld").write_text(
        f'{{"@context": {{"ex": "{EX}"}}, "@id": "ex:ed", "ex:speaks": {{"@id": "ex:dutch"}}}}'
    )
    (tmp_path / "a.n3").write_text(
        f"@prefix ex: <{EX}> . ex:ed ex:speaks ex:dutch . {{ ex:ed ex:knows ex:lisa }} ex:is ex:untrue ."
    )
    (tmp_path / "a.owl").write_text(
        f'<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:ex="{EX}"><rdf:Description '
        f'rdf:about="{EX}ed"><ex:speaks rdf:resource="{EX}dutch"/></rdf:Description></rdf:RDF>'
    )
    for name in ("a.jsonld", "a.owl"):
        assert read_triples(tmp_path / name).rows() == EXPECTED[:1]
    assert [row[1:] for row in read_triples(tmp_path / "a.n3").rows()] == [
        (f"{EX}speaks", f"{EX}dutch"),
        (f"{EX}is", f"{EX}untrue"),
    ]


@pytest.fixture
def graphs(tmp_path: Path) -> Path:
    path = tmp_path / "graphs.trig"
    path.write_text(
        f"@prefix ex: <{EX}> . ex:a ex:r ex:b . ex:one {{ ex:a ex:r ex:c }} ex:two {{ ex:a ex:r ex:d }} "
        "_:g { ex:a ex:r ex:e }"
    )
    return path


@pytest.mark.parametrize(
    ("chosen", "found"),
    [
        ((), "bcde"),
        ((f"{EX}one",), "c"),
        ((f"<{EX}one>", "ex:two"), "cd"),
        (("default",), "b"),
        (("_:g",), "e"),
    ],
)
def test_graphs_are_chosen_or_merged(graphs: Path, chosen: tuple[str, ...], found: str) -> None:
    data = load_dataset(graphs, ReadOptions(graphs=chosen, prefixes={"ex": EX}))
    assert [label[-1] for label in data.train.to_polars()["object"]] == list(found)
    assert sum(data.left_out.values()) == 4 - len(found)


def test_a_graph_that_is_not_there_is_named(graphs: Path) -> None:
    with pytest.raises(DataError, match=r"no triples in http:.*three"):
        load_dataset(graphs, ReadOptions(graphs=(f"{EX}three",)))


def test_nodes_without_a_name_get_the_same_one_every_time(tmp_path: Path) -> None:
    (tmp_path / "train.ttl").write_text(f"@prefix ex: <{EX}> . ex:a ex:r [ ex:r [ ex:r ex:b ] ] . _:x ex:r ex:a .")
    (tmp_path / "test.ttl").write_text(f"@prefix ex: <{EX}> . [] ex:r ex:a .")
    first, second = load_dataset(tmp_path), load_dataset(tmp_path)
    assert first.fingerprint == second.fingerprint
    assert [label for label in first.vocabulary.entities if label.startswith("_:")] == [
        *("_:unnamed1", "_:unnamed2", "_:unnamed3", "_:x")
    ]


def test_statements_about_statements_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(f"@prefix ex: <{EX}> . ex:a ex:r ex:b . << ex:a ex:r ex:b >> ex:says ex:c .")
    data = load_dataset(tmp_path / "a.ttl")
    assert dict(data.left_out) == {"statements about statements": 1}
    assert data.train.to_polars().rows() == [
        ("_:unnamed1", f"{EX}says", f"{EX}c"),
        (f"{EX}a", f"{EX}r", f"{EX}b"),
    ]


def test_many_nodes_without_a_name(tmp_path: Path) -> None:
    """The parser makes up names at random, of different lengths."""
    (tmp_path / "a.ttl").write_text(f"@prefix ex: <{EX}> . ex:a ex:r " + ", ".join(["[]"] * 5000) + " .")
    labels = read_triples(tmp_path / "a.ttl")["object"].to_list()
    assert labels == [f"_:unnamed{number}" for number in range(1, 5001)]


def test_labels_that_are_no_iris_come_back(tmp_path: Path) -> None:
    (tmp_path / "a.nt").write_text(
        "<urn:anyburl:a%20b> <urn:anyburl:r> <urn:anyburl:%22x%22> .\n<urn:anyburl:range:x> <urn:anyburl:%41> <u:v> .\n"
    )
    assert read_triples(tmp_path / "a.nt").rows() == [
        ("a b", "r", '"x"'),
        ("urn:anyburl:range:x", "urn:anyburl:%41", "u:v"),
    ]


def rdf_xml(declared: str, subject: str = f"{EX}ed", text: str = "") -> str:
    """Return a statement in RDF/XML, after what is declared."""
    return (
        f'<?xml version="1.0"?>\n{declared}\n<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        f'xmlns:ex="{EX}"><rdf:Description rdf:about="{subject}"><ex:speaks rdf:resource="{EX}dutch"/>'
        f"<ex:name>{text}</ex:name></rdf:Description></rdf:RDF>"
    )


NESTED = "\n".join(
    ["<!DOCTYPE x [", '<!ENTITY a0 "ha">', *(f'<!ENTITY a{i} "{f"&a{i - 1};" * 30}">' for i in range(1, 11)), "]>"]
)
BOMBS = {
    "nested": (NESTED, 4),
    "twice": ('<!DOCTYPE x [<!ENTITY a "ha"> <!ENTITY b "&a;&a;">]>', 2),
    "long": (f'<!DOCTYPE x [<!ENTITY a "{"h" * 257}">]>', 2),
    "parameter": ('<!DOCTYPE x [<!ENTITY % a "ha">]>', 2),
    "external": ('<!DOCTYPE x [\n<!ENTITY a SYSTEM "file:///etc/passwd">]>', 3),
    "public": ('<!DOCTYPE x [<!ENTITY a PUBLIC "x" "http://example.org/x">]>', 2),
    "commented": ('<!DOCTYPE x [<!-- <!ENTITY a "&b;"> -->]>', 2),
    "lower case": ('<!doctype x [<!ENTITY a "&b;">]>', 2),
    "unfinished": ('<!DOCTYPE x [<!ENTITY a "', 2),
    "without a name": ('<!DOCTYPE x [<!ENTITY "a">]>', 2),
}


@pytest.mark.parametrize("name", ["a.rdf", "a.owl", "a.owl.gz", "a.rdf.bz2"])
@pytest.mark.parametrize("bomb", BOMBS)
def test_entities_that_multiply_are_refused_before_they_are_parsed(tmp_path: Path, name: str, bomb: str) -> None:
    declared, line = BOMBS[bomb]
    pack = {".gz": gzip.compress, ".bz2": bz2.compress}.get(Path(name).suffix, bytes)
    (tmp_path / name).write_bytes(pack(rdf_xml(declared).encode()))
    for read in (read_triples, read_labels):
        with pytest.raises(DataError, match=f"{name}:{line}: expected XML entities that stand for at most 256 bytes"):
            read(tmp_path / name)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_entities_in_other_encodings_are_never_parsed(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.rdf").write_bytes(rdf_xml(NESTED).encode(encoding))
    with pytest.raises(DataError, match="expected RDF-XML, cannot read it"):
        read_triples(tmp_path / "a.rdf")


def test_entities_late_in_a_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.data.formats.rdf.BLOCK", 100)
    for n_spaces in range(90, 110):  # some of them are on both sides of the border between two blocks
        (tmp_path / "a.rdf").write_text(" " * n_spaces + rdf_xml('<!DOCTYPE x [<!ENTITY a "http://x/">]>'))
        with pytest.raises(DataError, match=r"in the first 100 bytes, got later ones|that stand for at most"):
            read_triples(tmp_path / "a.rdf")


@pytest.mark.parametrize("name", ["a.owl", "a.owl.gz"])
def test_short_entities_for_namespaces_are_read(tmp_path: Path, name: str) -> None:
    declared = f'<!DOCTYPE rdf:RDF [\n  <!ENTITY ex "{EX}" >\n  <!ENTITY caf\u00e9 "50&#37; &amp; 100%" >\n]>'
    text = rdf_xml(declared, "&ex;ed", "&caf\u00e9;").encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_triples(tmp_path / name, KEEP).rows() == [EXPECTED[0], (f"{EX}ed", f"{EX}name", '"50% & 100%"')]


@pytest.mark.parametrize(
    "declared", ['<!DOCTYPE rdf:RDF SYSTEM "http://example.org/rdf.dtd">', "<!DOCTYPE rdf:RDF [<!ELEMENT a ANY>]>"]
)
def test_document_types_without_entities_are_read(tmp_path: Path, declared: str) -> None:
    (tmp_path / "a.rdf").write_text(rdf_xml(declared))
    assert read_triples(tmp_path / "a.rdf").rows() == EXPECTED[:1]


def test_text_that_may_repeat_an_entity_over_and_over_is_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("anyburl.data.formats.rdf.BLOCK", 1000)
    monkeypatch.setattr("anyburl.data.formats.rdf.MOST_EXPANDED", 5000)
    for declared, n in (('<!DOCTYPE x [<!ENTITY a "ha">]>', 1000), ("", 100_000)):
        (tmp_path / "a.rdf").write_text(rdf_xml(declared, text="&amp;" * n))
        read_triples(tmp_path / "a.rdf")
    (tmp_path / "a.rdf").write_text(rdf_xml('<!DOCTYPE x [<!ENTITY a "ha">]>', text="&a;" * 3000))
    with pytest.raises(DataError, match="at most 5,000 bytes of text in one piece with XML entities"):
        read_triples(tmp_path / "a.rdf")
