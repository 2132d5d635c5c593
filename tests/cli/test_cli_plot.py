"""`anyburl plot`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from anyburl.data import write_triples

PLOTS = ["anytime", "rules", "rewards", "cores", "calibration"]


@pytest.fixture
def needs_matplotlib() -> None:
    pytest.importorskip("matplotlib", reason="Matplotlib is not installed: pip install 'anyburl[plot]'")


@pytest.mark.usefixtures("needs_matplotlib")
def test_a_folder_gets_one_picture_each(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "pictures"
    shown = run("plot", geo_run, "--out", out, "--what", "rules,cores").stdout
    assert shown == f"wrote {out / 'rules.png'}\nwrote {out / 'cores.png'}\n"
    found = run_json("plot", geo_run, "--out", out, "--threads", 1)
    assert found == {"files": [str(out / f"{name}.png") for name in PLOTS], "plots": PLOTS}
    assert all((out / f"{name}.png").read_bytes().startswith(b"\x89PNG") for name in PLOTS)


@pytest.mark.usefixtures("needs_matplotlib")
def test_a_file_gets_all_in_one(run: Any, geo_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "all.svg"
    run("plot", geo_run, geo_run, "--out", out, "--what", "rules,anytime", "--metric", "hits@10")
    text = out.read_text()
    assert text.startswith("<?xml")
    assert "hits@10 over time" in text


@pytest.mark.usefixtures("needs_matplotlib")
def test_without_a_test_split_what_needs_none_is_drawn(run: Any, tmp_path: Path) -> None:
    write_triples([(f"p{i}", relation, f"c{i % 5}") for i in range(20) for relation in "ab"], tmp_path / "train.txt")
    run("learn", tmp_path, "--paths", 200, "--out", tmp_path / "run", "--quiet")
    drawn = run("plot", tmp_path / "run", "--out", tmp_path / "pictures")
    assert "has no triples in its test split: skipping anytime and calibration" in drawn.stderr
    assert [line.rpartition("/")[2] for line in drawn.stdout.split()[1::2]] == ["rules.png", "rewards.png", "cores.png"]
    wrong = run("plot", tmp_path / "run", "--out", tmp_path / "pictures", "--what", "calibration", code=2)
    assert "has no triples in its test split" in wrong.stderr


@pytest.mark.usefixtures("needs_matplotlib")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--out", "a.txt"], "a.txt: expected a folder, or a file that ends in one of .png, .svg, .pdf"),
        (["--out", "no/such/a.png"], "the folder no/such does not exist"),
        (["--out", "a", "--what", "roc"], "--what takes anytime, rules, rewards, cores, calibration, separated"),
        (["--out", "a", "--metric", "auc"], "--metric takes mrr, hits@1, hits@3, hits@10, got 'auc'"),
        (["--out", "a", "--split", "dev"], "split must be train, valid or test, got 'dev'"),
    ],
)
def test_what_cannot_be_drawn_is_refused(run: Any, geo_run: Path, arguments: list[str], sentence: str) -> None:
    assert sentence in run("plot", geo_run, *arguments, code=2).stderr


def test_without_matplotlib_the_extra_is_named(run: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    wrong = run("plot", tmp_path, "--out", tmp_path / "a.png", code=2)
    assert wrong.stderr == "error: plotting needs an extra: pip install 'anyburl[plot]'\n"
