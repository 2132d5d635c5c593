"""Readable names from files."""

from __future__ import annotations

import gzip
from pathlib import Path

import polars as pl
import pytest

from anyburl.base.errors import DataError
from anyburl.data.names import Names, read_names


def write(folder: Path, content: str | bytes, name: str = "names.tsv") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_names_are_the_second_column_and_labels_stand_for_themselves(tmp_path: Path) -> None:
    names = read_names(write(tmp_path, "/m/1\tDenton\n\n/m/2\tEl Paso\ta city\tin Texas\r\n"))
    assert dict(names) == {"/m/1": "Denton", "/m/2": "El Paso"}
    assert names.get("/m/2") == "El Paso"
    assert names.get("/m/3") == "/m/3"
    assert names.get("/m/3", "?") == "?"
    assert (len(names), "/m/1" in names, "/m/3" in names) == (2, True, False)


def test_the_first_name_counts_and_empty_names_do_not(tmp_path: Path) -> None:
    names = read_names(write(tmp_path, "\ufeffa\tfirst\na\tsecond\nb\t\nb\tlater\nc\t\n"))
    assert dict(names) == {"a": "first", "b": "later"}


def test_quotes_are_not_special_and_compressed_files_are_read(tmp_path: Path) -> None:
    text = 'a\t"quoted\nb\tit\'s, "here"\n'
    assert dict(read_names(write(tmp_path, text))) == {"a": '"quoted', "b": 'it\'s, "here"'}
    assert dict(read_names(write(tmp_path, gzip.compress(text.encode()), "names.gz")))["a"] == '"quoted'


def test_an_empty_file_has_no_names(tmp_path: Path) -> None:
    assert dict(read_names(write(tmp_path, ""))) == {}
    assert dict(read_names(write(tmp_path, "\n\n"))) == {}


def test_a_line_without_a_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"names\.tsv:2: expected a label, a tab and a name, got 'b Bob'"):
        read_names(write(tmp_path, "a\tAnna\nb Bob\n"))
    with pytest.raises(DataError, match=r"names\.tsv:1: expected a label"):
        read_names(write(tmp_path, "\tAnna\n"))


def test_what_is_no_file_of_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="got a folder"):
        read_names(tmp_path)
    with pytest.raises(DataError, match="no such file"):
        read_names(tmp_path / "none")
    with pytest.raises(DataError, match="UTF-8"):
        read_names(write(tmp_path, b"a\t\xff\xfe\n"))


def test_names_of_a_mapping() -> None:
    assert Names({"a": "Anna"}).get("a") == "Anna"
    assert repr(Names({"a": "Anna"})) == "Names(1 names)"


EX = "http://example.org/"
WIKIDATA = "http://www.wikidata.org/prop/direct/P530"


def test_iris_are_shortened_by_the_longest_prefix() -> None:
    names = Names({f"{EX}a": "Anna"}, {"ex": EX, "long": f"{EX}b/"})
    assert [names.get(f"{EX}{rest}") for rest in ("a", "b", "b/c", "")] == ["Anna", "ex:b", "long:c", EX]
    assert Names().get(WIKIDATA) == "wdt:P530"
    assert Names({}, {"wdt": EX}).get(WIKIDATA) == WIKIDATA
    assert names.series(pl.Series([f"{EX}a", f"{EX}b", "x"])).to_list() == ["Anna", "ex:b", "x"]


@pytest.mark.parametrize("text", [WIKIDATA, f"<{WIKIDATA}>", "wdt:P530", "diplomatic relation", "Diplomatic Relation"])
def test_questions_may_be_asked_in_many_ways(text: str) -> None:
    names = Names({WIKIDATA: "diplomatic relation"})
    assert names.label_of(text, pl.Series([WIKIDATA]), "relation") == WIKIDATA


def test_a_label_goes_before_what_it_could_mean() -> None:
    known = pl.Series(["a", "ex:b", f"{EX}b", "http://www.w3.org/1999/02/22-rdf-syntax-ns#type"])
    names = Names({}, {"ex": EX})
    assert names.label_of("ex:b", known, "entity") == "ex:b"
    assert names.label_of("a", known, "relation") == "a"
    assert names.label_of("a", known[1:], "relation") == known[3]
    assert names.label_of("c", known, "entity") == "c"


def test_names_of_some_labels() -> None:
    names = Names({"a": "Anna", "b": "Bob"}, {"ex": EX}).among(pl.Series(["b"]), pl.Series([], dtype=pl.String))
    assert (dict(names), names.prefixes) == ({"b": "Bob"}, {"ex": EX})
    assert names
    assert not Names()
