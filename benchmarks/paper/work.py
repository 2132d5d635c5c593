"""Learning runs and their evaluation: what the experiments let children do.

A run is made once for its data set, options and seed, in a folder below --runs, and shared by the experiments. Rules
are kept in the order in which they were found, so the state of a run at any moment is a prefix of its rules.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab import Cell, Lab, digest, in_child, load, machine, peak_memory_mb

import anyburl
from anyburl.learning.options import PRESETS
from anyburl.learning.recorder import Recorder, run_learner
from anyburl.models.tuned.observations import rule_groups
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import tune
from anyburl.reasoning.opening import Opened


@dataclass(frozen=True)
class Run:
    """A data set and the options to learn on it with."""

    data: str
    options: dict[str, Any]

    @property
    def asked(self) -> dict[str, Any]:
        """What a cell says of the run that it comes from."""
        return {"data": self.data, "learn": self.options, "seed": self.options.get("seed", 0)}

    def folder(self, lab: Lab) -> Path:
        """Return the run's folder."""
        return lab.runs / f"{self.data}-{digest(self.options)}"


@dataclass(frozen=True)
class Evaluation:
    """A cell that evaluates a run's rules as they were at a moment (None: at its end)."""

    cell: Cell
    at: float | None = None
    rank: dict[str, Any] = field(default_factory=dict)
    sample: int | None = None
    min_support: int | None = None
    max_length: int | None = None

    @property
    def index_key(self) -> str:
        """Evaluations with the same key share their index and differ in the aggregation alone."""
        rest = {name: value for name, value in self.rank.items() if name != "aggregation"}
        return json.dumps([self.at, rest, self.sample, self.min_support, self.max_length], sort_keys=True)


def learn_run(run: Run, lab: Lab) -> dict[str, Any]:
    """Learn unless that was done before; return the facts of the run. A run that was broken off begins anew."""
    folder = run.folder(lab)
    facts_file = folder / "facts.json"
    if facts_file.is_file():
        stored = dict(json.loads(facts_file.read_text("utf-8")))
        if not lab.is_old(stored):
            return stored
    shutil.rmtree(folder, ignore_errors=True)
    data = load(run.data)
    options = anyburl.LearnOptions(**{**PRESETS["paper"], **run.options})  # Table 2 has thresholds of its own
    recorder = Recorder(anyburl.RunDirectory.create(folder, data, options))
    learner = anyburl.Learner(data.train, options)
    run_learner(learner, recorder)
    if learner.stopped_by == "interrupt":
        raise KeyboardInterrupt
    rules = recorder.finish(learner)
    facts = {
        "machine": machine(),
        **facts_of(learner, rules),
        "data": {"name": run.data, "fingerprint": data.fingerprint},
    }
    facts["spans"] = [[line["elapsed"], line["rules"]] for line in recorder.run.trace()]
    facts_file.write_text(json.dumps(facts), "utf-8")
    return facts


def facts_of(learner: anyburl.Learner, rules: anyburl.RuleSet) -> dict[str, Any]:
    """Return what is worth knowing of a finished run."""
    return {
        "seconds": round(learner.elapsed, 3),
        "threads": learner.threads,
        "rules": len(rules),
        "by_length": rules.counts_by_length(),
        "exact": round(float(rules.exact.mean()), 4) if len(rules) else 1.0,
        "paths": learner.n_paths,
        "bodies": learner.n_bodies,
        "stopped_by": learner.stopped_by,
        "peak_memory_mb": peak_memory_mb(),
    }


def state_at(facts: dict[str, Any], at: float | None) -> tuple[float, int]:
    """Return the first end of a span at or after a moment, and the number of rules then; the end of a shorter run."""
    moments = [(elapsed, n) for elapsed, n in facts["spans"] if at is not None and elapsed >= at - 0.00005]
    return moments[0] if moments else (facts["seconds"], facts["rules"])


def experiment(run: Run, evaluations: list[Evaluation], lab: Lab) -> None:
    """Learn if any evaluation is due, in one child, and evaluate in another."""
    due = [evaluation for evaluation in evaluations if evaluation.cell.is_due(lab)]
    if due and in_child(learn_run, run, lab):
        in_child(evaluate_run, run, due, lab)


def evaluate_run(run: Run, due: list[Evaluation], lab: Lab) -> None:
    """Do evaluations of a run. Each is stored at once."""
    rules, data, facts = open_run(run, lab)
    evaluate_all(rules, data, facts, due, lab)


