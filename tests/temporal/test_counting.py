"""Counts, credits and ranks of temporal kernels, compared with plain Python on small random histories."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.data.clock import Clock
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.options import FILTERS, STEPS, TemporalOptions
from anyburl.temporal.answering import Answerer, Directed, index_cells, index_history
from anyburl.temporal.counting import RuleCounter
from anyburl.temporal.evaluation import EvaluationProtocol, split_questions
from anyburl.temporal.explanation import evidence_for
from anyburl.temporal.facts import TemporalDataset, TemporalFacts
from anyburl.temporal.kernel_bodies import N_CELLS, N_FREQUENCY
from anyburl.temporal.kernel_pairs import share_credit
from anyburl.temporal.learner import TemporalLearner, take_questions
from anyburl.temporal.rules import TemporalRules
from kernels import examples
from reference import temporal as plain

N_ENTITIES, N_RELATIONS = 4, 2
OPTIONS = TemporalOptions(
    n_last=3, oldest=4, n_first=2, n_second=2, three_hops=2, min_support=1, min_confidence=0, smoothing=0, model="none",
    threads=1,
)  # fmt: skip
LIMITS = (OPTIONS.n_last, OPTIONS.oldest, OPTIONS.n_first, OPTIONS.n_second, OPTIONS.three_hops)

events = st.lists(
    st.tuples(
        st.integers(0, N_ENTITIES - 1),
        st.integers(0, N_RELATIONS - 1),
        st.integers(0, N_ENTITIES - 1),
        st.sampled_from([0, 1, 2, 3, 5, 9, 40, 300]),  # with gaps; few values, so that times are equal
    ),
    min_size=1,
    max_size=25,
)


def facts_of(rows: Any, ends: list[int] | None = None) -> TemporalFacts:
    columns = np.array(list(rows), np.int64).reshape(-1, 4).T
    ids = [column.astype(np.int32) for column in columns[:3]]
    return TemporalFacts.of(ids, columns[3], None if ends is None else np.array(ends, np.int64))


def directed_of(rows: Any) -> Directed:
    return Directed([facts_of(rows)], N_ENTITIES, N_RELATIONS)


def by_cell(slots: Any, flat: Any) -> dict[tuple[int, int, tuple[int, int]], float]:
    """Counts of flat tables, by head, body and cell, without zeros."""
    table = np.asarray(flat).reshape(-1, N_CELLS)
    heads, bodies = np.nonzero(slots >= 0)
    return {
        (int(heads[row]), int(bodies[row]), divmod(int(cell), N_FREQUENCY)): table[row, cell]
        for row, cell in zip(*np.nonzero(table), strict=True)
    }


@pytest.mark.kernel
@settings(max_examples=examples(150), deadline=None)
@given(events, st.sampled_from([1, 2, 4, 41, 301]))
def test_pairs_and_steps_are_counted_as_fact_by_fact(rows: Any, cut: int) -> None:
    both, counter = plain.directed(rows, N_RELATIONS), RuleCounter(directed_of(rows), cut, 1)
    for counts, end in zip(counter.pairs(), (cut, counter.end), strict=True):
        right, every = plain.pair_counts(both, end)
        assert by_cell(counts.slots, counts.right) == right
        pairs = {(h, b) for h, b, _ in right}
        assert by_cell(counts.slots, counts.every) == {key: n for key, n in every.items() if key[:2] in pairs}
        assert pairs == set(zip(*np.nonzero(counts.slots >= 0), strict=True))
        steps = counter.steps(end)
        found = {(int(d), divmod(int(c), N_FREQUENCY)): steps[d, c] for d, c in zip(*np.nonzero(steps), strict=True)}
        assert found == plain.step_counts(both, end)


@pytest.mark.kernel
@settings(max_examples=examples(100), deadline=None)
@given(events, st.integers(0, 5), st.sampled_from([2, 1000]))
def test_credit_is_shared_as_fact_by_fact(rows: Any, seed: int, end: int) -> None:
    both, counter = plain.directed(rows, N_RELATIONS), RuleCounter(directed_of(rows), 2, 1)
    counts = counter.pairs()[end > 2]
    rng = np.random.default_rng(seed)
    values = rng.random(len(counts.right)).astype(np.float32) + np.float32(0.01)
    favour = rng.random((2 * N_RELATIONS, 3)) + 0.01
    popularity, spread = counter.popularity(), np.empty((3, counter.n_codes), np.float32)
    credits, exposures = np.zeros((2, len(values)), np.float32)
    for head in {h for h in range(2 * N_RELATIONS) if counter.cases.offsets[h] < counter.cases.offsets[h + 1]}:
        share_credit(
            counter.history, counter.moments, counter.cases, head, end, counts.slots, values, favour[head], popularity,
            credits, exposures, np.zeros((2, 3)), spread,
        )  # fmt: skip
    told = by_cell(counts.slots, values)  # what was never right is no rule
    expected = plain.shared_credit(both, end, told, {h: favour[h].tolist() for h in range(2 * N_RELATIONS)})
    for found, wanted in zip((credits, exposures), expected, strict=True):
        got = by_cell(counts.slots, found)
        assert got.keys() == {key for key, value in wanted.items() if value and key in told}
        assert all(got[key] == pytest.approx(wanted[key], rel=1e-4) for key in got)


def relations_of(body: int) -> tuple[int, ...]:
    """The relations of a rule of two or three hops."""
    width = 2 * N_RELATIONS
    if body < width**2:
        return divmod(body, width)
    return (body // width**2 - 1, body // width % width, body % width)


@pytest.mark.kernel
@settings(max_examples=examples(100), deadline=None)
@given(events, st.sampled_from([2, 6, 1000]))
def test_constants_and_hops_are_counted_as_fact_by_fact(rows: Any, cut: int) -> None:
    both, counter = plain.directed(rows, N_RELATIONS), RuleCounter(directed_of(rows), cut, 1)
    ends = (cut, counter.end)
    for (rules, counts), end in zip(counter.constants(OPTIONS), ends, strict=True):
        right, every = plain.constant_counts(both, end, OPTIONS.n_last, OPTIONS.oldest)
        found = {}
        for head in range(2 * N_RELATIONS):
            for body in range(rules.head_offsets[head], rules.head_offsets[head + 1]):
                relation, constant = divmod(int(rules.bodies[body]), N_ENTITIES + 1)
                key = (relation - 1, -1 if constant == N_ENTITIES else constant)
                for rule in range(rules.rule_offsets[body], rules.rule_offsets[body + 1]):
                    found[head, key, int(rules.constants[rule])] = tuple(counts[:, rule].tolist())
        assert found == {key: (n, every[key[:2]]) for key, n in right.items()}
    for (hops, counts), end in zip(counter.hops(OPTIONS), ends, strict=True):
        right_ways, all_ways = plain.hop_counts(both, end, *LIMITS[2:])
        heads = np.repeat(np.arange(2 * N_RELATIONS), np.diff(hops.offsets))
        walked = {
            (int(head), *relations_of(int(body))): tuple(counts[:, row].tolist())
            for row, (head, body) in enumerate(zip(heads, hops.bodies, strict=True))
        }
        assert walked == {key: (n, all_ways[key]) for key, n in right_ways.items()}


def dataset_of(train: Any, test: Any, ends: list[int] | None = None) -> TemporalDataset:
    words = Vocabulary.from_labels([f"e{i}" for i in range(N_ENTITIES)], [f"r{i}" for i in range(N_RELATIONS)])
    return TemporalDataset(
        words, Clock(unit="day"), facts_of(train, ends), TemporalFacts.none(with_ends=ends is not None), facts_of(test)
    )


def tables_of(rules: TemporalRules, head: int) -> plain.Tables:
    """Rules as the reference reads them."""
    constants, hops, width = rules.constants, rules.hops, N_ENTITIES + 1

    def of_cell(table: Any) -> Any:
        def value(h: int, b: int, cell: tuple[int, int]) -> float:
            slot = rules.slots[h, b]
            return float(table[slot, cell[0] * N_FREQUENCY + cell[1]]) if slot >= 0 else 0.0

        return value

    def constant(h: int, body: tuple[int, int]) -> dict[int, float]:
        key = (body[0] + 1) * width + (N_ENTITIES if body[1] < 0 else body[1])
        for row in range(constants.head_offsets[h], constants.head_offsets[h + 1]):
            if constants.bodies[row] == key:
                own = slice(constants.rule_offsets[row], constants.rule_offsets[row + 1])
                return dict(zip(constants.constants[own].tolist(), constants.confidences[own].tolist(), strict=True))
        return {}

    def hop(h: int, relations: tuple[int, ...]) -> float:
        own = slice(hops.offsets[h], hops.offsets[h + 1])
        known = [relations_of(int(body)) for body in hops.bodies[own]]
        return float(hops.confidences[own][known.index(relations)]) if relations in known else 0.0

    return plain.Tables(
        of_cell(rules.pairs.values), of_cell(rules.pairs.alone), constant, hop, rules.favour[head].tolist(),
        rules.weights[head].tolist(), LIMITS,
    )  # fmt: skip


@pytest.mark.kernel
@settings(max_examples=examples(60, 4), deadline=None)
@given(events, events, st.sampled_from(STEPS), st.sampled_from(FILTERS))
def test_ranks_follow_from_the_evidence_for_each_candidate(train: Any, test: Any, steps: str, kind: str) -> None:
    """The score of a candidate is what the rules that explain it add up to, and ranks follow from scores."""
    later = [(s, r, o, 301 + t) for s, r, o, t in test]
    dataset = dataset_of(train, later)
    rules = TemporalLearner(dataset, OPTIONS).learn()
    facts = Directed([dataset.train, dataset.test], N_ENTITIES, N_RELATIONS)
    answerer = Answerer(index_history(facts), index_cells(), rules.tables(), rules.weights, 1)
    questions, places = split_questions(dataset, facts, EvaluationProtocol("test", steps, kind))
    both = plain.directed([*train, *later], N_RELATIONS)
    parts = list(answerer.answer(questions))
    better, equal = (np.concatenate([getattr(part, name) for part in parts])[places] for name in ("better", "equal"))
    rows = sorted(set(later), key=lambda fact: (fact[3], *fact[:3]))
    asked_for = [*rows, *((o, r + N_RELATIONS, s, t) for s, r, o, t in rows)]
    start = min(fact[3] for fact in rows)
    for place, (x, h, y, t) in enumerate(asked_for):
        now = min(t, start) if steps == "multi" else t
        scored = plain.scores(both, x, h, now, now, N_RELATIONS, tables_of(rules, h))
        at = np.flatnonzero((questions.entities == x) & (questions.relations == h))
        at = at[questions.now[at] == now][:1]
        one = take_questions(questions, at)
        scores = {
            candidate: round(sum(added for added, _ in evidence_for(answerer, rules, one, candidate)), 9)
            for candidate in range(N_ENTITIES)
        }
        assert all(scores[y] == pytest.approx(scored.get(y, 0.0), abs=1e-6) for y in scores)
        out = plain.excluded(both, x, h, t, kind)
        low, high = plain.rank(scores, N_ENTITIES, y, out)
        gaps = [abs(a - b) for a in scores.values() for b in scores.values() if a != b]
        if not gaps or min(gaps) > 1e-6:  # what is closer may be ordered by rounding
            assert (better[place], equal[place]) == (low, high)


@settings(max_examples=examples(60, 10), deadline=None)
@given(events, st.lists(st.integers(0, 6), min_size=25, max_size=25))
def test_an_interval_counts_at_every_step_up_to_the_last_of_all(rows: Any, lengths: list[int]) -> None:
    ends = [row[3] + length for row, length in zip(rows, lengths, strict=False)]
    facts = Directed([facts_of(rows, ends)], N_ENTITIES, N_RELATIONS)
    spans = [(*row, end) for row, end in zip(rows, ends, strict=True)]
    expected = plain.directed(plain.expanded(spans, max(ends)), N_RELATIONS)
    found = zip(facts.entities, facts.relations, facts.answers, facts.times, strict=True)
    assert sorted(tuple(map(int, fact)) for fact in found) == sorted(expected)


def test_no_question_reads_the_future() -> None:
    """Facts at or after the moment of a question, or after the end of history, change nothing."""
    rng = np.random.default_rng(3)
    rows = np.stack([rng.integers(0, n, 120) for n in (N_ENTITIES, N_RELATIONS, N_ENTITIES, 30)], axis=1)
    train, test = rows[rows[:, 3] < 20].tolist(), rows[rows[:, 3] >= 20].tolist()
    rules = TemporalLearner(dataset_of(train, test), OPTIONS).learn()
    moment = 25
    poison = [
        (s, r, o, t) for s in range(N_ENTITIES) for r in range(N_RELATIONS) for o in range(N_ENTITIES) for t in (25, 27)
    ]

    def answers(test: Any, steps: str) -> list[Any]:
        dataset = dataset_of(train, test)
        facts = Directed([dataset.train, dataset.test], N_ENTITIES, N_RELATIONS)
        answerer = Answerer(index_history(facts), index_cells(), rules.tables(), rules.weights, 1)
        questions, _ = split_questions(dataset, facts, EvaluationProtocol("test", steps, "raw"))
        pairs = [(x, h) for x in range(N_ENTITIES) for h in range(2 * N_RELATIONS)]
        n = len(pairs)
        now = np.full(n, moment if steps == "single" else 20, np.int64)
        none = np.zeros(n + 1, np.int64)
        columns = np.array(sorted(pairs, key=lambda pair: pair[1]), np.int32).T
        asked_now = questions._replace(
            entities=np.ascontiguousarray(columns[0]), relations=np.ascontiguousarray(columns[1]), before=now, now=now,
            answer_offsets=none, answers=np.empty(0, np.int32), excluded_offsets=none, excluded=np.empty(0, np.int32),
        )  # fmt: skip
        (part,) = answerer.answer(asked_now, N_ENTITIES, with_features=True)
        return [part.sizes.tolist(), part.kept.tolist(), part.scores.tolist(), part.features.tolist()]

    assert answers(test, "single") == answers([*test, *poison], "single")
    late = [(s, r, o, t) for s, r, o, t in poison if t > 20]
    assert answers(test, "multi") == answers([*test, *late], "multi")
    seen = [(0, 0, 1, 24), (1, 1, 2, 24)]
    assert answers(test, "single") != answers([*test, *seen], "single")
