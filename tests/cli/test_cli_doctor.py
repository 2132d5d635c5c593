"""`anyburl doctor`."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data set whose test facts can be read off train."""
    data = tmp_path / "mine"
    data.mkdir()
    facts = [f"a{i}\tchild\tb{i}" for i in range(10)] + [f"b{i}\tparent\ta{i}" for i in range(9)]
    (data / "train.txt").write_text("\n".join(facts) + "\n", "utf-8")
    (data / "test.txt").write_text("b9\tparent\ta9\nnew\tparent\ta1\n", "utf-8")
    return data


def test_the_report_is_printed(run: Any, folder: Path) -> None:
    shown = run("doctor", folder, "--no-rules").stdout
    assert shown.startswith("mine: 19 train, 0 valid, 2 test, 21 entities, 2 relations\n")
    assert "1 of 2 test facts (50.0 %) can be read off train" in shown
    assert "1 test fact has an entity that train lacks" in shown


def test_json_is_the_only_output(run_json: Any, folder: Path) -> None:
    told = run_json("doctor", folder, "--no-rules", "--fail-on", "reflexive")
    assert told["data"] == "mine"
    assert told["rules"] is None
    assert told["failed"] == []
    assert [finding["check"] for finding in told["findings"]][:3] == ["leakage", "unseen", "inverse"]


def test_what_a_pipeline_must_not_have_gives_code_3(run: Any, run_json: Any, folder: Path) -> None:
    failed = run("doctor", folder, "--no-rules", "--fail-on", "leakage, unseen,reflexive", code=3)
    assert failed.stdout.endswith("failed: leakage, unseen\n")
    assert run_json("doctor", folder, "--no-rules", "--fail-on", "leakage", code=3)["failed"] == ["leakage"]
    run("doctor", folder, "--no-rules", "--fail-on", "reflexive,symmetric")


def test_facts_are_judged_by_the_rules_of_a_run(run: Any, run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    told = run_json("doctor", "geo", "--rules", geo_run, "--html", page, "--top", 3)
    assert told["rules"] > 0
    assert max(len(finding["examples"]) for finding in told["findings"] if finding["check"] != "degrees") <= 3
    assert page.read_text("utf-8").startswith("<!DOCTYPE html>")
    assert f"page written to {page}" in run("doctor", "geo", "--no-rules", "--html", page).stdout


def test_rules_are_learned_for_a_moment(run_json: Any, folder: Path) -> None:
    assert run_json("doctor", folder, "--seconds", 0.2, "--threads", 1, "--seed", 1)["rules"] > 0


def test_suspects_come_by_relation_and_go_to_a_file(run: Any, run_json: Any, tmp_path: Path) -> None:
    """Two relations between sorts of things that never mix, and facts of each that mix them, many of the one."""
    facts = [f"{kind}{i}\t{kind}_to\t{kind}{(i * 7 + j) % 60}" for kind in "ab" for i in range(60) for j in range(4)]
    facts += [f"a{i}\ta_to\tb{i}" for i in range(3)] + ["b1\tb_to\ta9"]
    data, out = tmp_path / "facts.tsv", tmp_path / "suspects.csv"
    data.write_text("\n".join(facts) + "\n", "utf-8")

    def suspects(*flags: object) -> Any:
        told = run_json("doctor", data, "--no-rules", *flags)
        (finding,) = [one for one in told["findings"] if one["check"] == "suspects"]
        return finding

    both = suspects("--per-relation", 2, "--suspects", out)
    shown = [row["relation"] for row in both["examples"]]
    assert shown == ["b_to"] * 2 + ["a_to"] * 2
    assert "5 of b to, 3 of a to" in both["sentence"]
    lines = out.read_text("utf-8").splitlines()
    assert lines[0] == "subject,relation,object,suspicion,why"
    assert len(lines) == both["count"] + 1
    one = suspects("--relation", "b_to", "--suspects", tmp_path / "one.parquet")
    assert {row["relation"] for row in one["examples"]} == {"b_to"}
    assert one["count"] < both["count"]


def test_a_table_with_a_row_for_each_thing_is_described(run: Any, run_json: Any, tmp_path: Path) -> None:
    table = tmp_path / "packages.csv"
    rows = [
        f'p{i},{i}.{i % 3}-1,section {i % 4},{900 + i},https://p{i}.org/,a nice program no {i},"p{i // 2}, p{i // 3}"'
        for i in range(60)
    ]
    table.write_text("\n".join(["Package,Version,Section,Size,Homepage,Description,Depends", *rows]) + "\n", "utf-8")
    columns, recipe = run_json("doctor", table)["findings"]
    assert {row["column"]: row["is"] for row in columns["examples"]} == {
        "Package": "the subject",
        "Version": "values: versions",
        "Section": "a relation",
        "Size": "values: numbers",
        "Homepage": "values: addresses",
        "Description": "values: texts",
        "Depends": "a list",
    }
    lines = [row["in Python"] for row in recipe["examples"]]
    exec("\n".join(lines[:-1]).replace("'facts.csv'", repr(str(tmp_path / "facts.csv"))), {})
    flags = shlex.split(lines[-1].removeprefix("then: anyburl learn facts.csv"))[:-2]
    told = run_json("index", tmp_path / "facts.csv", *flags, "--out", tmp_path / "index")
    n_parts = len({(i, part) for i in range(60) for part in (i // 2, i // 3)})
    assert (told["train"], told["relations"]) == (60 + n_parts, 2)
    refused = run("learn", table, "--out", tmp_path / "run", code=2).stderr
    assert "`anyburl doctor` tells how to make facts" in refused


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--fail-on", "leaks"], "--fail-on must be some of leakage, unseen"),
        (["--fail-on", ""], "--fail-on must be some of"),
        (["--top", 0], "--top must be at least 1, got 0"),
        (["--seconds", -1], "--seconds must be at least 0, got -1.0"),
        (["--types", "typ"], "unknown relation 'typ'"),
        (["--relation", "chidl"], "unknown relation 'chidl'"),
        (["--suspects", "s.html"], "s.html: expected a file that ends in one of"),
        (["--rules", "no-such-run"], "no run folder or rule file at 'no-such-run'"),
        (["--rules", "x", "--no-rules"], "contradict each other"),
        (["--html", "no/such/folder.html"], "does not exist"),
    ],
)
def test_wrong_input_is_one_sentence(run: Any, folder: Path, arguments: list[str], message: str) -> None:
    wrong = run("doctor", folder, *arguments, code=2)
    assert message in wrong.stderr
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert wrong.stdout == ""


BEGUN = """
import os
from anyburl.tools.doctor import examine
learn = examine.learn_briefly
def learn_and_say(*given):
    examine.learn_briefly = learn  # said once, though rules may be learned again before the signal comes
    os.write(1, b"begun\\n")  # at once: a print that the signal interrupts may come twice
    return learn(*given)
examine.learn_briefly = learn_and_say
"""


def test_ctrl_c_while_rules_are_learned_ends_it(spawn: Any, geo_run: Path) -> None:
    process = spawn("doctor", "geo", "--seconds", 60, first=BEGUN)
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert out == ""
    assert errors.endswith("error: interrupted\n")
