"""Temporal rules from learning to answers, on a history small enough to follow by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from anyburl.base.errors import DataError, OptionError, RunError
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.learner import TemporalLearner, learn_temporal
from anyburl.temporal.reasoner import TemporalReasoner
from anyburl.temporal.rules import TemporalRules


def history() -> list[tuple[str, str, str, str]]:
    """Every day someone visits a country, and the two consult the day after; weekly, all praise the host."""
    people, facts = ["ann", "bob", "cid", "dee"], []
    for day in range(40):
        guest, host = people[day % 4], people[(day * 3 + 1) % 4]
        if guest == host:
            host = people[(day + 2) % 4]
        facts += [(guest, "visit", host, str(day)), (host, "consult", guest, str(day + 1))]
        if day % 7 == 0:
            facts += [(person, "praise", "host", str(day)) for person in people]
    return facts


@pytest.fixture(scope="module")
def dataset() -> TemporalDataset:
    return load_temporal_dataset(history(), split=(0.7, 0.15, 0.15))


@pytest.fixture(scope="module")
def rules(dataset: TemporalDataset) -> TemporalRules:
    return learn_temporal(dataset, model="logit", threads=1)


@pytest.fixture(scope="module")
def reasoner(rules: TemporalRules, dataset: TemporalDataset) -> TemporalReasoner:
    return TemporalReasoner(rules, dataset, threads_used=1)


def test_a_visit_is_answered_by_a_consultation_on_the_next_day(reasoner: TemporalReasoner) -> None:
    guest, host = "ann", "bob"  # of day 36
    day = next(day for day in range(30, 40) if (guest, "visit", host, str(day)) in history() or day == 39)
    visit = next(fact for fact in history() if fact[1] == "visit" and fact[3] == str(day))
    best = reasoner.predict(visit[2], "consult", None, str(day + 1), include_known=True)[0]
    assert best.entity == visit[0]


def test_the_strongest_rule_reads_as_people_say_it(rules: TemporalRules) -> None:
    texts = [str(rule) for rule in rules.top(5, relation="consult", form="pair")]
    assert any(text.startswith("consult(X,Y,T) <= visit(Y,X,U), T-U in 1..") for text in texts), texts


def test_results_say_their_protocol(reasoner: TemporalReasoner) -> None:
    single, multi = reasoner.evaluate(), reasoner.evaluate(steps="multi", filter="static", ties="pessimistic")
    assert "single-step, filter time, realistic ties, model" in str(single)
    assert "multi-step, filter static, pessimistic ties" in str(multi)
    assert 0 < single.mrr <= 1
    assert single.protocol["queries"] == 2 * len(reasoner.dataset.test)


def test_an_explanation_names_facts_with_their_dates(reasoner: TemporalReasoner) -> None:
    explained = reasoner.explain("ann", "praise", "host", "35")
    first = explained.reasons[0]
    assert first.facts
    assert {fact[1] for fact in first.facts} == {"praise"}
    assert all(int(fact[3]) < 35 for reason in explained.reasons for fact in reason.facts)


def test_what_never_happened_has_no_reason_but_what_is_missing(reasoner: TemporalReasoner) -> None:
    explained = reasoner.explain("host", "visit", "ann", "35")
    assert explained.missing


def test_a_question_before_the_first_fact_is_refused(reasoner: TemporalReasoner) -> None:
    with pytest.raises(DataError, match="nothing is known before"):
        reasoner.predict("ann", "visit", None, "0")


def test_a_question_needs_one_entity(reasoner: TemporalReasoner) -> None:
    with pytest.raises(OptionError, match="either a subject or an object"):
        reasoner.predict("ann", "visit", "bob", "30")


def test_a_run_folder_says_its_sort_and_answers_as_before(
    reasoner: TemporalReasoner, dataset: TemporalDataset, tmp_path: Path
) -> None:
    reasoner.save(tmp_path / "run")
    opened = TemporalReasoner.open(tmp_path / "run", dataset, threads_used=1)
    assert opened.evaluate().metrics == reasoner.evaluate().metrics
    assert len(opened.rules) == len(reasoner.rules)
    (tmp_path / "static").mkdir()
    (tmp_path / "static" / "options.json").write_text('{"data": {}, "options": {}}')
    with pytest.raises(RunError, match="holds rules without time"):
        TemporalReasoner.open(tmp_path / "static", dataset)


def test_completion_proposes_what_is_likely_at_a_moment(reasoner: TemporalReasoner) -> None:
    frame = reasoner.complete("40", min_probability=0.0, relations=("praise",))
    assert set(frame["relation"]) == {"praise"}
    assert frame["probability"].is_sorted(descending=True)


def test_what_was_accepted_is_stated_and_what_was_rejected_is_not_proposed(
    rules: TemporalRules, dataset: TemporalDataset
) -> None:
    reasoner = TemporalReasoner(rules, dataset, threads_used=1)

    def proposed(at: str) -> list[tuple[str, str, str, str]]:
        frame = reasoner.complete(at, min_probability=0.0, relations=("praise",))
        return list(frame.select("subject", "relation", "object", "time").iter_rows())

    before = proposed("42")
    accepted, rejected = before[0], before[1]
    other = (*rejected[:3], "43")
    reasoner.apply_verdicts([accepted, ("nobody", "praise", "host", "42")], [rejected, other])
    assert proposed("42") == before[2:]
    assert reasoner.last == 42
    assert rejected in [(*fact[:3], "42") for fact in proposed("44")]  # for its moment only
    answers = reasoner.predict(accepted[0], "praise", None, "42", include_known=True)
    assert [answer.known for answer in answers if answer.entity == accepted[2]] == [True]
    reasoner.apply_verdicts([], [])
    assert proposed("42") == before


def test_rankings_hold_both_questions_of_every_fact(reasoner: TemporalReasoner) -> None:
    ranked = reasoner.rank("test", top_k=2)
    assert ranked.height == 2 * len(reasoner.dataset.test)
    assert set(ranked["direction"]) == {"object", "subject"}


def test_rules_do_not_depend_on_the_number_of_threads(dataset: TemporalDataset, rules: TemporalRules) -> None:
    again = learn_temporal(dataset, model="logit", threads=3)
    assert again.to_polars().equals(rules.to_polars())
    assert (again.pairs.values == rules.pairs.values).all()
    assert (again.weights == rules.weights).all()


@pytest.mark.parametrize("n_heads", [0, 5, 11, 23])
def test_a_run_that_is_stopped_has_the_rules_counted_so_far(
    dataset: TemporalDataset, rules: TemporalRules, n_heads: int
) -> None:
    asked = iter([False] * n_heads)
    learner = TemporalLearner(dataset, model="logit", threads=1)
    stopped = learner.learn(is_stopped=lambda: next(asked, True))
    assert (learner.stopped_by, stopped.about["stopped_by"]) == ("interrupt", "interrupt")
    assert stopped.sizes["pair"] == rules.sizes["pair"]
    assert sum(stopped.sizes.values()) < len(rules) or stopped.model is None
    assert TemporalReasoner(stopped, dataset, threads_used=1).evaluate().mrr > 0


def test_rules_of_three_hops_are_read_kept_and_explained(tmp_path: Path) -> None:
    chain = [("a", "r", "b"), ("b", "r", "c"), ("c", "r", "d"), ("a", "s", "d")]
    facts = [
        (f"{x}{week}", r, f"{y}{week}", 7 * week + day) for week in range(20) for day, (x, r, y) in enumerate(chain)
    ]
    data = load_temporal_dataset(facts, split=(0.8, 0.1, 0.1))
    rules = learn_temporal(data, model="none", three_hops=6, threads=1)
    reasoner = TemporalReasoner(rules, data, threads_used=1)
    long = "s(X,Y,T) <= r(X,A,U), r(A,B,V), r(B,Y,W)"
    assert long in [rule.rule for rule in rules.top(100, form="hops")]
    reasoner.save(tmp_path / "run")
    opened = TemporalReasoner.open(tmp_path / "run", data, threads_used=1)
    assert [str(rule) for rule in opened.rules] == [str(rule) for rule in rules]
    assert opened.evaluate().metrics == reasoner.evaluate().metrics
    reasons = {reason.rule.rule: reason for reason in opened.explain("a19", "s", "d19", 7 * 19 + 3, top=99).reasons}
    assert [fact[:3] for fact in reasons[long].facts] == [(f"{x}19", "r", f"{y}19") for x, _, y in chain[:3]]
    with_two = TemporalReasoner(learn_temporal(data, model="none", threads=1), data, threads_used=1)
    assert "d19" not in [answer.entity for answer in with_two.predict("a19", "s", None, 7 * 19 + 3, include_known=True)]


def test_a_budget_ends_learning_with_what_was_finished(dataset: TemporalDataset) -> None:
    learner = TemporalLearner(dataset, seconds=1e-6, threads=1)
    assert learner.learn().sizes["constant"] == 0
    assert learner.stopped_by == "seconds"


def test_calibrated_answers_have_a_probability(rules: TemporalRules, dataset: TemporalDataset) -> None:
    reasoner = TemporalReasoner(rules, dataset, aggregation="sum", threads_used=1)
    report = reasoner.calibrate()
    assert 0 <= report.expected_calibration_error <= 1
    answers = reasoner.predict("ann", "praise", None, "35", include_known=True)
    assert all(answer.probability is not None and 0 <= answer.probability <= 1 for answer in answers)
    chances = [answer.probability for answer in answers if answer.probability is not None]
    assert chances == sorted(chances, reverse=True)


def test_the_clock_stands_still_after_the_end_of_history(reasoner: TemporalReasoner) -> None:
    soon, later = (reasoner.predict("ann", "praise", None, at) for at in ("41", "4000"))
    assert [answer.score for answer in soon] == [answer.score for answer in later]


def test_a_history_of_one_moment_is_learned_and_asked() -> None:
    dataset = load_temporal_dataset([("a", "r", "b", "1"), ("b", "r", "c", "1")])
    rules = learn_temporal(dataset, threads=1)
    answers = TemporalReasoner(rules, dataset, threads_used=1).predict("a", "r", None, "2")
    assert [answer.entity for answer in answers][:1]
