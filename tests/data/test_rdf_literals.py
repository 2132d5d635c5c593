"""Literals in RDF: left out, kept, as names, as ranges."""

from __future__ import annotations

from bisect import bisect_right
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anyburl import DataError, ReadOptions, load_dataset
from anyburl.data.files import read_batches, read_triples
from anyburl.data.formats import rdf as ranges
from anyburl.data.formats.rdf import DATE, N_RANGES, NUMBER, Values
from anyburl.data.names import read_names
from anyburl.data.options import Gathered

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")

EX = "http://example.org/"
PEOPLE = """@prefix ex: <http://example.org/> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix skos: <http://www.w3.org/2004/02/skos/core#> .
@prefix schema: <http://schema.org/> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
ex:ed ex:speaks ex:dutch ; ex:height 1.73 ; ex:born "1970-05-01"^^xsd:date ; ex:note "tall" ;
  rdfs:label "Ed"@fr , "Ed\\n the  first"@en , "Eduard"@de .
ex:lisa ex:speaks ex:dutch ; ex:height 1.80 ; ex:born "1985"^^xsd:gYear ; skos:prefLabel "Lisa" .
ex:dutch schema:name "Niederländisch"@de , "néerlandais"@fr .
"""


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.ttl"
    path.write_text(PEOPLE, "utf-8")
    return path


def test_literals_are_left_out_and_counted(people: Path) -> None:
    data = load_dataset(people, ReadOptions(literals="skip"))
    assert len(data.train) == 2
    assert dict(data.left_out) == {"literals": 5}
    assert data.attributes.empty


def test_numbers_and_dates_are_attributes_and_text_is_left_out(people: Path) -> None:
    data = load_dataset(people)
    assert len(data.train) == 2
    assert dict(data.left_out) == {"literals": 1}
    height, born = data.attributes[f"{EX}height"], data.attributes[f"{EX}born"]
    assert height.values.tolist() == [1.73, 1.8]
    assert [born.format(value) for value in born.values] == ["1970-05-01", "1985-01-01"]
    some = load_dataset(people, ReadOptions(attribute={f"{EX}height": "entity", f"{EX}note": "boolean"}, skip_bad=True))
    assert [*some.attributes] == [f"{EX}born"]
    assert len(some.train) == 4
    with pytest.raises(DataError, match=r"expected true or false, for http://example.org/note, got 'tall'"):
        load_dataset(people, ReadOptions(attribute={f"{EX}note": "boolean"}))


def test_kept_literals_are_entities(people: Path) -> None:
    data = load_dataset(people, ReadOptions(literals="keep"))
    assert len(data.train) == 13
    assert '"1.73"^^<http://www.w3.org/2001/XMLSchema#decimal>' in data.vocabulary.entities
    assert not data.left_out


def test_labels_become_names_in_the_language_wanted(people: Path) -> None:
    assert dict(load_dataset(people).names) == {
        f"{EX}ed": "Ed the first",
        f"{EX}lisa": "Lisa",
        f"{EX}dutch": "Niederländisch",
    }
    german = load_dataset(people, ReadOptions(language="de")).names
    assert (german.get(f"{EX}ed"), german.get(f"{EX}lisa")) == ("Eduard", "Lisa")
    assert load_dataset(people, ReadOptions(language="fr")).names.get(f"{EX}dutch") == "néerlandais"


