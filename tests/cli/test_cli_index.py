"""`anyburl index`, and the other commands on what it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anyburl import RunDirectory
from anyburl.cli.datasets import Steps, peak_bytes
from anyburl.cli.notes import note_console


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of an index of geo."""
    from anyburl import build_index

    folder = tmp_path_factory.mktemp("index") / "geo.index"
    build_index("geo", folder)
    return folder


def test_the_index_is_described(run: Any, run_json: Any, tmp_path: Path) -> None:
    told = run_json("index", "geo", "--out", tmp_path / "one")
    assert (told["train"], told["valid"], told["test"], told["entities"], told["relations"]) == (
        8935,
        1117,
        1117,
        2780,
        25,
    )
    assert told["bytes"] == sum(file.stat().st_size for file in (tmp_path / "one").rglob("*") if file.is_file())
    assert told["bytes_per_triple"] == pytest.approx(told["bytes"] / 11169, abs=0.1)
    assert told["peak_bytes"] == pytest.approx(peak_bytes(), rel=0.5)
    shown = run("index", "geo", "--out", tmp_path / "two").stdout
    assert "geo: train 8,935, valid 1,117, test 1,117; 2,780 entities, 25 relations" in shown
    assert f"learn from it:  anyburl learn {tmp_path / 'two'} --out RUN" in shown
    assert run("index", "geo", "--out", tmp_path / "three", "--quiet").output == ""


def test_rules_and_metrics_are_those_of_the_text(
    run: Any, run_json: Any, geo_run: Path, index: Path, tmp_path: Path
) -> None:
    run("learn", index, "--paths", 20_000, "--out", tmp_path / "run", "--quiet")
    run("convert", geo_run, tmp_path / "text.txt")
    run("convert", tmp_path / "run", tmp_path / "index.txt")
    assert (tmp_path / "text.txt").read_bytes() == (tmp_path / "index.txt").read_bytes()
    assert RunDirectory.open(tmp_path / "run").described()["data"]["source"] == str(index)
    one, other = run_json("evaluate", geo_run), run_json("evaluate", tmp_path / "run")
    assert (one["protocol"], one["metrics"]) == (other["protocol"], other["metrics"])
    question = ["?", "located_in", "Denmark"]
    assert run("predict", geo_run, *question).stdout == run("predict", tmp_path / "run", *question).stdout


def test_what_is_there_is_left_alone(run: Any, index: Path, tmp_path: Path) -> None:
    before = (index / "index.json").read_bytes()
    wrong = run("index", "geo", "--out", index, code=2)
    assert wrong.stderr == f"error: {index} already contains an index: choose another folder, or remove this one\n"
    assert (index / "index.json").read_bytes() == before
    (tmp_path / "note").touch()
    assert "is not empty" in run("index", "geo", "--out", tmp_path, code=2).stderr
    assert "no data set" in run("index", "nowhere", "--out", tmp_path / "new", code=2).stderr
    assert "contains triples, not rules" in run("rules", index, code=2).stderr


def test_an_interrupt_gives_130_and_leaves_nothing(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Steps, doing: str, n: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "show", interrupt)
    assert run("index", "geo", "--out", tmp_path / "out", code=130).stderr == "error: interrupted\n"
    assert list(tmp_path.iterdir()) == []


def test_steps_are_said_once_each_if_it_takes_long(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    with Steps(note_console()) as steps:
        steps.show("reading train", 5)
        monkeypatch.setattr("anyburl.cli.datasets.SECONDS_UNTIL_SAID", 0)
        steps.show("reading train", 1000)
        steps.show("reading train", 2000)
        steps.show("indexing", 2000)
    assert capsys.readouterr().err == "reading train: 1,000 ...\nindexing: 2,000 ...\n"
