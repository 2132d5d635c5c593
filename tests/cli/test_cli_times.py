"""The commands on facts with times: one run on the built-in history, and what is refused."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

import anyburl
from anyburl import ReviewLog, RunError


@pytest.fixture(scope="module")
def history_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder with rules of the built-in history, learned once."""
    from cli.conftest import invoke

    out = tmp_path_factory.mktemp("runs") / "history"
    told = invoke("learn", "history", "--out", out, "--threads", 1).stderr
    assert "history has facts with times (--time ignore leaves them out)" in told
    assert "82 years from 1945 to 2026" in told
    return out


def test_learning_reports_the_forms_of_rules(history_run: Path, run_json: Any) -> None:
    rules = run_json("rules", str(history_run), "--top", "3", "--relation", "chairs", "--form", "pair")
    assert rules["rules"][0]["rule"].startswith("chairs(X,Y,T) <= chairs(X,Y,U), T-U in 1..")
    assert {rule["form"] for rule in rules["rules"]} == {"pair"}


def test_a_run_that_is_interrupted_is_saved(run: Any, run_json: Any, tmp_path: Path, monkeypatch: Any) -> None:
    from anyburl.temporal.learner import TemporalLearner

    class Interrupted(TemporalLearner):
        def learn(self, *arguments: Any) -> Any:
            signal.raise_signal(signal.SIGINT)
            return super().learn(*arguments)

    monkeypatch.setattr("anyburl.temporal.learner.TemporalLearner", Interrupted)
    told = json.loads(run("learn", "history", "--out", tmp_path / "run", "--json", "--threads", 1, code=130).stdout)
    assert told["stopped_by"] == "interrupt"
    assert run_json("rules", tmp_path / "run")["total"] == told["rules"] > 0


def test_evaluation_states_its_protocol(history_run: Path, run_json: Any) -> None:
    told = run_json("evaluate", str(history_run), "--steps", "multi", "--filter", "static", "--ties", "pessimistic")
    protocol = told["protocol"]
    assert (protocol["steps"], protocol["filter"], protocol["ties"]) == ("multi", "static", "pessimistic")
    assert protocol["queries"] == 2 * 59
    assert 0 < told["metrics"]["mrr"] <= 1
    assert {row["direction"] for row in told["by_relation"]} == {"object", "subject"}


def test_rankings_and_ranks_among_negatives(history_run: Path, run: Any, run_json: Any, tmp_path: Path) -> None:
    out, negatives = tmp_path / "rankings.txt", tmp_path / "negatives.tsv"
    told = run("evaluate", history_run, "--rankings", out, "--top-k", "3").stdout
    assert f"the best candidates of every query are in {out}" in " ".join(told.split())
    lines = out.read_text().splitlines()
    assert len(lines) == 3 * 59
    assert all(len(line.split("\t")) <= 2 * 3 + 1 for line in lines)
    facts = [line.rsplit(" ", 3) for line in lines[::3]]
    asked = {(s, r, "?", t) for s, r, _, t in facts} | {("?", r, o, t) for _, r, o, t in facts}
    negatives.write_text("".join("\t".join([*question, "Euro", "NATO"]) + "\n" for question in sorted(asked)))
    result = run_json("evaluate", history_run, "--negatives", negatives)
    assert result["protocol"]["negatives_file"] == "negatives.tsv"
    assert result["metrics"]["mrr"] >= 1 / 3  # the worst of three
    refused = run("evaluate", history_run, "--negatives", negatives, "--rankings", out, code=2).stderr
    assert "leave out --negatives" in refused


def test_a_question_has_a_moment(history_run: Path, run_json: Any) -> None:
    told = run_json("predict", str(history_run), "Croatia", "adopts", "?", "2023", "--top", "2", "--explain")
    assert (told["time"], told["answers"][0]["entity"], told["answers"][0]["known"]) == ("2023", "Euro", ["test"])
    assert told["answers"][0]["reasons"]
    following = run_json("predict", str(history_run), "?", "chairs", "G7", "--next", "3", "--top", "1")
    assert [moment["time"] for moment in following["moments"]] == ["2027", "2028", "2029"]


def test_what_came_later_may_count_as_well(history_run: Path, run_json: Any) -> None:
    question = ("predict", history_run, "Slovakia", "joins", "?", "2003", "--aggregation", "sum")
    before, both = run_json(*question), run_json(*question, "--look-ahead")
    assert [answer["entity"] for answer in before["answers"]] != [answer["entity"] for answer in both["answers"]]


def test_questions_in_a_file_have_a_moment_each(history_run: Path, run: Any, tmp_path: Path) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text("Croatia\tadopts\t?\t2023\n?\tchairs\tG7\t2025\n")
    lines = run("predict", str(history_run), "--queries", str(path), "--top", "1").stdout.splitlines()
    assert [line.split("\t")[:5] for line in lines[1:]] == [
        ["Croatia", "adopts", "Euro", "2023", "1"],
        ["Canada", "chairs", "G7", "2025", "1"],
    ]


def test_reasons_have_dates_and_are_drawn_on_a_time_line(history_run: Path, run_json: Any, tmp_path: Path) -> None:
    page = tmp_path / "why.html"
    told = run_json("explain", str(history_run), "Canada", "chairs", "G7", "2025", "--html", str(page))
    assert ["Canada", "chairs", "G7", "2018"] in told["reasons"][0]["facts"]
    assert '<svg class="times"' in page.read_text()


