"""The dumps of Wikidata and Freebase, in made-up excerpts of the form in which they are published."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from anyburl import DataError, InvalidOptionError, ReadOptions, build_index, load_dataset
from anyburl.data.files import read_batches, write_triples
from anyburl.data.options import Gathered

WD, WDT, FB = "http://www.wikidata.org/entity/", "http://www.wikidata.org/prop/direct/", "http://rdf.freebase.com/ns/"
SITE, SCHEMA = "http://www.wikidata.org", "http://schema.org/"

WIKIDATA = [
    f"<{WD}Q42> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://wikiba.se/ontology#Item> .",
    f'<{WD}Q42> <http://www.w3.org/2000/01/rdf-schema#label> "Douglas Adams"@en .',
    f'<{WD}Q42> <http://www.w3.org/2004/02/skos/core#prefLabel> "Douglas Adams"@en .',
    f'<{WD}Q42> <http://www.w3.org/2004/02/skos/core#altLabel> "Douglas No\\u00EBl Adams"@en .',
    f'<{WD}Q42> <{SCHEMA}name> "Douglas Adams"@en .',
    f'<{WD}Q42> <{SCHEMA}description> "a \\"writer\\" <http://example.org/> ."@en .',
    f'<{WD}Q42> <{SCHEMA}dateModified> "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
    f'<{WD}Q42> <http://wikiba.se/ontology#sitelinks> "9"^^<http://www.w3.org/2001/XMLSchema#integer> .',
    f"<https://en.wikipedia.org/wiki/Douglas_Adams> <{SCHEMA}about> <{WD}Q42> .",
    f'<https://en.wikipedia.org/wiki/Douglas_Adams> <{SCHEMA}inLanguage> "en" .',
    f"<https://en.wikipedia.org/wiki/Douglas_Adams> <{SCHEMA}isPartOf> <https://en.wikipedia.org/> .",
    f"<{WD}Q42> <{WDT}P31> <{WD}Q5> .",
    f"<{WD}Q42> <{WDT}P106> <{WD}Q36180> .",
    f"<{WD}Q42> <{WDT}P509> _:genid1 .",
    f"<{WD}Q42> <{WDT}P119> <{SITE}/.well-known/genid/5f2a> .",
    f'<{WD}Q42> <{WDT}P569> "1952-03-11T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .',
    f'<{WD}Q42> <{WDT}P214> "113230702" .',
    f"<{WD}Q42> <{SITE}/prop/direct-normalized/P214> <http://viaf.org/viaf/113230702> .",
    f"<{WD}Q42> <{WDT}P18> <http://commons.wikimedia.org/wiki/Special:FilePath/Douglas%20Adams.jpg> .",
    f"<{WD}P31> <{WDT}P1629> <{WD}Q21503252> .",
    f"<{WD}L7> <{WDT}P5137> <{WD}Q146> .",
]
OF_WIKIDATA = [
    (f"{WD}Q42", f"{WDT}P31", f"{WD}Q5"),
    (f"{WD}Q42", f"{WDT}P106", f"{WD}Q36180"),
    (f"{WD}P31", f"{WDT}P1629", f"{WD}Q21503252"),
    (f"{WD}L7", f"{WDT}P5137", f"{WD}Q146"),
]
LEFT_OUT_OF_WIKIDATA = {
    "statements about web pages": 3,
    "labels, descriptions and aliases": 5,
    "normalized duplicates": 1,
    "literals": 2,
    "unknown values": 2,
    "links to other sites": 1,
    "other statements": 3,
}

FREEBASE = [
    f"<{FB}m.0282x>\t<{FB}people.person.profession>\t<{FB}m.0cbd2>\t.",
    f"<{FB}g.11b>\t<{FB}music.release_track.release>\t<{FB}m.0fvkhg6>\t.",
    f'<{FB}m.0282x>\t<{FB}type.object.name>\t"Douglas\tAdams"@en\t.',
    f'<{FB}m.0282x>\t<http://www.w3.org/2000/01/rdf-schema#label>\t"Douglas Adams"@en\t.',
    f'<{FB}m.0282x>\t<http://rdf.freebase.com/key/wikipedia.en>\t"Douglas_Adams"\t.',
    f'<{FB}m.0282x>\t<{FB}people.person.date_of_birth>\t"1952-03-11"^^<http://www.w3.org/2001/XMLSchema#date>\t.',
    f"<{FB}m.0282x>\t<{FB}type.object.type>\t<{FB}people.person>\t.",
    f"<{FB}m.0282x>\t<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>\t<{FB}people.person>\t.",
    f"<{FB}people.person>\t<{FB}type.type.instance>\t<{FB}m.0282x>\t.",
    f"<{FB}m.0282x>\t<{FB}common.topic.notable_for>\t<{FB}g.1256>\t.",
    f"<{FB}m.0282x>\t<{FB}type.object.permission>\t<{FB}m.0g98>\t.",
    f"<{FB}people.person>\t<{FB}kg.object_profile.prominent_type>\t<{FB}m.01>\t.",
    f"<{FB}m.0282x>\t<{FB}base.books.site>\t<http://www.douglasadams.com/>\t.",
]
OF_FREEBASE = [
    (f"{FB}m.0282x", f"{FB}people.person.profession", f"{FB}m.0cbd2"),
    (f"{FB}g.11b", f"{FB}music.release_track.release", f"{FB}m.0fvkhg6"),
]
LEFT_OUT_OF_FREEBASE = {
    "literals": 4,
    "types": 3,
    "statements of the domains type, common and freebase": 2,
    "statements about types and properties": 1,
    "other statements": 1,
}

Pack = Callable[[bytes], bytes]
PACKED: dict[str, tuple[str, Pack]] = {
    "plain": ("latest-truthy.nt", bytes),
    "gzip": ("latest-truthy.nt.gz", gzip.compress),
    "bzip2": ("latest-truthy.nt.bz2", bz2.compress),
}


def written(path: Path, lines: list[str], pack: Pack = bytes) -> Path:
    path.write_bytes(pack("".join(f"{line}\n" for line in lines).encode()))
    return path


@pytest.mark.parametrize("packed", PACKED)
def test_the_statements_between_entities_of_wikidata_are_kept(tmp_path: Path, packed: str) -> None:
    name, pack = PACKED[packed]
    path = written(tmp_path / name, WIKIDATA, pack)
    data = load_dataset(path, ReadOptions(dump="wikidata"))
    assert data.name == "latest-truthy"
    assert set(data.train.to_polars().rows()) == set(OF_WIKIDATA)
    assert data.left_out == LEFT_OUT_OF_WIKIDATA
    assert len(data.train) + sum(data.left_out.values()) == len(WIKIDATA)
    assert [data.names.get(label) for label in OF_WIKIDATA[0]] == ["wd:Q42", "wdt:P31", "wd:Q5"]


def test_the_statements_between_entities_of_freebase_are_kept(tmp_path: Path) -> None:
    path = written(tmp_path / "freebase-rdf-latest.gz", FREEBASE, gzip.compress)
    data = load_dataset(path, ReadOptions(dump="freebase"))
    assert data.name == "freebase-rdf-latest"
    assert set(data.train.to_polars().rows()) == set(OF_FREEBASE)
    assert data.left_out == LEFT_OUT_OF_FREEBASE
    assert data.names.get(f"{FB}m.0282x") == "fb:m.0282x"


def test_properties_of_wikidata_have_names_in_the_language_wanted(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    lines = [f'<{WD}P31> {label} "instance \\"of\\""@en .', f'<{WD}P31> {label} "ist ein(e) \\u00DC"@de .']
    path = written(tmp_path / "latest-truthy.nt", [*WIKIDATA, *lines])
    for language, name in (("en", 'instance "of"'), ("de", "ist ein(e) Ü"), ("fr", "wdt:P31")):
        data = load_dataset(path, ReadOptions(dump="wikidata", language=language))
        assert data.names.get(f"{WDT}P31") == name
        assert data.names.get(f"{WD}Q42") == "wd:Q42"


@pytest.mark.parametrize("size", [1, 300, 1 << 20])
def test_a_dump_is_read_in_pieces(tmp_path: Path, size: int) -> None:
    path = written(tmp_path / "excerpt.nt", ["# made up", "", *WIKIDATA])
    gathered = Gathered()
    frames = list(read_batches(path, ReadOptions(dump="wikidata"), gathered, size))
    assert [row for frame in frames for row in frame.rows()] == OF_WIKIDATA
    assert gathered.left_out == LEFT_OUT_OF_WIKIDATA


def test_an_index_of_a_dump_says_what_was_left_out(tmp_path: Path) -> None:
    path = written(tmp_path / "latest-truthy.nt", WIKIDATA)
    built = build_index(path, tmp_path / "index", options=ReadOptions(dump="wikidata"))
    opened = load_dataset(tmp_path / "index")
    assert opened.fingerprint == built.fingerprint == load_dataset(path, ReadOptions(dump="wikidata")).fingerprint
    assert opened.left_out == LEFT_OUT_OF_WIKIDATA


ODD = [
    b"ed\tspeaks\tdutch",
    f"<{WD}Q42> <{WDT}P31>".encode(),
    f"<{WD}Q42> <{WDT}P31> <{WD}Q5>".encode(),
    f"<{WD}Q42> <{WDT}P31> <{WD}Q5 .".encode(),
    f"<{WD}Q42> <{WDT}P31> <{WD}Q5> <{WD}Q6> .".encode(),
    b"\xff\xfe",
]


def test_odd_lines_are_counted(tmp_path: Path) -> None:
    literal = f'<{WD}Q42> <{WDT}P1477> "caf'.encode() + b'\xe9" .'
    path = tmp_path / "a.nt"
    path.write_bytes(b"\n".join([*(line.encode() for line in WIKIDATA), *ODD, literal]))
    data = load_dataset(path, ReadOptions(dump="wikidata"))
    assert set(data.train.to_polars().rows()) == set(OF_WIKIDATA)
    assert data.left_out == {
        **LEFT_OUT_OF_WIKIDATA,
        "literals": LEFT_OUT_OF_WIKIDATA["literals"] + 1,
        "lines that are no statements": len(ODD),
    }


def test_another_file_is_refused_with_its_first_line(tmp_path: Path) -> None:
    path = written(tmp_path / "a.tsv", ["# people", "ed\tspeaks\tdutch", "lisa\tspeaks\tdutch"])
    with pytest.raises(DataError, match=r"a\.tsv:2: expected N-Triples, as Wikidata publishes them, .* got 'ed"):
        load_dataset(path, ReadOptions(dump="wikidata"))
    path = written(tmp_path / "a.nt", FREEBASE)
    with pytest.raises(DataError, match=r"a\.nt:1: expected N-Triples, as Wikidata publishes them"):
        load_dataset(path, ReadOptions(dump="wikidata"))


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress])
def test_a_cut_file_is_refused(tmp_path: Path, pack: Pack) -> None:
    path = tmp_path / "a.nt"
    path.write_bytes(pack("\n".join(WIKIDATA).encode())[:-20])
    with pytest.raises(DataError, match="damaged or truncated"):
        load_dataset(path, ReadOptions(dump="wikidata"))


def test_a_dump_without_statements_between_entities_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "a.nt", WIKIDATA[:3])
    with pytest.raises(DataError, match="no statements between entities of Wikidata"):
        load_dataset(path, ReadOptions(dump="wikidata"))


def test_freebase_without_the_option_says_which_to_give(tmp_path: Path) -> None:
    path = written(tmp_path / "freebase-rdf-latest", FREEBASE)
    with pytest.raises(DataError, match="--dump freebase"):
        load_dataset(path)


def test_bzip2_is_read_but_not_written(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="expected an RDF file that ends in"):
        write_triples([("ed", "speaks", "dutch")], tmp_path / "a.nt.bz2")


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(InvalidOptionError, match="dump must be one of wikidata, freebase, got 'dbpedia'"):
        ReadOptions(dump="dbpedia")
    with pytest.raises(InvalidOptionError, match="literals must be skip for the dump of wikidata, got 'keep'"):
        ReadOptions(dump="wikidata", literals="keep")
