"""`anyburl distil`: what it keeps, writes and refuses; and which rules `learn` keeps."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anyburl
from anyburl import RuleSet
from anyburl.graph.stored import graph_of
from anyburl.models.distilling import distil, keeping
from anyburl.models.distilling.choosing import implied_rules
from anyburl.models.distilling.known import KnownFacts
from anyburl.ranking.options import RankOptions
from anyburl.reasoning.explanation.relatives import RuleLattice
from rules.samples import make_rules


def test_distil_writes_a_run_folder_that_other_commands_take(distilled_run: Path, geo_run: Path, run_json: Any) -> None:
    told, every = json.loads((distilled_run / "told.json").read_text()), RuleSet.load(geo_run)
    assert told["rules"] == len(every)
    assert told["kept"] == len(RuleSet.load(distilled_run)) == 100
    assert [n for n, _ in told["curve"]] == sorted(n for n, _ in told["curve"])
    assert 0.8 < told["quality"] <= 1.02
    assert distilled_run.with_suffix(".png").stat().st_size > 1000
    whole, kept = (run_json("evaluate", path)["metrics"]["mrr"] for path in (geo_run, distilled_run))
    assert kept > 0.8 * whole
    best = run_json("rules", distilled_run, "--sort", "worth", "--top", 5)["rules"]
    assert [rule["worth"] for rule in best] == sorted((rule["worth"] for rule in best), reverse=True)


def test_kept_rules_are_rules_of_the_run_and_none_implies_another(distilled_run: Path, geo_run: Path) -> None:
    kept, every = RuleSet.load(distilled_run), RuleSet.load(geo_run)
    assert set(kept.texts()) <= set(every.texts())
    assert kept.measures == ("worth", "decides", "only", "stands_for")
    lattice = RuleLattice.build(kept)
    for row in range(len(kept)):
        assert not (kept.predictions[lattice.generalisations(row)] == kept.predictions[row]).any()


def test_the_choice_does_not_depend_on_the_order_of_the_rules(geo_run: Path) -> None:
    data, every = anyburl.load_dataset("geo"), RuleSet.load(geo_run)
    shuffled = every.take(np.random.default_rng(1).permutation(len(every)))
    first, second = (anyburl.Reasoner(rules, data).distil(rules=100, facts=1_000) for rules in (every, shuffled))
    assert first.curve == second.curve
    assert list(first.rules.texts()) == list(second.rules.texts())


def test_many_rules_are_the_first_in_order_by_more_facts(geo_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distil, "MOST_WEIGHED", 100)
    monkeypatch.setattr(distil, "_Pool", None)  # nothing is weighed
    distilled = anyburl.Reasoner(RuleSet.load(geo_run), anyburl.load_dataset("geo")).distil(rules=500)
    assert len(distilled.rules) == 500
    assert distilled.quality == dict(distilled.curve)[500] > 0.9
    assert [distil.facts_for(n) for n in (None, 1_000, 5_000, 200_000)] == [32_000, 32_000, 100_000, 150_000]


def test_the_rules_that_a_kept_one_stands_for_can_be_asked_for(distilled_run: Path) -> None:
    kept = RuleSet.load(distilled_run)
    row = int(np.argmax(kept.stands_for))
    left_out = anyburl.left_out_rules(distilled_run, row)
    assert len(left_out.rules) == kept.stands_for[row] > 0
    assert set(left_out.kept) == {row}
    assert left_out.overlaps.min() >= 0.5
    assert not set(left_out.rules.texts()) & set(kept.texts())
    assert len(anyburl.left_out_rules(distilled_run).rules) == kept.stands_for.sum()


def test_sizes_can_be_given_by_relation_or_by_quality(geo_run: Path, tmp_path: Path, run_json: Any) -> None:
    told = run_json("distil", geo_run, "--out", tmp_path / "few", "--per-relation", 2, "--facts", 1_000)
    kept = RuleSet.load(tmp_path / "few")
    counts = np.bincount(kept.head % kept.vocabulary.n_relations)
    assert told["kept"] == len(kept)
    assert counts.max() == 2
    chosen = ("--quality", 0.9, "--aggregation", "noisy-or-top:5", "--facts", 1_000)
    good = run_json("distil", geo_run, "--out", tmp_path / "good", *chosen)
    assert good["kept"] < told["rules"]
    assert good["quality"] >= 0.9


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--rules", "0"], "--rules must be at least 1, got 0"),
        (["--per-relation", "0"], "--per-relation must be at least 1, got 0"),
        (["--rules", "5", "--quality", "0.9"], "--quality must be left out when --rules is given"),
        (["--quality", "2"], "--quality must be at most 1, got 2"),
        (["--relations", "speakss"], "unknown relation 'speakss'"),
    ],
)
def test_wrong_sizes_and_relations_get_a_sentence(
    run: Any, geo_run: Path, tmp_path: Path, flags: list[str], sentence: str
) -> None:
    result = run("distil", geo_run, "--out", tmp_path / "small", *flags, code=2)
    assert sentence in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "small").exists()


def test_a_run_without_rules_and_data_without_known_facts_get_a_sentence(
    run: Any, distilled_run: Path, geo_run: Path, tmp_path: Path
) -> None:
    assert "already contains a run" in run("distil", geo_run, "--out", distilled_run, code=2).stderr
    data = tmp_path / "data"
    data.mkdir()
    (data / "train.txt").write_text("a\tr\tb\nb\ts\tc\n")
    assert "no rules found" in run("learn", data, "--paths", 10, "--distil", "--out", tmp_path / "none").stdout
    assert "has no rules to distil" in run("distil", tmp_path / "none", "--out", tmp_path / "out", code=2).stderr
    only_test = anyburl.Dataset.from_triples([], test=[("a", "r", "b")])
    with pytest.raises(anyburl.DataError, match="distilling needs known facts, and triples has 0 that it can use"):
        anyburl.distil(make_rules([("r(X,Y) <= r(Y,X)", (2, 2))]), only_test)


def test_learn_keeps_what_matters_of_many_rules_and_all_if_told_so(
    run_json: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learn = ("learn", "geo", "--paths", 20_000, "--threads", 2, "--out")
    every = run_json(*learn, tmp_path / "paper", "--preset", "paper")
    assert every["rules"] == every["found"]
    for module in ("keeping", "distil"):
        monkeypatch.setattr(f"anyburl.models.distilling.{module}.MANY_RULES", 1_000)
    monkeypatch.setattr("anyburl.reasoning.explanation.relatives.MANY", 100)
    monkeypatch.setattr(keeping, "FACTS", 1_500)
    monkeypatch.setattr(keeping, "RULES_AT_A_TIME", 3_000)
    kept = run_json(*learn, tmp_path / "kept")
    assert kept["found"] == every["rules"] > 2 * kept["rules"]
    assert (tmp_path / "kept" / "best.json").is_file()  # `rules` reads nothing else
    rules, all_rules = RuleSet.load(tmp_path / "kept"), RuleSet.load(tmp_path / "paper")
    assert set(rules.texts()) < set(all_rules.texts())
    assert rules.counts_by_type()["B"] == all_rules.counts_by_type()["B"]
    whole, part = (run_json("evaluate", tmp_path / name)["metrics"]["mrr"] for name in ("paper", "kept"))
    assert part > 0.98 * whole
    resumed = run_json("learn", "--out", tmp_path / "kept", "--resume", "--paths", 40_000)
    assert set(rules.texts()) & set(RuleSet.load(tmp_path / "kept").texts())
    assert resumed["paths"] >= 40_000


def test_rules_looked_at_in_parts_are_those_of_all_at_once(geo_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rules = anyburl.load_dataset("geo"), RuleSet.load(geo_run)
    known = KnownFacts.draw(data, most=400, most_judged=0, blocked=False, seed=0).to_choose_by()
    needed = partial(keeping.find_needed, rules, graph_of(data.train), known, RankOptions(threads=1), blocked=False)
    at_once = needed()
    monkeypatch.setattr(keeping, "SHARE_TO_STOP_AT", 1.0)
    monkeypatch.setattr(keeping, "RULES_AT_A_TIME", 1_500)
    assert not (at_once & ~needed()).any()
    assert needed().sum() < 1.5 * at_once.sum()


def test_rules_for_a_model_are_chosen_by_train_since_it_learns_from_valid(geo_run: Path) -> None:
    data = anyburl.load_dataset("geo")
    drawn = partial(KnownFacts.draw, data, most=400, most_judged=100, blocked=False, seed=0)
    by_both, by_train = drawn(), drawn(fits_valid=True)
    assert len(by_both.valid) == 400
    assert len(by_train.valid) == 0
    assert len(by_train.train) == 400
    assert (by_train.judged == by_both.judged).all(), "the choice is judged by valid all the same"
    with anyburl.Reasoner.open(geo_run, aggregation="noisy-or-top:10") as reasoner:
        chosen = {
            for_model: set(reasoner.distil(rules=50, facts=400, for_model=for_model).rules.texts())
            for for_model in (False, True)
        }
    assert chosen[False] != chosen[True]


def test_learn_distils_at_the_end_of_a_run(
    run_json: Any, run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distil, "FACTS", 1_000)
    told = run_json("learn", "geo", "--paths", 5_000, "--distil", "--out", tmp_path / "small")
    rules = RuleSet.load(tmp_path / "small")
    assert told["rules"] == len(rules) < told["found"] / 4
    assert rules.worth is not None
    assert (tmp_path / "small" / "left-out.parquet").is_file()
    wrong = run("learn", "geo", "--distil", "--keep", "all", "--out", tmp_path / "other", code=2)
    assert "--distil is --keep distilled, got --keep all" in wrong.stderr
    wrong = run("learn", "geo", "--preset", "paper", "--min-support", 5, "--out", tmp_path / "other", code=2)
    assert "--min-support must be 2, or left out, when --preset is paper, got 5" in wrong.stderr


def test_more_general_rules_are_those_of_the_lattice(geo_run: Path) -> None:
    rules = RuleSet.load(geo_run)
    rules = rules.take(np.flatnonzero(np.arange(len(rules)) % 7 == 0))
    lattice, implied = RuleLattice.build(rules), implied_rules(rules)
    for row in range(0, len(rules), 3):
        general = lattice.generalisations(row)
        assert implied[row] == (rules.predictions[general] == rules.predictions[row]).any()
