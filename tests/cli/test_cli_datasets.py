"""`anyburl datasets`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anyburl.cli.consoles import PlainConsole
from anyburl.cli.datasets import fitting_table
from anyburl.triples import write_triples
from anyburl.triples.registry import registry


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that ANYBURL_DATA names, with one data set that is known and one that is not."""
    for name in ("umls", "family"):
        (tmp_path / name).mkdir()
        write_triples([("ed", "speaks", "dutch")], tmp_path / name / "train.txt")
    (tmp_path / "names").mkdir()
    monkeypatch.setenv("ANYBURL_DATA", str(tmp_path))
    monkeypatch.setenv("ANYBURL_CACHE", str(tmp_path / "cache"))
    return tmp_path


def test_data_sets_are_listed_with_where_they_are(run: Any) -> None:
    lines = {line.split()[0]: line for line in run("datasets").stdout.splitlines() if line.strip()}
    assert "built in" in lines["geo"]
    assert "here" in lines["umls"]
    assert "here" in lines["family"]
    assert "to add" in lines["FB15k-237"]
    assert "272,115" in lines["FB15k-237"]
    assert "names" not in lines


@pytest.mark.parametrize("width", [60, 80, 120, 200])
def test_names_are_whole_on_a_terminal_of_any_width(width: int) -> None:
    console = PlainConsole(width=width)
    with console.capture() as capture:
        console.print(fitting_table([(entry, "to add", None) for entry in registry().values()], width))
    lines = [line for line in capture.get().splitlines() if line.strip()]
    assert [line.split()[0] for line in lines[2:]] == list(registry())
    assert all("to add" in line for line in lines[2:])
    assert ("licence" in lines[0]) == (width == 200)


def test_the_list_as_json(run_json: Any, home: Path) -> None:
    found = run_json("datasets")
    by_name = {entry["name"]: entry for entry in found["datasets"]}
    assert found["folder"] == str(home)
    assert by_name["umls"]["path"] == str(home / "umls")
    assert by_name["WN18RR"]["triples"] == {"train": 86835, "valid": 3034, "test": 3134}
    assert (by_name["WN18RR"]["state"], by_name["WN18RR"]["files"]) == ("to add", {})


def test_getting_a_data_set_tells_where_it_is(run: Any, run_json: Any, home: Path) -> None:
    shown = run("datasets", "get", "UMLS").stdout
    assert "umls: train 1, valid 0, test 0; 2 entities, 1 relations" in shown
    assert f"it is in {home / 'umls'}" in shown
    assert run_json("datasets", "get", "UMLS")["path"] == str(home / "umls")
    assert "it is built in" in run("datasets", "get", "geo").stdout


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["got"], "datasets takes list or get NAME, got 'got'"),
        (["get"], "give the name of one data set: anyburl datasets get NAME"),
        (["get", "wn18"], "WN18 is not on this machine, and there is no address of it that was checked: put"),
        (["get", "wn19"], "did you mean"),
    ],
)
def test_what_cannot_be_done_is_said(run: Any, arguments: list[str], sentence: str) -> None:
    assert sentence in run("datasets", *arguments, code=2).stderr
