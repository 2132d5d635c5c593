"""`anyburl evaluate`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from anyburl import RunDirectory, evaluate, load_dataset
from anyburl.cli.tables import tuning_line


@pytest.fixture
def timed_run(tmp_path: Path, run: Any, geo_run: Path) -> Path:
    """Return a run with snapshots."""
    options = ["--seconds", 0.6, "--snapshots", "0.2,0.4", "--span", 0.1, "--max-cyclic", 5, "--quiet"]
    run("learn", "geo", *options, "--out", tmp_path / "timed")
    return tmp_path / "timed"


def test_json_is_what_the_interface_promises(run_json: Any, geo_run: Path) -> None:
    told = run_json("evaluate", geo_run)
    expected = evaluate(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"))
    assert told["protocol"] == expected.protocol
    for name in ("split", "filtered", "ties", "block_connected", "aggregation", "smoothing", "rules", "queries"):
        assert name in told["protocol"]
    for name in ("hits@1", "hits@3", "hits@10", "mrr", "mrr_lower_bound", "optimistic", "pessimistic"):
        assert told["metrics"][name] == expected.metrics[name]
    assert told["by_direction"] == expected.by_direction
    assert told["by_relation"] == expected.by_relation
    assert {"load", "index", "rank"} <= told["seconds"].keys()
    assert told["queries_per_second"] > 0


def test_the_table_shows_figures_and_how_they_came_about(run: Any, geo_run: Path) -> None:
    shown = run("evaluate", geo_run).stdout
    metrics = evaluate(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"))
    low, high = metrics.metrics["interval"]["mrr"]
    for figure in (metrics.mrr, metrics.hits(1), metrics.hits(10), low, high, metrics.metrics["mrr_lower_bound"]):
        assert f"{figure:.4f}" in shown
    for words in ("optimistic", "pessimistic", "(subject, relation, ?)", "best rule is B", "time_zone", "15 more"):
        assert words in shown
    assert "max, smoothing 5; filtered, realistic ties, connected pairs not blocked (auto)" in shown
    assert "queries a second" in shown
    assert max(len(line) for line in shown.splitlines()) < 120


def test_both_directions_of_a_relation_are_questions_of_their_own(run: Any, run_json: Any, geo_run: Path) -> None:
    told = run_json("evaluate", geo_run)
    triples, n = load_dataset("geo").test.triples, 0
    metrics = evaluate(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"))
    ranks = metrics.ranks.of("realistic")
    for row in told["by_relation"]:
        relation = load_dataset("geo").vocabulary.relation_id(row["relation"])
        asked_for = ranks[: len(triples)] if row["direction"] == "object" else ranks[len(triples) :]
        expected = asked_for[triples[:, 1] == relation]
        assert (row["queries"], row["mrr"]) == (len(expected), pytest.approx((1 / expected).mean()))
        n += row["queries"]
    assert n == told["protocol"]["queries"]
    shown = run("evaluate", geo_run).stdout
    assert "(subject, time_zone, ?)" in shown
    assert "(?, time_zone, object)" in shown


def test_some_relations_and_a_sample_can_be_ranked_and_the_protocol_says_so(
    run: Any, run_json: Any, geo_run: Path
) -> None:
    whole, some = run_json("evaluate", geo_run), run_json("evaluate", geo_run, "--relations", "time_zone,capital")
    assert some["by_relation"] == [r for r in whole["by_relation"] if r["relation"] in ("time_zone", "capital")]
    assert some["protocol"]["relations"] == ["capital", "time_zone"]
    drawn = run_json("evaluate", geo_run, "--sample", 20, "--seed", 3)
    assert (drawn["protocol"]["queries"], drawn["protocol"]["sample"]) == (40, 20)
    assert drawn["metrics"] == run_json("evaluate", geo_run, "--sample", 20, "--seed", 3)["metrics"]
    shown = run("evaluate", geo_run, "--relations", "time_zone", "--sample", 5).stdout
    assert f"geo test, time_zone only, 5 of {some['by_relation'][0]['queries']} triples" in " ".join(shown.split())


def test_a_run_learned_for_some_relations_is_judged_on_them(run: Any, run_json: Any, tmp_path: Path) -> None:
    run("learn", "geo", "--paths", 2000, "--relations", "time_zone", "--quiet", "--out", tmp_path / "one")
    told = run("evaluate", tmp_path / "one", "--json")
    assert json.loads(told.stdout)["protocol"]["relations"] == ["time_zone"]
    assert "the run was learned for some relations only" in told.stderr


def test_relations_that_cannot_be_ranked_are_refused(run: Any, geo_run: Path) -> None:
    said = run("evaluate", geo_run, "--relations", "capitol", code=2).stderr
    assert "unknown relation 'capitol'; did you mean 'capital'" in said
    assert "--sample" in run("evaluate", geo_run, "--sample", 0, code=2).stderr


def test_options_of_ranking_reach_the_protocol(run: Any, run_json: Any, geo_run: Path) -> None:
    given = ["--aggregation", "noisy-or-top:5", "--smoothing", 2, "--weights", "Ud=0.1, Z=0.01"]
    given += ["--block-connected", "on", "--no-object-identity", "--split", "valid", "--top-k", 7, "--threads", 1]
    told = run_json("evaluate", geo_run, *given)
    protocol = told["protocol"]
    assert (protocol["aggregation"], protocol["smoothing"], protocol["split"]) == ("noisy-or-top:5", 2.0, "valid")
    assert protocol["weights"] == {"Ud": 0.1, "Z": 0.01}
    assert (protocol["block_connected"], protocol["object_identity"]) == (True, False)
    assert told["metrics"]["mrr_lower_bound_k"] == 7
    shown = run("evaluate", geo_run, *given).stdout
    assert "Ud x 0.1, Z x 0.01" in shown
    assert "connected pairs blocked, without object identity" in shown


def test_what_tuning_chose_is_told_in_a_line(geo_run: Path) -> None:
    metrics = evaluate(RunDirectory.open(geo_run).load_rules(), load_dataset("geo"))
    assert tuning_line(metrics) == ""
    tuned = {"chosen": "model", "validation_mrr": {"max": 0.5, "tuned": 0.6}}
    told = tuning_line(replace(metrics, protocol={**metrics.protocol, "tuned": tuned}))
    assert told == "tuning chose the model by MRR on held-out facts: max 0.5000, tuned 0.6000"
    told = tuning_line(replace(metrics, protocol={**metrics.protocol, "tuned": {**tuned, "chosen": "max"}}))
    assert told.startswith("tuning chose max by MRR")


def test_a_text_file_with_its_data_is_as_good_as_the_run(
    run: Any, run_json: Any, geo_run: Path, tmp_path: Path
) -> None:
    run("convert", geo_run, tmp_path / "rules.txt.gz")
    told = run_json("evaluate", tmp_path / "rules.txt.gz", "--data", "geo")
    assert told["metrics"] == run_json("evaluate", geo_run)["metrics"]


def test_snapshots_are_a_list_and_a_table(run: Any, run_json: Any, timed_run: Path) -> None:
    told = run_json("evaluate", timed_run, "--at", "0.2,0.4")
    assert [result["at"] for result in told] == [0.2, 0.4]
    assert told[0]["protocol"]["rules"] <= told[1]["protocol"]["rules"]
    assert isinstance(run_json("evaluate", timed_run, "--at", "0.4"), list)
    lines = run("evaluate", timed_run, "--at", "0.2,0.4").stdout.splitlines()
    assert [line.split()[0] for line in lines if line.startswith(" 0.")] == ["0.2", "0.4"]


def test_rankings_are_written_beside_the_metrics(run: Any, geo_run: Path, tmp_path: Path) -> None:
    result = run("evaluate", geo_run, "--rankings", tmp_path / "ranks.txt", "--top-k", 3)
    lines = (tmp_path / "ranks.txt").read_text("utf-8").splitlines()
    assert len(lines) == 3 * len(load_dataset("geo").test)
    assert lines[0] == "Aalborg time_zone Europe/Copenhagen"
    assert lines[1].startswith("Heads: Aalborg\t0.")
    assert lines[2].startswith("Tails: Europe/Copenhagen\t0.")
    assert f"the best candidates of every query are in {tmp_path / 'ranks.txt'}" in result.stdout


def test_rules_with_labels_that_the_data_lacks_are_left_out_and_said(run: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.txt").write_text("9\t8\t0.8\tborders(X,Y) <= borders(Y,X)\n9\t8\t0.8\tr(X,Y) <= s(Y,X)\n")
    result = run("evaluate", tmp_path / "rules.txt", "--data", "geo")
    assert "1 of 2 rules carry over to geo; left out: 1 with relations that it does not have" in result.stderr
    assert "geo test, 1 rule, max" in result.stdout


def test_data_that_changed_since_learning_is_remarked(run: Any, geo_run: Path, tmp_path: Path) -> None:
    data, out = tmp_path / "data", tmp_path / "run"
    data.mkdir()
    (data / "train.txt").write_text("a r b\nb r a\nc r d\nd r c\n")
    (data / "test.txt").write_text("a r c\n")
    run("learn", data, "--paths", 100, "--out", out, "--quiet")
    assert "has changed" not in run("evaluate", out).stderr
    (data / "test.txt").write_text("a r d\n")
    assert f"data has changed since the rules of {out} were learned" in run("evaluate", out).stderr
    assert run("evaluate", out, "--quiet").stderr == ""


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere"], "no run folder or rule file at 'nowhere'"),
        (["{tmp}/rules.txt"], "--data is missing: only a run folder remembers its data"),
        (["{tmp}/rules.txt", "--data", "nowhere"], "no data set, folder or file 'nowhere'"),
        (["{tmp}/rules.txt", "--data", "{tmp}/train.txt"], "train has no triples in its test split"),
        (["{run}", "--split", "exam"], "--split must be one of train, valid, test, got 'exam'"),
        (
            ["{run}", "--aggregation", "mean"],
            "--aggregation must be one of max, noisy-or, noisy-or-top:H, tuned, hybrid, got",
        ),
        (
            ["{run}", "--aggregation", "noisy-or-top:0"],
            "--aggregation must be one of max, noisy-or, noisy-or-top:H, tuned, hybrid, got",
        ),
        (["{run}", "--smoothing", "-1"], "--smoothing must be at least 0, got -1.0"),
        (["{run}", "--weights", "Ud"], "--weights takes factors such as Ud=0.1,Z=0.01, got 'Ud'"),
        (["{run}", "--weights", "Ud=x"], "--weights takes factors such as Ud=0.1,Z=0.01, got 'Ud=x'"),
        (
            ["{run}", "--weights", "Q=1"],
            "--weights must be a factor from 0 to 1 for each of B, Uc, Ud, Z, Uv, Bv, got 'Q=1.0'",
        ),
        (
            ["{run}", "--weights", "B=2"],
            "--weights must be a factor from 0 to 1 for each of B, Uc, Ud, Z, Uv, Bv, got 'B=2.0'",
        ),
        (["{run}", "--block-connected", "no"], "--block-connected must be one of auto, on, off, got 'no'"),
        (["{run}", "--top-k", "0"], "--top-k must be at least 1, got 0"),
        (["{run}", "--at", "soon"], "--at takes seconds of snapshots such as 10,50,100, got 'soon'"),
        (["{run}", "--at", ""], "--at takes seconds of snapshots such as 10,50,100, got ''"),
        (["{run}", "--at", "7"], "has no snapshot at 7 seconds; it has none"),
        (["{tmp}/rules.txt", "--data", "geo", "--at", "7"], "--at needs a run folder with snapshots"),
        (["{run}", "--rankings", "{tmp}"], "is a folder: expected a file for the rankings"),
        (["{run}", "--rankings", "{tmp}/no/file.txt"], "does not exist"),
        (
            ["{run}", "--rankings", "{tmp}/r.txt", "--at", "1,2"],
            "--rankings writes one file: pass a single snapshot to --at",
        ),
    ],
)
def test_wrong_input_is_one_sentence(
    run: Any, geo_run: Path, tmp_path: Path, arguments: list[str], sentence: str
) -> None:
    (tmp_path / "rules.txt").write_text("5\t4\t0.8\tr(X,Y) <= r(Y,X)\n")
    (tmp_path / "train.txt").write_text("a r b\n")
    filled = [word.replace("{tmp}", str(tmp_path)).replace("{run}", str(geo_run)) for word in arguments]
    wrong = run("evaluate", *filled, code=2)
    assert wrong.stdout == ""
    assert wrong.stderr.startswith("error: ")
    assert wrong.stderr.count("\n") == 1
    assert sentence in wrong.stderr


def test_json_of_a_process_is_all_there_is_on_standard_output(spawn: Any, geo_run: Path) -> None:
    with spawn("evaluate", geo_run, "--json") as process:
        stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 0
    assert json.loads(stdout)["protocol"]["data"] == "geo"
    assert stderr == "" or stderr.startswith("compil")


def test_protocols_have_names(run: Any, run_json: Any, geo_run: Path) -> None:
    full = run_json("evaluate", geo_run)
    assert full["protocol"]["ranked_against"] == "all"
    estimated = run_json("evaluate", geo_run, "--protocol", "estimated")
    assert estimated["metrics"]["mrr"] == full["metrics"]["mrr"]
    assert estimated["metrics"]["estimated"]["hits@10"] > full["metrics"]["hits@10"]
    sampled = run("evaluate", geo_run, "--protocol", "sampled", "--seed", 3).stdout
    assert "filtered, against 49 sampled entities, realistic ties" in sampled
    refused = run("evaluate", geo_run, "--protocol", "some", code=2)
    assert "protocol must be one of all, sampled, estimated, got 'some'" in refused.stderr


def test_a_fallback_puts_what_no_rule_predicts_in_order(run_json: Any, geo_run: Path) -> None:
    plain, filled = (run_json("evaluate", geo_run, *more) for more in ([], ["--fallback"]))
    assert not plain["protocol"]["fallback"]
    assert filled["protocol"]["fallback"]
    assert filled["metrics"]["mrr"] > plain["metrics"]["mrr"]
