"""`anyburl rules`."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from anyburl import RuleSet
from anyburl.cli import rules as cli_rules
from anyburl.cli.rules import Measuring
from anyburl.reasoning.explanation import relatives

FOREIGN = """# a comment
10\t9\t0.9\tspeaks(X,Y) <= lives(X,A), lang(A,Y)
2\t2\t1.0\tspeaks(X,dutch) <= lives(X,holland)
510\t500\t0.98\tspeaks(X,Y) <= born(X,A), lang(A,Y)
40\t10\t0.25\tspeaks(X,dutch) <= lives(X,A)
100\t3\t0.03\tspeaks(X,dutch) <= 
"""


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    path = tmp_path / "rules.txt"
    path.write_text(FOREIGN)
    return path


def supports(told: Any) -> list[int]:
    return [rule["support"] for rule in told["rules"]]


def test_five_hundred_of_510_comes_before_two_of_two(run_json: Any, foreign: Path) -> None:
    assert supports(run_json("rules", foreign)) == [500, 9, 2, 10, 3]
    assert supports(run_json("rules", foreign, "--smoothing", 0)) == [2, 500, 9, 10, 3]


def test_rules_are_sorted_as_asked(run_json: Any, foreign: Path) -> None:
    assert supports(run_json("rules", foreign, "--sort", "support")) == [500, 10, 9, 3, 2]
    assert supports(run_json("rules", foreign, "--sort", "predictions")) == [500, 3, 10, 9, 2]
    assert supports(run_json("rules", foreign, "--sort", "value")) == [500, 9, 10, 2, 3]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--type", "B"], [500, 9]),
        (["--type", "Z"], [3]),
        (["--length", "1"], [2, 10]),
        (["--min-confidence", "0.9"], [500, 9, 2]),
        (["--min-support", "10"], [500, 10]),
        (["--contains", "holland"], [2]),
        (["--contains", "born", "--relation", "speaks"], [500]),
        (["--top", "1"], [500]),
    ],
)
def test_rules_are_chosen_by_what_they_are(
    run_json: Any, foreign: Path, options: list[str], expected: list[int]
) -> None:
    assert supports(run_json("rules", foreign, *options)) == expected


def test_the_table_has_one_line_for_each_rule(run: Any, foreign: Path) -> None:
    lines = [line.strip() for line in run("rules", foreign).stdout.splitlines() if line.strip()]
    assert re.split(r"\s{2,}", lines[0]) == ["type", "confidence", "support", "predictions", "rule"]
    assert re.split(r"\s{2,}", lines[2])[-1] == "speaks(X,Y) <= born(X,A), lang(A,Y)"
    assert lines[-1] == "5 of 5 rules, by support / (predictions + 5)"
    assert len(lines) == 8


def test_colours_are_left_out_if_nobody_wants_them(run: Any, foreign: Path) -> None:
    coloured = {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    assert "\x1b[36m" in run("rules", foreign, env=coloured).stdout
    assert "\x1b[36m" not in run("rules", foreign, env={**coloured, "NO_COLOR": "1"}).stdout


def test_labels_that_look_like_markup_are_printed_as_they_are(run: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("5\t4\t0.8\t[red]h(X,:smile:) <= b(X,[/x])\n")
    assert "[red]h(X,:smile:) <= b(X,[/x])" in run("rules", tmp_path / "rules.txt").stdout


@pytest.fixture
def names(tmp_path: Path) -> Path:
    path = tmp_path / "names.tsv"
    path.write_text(
        "speaks\thas language\nlives\tis in\nborn\tis in\nholland\tThe Netherlands\nlang\tthe netherlands\n"
    )
    return path


def test_readable_names_are_shown_beside_the_rules(run: Any, run_json: Any, foreign: Path, names: Path) -> None:
    (rule,) = run_json("rules", foreign, "--contains", "holland", "--names", names)["rules"]
    assert rule["rule"] == "speaks(X,dutch) <= lives(X,holland)"
    assert rule["named"] == "has language(X,dutch) <= is in(X,The Netherlands)"
    assert rule["named"] in run("rules", foreign, "--names", names).stdout
    assert "named" not in run_json("rules", foreign)["rules"][0]


def test_filters_understand_readable_names(run: Any, run_json: Any, foreign: Path, names: Path) -> None:
    assert len(run_json("rules", foreign, "--relation", "has language", "--names", names)["rules"]) == 5
    assert supports(run_json("rules", foreign, "--contains", "has language", "--type", "Z", "--names", names)) == [3]
    several = run("rules", foreign, "--contains", "is in", "--names", names, code=2)
    assert "the relation 'is in' is ambiguous; it could be born, lives" in several.stderr
    both = run("rules", foreign, "--contains", "The Netherlands", "--names", names, code=2)
    assert "it could be the relation lang or the entity holland" in both.stderr
    assert (
        "unknown relation 'language'"
        in run("rules", foreign, "--relation", "language", "--names", names, code=2).stderr
    )


def test_an_empty_result_says_so(run: Any, foreign: Path, tmp_path: Path) -> None:
    assert run("rules", foreign, "--length", 5).stdout == "none of the 5 rules match\n"
    (tmp_path / "empty.txt").touch()
    assert run("rules", tmp_path / "empty.txt").stdout == "no rules\n"


def test_run_folders_parquet_and_text_show_the_same(run_json: Any, geo_run: Path, tmp_path: Path) -> None:
    rules = RuleSet.load(geo_run / "rules.parquet")
    rules.save(tmp_path / "rules.txt.gz")
    of_run = run_json("rules", geo_run)
    assert run_json("rules", geo_run / "rules.parquet", "--data", "geo") == of_run
    of_text = run_json("rules", tmp_path / "rules.txt.gz", "--data", "geo")
    assert [rule["rule"] for rule in of_text["rules"]] == [rule["rule"] for rule in of_run["rules"]]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "no run folder or rule file at 'nowhere'"),
        (["{tmp}"], "is not a run folder: it has no options.json"),
        (["{tmp}/data"], "data contains triples, not rules: pass the folder that `anyburl learn"),
        (["{tmp}/junk.parquet"], "cannot be read as Parquet"),
        (["{tmp}/triples.txt"], "the file contains no rules; line 1: expected 4 tab-separated fields, got 3"),
        (["{tmp}/rules.txt", "--relation", "speakz"], "unknown relation 'speakz'; did you mean 'speaks'?"),
        (["{tmp}/rules.txt", "--contains", "hollant"], "unknown entity or relation 'hollant'; did you mean 'holland'?"),
        (["{tmp}/rules.txt", "--type", "Q"], "--type must be one of B, Uc, Ud, Z, Uv, Bv, got 'Q'"),
        (
            ["{tmp}/rules.txt", "--sort", "luck"],
            "--sort must be one of surprise, confidence, support, value, predictions",
        ),
        (["{tmp}/rules.txt", "--top", "-1"], "Invalid value for '--top'"),
        (["{tmp}/rules.txt", "--at", "10"], "--at needs a run folder with snapshots"),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Any, foreign: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "junk.parquet").write_text("junk")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "triples.txt").write_text("a\tr\tb\n")
    wrong = run("rules", *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments), code=2)
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr


def test_rules_of_a_run_are_sorted_by_surprise_and_those_that_say_the_same_are_folded(
    run: Any, run_json: Any, geo_run: Path
) -> None:
    told = run_json("rules", geo_run, "--top", 30)
    unfolded = run_json("rules", geo_run, "--top", 120, "--no-fold")
    assert told["sort"] == unfolded["sort"] == "surprise"
    surprises = [rule["surprise"] for rule in unfolded["rules"]]
    assert surprises == sorted(surprises, reverse=True)
    shown = {rule["rule"]: rule["like_it"] for rule in told["rules"]}
    assert set(shown) < {rule["rule"] for rule in unfolded["rules"]}
    assert any(shown.values())
    assert "like it" in run("rules", geo_run, "--top", 30).stdout
    by_confidence = run_json("rules", geo_run, "--sort", "confidence", "--top", 30)
    assert by_confidence["sort"] == "confidence"
    assert "like_it" not in by_confidence["rules"][0]


def test_the_best_rules_of_a_large_run_are_read_from_a_small_file(
    run_json: Any, geo_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(geo_run, folder)
    requests = [
        [],
        ["--relation", "located_in"],
        ["--sort", "value", "--top", 7],
        ["--relation", "borders", "--no-fold"],
    ]
    expected = [run_json("rules", folder, *request) for request in requests]
    assert not (folder / "best.parquet").exists()
    monkeypatch.setattr(relatives, "MANY", 1000)
    assert run_json("rules", folder) == expected[0]
    assert (folder / "best.parquet").exists()
    with monkeypatch.context() as patch:
        patch.setattr(cli_rules, "load_rules_argument", None)  # nothing else is read
        assert [run_json("rules", folder, *request) for request in requests] == expected
        patch.setattr(Measuring, "representatives", None)
        assert run_json("rules", folder) == expected[0]
    RuleSet.load(folder).slice(0, 500).save(folder / "rules.parquet")
    assert run_json("rules", folder)["total"] == 500  # what is kept is that of other rules
