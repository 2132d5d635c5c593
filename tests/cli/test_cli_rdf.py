"""RDF from the command line: what is shown, understood and kept with a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from anyburl.data.files import read_triples
from anyburl.data.formats.frames import COLUMNS

pytest.importorskip("pyoxigraph", reason="pyoxigraph is not installed: pip install 'anyburl[rdf]'")

EX = "http://example.org/"


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Turtle file of people who speak the language of their country; the last one's is unknown."""
    lines = [f"@prefix ex: <{EX}> .", "@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> ."]
    for number in range(12):
        place = "holland" if number % 2 else "france"
        spoken = f"ex:speaks ex:{'dutch' if number % 2 else 'french'} ;" if number < 11 else ""
        lines.append(f"ex:p{number} a ex:Person ; ex:lives ex:{place} ; {spoken} ex:age {number} ;")
        lines.append(f'  rdfs:label "Person {number}"@en , "Mensch {number}"@de .')
    lines += ["ex:holland ex:lang ex:dutch .", "ex:france ex:lang ex:french .", "ex:Person rdfs:subClassOf ex:Being ."]
    path = tmp_path_factory.mktemp("rdf") / "people.ttl"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def learned(people: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    from cli.conftest import invoke

    folder = tmp_path_factory.mktemp("rdf") / "run"
    said = invoke("learn", people, "--paths", 3000, "--out", folder, "--language", "de", "--prefix", "w=http://w.org/")
    assert "people: read as attributes: ex:age (12 numbers)" in said.stderr
    return folder


def test_a_run_keeps_names_prefixes_and_how_its_data_was_read(learned: Path, people: Path) -> None:
    described = json.loads((learned / "options.json").read_text())["data"]
    assert described["prefixes"]["ex"] == EX
    assert described["prefixes"]["w"] == "http://w.org/"
    assert described["reading"] == {"language": "de", "prefixes": {"w": "http://w.org/"}}


def test_tables_show_names_and_short_iris(run: Any, learned: Path) -> None:
    shown = run("rules", learned, "--type", "B", "--relation", "ex:speaks").stdout
    assert "ex:speaks(X,Y) <= ex:lives(X,A), ex:lang(A,Y)" in shown
    assert EX not in shown
    assert EX not in run("diff", learned, learned).stdout


def test_questions_understand_names_and_short_iris(run_json: Any, run: Any, learned: Path) -> None:
    answers = run_json("predict", learned, "mensch 11", "ex:speaks", "?")["answers"]
    assert (answers[0]["entity"], answers[0]["name"]) == (f"{EX}dutch", "ex:dutch")
    assert run_json("predict", learned, f"<{EX}p11>", f"{EX}speaks", "?")["answers"] == answers
    assert "Mensch 11 ─ex:speaks→ ex:dutch" in run("explain", learned, "ex:p11", "ex:speaks", "ex:dutch").stdout


def test_unknown_labels_are_compared_with_what_is_shown(run: Any, learned: Path) -> None:
    assert "did you mean 'ex:speaks'?" in run("predict", learned, "ex:p11", "speaks", "?", code=2).stderr
    assert "'Mensch 11'" in run("explain", learned, "Mench 11", "ex:speaks", "ex:dutch", code=2).stderr


def test_given_names_go_before_those_of_the_run(run: Any, learned: Path, tmp_path: Path) -> None:
    (tmp_path / "names.tsv").write_text(f"{EX}p11\tLast\n")
    shown = run("explain", learned, "Last", "ex:speaks", "ex:dutch", "--names", tmp_path / "names.tsv").stdout
    assert "Last ─ex:speaks→ ex:dutch" in shown


def test_types_may_be_those_of_a_higher_class(run_json: Any, learned: Path, tmp_path: Path) -> None:
    flags = "--out", tmp_path / "facts.tsv", "--min-score", 0.1, "--relations", "ex:speaks"
    assert run_json("complete", learned, *flags)["facts"] > 0
    assert run_json("complete", learned, *flags, "--types", "a")["facts"] == 0  # languages have no type


def test_doctor_takes_rdf_type_for_the_types(run: Any, people: Path) -> None:
    result = run("doctor", people, "--no-rules", "--prefix", "e=http://example.org/p")
    assert EX not in result.stdout


def test_an_index_keeps_names_too(run: Any, run_json: Any, people: Path, tmp_path: Path) -> None:
    run("index", people, "--out", tmp_path / "index", "--literals", "ranges", "--quiet")
    run("learn", tmp_path / "index", "--paths", 3000, "--out", tmp_path / "run", "--quiet")
    shown = run("rules", tmp_path / "run", "--relation", "ex:age").stdout
    assert "ex:age(X,>= 10)" in shown or "ex:age(X,[" in shown or "none of the" in shown
    answers = run_json("predict", tmp_path / "run", "person 11", "ex:speaks", "?")["answers"]
    assert answers[0]["name"] == "ex:dutch"


@pytest.mark.parametrize("given", ["ex", "ex=", "e:x=http://example.org/"])
def test_a_prefix_has_a_name_and_an_iri(run: Any, people: Path, tmp_path: Path, given: str) -> None:
    result = run("learn", people, "--out", tmp_path / "run", "--prefix", given, code=2)
    assert "ex=http://example.org/" in result.stderr


@pytest.mark.parametrize("suffix", [".nt", ".ttl", ".trig.gz", ".nq"])
def test_new_facts_as_rdf_are_facts_again(run: Any, learned: Path, tmp_path: Path, suffix: str) -> None:
    flags = "--min-score", 0.1, "--relations", "ex:speaks", "--quiet"
    run("complete", learned, "--out", tmp_path / "facts.tsv", *flags)
    run("complete", learned, "--out", tmp_path / f"facts{suffix}", *flags)
    told = pl.read_csv(tmp_path / "facts.tsv", separator="\t").select(COLUMNS)
    assert read_triples(tmp_path / f"facts{suffix}").rows() == told.rows()
    assert (f"{EX}p11", f"{EX}speaks", f"{EX}dutch") in told.rows()


def test_turtle_has_the_prefixes_of_the_run_and_the_reasons(run: Any, learned: Path, tmp_path: Path) -> None:
    flags = "--min-score", 0.1, "--relations", "ex:speaks", "--provenance", "reification", "--quiet"
    run("complete", learned, "--out", tmp_path / "facts.ttl", *flags)
    text = (tmp_path / "facts.ttl").read_text()
    assert "@prefix w: <http://w.org/> ." in text
    assert "\nex:p11 ex:speaks ex:dutch .\n" in text
    assert "anyburl:premise <urn:anyburl:statement:" in text
    assert "rdf:object ex:holland" in text


@pytest.mark.parametrize("flags", [["--language", "no_tag"], ["--literals", "some"]])
def test_what_reading_does_not_know_is_refused(run: Any, people: Path, tmp_path: Path, flags: list[str]) -> None:
    assert "must be" in run("learn", people, "--out", tmp_path / "run", *flags, code=2).stderr
