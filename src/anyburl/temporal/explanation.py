"""Why an answer, or why not: the rules that speak for a fact at a moment, with the facts and dates behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anyburl.temporal.answering import Answerer
from anyburl.temporal.evaluation import ranked_parts
from anyburl.temporal.facts import TemporalDataset
from anyburl.temporal.kernel_bodies import FREQUENCY, N_FADES, RECENCY, QuestionArrays
from anyburl.temporal.kernel_candidates import LEAST_ALONE, LEAST_TOTAL, N_FORMS, context_of
from anyburl.temporal.model import ListModel
from anyburl.temporal.rules import TemporalRule, TemporalRules

N_SHOWN = 3  # facts behind a rule, the latest ones
N_MISSING = 3  # rules that would speak for a fact if it had a past

DatedFact = tuple[str, str, str, str]


@dataclass(frozen=True)
class TemporalReason:
    """A rule that speaks for an answer: what it adds to the score, and the facts that make it speak."""

    rule: TemporalRule
    contribution: float
    confidence: float
    facts: tuple[DatedFact, ...]
    words: str

    def __str__(self) -> str:
        facts = "; ".join(f"{s} {r} {o} ({t})" for s, r, o, t in self.facts)
        return f"{self.contribution:.3f} {self.rule}" + (f"\n    {self.words}: {facts}" if facts else "")


@dataclass(frozen=True)
class TemporalExplanation:
    """The reasons for a fact at a moment, the strongest first; and what is missing if there are none."""

    fact: DatedFact
    known: bool
    rank: int | None
    score: float
    rules_score: float
    reasons: tuple[TemporalReason, ...]
    ahead: tuple[str, ...]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the explanation as plain values."""
        return {
            "fact": list(self.fact),
            "known": self.known,
            "rank": self.rank,
            "score": self.score,
            "rules_score": self.rules_score,
            "reasons": [
                {
                    "rule": str(reason.rule),
                    "number": reason.rule.number,
                    "form": reason.rule.form,
                    "contribution": reason.contribution,
                    "confidence": reason.confidence,
                    "facts": [list(fact) for fact in reason.facts],
                }
                for reason in self.reasons
            ],
            "ahead": list(self.ahead),
            "missing": list(self.missing),
        }

    def __str__(self) -> str:
        subject, relation, object, moment = self.fact
        rank = "no rule speaks for it" if self.rank is None else f"rank {self.rank}, score {self.score:.3f}"
        lines = [f"{subject} {relation} {object}, {moment}: {rank}{' (stated)' if self.known else ''}"]
        lines += [f"  {reason}" for reason in self.reasons]
        lines += [f"  missing: {text}" for text in self.missing]
        if self.ahead:
            lines.append(f"  ahead of it: {', '.join(self.ahead)}")
        return "\n".join(lines)


@dataclass(frozen=True)
class _Evidence:
    """One rule that speaks for the answer, before weights: its number, value and facts.

    A pair rule has what it says alone besides, and may speak for the opposite question (`is_reverse`).
    """

    number: int
    value: float
    facts: list[tuple[int, int, int, int]]
    words: str
    alone: float = 0.0
    is_reverse: bool = False


@dataclass
class _PairTotals:
    """What pair rules say for all candidates of a question, and how much its entity did before."""

    values: list[float] = field(default_factory=lambda: [0.0, 0.0])  # of the question and of the opposite one
    alone: float = 0.0
    n_own: int = 0
    n_triples: int = 0