def test_a_better_name_in_a_later_file_counts_and_a_worse_one_does_not(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    fact = f"<{EX}a> <{EX}r> <{EX}b> ."
    (tmp_path / "train.ttl").write_text(f'{fact} <{EX}a> {label} "A"@en . <{EX}b> {label} "B"@de .')
    (tmp_path / "test.ttl").write_text(f'{fact} <{EX}a> {label} "a"@de . <{EX}b> {label} "b"@en .')
    assert dict(load_dataset(tmp_path).names) == {f"{EX}a": "A", f"{EX}b": "b"}


def test_prefixes_of_the_file_shorten_iris(people: Path) -> None:
    names = load_dataset(people, ReadOptions(prefixes={"e": f"{EX}sp"})).names
    assert names.get(f"{EX}height") == "ex:height"
    assert names.get(f"{EX}speaks") == "e:eaks"
    assert read_names(people).get(f"{EX}born") == "ex:born"


def test_ranges_of_numbers_and_dates(people: Path) -> None:
    data = load_dataset(people, ReadOptions(literals="ranges"))
    assert dict(data.left_out) == {"literals": 1, "exact numbers and dates": 4}
    objects = {row[2] for row in data.train.to_polars().rows() if row[0] == f"{EX}lisa"} - {f"{EX}dutch"}
    assert {data.names[label] for label in objects} == {">= 1.8", ">= 1985"}


def test_another_split_has_the_ranges_of_the_first(tmp_path: Path) -> None:
    train = "".join(f"<{EX}{n}> <{EX}age> {n} .\n" for n in range(100))
    (tmp_path / "train.ttl").write_text(train)
    (tmp_path / "test.ttl").write_text(f"<{EX}x> <{EX}age> -5, 15, 20, 1000 .")
    data = load_dataset(tmp_path, ReadOptions(literals="ranges"))
    shown = [data.names[label] for label in data.test.to_polars()["object"]]
    assert sorted(shown) == ["< 10", ">= 90", "[10, 20)", "[20, 30)"]


def test_labels_that_are_no_iris_have_names_and_values_too(tmp_path: Path) -> None:
    label = "<http://www.w3.org/2000/01/rdf-schema#label>"
    (tmp_path / "a.ttl").write_text(f'<urn:anyburl:ed> <urn:anyburl:how%20old> 5 ; {label} "Eduard" .')
    data = load_dataset(tmp_path / "a.ttl", ReadOptions(literals="ranges"))
    assert data.train.to_polars().rows() == [("ed", "how old", '">= 5"^^<urn:anyburl:range:how%20old>')]
    assert data.names.get("ed") == read_names(tmp_path / "a.ttl").get("ed") == "Eduard"


def test_many_values_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranges, "AT_A_TIME", 7)
    (tmp_path / "a.ttl").write_text("".join(f"<{EX}{n}> <{EX}age> {n} .\n" for n in range(50)))
    assert len(load_dataset(tmp_path / "a.ttl", ReadOptions(literals="ranges")).train) == 50


def test_values_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    xsd = "http://www.w3.org/2001/XMLSchema#"
    texts = [f'"{text}"^^<{xsd}double>' for text in ("1", "NaN", "INF", "two")] + [f'"soon"^^<{xsd}date>']
    (tmp_path / "a.ttl").write_text(f"<{EX}x> <{EX}age> {', '.join(texts)} .")
    gathered = Gathered()
    frames = [*read_batches(tmp_path / "a.ttl", ReadOptions(literals="ranges"), gathered)]
    assert sum(map(len, frames)) == 1
    assert gathered.left_out["literals"] == 4


@given(st.lists(st.integers(-20, 20) | st.floats(-3, 3).map(lambda x: round(x, 2)), min_size=1))
def test_ranges_hold_their_values_and_about_as_many_each(values: list[float]) -> None:
    found = Values()
    for number, value in enumerate(values):
        found.add(str(number), "r", NUMBER, str(value))
    gathered = Gathered()
    frame = found.triples(gathered)
    starts = [start for start, _ in gathered.cuts["r", NUMBER]]
    assert starts == sorted(set(starts))
    assert 1 <= len(starts) < N_RANGES
    ordered = sorted(map(float, values))
    tenths = {ordered[len(values) * n // N_RANGES] for n in range(1, N_RANGES)}
    assert set(starts) == (tenths - {ordered[0]} or tenths)
    words = [gathered.names[label] for label in frame["object"]]
    by_range = {bisect_right(starts, float(value)): word for value, word in zip(values, words, strict=True)}
    assert words == [by_range[bisect_right(starts, float(value))] for value in values]
    assert len(set(by_range.values())) == len(by_range)


@given(st.lists(st.dates(), min_size=2, max_size=2))
def test_dates_are_in_order(days: list[date]) -> None:
    found = Values()
    for day in days:
        found.add(day.isoformat(), "r", DATE, day.isoformat())
    gathered = Gathered()
    objects = dict(found.triples(gathered).select("subject", "object").rows())
    earlier, later = (objects[day.isoformat()] for day in sorted(days))
    last = max(days).isoformat()
    assert gathered.names[later] == f">= {last}"
    assert gathered.names[earlier] == (f"< {last}" if days[0] != days[1] else f">= {last}")


def test_a_file_of_literals_alone_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.ttl").write_text(f'<{EX}x> <{EX}age> 1, "b" .')
    with pytest.raises(DataError, match="no triples besides literals, which are no triples"):
        read_triples(tmp_path / "a.ttl")