def test_likely_facts_of_a_moment_are_written(history_run: Path, run_json: Any, tmp_path: Path) -> None:
    out = tmp_path / "likely.tsv"
    told = run_json("complete", str(history_run), "--at", "2025", "--out", str(out), "--min-probability", "0.1")
    assert told["facts"] == len(out.read_text().splitlines()) - 1 > 0
    assert out.read_text().splitlines()[0] == "subject\trelation\tobject\ttime\tprobability"


def test_what_people_judged_is_not_proposed_again(history_run: Path, run_json: Any, tmp_path: Path) -> None:
    run, out = shutil.copytree(history_run, tmp_path / "run"), tmp_path / "likely.tsv"

    def proposed() -> list[tuple[str, ...]]:
        run_json("complete", str(run), "--at", "2027", "--out", str(out), "--min-probability", "0.1")
        return [tuple(line.split("\t")[:4]) for line in out.read_text().splitlines()[1:]]

    before, log = proposed(), ReviewLog.of_run(run)
    log.record(before[0], "accepted")
    log.record(before[1], "rejected")
    assert proposed() == before[2:]
    subject, relation, object, moment = before[0]
    told = run_json("predict", str(run), subject, relation, "?", moment, "--include-known")
    assert [answer["known"] for answer in told["answers"] if answer["entity"] == object] == [["accepted"]]
    log.record(before[1], "withdrawn")
    assert before[1] in proposed()


def test_the_doctor_finds_facts_of_the_future_in_train(run_json: Any, tmp_path: Path) -> None:
    for split, times in {"train": (1, 2, 9), "test": (5, 6, 7)}.items():
        (tmp_path / f"{split}.txt").write_text("".join(f"a\tr\tb{time}\t{time}\n" for time in times))
    findings = {finding["check"]: finding for finding in run_json("doctor", str(tmp_path))["findings"]}
    assert findings["future"]["sentence"] == "1 fact of train (33.3 %) is not before test, which begins at 5"
    assert findings["future"]["examples"] == [{"subject": "a", "relation": "r", "object": "b9", "time": "9"}]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["predict", "RUN", "Croatia", "adopts", "?", "1930"], "nothing is known before 1930"),
        (["predict", "RUN", "Croatia", "adopts", "?", "soon"], "expected a time such as 2014, got 'soon'"),
        (["predict", "RUN", "Croatia", "adopts", "Euro", "2020"], "a query has one ?"),
        (["predict", "RUN", "Croatia", "adopts", "?", "--look-ahead"], "--look-ahead is for a moment of the past"),
        (["explain", "RUN", "Croatia", "adopts", "Euro"], "explain takes the moment of the fact"),
        (["evaluate", "RUN", "--steps", "two"], "--steps must be one of single, multi, got 'two'"),
        (["evaluate", "RUN", "--smoothing", "3"], "--smoothing is for facts without times"),
        (["convert", "RUN", "rules.txt"], "holds temporal rules, which this command does not take"),
        (["learn", "history", "--out", "RUN"], "already contains a run"),
        (["learn", "history", "--out", "other", "--paths", "5"], "--paths is for facts without times"),
        (["learn", "geo", "--out", "other", "--rounds", "5"], "--rounds is for facts with times, and geo has none"),
        (["learn", "geo", "--out", "other", "--time"], "expected 4 tab-separated fields, got 3"),
        (["evaluate", "RUN", "--data", "geo"], "expected 4 tab-separated fields, got 3"),
        (["index", "history", "--out", "other"], "--time ignore leaves them out"),
    ],
)
def test_what_does_not_go_together_is_refused_in_a_sentence(
    history_run: Path, run: Any, arguments: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = run(*(str(history_run) if argument == "RUN" else argument for argument in arguments), code=2)
    assert sentence in result.stderr


def test_a_temporal_run_is_not_continued(history_run: Path, run: Any) -> None:
    refused = run("learn", "--out", history_run, "--resume", code=2)
    assert f"--resume is for facts without times, and {history_run} has times" in refused.stderr


def test_facts_with_times_are_loaded_by_name(run: Any) -> None:
    shown = run("datasets", "get", "history").stdout
    assert "history: train 624, valid 38, test 59; 211 entities, 5 relations" in shown


def test_python_refuses_the_other_sort_of_run(history_run: Path, geo_run: Path) -> None:
    with pytest.raises(RunError, match=r"holds temporal rules: open it with TemporalReasoner\.open"):
        anyburl.Reasoner.open(history_run)
    with pytest.raises(RunError, match=r"holds rules without time: open it with Reasoner\.open"):
        anyburl.TemporalReasoner.open(geo_run)


def test_times_may_be_left_out(run: Any, tmp_path: Path) -> None:
    result = run("learn", "history", "--time", "ignore", "--paths", "2000", "--out", str(tmp_path / "timeless"))
    assert "facts with times" not in result.stderr
    shown = run("rules", str(tmp_path / "timeless"), "--top", "1").stdout
    assert "<=" in shown
    refused = run("predict", str(tmp_path / "timeless"), "Croatia", "adopts", "?", "2023", code=2)
    assert "TIME is for facts with times" in refused.stderr
