"""Values of attributes on the command line: read, estimated, judged, shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyburl import Reasoner


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run on packages: games are large, libraries are small; the sizes of g9 and l9 are held out."""
    from cli.conftest import invoke

    folder = tmp_path_factory.mktemp("values")
    facts = [f"{kind[0]}{n}\tsection\t{kind}\n" for kind in ("games", "libs") for n in range(10)]
    (folder / "train.txt").write_text("".join([*facts, *(f"g{n}\tneeds\tl{n}\n" for n in range(10))]))
    sizes = {f"g{n}": 1000 + n for n in range(10)} | {f"l{n}": 10 + n for n in range(10)}
    lines = {entity: f"{entity}\tsize\t{size}\n" for entity, size in sizes.items()}
    (folder / "attributes_test.tsv").write_text(lines.pop("g9") + lines.pop("l9"))
    (folder / "attributes.tsv").write_text("".join(lines.values()) + "g1\treleased\t2001-05-06\n")
    said = invoke("learn", folder, "--paths", 500, "--out", folder / "run")
    assert "read as attributes: released (1 date), size (18 numbers)" in said.stderr
    return folder / "run"


def test_a_run_keeps_values_and_estimates_missing_ones(run: Any, run_json: Any, learned: Path) -> None:
    assert (learned / "attributes.parquet").is_file()
    found = run_json("predict", learned, "g9", "size", "?")
    assert (found["entity"], found["attribute"], found["kind"], found["stated"]) == ("g9", "size", "number", [])
    assert 1000 <= found["low"] <= found["value"] <= found["high"] <= 1008
    assert found["reasons"][0].keys() == {"group", "n_values", "median", "low", "high", "share"}
    shown = run("predict", learned, "g9", "size", "?").stdout
    assert f"size(g9) is about {found['text']['value']}, probably from" in shown
    assert "section(X,games)" in shown
    with Reasoner.open(learned, prepare=False) as reasoner:
        assert reasoner.estimate("g9", "size").to_json() == found


def test_a_prepared_run_with_values_answers_without_reading_its_data(
    run: Any, learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("prepare", learned, "--quiet")
    monkeypatch.setattr("anyburl.cli.loading.load_data_of_rules", lambda *_: pytest.fail("the data was read"))
    assert "games" in run("predict", learned, "g9", "section", "?", "--include-known").stdout


def test_estimates_are_judged(run: Any, run_json: Any, learned: Path) -> None:
    result = run_json("evaluate", learned, "--values")
    assert (result["split"], result["better"]) == ("test", 1)
    assert result["attributes"][0]["values"] == 2
    assert "better than the median for 1 of 1 attribute of test" in run("evaluate", learned, "--values").stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["predict", "RUN", "?", "size", "5"], "size is an attribute: ask for a value of it as ENTITY size '?'"),
        (["predict", "RUN", "g9", "siz", "?"], "siz"),
        (["evaluate", "RUN", "--values", "--split", "valid"], "has no values held out for valid"),
        (["learn", "DATA", "--out", "new", "--attribute", "size"], "must be names with a kind"),
        (["learn", "DATA", "--out", "new", "--attribute", "section=number"], "train.txt:1: expected a number"),
        (["learn", "DATA", "--out", "new", "--attribute", "sise=number"], "did you mean size?"),
        (["learn", "DATA", "--out", "new", "--attributes", "nowhere.tsv"], "nowhere.tsv"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(run: Any, learned: Path, arguments: list[str], message: str) -> None:
    places = {"RUN": str(learned), "DATA": str(learned.parent), "new": str(learned.parent / "new")}
    said = run(*[places.get(word, word) for word in arguments], code=2).stderr
    assert message in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            "g1\tsize\ttall\ng2\tsize\t5\n",
            "values.tsv:1: expected a number such as 12.5, without a unit, for size, got 'tall'",
        ),
        (
            "g1\tsize\t12 kg\ng2\tsize\t5\n",
            "values.tsv:1: expected a number such as 12.5, without a unit, for size, got '12 kg'",
        ),
        ("g1\tsize\t5\ng2\tsize\t1e999\n", "values.tsv:2: expected a number"),
        ("g1\tborn\t1900-01-01\ng2\tborn\t1900-02-30\n", "values.tsv:2: expected a date such as"),
    ],
)
def test_what_is_no_value_is_refused_in_a_sentence(
    run: Any, learned: Path, tmp_path: Path, values: str, message: str
) -> None:
    (tmp_path / "values.tsv").write_text(values)
    said = run("learn", learned.parent, "--out", tmp_path / "run", "--attributes", tmp_path / "values.tsv", code=2)
    assert message in said.stderr
    assert len(said.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("section(X,games) <= width(X) >= 5", "a rule has a condition on width, but the data has no such attribute"),
        ("needs(X,Y) <= needs(Y,X), width(X) < width(Y)", "condition on width, but the data has no such attribute"),
        ("section(X,games) <= size(X) >= 12 kg", "expected a number, a date such as 1999-12-31, true or false"),
        ("section(X,games) <= size(X) >= 1e999", "expected a number, a date such as 1999-12-31, true or false"),
        ("section(X,games) <= size(X) >= 9, size(X) < 3", "expected a condition that some values satisfy and others"),
        ("section(X,games) <= size(X) >= 1900-13-01", "expected a number, a date such as 1999-12-31, true or false"),
        ("needs(X,Y) <= needs(Y,X), size(X) <= size(Y)", "expected a comparison of one attribute by <, = or >"),
        ("needs(X,Y) <= needs(Y,X), size(X) < weight(Y)", "expected a comparison of one attribute by <, = or >"),
        ("needs(X,Y) <= needs(Y,X), size(X) < 5", "a condition of a binary rule compares both variables of its head"),
    ],
)
def test_a_condition_that_makes_no_sense_is_refused_in_a_sentence(
    run: Any, learned: Path, tmp_path: Path, rule: str, message: str
) -> None:
    (tmp_path / "rules.txt").write_text(f"4\t1\t0.25\t{rule}\n")
    said = run("rescore", tmp_path / "rules.txt", "--data", learned.parent, "--out", tmp_path / "new.txt", code=2)
    assert message in said.stderr
    assert [line[:7] for line in said.stderr.strip().splitlines()].count("error: ") == 1


def test_a_run_remembers_where_values_came_from(run: Any, learned: Path, tmp_path: Path, run_json: Any) -> None:
    (tmp_path / "more.csv").write_text("id,weight\ng1,5\ng2,6\n")
    data = learned.parent
    run("learn", data, "--paths", 100, "--out", tmp_path / "run", "--attributes", tmp_path / "more.csv", "--quiet")
    reading = json.loads((tmp_path / "run" / "options.json").read_text())["data"]["reading"]
    assert reading == {"attribute_file": str(tmp_path / "more.csv")}
    assert run_json("predict", tmp_path / "run", "g3", "weight", "?")["value"] in (5, 6)