def open_run(run: Run, lab: Lab) -> tuple[anyburl.RuleSet, anyburl.Dataset, dict[str, Any]]:
    """Return the rules of a run, its data and its facts; learn first if that was not done."""
    facts = learn_run(run, lab)
    data = load(run.data)
    if facts["data"]["fingerprint"] != data.fingerprint:
        raise SystemExit(f"{run.folder(lab)} was learned on other data of that name: give another folder with --runs")
    return anyburl.RuleSet.load(run.folder(lab) / "rules.parquet", data.vocabulary), data, facts


def curves(jobs: list[tuple[Cell, Run]], moments: list[float], sample: int | None, lab: Lab) -> None:
    """Learn each run that is due and evaluate it at all moments; a cell holds the whole curve."""
    is_warm = False
    for cell, run in jobs:
        if not cell.is_due(lab):
            continue
        rules, data, facts = open_run(run, lab)
        if not is_warm:
            warm_up(rules, data)
            is_warm = True
        cell.save(lab, curve(rules, data, facts, moments, sample))


def curve(
    rules: anyburl.RuleSet, data: anyburl.Dataset, facts: dict[str, Any], moments: list[float], sample: int | None
) -> dict[str, Any]:
    """Return the figures of a run at some moments, as lean as many runs ask for."""
    points = []
    for at in moments:
        elapsed, n_rules = state_at(facts, at)
        metrics = anyburl.Reasoner(rules.slice(0, n_rules), data).evaluate(sample=sample)
        figures = {name: metrics.metrics[name] for name in ("hits@1", "hits@10", "mrr")}
        points.append({"at": at, "elapsed": elapsed, "rules": n_rules, **figures})
    return {
        "points": points,
        "protocol": metrics.protocol,
        "sampled": metrics.protocol.get("sample"),
        "run": {name: value for name, value in facts.items() if name not in ("spans", "machine")},
    }


def evaluate_all(
    rules: anyburl.RuleSet, data: anyburl.Dataset, facts: dict[str, Any], due: list[Evaluation], lab: Lab
) -> None:
    """Evaluate and store, one after the other, as long as there is time."""
    warm_up(rules, data)
    key, reasoner = "", None
    for evaluation in due:
        if not evaluation.cell.is_due(lab):
            continue
        if reasoner is None or evaluation.index_key != key:
            reasoner = None  # frees the last index before the next is made
            reasoner = make_reasoner(rules, data, facts, evaluation)
            key = evaluation.index_key
        evaluation.cell.save(lab, measure(reasoner, data, facts, evaluation))


def warm_up(rules: anyburl.RuleSet, data: anyburl.Dataset) -> None:
    """Have the kernels ready before anything is timed."""
    anyburl.Reasoner(rules.slice(0, 10), data).evaluate(sample=50)


def with_aggregation(reasoner: anyburl.Reasoner, aggregation: str) -> anyburl.Reasoner:
    """Return a reasoner on the same index with another aggregation."""
    ranker = reasoner.ranker.with_aggregation(aggregation)
    if ranker.aggregation.needs_model and ranker.reranker is None:
        groups = rule_groups(ranker.rules)
        ranker = replace(ranker, reranker=TunedReranker(tune(ranker, reasoner.dataset, groups), groups))
    return anyburl.Reasoner.of(Opened(ranker, reasoner.dataset, reasoner.seconds))


def make_reasoner(
    rules: anyburl.RuleSet, data: anyburl.Dataset, facts: dict[str, Any], evaluation: Evaluation
) -> anyburl.Reasoner:
    """Make the rules of a moment ready."""
    there = rules.slice(0, state_at(facts, evaluation.at)[1])
    if evaluation.min_support is not None:
        there = there.filter(min_support=evaluation.min_support)
    if evaluation.max_length is not None:
        there = there.take(there.lengths <= evaluation.max_length)
    fixed = {name: value for name, value in evaluation.rank.items() if name != "aggregation"}
    return anyburl.Reasoner(there, data, anyburl.RankOptions(**fixed))


def measure(
    reasoner: anyburl.Reasoner, data: anyburl.Dataset, facts: dict[str, Any], evaluation: Evaluation
) -> dict[str, Any]:
    """Return the figures of one evaluation, and of the run behind it."""
    aggregation = evaluation.rank.get("aggregation", "max")
    figures = with_aggregation(reasoner, aggregation).evaluate(sample=evaluation.sample).to_json()
    kept = ("protocol", "metrics", "by_rule_type", "seconds", "queries_per_second")
    return {
        **{name: figures[name] for name in kept},
        "elapsed": state_at(facts, evaluation.at)[0],
        "sampled": figures["protocol"].get("sample"),
        "peak_memory_mb": peak_memory_mb(),
        "run": {name: value for name, value in facts.items() if name not in ("spans", "machine")},
    }
