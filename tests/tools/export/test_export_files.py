"""Files of exported rules, and options that are refused."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from exported import AWKWARD, text_of

from anyburl import Atom, DataError, ExportOptions, InvalidOptionError, OptionError, Rule, export_rules
from anyburl.rules.rule import Constant, X, Y
from anyburl.tools.options import LANGUAGES
from rules.samples import make_rules

RULES = make_rules([("h(X,Y) <= b(X,Y)", (4, 2)), ("h(X,c) <= b(X,A)", (8, 2))])


@pytest.mark.parametrize(
    ("name", "to", "expected"),
    [
        ("rules.rq", None, "CONSTRUCT {"),
        ("rules.ru", None, "INSERT {"),
        ("rules.SQL", None, "SELECT DISTINCT"),
        ("rules.cypher", None, "MATCH (X)"),
        ("rules.dl", None, ".decl predicted"),
        ("rules.pl", None, ":- multifile triple/3"),
        ("rules.ttl", None, "a sh:NodeShape"),
        ("rules.txt", "prolog", "predicted(X, 'h', Y)"),
    ],
)
def test_the_suffix_says_the_language(tmp_path: Path, name: str, to: str | None, expected: str) -> None:
    report = export_rules(RULES, tmp_path / name, to=to)
    assert expected in (tmp_path / name).read_text("utf-8")
    assert (report.n_rules, report.left_out) == (2, {})


def test_a_file_may_be_compressed(tmp_path: Path) -> None:
    export_rules(RULES, tmp_path / "rules.sql.gz", insert=True)
    assert gzip.decompress((tmp_path / "rules.sql.gz").read_bytes()).decode() == text_of(RULES, "sql", insert=True)


def test_rules_that_a_language_cannot_say_are_counted(tmp_path: Path) -> None:
    rules = make_rules([("h(X,_:b) <= b(X,A)", (2, 1)), ("h(X,Y) <= b(Y,X)", (2, 1))])
    report = export_rules(rules, tmp_path / "rules.rq")
    assert (report.to, report.n_rules) == ("sparql", 1)
    assert report.left_out == {"names a blank node, which no query can": 1}


@pytest.mark.parametrize("to", LANGUAGES)
@pytest.mark.parametrize("label", AWKWARD)
def test_a_remark_is_one_line_that_no_label_ends(to: str, label: str) -> None:
    rule = Rule(Atom(label or "r", X, Constant(label + "\u2028\\")), (Atom("b\\", X, Y),))
    lines = text_of(make_rules([(rule, (4, 2))]), to).split("\n")
    remarks = [line for line in lines if line.endswith("[confidence 0.5, 2 of 4]")]
    assert len(remarks) == 1
    assert re.match(r" *(#|--|//|%) ", remarks[0])
    assert not re.search(r"[\r\u2028]|\\[uU]", remarks[0])


def test_estimated_counts_are_marked() -> None:
    assert "[confidence 0.5, 1 of ~2]" in text_of(make_rules([("h(X,Y) <= b(X,Y)", (2, 1))], exact=False), "sql")


def test_progress_is_told(tmp_path: Path) -> None:
    told: list[int] = []
    export_rules(RULES, tmp_path / "rules.sql", progress=told.append)
    assert sum(told) == 2


def test_nothing_is_left_of_an_export_that_fails(tmp_path: Path) -> None:
    def stop(n: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_rules(RULES, tmp_path / "rules.sql", progress=stop)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"to": "pig"}, "to must be one of sparql, sql, cypher, datalog, prolog, shacl, got 'pig'"),
        ({"to": "prolog", "insert": True}, "insert must be left out unless to is sparql or sql or cypher, got True"),
        ({"to": "sparql", "table": "t"}, "table must be left out unless to is sql, got 't'"),
        ({"to": "sql", "target": "t"}, "target must be left out without insert, got 't'"),
        ({"to": "sql", "columns": ("s", "o")}, "columns must be three names: of subject, relation and object, "),
        ({"to": "sql", "table": ""}, "table must be a name, got ''"),
        ({"to": "shacl", "base": "a b"}, "base must be the start of an IRI, such as http://example.org/, got 'a b'"),
        ({"to": "sparql", "insert": True, "target": "t"}, "target must be the IRI of a graph, got 't'"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidOptionError, match=re.escape(sentence)):
        ExportOptions(**options)


def test_a_file_that_does_not_say_its_language_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidOptionError, match=r"to must be one of .* for a file that does not end in \.rq, "):
        export_rules(RULES, tmp_path / "rules.txt")
    with pytest.raises(OptionError, match="an open file does not tell the language"):
        text_of(RULES, None)  # type: ignore[arg-type]


def test_a_place_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="does not exist"):
        export_rules(RULES, tmp_path / "nowhere/rules.sql")
    (tmp_path / "rules.sql").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        export_rules(RULES, tmp_path / "rules.sql")