class _Witness:
    """Finds, in plain Python, what the kernel adds up for one candidate of one question."""

    def __init__(self, answerer: Answerer, rules: TemporalRules, question: QuestionArrays, answer: int) -> None:
        self.history, self.rules, self.cells = answerer.history, rules, answerer.cells
        self.entity, self.head = int(question.entities[0]), int(question.relations[0])
        self.before, self.now, self.answer = int(question.before[0]), int(question.now[0]), answer

    def facts_of(self, entity: int) -> range:
        """Return the facts of an entity before the moment."""
        history = self.history
        start, end = int(history.fact_offsets[entity]), int(history.fact_offsets[entity + 1])
        return range(start, start + int(np.searchsorted(history.fact_times[start:end], self.before)))

    def pairs(self) -> tuple[list[_Evidence], _PairTotals]:
        """Return the pair rules that speak for the answer, and what all pair rules say for all candidates."""
        history, slots, rules = self.history, self.rules.slots, self.rules.pairs
        totals, evidence = _PairTotals(), []
        back = history.n_relations // 2
        for triple in range(int(history.triple_offsets[self.entity]), int(history.triple_offsets[self.entity + 1])):
            times = history.times[history.time_offsets[triple] : history.time_offsets[triple + 1]]
            times = times[: np.searchsorted(times, self.before)]
            if not len(times):
                break
            relation, object = int(history.triple_relations[triple]), int(history.triple_objects[triple])
            cell = cell_number(self.now - int(times[-1]), len(times))
            totals.n_triples += 1
            totals.n_own += len(times) if relation == self.head else 0
            opposite = (relation + back) % history.n_relations
            for is_reverse, slot in enumerate(
                (int(slots[self.head, relation]), int(slots[(self.head + back) % history.n_relations, opposite]))
            ):
                if slot < 0:
                    continue
                value, alone = float(rules.values[slot, cell]), 0.0 if is_reverse else float(rules.alone[slot, cell])
                totals.values[is_reverse] += value
                totals.alone += alone
                if object == self.answer:
                    facts = [(self.entity, relation, object, int(time)) for time in times[::-1][:N_SHOWN]]
                    often = "once" if len(times) == 1 else f"{len(times)} times"
                    number = self.rules.number_of("pair", slot)
                    evidence.append(_Evidence(number, value, facts, f"{often} before", alone, bool(is_reverse)))
        return evidence, totals

    def constants(self) -> tuple[list[_Evidence], float]:
        """Return the rules with constants that speak, the strongest first, and the sum over all candidates."""
        tables, history = self.rules.constants, self.history
        options, nothing = self.rules.options, history.n_entities
        bodies: dict[int, int] = {}
        for fact in reversed(self.facts_of(self.entity)[-options.n_last :]):
            if self.now - int(history.fact_times[fact]) > options.oldest:
                break
            relation, object = int(history.fact_relations[fact]), int(history.fact_objects[fact])
            for directed, other in ((relation + 1, object), (relation + 1, nothing), (0, object)):
                bodies.setdefault(directed * (nothing + 1) + other, fact)
        first, last = int(tables.head_offsets[self.head]), int(tables.head_offsets[self.head + 1])
        best: dict[int, float] = {}
        evidence = []
        for key, fact in bodies.items():
            position = first + int(np.searchsorted(tables.bodies[first:last], key))
            if position == last or tables.bodies[position] != key:
                continue
            for rule in range(int(tables.rule_offsets[position]), int(tables.rule_offsets[position + 1])):
                candidate, confidence = int(tables.constants[rule]), float(tables.confidences[rule])
                best[candidate] = max(best.get(candidate, 0.0), confidence)
                if candidate == self.answer:
                    number = self.rules.number_of("constant", rule)
                    evidence.append(_Evidence(number, confidence, [self.fact(self.entity, fact)], "lately"))
        return sorted(evidence, key=lambda one: -one.value), sum(best.values())

    def hops(self) -> tuple[list[_Evidence], float]:
        """Return the rules of hops that speak, the strongest first, and the sum over all candidates."""
        tables, width = self.rules.hops, self.history.n_relations
        first, last = int(tables.offsets[self.head]), int(tables.offsets[self.head + 1])
        rows = {int(body): row for row, body in enumerate(tables.bodies[first:last], first)}
        best: dict[int, float] = {}
        by_hop: dict[int, _Evidence] = {}
        for facts in self.ways():
            relations = [relation for _, relation, _, _ in facts]
            key = relations[0] * width + relations[1]
            row = rows.get(key if len(facts) == 2 else (key + width) * width + relations[2])
            if row is None:
                continue
            candidate, confidence = facts[-1][2], float(tables.confidences[row])
            best[candidate] = max(best.get(candidate, 0.0), confidence)
            if candidate == self.answer and row not in by_hop:
                by_hop[row] = _Evidence(self.rules.number_of("hops", row), confidence, facts, "lately")
        return sorted(by_hop.values(), key=lambda one: -one.value), sum(best.values())

    def ways(self) -> Iterator[list[tuple[int, int, int, int]]]:
        """Yield the facts of every way of two and three hops from the entity, the latest first."""
        options = self.rules.options

        def latest(entity: int, n: int) -> Iterator[tuple[int, int, int, int]]:
            return (self.fact(entity, row) for row in reversed(self.facts_of(entity)[-n:] if n else range(0)))

        for one in latest(self.entity, options.n_first):
            yield from ([one, two] for two in latest(one[2], options.n_second) if two[2] != self.entity)
        for one in latest(self.entity, options.three_hops):
            for two in latest(one[2], options.three_hops):
                for three in latest(two[2], options.three_hops):
                    if len({self.entity, one[2], two[2], three[2]}) == 4:
                        yield [one, two, three]

    def popularity(self) -> tuple[list[float], list[tuple[int, int, int, int]]]:
        """Return the share of the answer among all objects of the relation at each speed, and the latest fact."""
        history, head = self.history, self.head
        shares = [0.0] * N_FADES
        rows = range(int(history.favourite_offsets[head]), int(history.favourite_offsets[head + 1]))
        position = int(np.searchsorted(history.favourites[rows.start : rows.stop], self.answer)) + rows.start
        if position == rows.stop or history.favourites[position] != self.answer:
            return shares, []
        row = _last_before(history.favour_times, history.favour_offsets[position : position + 2], self.before)
        total = _last_before(history.total_times, history.total_offsets[head : head + 2], self.before)
        if row is None or total is None:
            return shares, []
        for k in range(N_FADES):
            own = history.favours[row, k] * np.exp(-history.fades[k] * (self.now - history.favour_times[row]))
            every = history.totals[total, k] * np.exp(-history.fades[k] * (self.now - history.total_times[total]))
            shares[k] = float(own / every)
        opposite = (head + history.n_relations // 2) % history.n_relations
        time = int(history.favour_times[row])
        latest = [
            (int(history.fact_objects[fact]), head, self.answer, time)
            for fact in self.facts_of(self.answer)
            if history.fact_times[fact] == time and history.fact_relations[fact] == opposite
        ]
        return shares, latest[:1]

    def fact(self, entity: int, fact: int) -> tuple[int, int, int, int]:
        """Return a fact as entity, directed relation, other entity and time."""
        history = self.history
        return (
            entity,
            int(history.fact_relations[fact]),
            int(history.fact_objects[fact]),
            int(history.fact_times[fact]),
        )


def cell_number(age: int, count: int) -> int:
    """Return the cell of what was seen `count` times, the last time `age` steps ago."""
    recency = int(np.searchsorted(RECENCY, age, side="right")) - 1
    frequency = int(np.searchsorted(FREQUENCY, count, side="right")) - 1
    return recency * len(FREQUENCY) + frequency


def _last_before(times: Any, bounds: Any, before: int) -> int | None:
    start, end = int(bounds[0]), int(bounds[1])
    row = start + int(np.searchsorted(times[start:end], before)) - 1
    return row if row >= start else None


def evidence_for(
    answerer: Answerer, rules: TemporalRules, question: QuestionArrays, answer: int
) -> list[tuple[float, _Evidence]]:
    """Return every rule that speaks for an answer, with what it adds to the score of the mixture, the most first.

    Rules with constants and of hops add the strongest one's confidence, so only that one counts of each form.
    """
    witness = _Witness(answerer, rules, question, answer)
    pairs, totals = witness.pairs()
    favour = rules.favour[witness.head]
    total = totals.values[0] + float(favour.sum())
    constants, constant_total = witness.constants()
    hops, hop_total = witness.hops()
    shares, latest = witness.popularity()
    weights = rules.weights[witness.head, context_number(totals.n_triples, totals.n_own)].tolist()
    items = []
    for one in pairs:
        if one.is_reverse:
            added = weights[4] * one.value / max(totals.values[1], LEAST_TOTAL)
        else:
            added = weights[0] * one.value / total + weights[3] * one.alone / max(totals.alone, LEAST_ALONE)
        items.append((added, one))
    for position, (evidence, whole) in enumerate(((constants, constant_total), (hops, hop_total)), 1):
        for number, one in enumerate(evidence):
            added = weights[position] * one.value / max(whole, LEAST_TOTAL)
            items.append((added if number == 0 else 0.0, one))
    popular = sum((weights[0] * favour[k] / total + weights[N_FORMS + k]) * shares[k] for k in range(N_FADES))
    if any(shares):
        number = rules.number_of("popular", witness.head)
        items.append(
            (float(popular), _Evidence(number, max(shares), latest, f"{max(shares):.1%} of the answers lately"))
        )
    return sorted(items, key=lambda pair: (-pair[0], pair[1].number))


def context_number(n_triples: float, n_own: float) -> int:
    """Return the context of a question, as the kernel does."""
    plain = getattr(context_of, "py_func", context_of)
    return int(plain(float(n_triples), float(n_own)))


def explain_fact(
    answerer: Answerer,
    model: ListModel | None,
    rules: TemporalRules,
    dataset: TemporalDataset,
    question: QuestionArrays,
    answer: int,
    step: int,
    top: int,
) -> TemporalExplanation:
    """Return the reasons for an answer, its rank among all candidates, and what is missing where there is no reason."""
    words, clock, n = dataset.vocabulary, dataset.clock, dataset.vocabulary.n_relations

    def dated(entity: int, directed: int, other: int, time: int) -> DatedFact:
        subject, object = (entity, other) if directed < n else (other, entity)
        return (*words.triple_labels(subject, directed % n, object), clock.label(time))

    entity, head = int(question.entities[0]), int(question.relations[0])
    known = answer in question.excluded.tolist()
    excluded = question.excluded[question.excluded != answer]
    ranked = question._replace(
        answer_offsets=np.array([0, 1]),
        answers=np.array([answer], np.int32),
        excluded_offsets=np.array([0, len(excluded)]),
        excluded=excluded,
    )
    (part,) = ranked_parts(answerer, ranked, model, max(rules.options.candidates, 1))
    size = int(part.sizes[0])
    order = np.argsort(-part.scores[:size], kind="stable")
    positions = np.flatnonzero(part.kept[:size][order] == answer)
    evidence = evidence_for(answerer, rules, question, answer)
    rank = int(part.better[0]) + 1 if evidence else None
    score = float(part.scores[:size][order][positions[0]]) if len(positions) else 0.0
    reasons = tuple(
        TemporalReason(rules[one.number], added, one.value, tuple(dated(*fact) for fact in one.facts), one.words)
        for added, one in evidence[:top]
    )
    ahead = [words.entity_label(int(part.kept[position])) for position in order if part.kept[position] != answer]
    n_ahead = min(int(part.better[0]), 3)
    return TemporalExplanation(
        fact=dated(entity, head, answer, step),
        known=known,
        rank=rank,
        score=score,
        rules_score=sum(added for added, _ in evidence),
        reasons=reasons,
        ahead=tuple(ahead[:n_ahead]),
        missing=missing_reasons(rules, question, answer) if not _has_past(evidence, rules) else (),
    )


def _has_past(evidence: list[tuple[float, _Evidence]], rules: TemporalRules) -> bool:
    return any(rules.form_of(one.number)[0] == "pair" and not one.is_reverse for _, one in evidence)


def missing_reasons(rules: TemporalRules, question: QuestionArrays, answer: int) -> tuple[str, ...]:
    """Return the strongest pair rules for a relation that do not speak, since the two entities have no such past."""
    head, words = int(question.relations[0]), rules.vocabulary
    rows = np.flatnonzero((rules.pairs.heads == head) & (rules.pairs.right.sum(axis=1) > 0))
    best = rows[np.argsort(-rules.pairs.values[rows, 0], kind="stable")][:N_MISSING]
    one, other = words.entity_label(int(question.entities[0])), words.entity_label(answer)
    sentences = []
    for row in best.tolist():
        body = int(rules.pairs.bodies[row])
        subject, object = (one, other) if body < words.n_relations else (other, one)
        label = words.relation_label(body % words.n_relations)
        sentences.append(f"{subject} {label} {object} before, for {rules[row]}")
    return tuple(sentences)
