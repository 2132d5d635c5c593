"""`anyburl check`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import anyburl

STATED, AGAINST = ("France", "capital", "Paris"), ("France", "capital", "Berlin")
UNSEEN = ("Atlantis", "capital", "Paris")


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.tsv"
    path.write_text("".join("\t".join(fact) + "\n" for fact in (STATED, AGAINST, UNSEEN)), "utf-8")
    return path


def test_facts_are_judged_and_written(run: Any, run_json: Any, geo_run: Path, facts: Path, tmp_path: Path) -> None:
    told = {(row["subject"], row["object"]): row for row in run_json("check", facts, "--run", geo_run)}
    assert told["France", "Paris"]["verdict"] == "stated"
    assert told["France", "Berlin"]["verdict"] == "contradicted"
    assert told["France", "Berlin"]["conflict"] == list(STATED)
    assert told["Atlantis", "Paris"]["note"] == "the entity 'Atlantis' is not in the data"
    for suffix in (".csv", ".tsv", ".parquet", ".jsonl"):
        out = tmp_path / f"checked{suffix}"
        run("check", facts, "--run", geo_run, "--out", out, "--quiet")
        read = {".csv": pl.read_csv, ".parquet": pl.read_parquet, ".jsonl": pl.read_ndjson}.get(suffix)
        frame = read(out) if read else pl.read_csv(out, separator="\t")
        assert sorted(frame["verdict"]) == ["contradicted", "stated", "unknown"]
    shown = run("check", facts, "--run", geo_run)
    assert "1 stated, 0 supported, 1 contradicted, 1 unknown" in shown.stdout
    assert "France capital Paris" in shown.stdout
    assert "anyburl calibrate" in shown.stderr


def test_other_formats_are_read(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    lines = [dict(zip(("subject", "relation", "object"), fact, strict=True)) for fact in (AGAINST, STATED)]
    (tmp_path / "facts.jsonl").write_text("\n".join(map(json.dumps, lines)), "utf-8")
    pl.DataFrame(lines).write_csv(tmp_path / "facts.csv")
    pl.DataFrame(lines).write_parquet(tmp_path / "facts.parquet")
    for name in ("facts.jsonl", "facts.csv", "facts.parquet"):
        verdicts = {row["object"]: row["verdict"] for row in run_json("check", tmp_path / name, "--run", geo_run)}
        assert verdicts == {"Paris": "stated", "Berlin": "contradicted"}


def test_probabilities_are_learned_from_facts_that_are_known_to_be_false(
    run: Any, run_json: Any, geo_run: Path, tmp_path: Path
) -> None:
    """Capitals of other countries are false; the valid split is taken for true facts."""
    geo = anyburl.load_dataset("geo")
    capitals = geo.train.to_polars().filter(pl.col("relation") == "capital").rows()
    shifted = [(s, r, capitals[place - 1][2]) for place, (s, r, _) in enumerate(capitals)]
    known, asked, true = tmp_path / "false.tsv", tmp_path / "asked.tsv", geo.valid.to_polars().rows()[:3]
    for path, facts in ((known, shifted[:100]), (asked, [*shifted[100:103], *true])):
        path.write_text("".join("\t".join(fact) + "\n" for fact in facts), "utf-8")
    told = run_json("check", asked, "--run", geo_run, "--known-false", known, "--as-if-unstated")
    assert [row["verdict"] for row in told] == ["contradicted"] * 3 + ["supported"] * 3
    assert all((row["probability"] >= 0.5) == (place >= 3) for place, row in enumerate(told))
    shown = run("check", asked, "--run", geo_run, "--known-true", known, code=2)
    assert "--known-true needs --known-false" in shown.stderr


def test_the_exit_code_is_for_pipelines(run: Any, geo_run: Path, facts: Path, tmp_path: Path) -> None:
    run("check", facts, "--run", geo_run, "--quiet", "--fail-below", 0.5, code=3)
    facts.write_text("\t".join(STATED), "utf-8")
    run("check", facts, "--run", geo_run, "--quiet", "--fail-below", 0.5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "m.xlsx"], "expected a file that ends in one of .tsv, .csv"),
        (["--out", "no/m.csv"], "the folder no does not exist"),
        (["--min-probability", 2], "--min-probability must be from 0 to 1, got 2.0"),
        (["--fail-below", -1], "--fail-below must be from 0 to 1, got -1.0"),
    ],
)
def test_wrong_input_gets_a_sentence(
    run: Any, geo_run: Path, facts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: Any, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    refused = run("check", facts, "--run", geo_run, *arguments, code=2)
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) == 1


def test_files_that_hold_no_facts_are_refused(run: Any, geo_run: Path, tmp_path: Path) -> None:
    bad = tmp_path / "facts.jsonl"
    bad.write_text('{"s": 1}\n')
    assert "expected objects with subject" in run("check", bad, "--run", geo_run, code=2).stderr
    bad.write_text("no json\n")
    assert "cannot read JSON lines" in run("check", bad, "--run", geo_run, code=2).stderr
    assert "no such file" in run("check", tmp_path / "none.jsonl", "--run", geo_run, code=2).stderr
