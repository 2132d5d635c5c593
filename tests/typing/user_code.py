"""What a user might write; `mypy --strict` checks it (scripts/check), nobody runs it."""

from __future__ import annotations

from pathlib import Path

import polars as pl

import anyburl
from anyburl import Answer, Dataset, Explanation, Metrics, Rule, RuleSet, Span


def learn_and_save(folder: Path) -> RuleSet:
    data: Dataset = anyburl.load_dataset(folder)
    rules = anyburl.learn(data, seconds=5, seed=1, on_span=report)
    rules.filter(type="B", min_confidence=0.5).top(10, by="value").save(folder / "rules.txt")
    return rules


def export(rules: RuleSet, folder: Path) -> int:
    report: anyburl.ExportReport = anyburl.export_rules(rules, folder / "rules.sql", insert=True, table="facts")
    return report.n_rules


def learn_from_memory(facts: list[tuple[str, str, str]]) -> RuleSet:
    return anyburl.learn(facts, paths=1000, max_cyclic=2, relations=("speaks",), seed=1)


def report(span: Span) -> None:
    profile: anyburl.PathProfile = span.best_profile
    print(span.number, span.elapsed, span.n_rules, profile.rule_length, span.reward)


def own_loop(data: Dataset) -> RuleSet:
    learner = anyburl.Learner(data.train, anyburl.LearnOptions(seconds=60, policy="weighted"))
    for span in learner.spans():
        if span.saturation > 0.99:
            break
    return learner.rules()


def look(rules: RuleSet) -> list[str]:
    best: Rule = rules[0]
    few: RuleSet = rules[:10]
    sure: RuleSet = rules[rules.confidence() > 0.9]
    assert len(few) + len(sure) <= 2 * len(rules.top(5, smoothing=0))
    frame: pl.DataFrame = rules.to_polars()
    return [str(best), best.type.value, *frame.columns]


def use(rules: RuleSet, data: Dataset) -> float:
    reasoner = anyburl.Reasoner(rules, data, aggregation="noisy-or-top:5")
    answers = anyburl.predict(rules, data, "France", "official_language", None, top=3, reasoner=reasoner)
    first: Answer = answers[0]
    known: tuple[str, ...] = first.known
    why: Explanation = reasoner.explain(first.triple)
    facts: list[tuple[str, str, str]] = [fact for reason in why for fact in reason.groundings[0]]
    metrics: Metrics = anyburl.evaluate(rules, data, reasoner=reasoner)
    many: pl.DataFrame = reasoner.predict([("France", "official_language", None), (None, "capital", "Paris")], top=3)
    print(facts, known, answers.to_polars(), many)
    return metrics.mrr + metrics.hits(5)


def open_run(run: Path) -> anyburl.Answers:
    options = anyburl.RankOptions(aggregation="tuned", top_k=10)
    with anyburl.Reasoner.open(run, options=options, seed=1) as reasoner:
        for frame in reasoner.predict_frames([("France", "official_language", None)], include_known=True):
            print(frame["rule"])
        return reasoner.predict("France", "official_language", None)


def fail() -> str:
    try:
        anyburl.parse_rule("no rule")
    except anyburl.AnyburlError as error:
        return str(error)
    return ""
