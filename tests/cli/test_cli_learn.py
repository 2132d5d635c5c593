"""`anyburl learn`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from anyburl import RuleSet, RunDirectory
from anyburl.learning.options import POLICIES

JSON_KEYS = [
    "run",
    "seconds",
    "rules",
    "rules_by_type",
    "rules_by_length",
    "paths",
    "bodies",
    "peak_memory_mb",
    "stopped_by",
    "found",
    "dropped",
    "threads",
    "outlook",
]


def test_json_is_one_object_and_nothing_else_on_standard_output(run: Any, tmp_path: Path) -> None:
    result = run("learn", "geo", "--paths", 5000, "--out", tmp_path / "run", "--json")
    told = json.loads(result.stdout)
    rules = RunDirectory.open(tmp_path / "run").load_rules()
    assert list(told) == JSON_KEYS
    assert told["rules"] == len(rules) == sum(told["rules_by_type"].values()) > 1000
    assert told["rules_by_length"] == rules.counts_by_length()
    assert (told["run"], told["stopped_by"]) == (str(tmp_path / "run"), "paths")
    assert "learning on geo" in result.stderr


def test_the_summary_says_where_the_rules_are_and_what_to_do(run: Any, tmp_path: Path) -> None:
    out = run("learn", "geo", "--seconds", 0.2, "--out", tmp_path / "run").stdout
    assert "length 1" in out
    assert f"saved in {tmp_path / 'run'}\n" in out
    assert f"anyburl rules {tmp_path / 'run'}\n" in out


def test_quiet_says_nothing_at_all(run: Any, tmp_path: Path) -> None:
    result = run("learn", "geo", "--paths", 5000, "--out", tmp_path / "run", "--quiet")
    assert (result.stdout, result.stderr) == ("", "")


def test_a_path_budget_gives_the_same_bytes_whatever_the_threads(run: Any, tmp_path: Path) -> None:
    for threads in (1, 2):
        budget = ["--paths", 60_000, "--seed", 7, "--max-cyclic", 4]
        run("learn", "geo", *budget, "--threads", threads, "--out", tmp_path / str(threads), "--quiet")
    one, two = ((tmp_path / str(threads) / "rules.parquet").read_bytes() for threads in (1, 2))
    assert one == two


@pytest.mark.usefixtures("ticking_clock")
def test_resume_goes_on_with_the_options_of_the_run(run: Any, run_json: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    search = ["--max-cyclic", 5, "--policy", "greedy", "--span", 0.1]
    first = run_json("learn", "geo", "--seconds", 0.2, *search, "--out", out)
    more = run_json("learn", "--out", out, "--resume", "--seconds", 1.5)
    assert more["rules"] > first["rules"]
    assert more["paths"] > first["paths"]
    assert first["seconds"] < 1.5 <= more["seconds"]
    options = RunDirectory.open(out).options()
    assert (options.max_cyclic, options.policy, options.seconds) == (5, "greedy", 1.5)
    spans = [line["number"] for line in RunDirectory.open(out).trace()]
    assert spans == list(range(1, len(spans) + 1))
    old = RuleSet.load(out / "rules.parquet")
    assert len(old.merge(old)) == len(old)


@pytest.mark.usefixtures("ticking_clock")
def test_a_run_of_seconds_can_go_on_with_paths_and_the_other_way_round(run_json: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run_json("learn", "geo", "--paths", 5000, "--max-cyclic", 5, "--out", out)
    assert run_json("learn", "--out", out, "--resume", "--seconds", 1.2)["stopped_by"] == "seconds"
    assert run_json("learn", "--out", out, "--resume", "--paths", 5000)["stopped_by"] == "paths"


def test_resume_refuses_other_data(run: Any, geo_run: Path, tmp_path: Path) -> None:
    (tmp_path / "other.txt").write_text("a r b\nb r c\n")
    wrong = run("learn", tmp_path / "other.txt", "--out", geo_run, "--resume", code=2)
    assert "was learned from" in wrong.stderr


def test_relations_restrict_the_heads(run: Any, run_json: Any, tmp_path: Path) -> None:
    run("learn", "geo", "--paths", 5000, "--relations", "borders,currency", "--out", tmp_path / "run", "--quiet")
    rules = RunDirectory.open(tmp_path / "run").load_rules()
    assert {rule.head.relation for rule in rules} == {"borders", "currency"}


def test_a_relation_may_have_a_comma_in_its_name(run: Any, tmp_path: Path) -> None:
    triples = [f"{s}\tlikes, really\t{o}\n" for s in "abcd" for o in "efgh"]
    (tmp_path / "data.txt").write_text("".join(triples))
    budget = ["--paths", 100, "--relations", "likes, really"]
    run("learn", tmp_path / "data.txt", *budget, "--out", tmp_path / "run", "--quiet")


def test_max_rules_drops_rules_and_says_so(run: Any, tmp_path: Path) -> None:
    result = run("learn", "geo", "--paths", 5000, "--max-rules", 500, "--out", tmp_path / "run", "--json")
    told = json.loads(result.stdout)
    assert told["rules"] == 500
    assert told["dropped"] > 1000
    assert f"dropped the {told['dropped']:,} rules" in result.stderr


@pytest.mark.usefixtures("ticking_clock")
def test_snapshots_can_be_looked_at(run: Any, tmp_path: Path) -> None:
    out = tmp_path / "run"
    run("learn", "geo", "--seconds", 0.6, "--snapshots", "0.3", "--max-cyclic", 5, "--out", out, "--quiet")
    early = json.loads(run("rules", out, "--at", 0.3, "--json").stdout)["total"]
    assert 0 < early <= json.loads(run("rules", out, "--json").stdout)["total"]  # a slow machine has one span only
    assert "it has 0.3" in run("rules", out, "--at", 7, code=2).stderr


def test_data_without_a_rule_is_no_error(run: Any, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("a r b\n")
    out = run("learn", tmp_path / "data.txt", "--paths", 100, "--out", tmp_path / "run")
    assert out.stdout.startswith("no rules found")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "no data set, folder or file 'nowhere'"),
        (["~nobody/data"], "no data set, folder or file '~nobody/data'"),
        (["{tmp}/empty.txt"], "empty.txt: expected lines with a subject, a relation and an object"),
        (["{tmp}/bad.txt"], "bad.txt:2: expected 3 blank-separated fields, got 2"),
        (["{tmp}"], "no train file"),
        (["{tmp}/badd.txt"], "/bad.txt'?"),
        (["geo", "--seconds", "-1"], "--seconds must be at least 0, got -1.0"),
        (["geo", "--seconds", "soon"], "Invalid value for '--seconds'"),
        (["geo", "--paths", "0"], "--paths must be at least 1, got 0"),
        (["geo", "--paths", "9", "--seconds", "9"], "--paths must be left out when --seconds is given, got 9"),
        (["geo", "--max-cyclic", "-1"], "--max-cyclic must be at least 0, got -1"),
        (
            ["geo", "--max-cyclic", "0", "--max-acyclic", "0"],
            "--max-cyclic must be at least 1 when --max-acyclic is 0, got 0",
        ),
        (["geo", "--policy", "lucky"], f"--policy must be one of {', '.join(POLICIES)}, got 'lucky'"),
        (["geo", "--snapshots", "1,x"], "--snapshots must be seconds such as 10,50,100, got '1,x'"),
        (["geo", "--relations", "curency"], "unknown relation 'curency'; did you mean 'currency'?"),
        (["geo", "--relations", ""], "--relations is empty"),
        (["geo", "--threads", "0"], "--threads must be at least 1, got 0"),
        (["geo", "--out", "{tmp}/empty.txt"], "cannot write the run folder"),
        (["geo", "--out", "{tmp}/empty.txt/run"], "cannot write the run folder"),
        (["--resume"], "is not a run folder: it has no options.json"),
        ([], "DATA is missing: name a data set (such as geo), a folder or a file"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "empty.txt").touch()
    (tmp_path / "bad.txt").write_text("a r b\na r\n")
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    wrong = run("learn", "--out", tmp_path / "run", *filled, code=2)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr
    assert not (tmp_path / "run" / "options.json").exists()


def test_a_folder_that_holds_a_run_is_refused(run: Any, geo_run: Path) -> None:
    wrong = run("learn", "geo", "--out", geo_run, code=2)
    hint = "choose another folder, or continue the run with --resume"
    assert wrong.stderr == f"error: {geo_run} already contains a run: {hint}\n"
