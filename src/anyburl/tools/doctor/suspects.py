"""Facts to check by hand, the most suspicious first, and those whose subject or object does not fit.

Suspicion is the logarithm of wrong : right: how much likelier what speaks for and against a fact is if one end of it
was drawn at random than if it is like the other facts of its relation. It adds up what the strongest rule behind a fact
says (or that there is none), how well subject and object fit, and whether the fact breaks a functional relation.
For the most suspicious facts, what strong rules say instead is added as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import counted
from anyburl.data.names import relation_name
from anyburl.rules.ruleset import RuleSet
from anyburl.tools.doctor.evidence import (
    WORDS,
    Contradictions,
    Functional,
    Kinds,
    Progress,
    Supported,
    SupportFinder,
    Wrong,
    find_contradictions,
    log_odds_of_facts,
    longest_judging_body,
    make_wrong,
    one_short,
)
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Severity, share_text

SUSPICIOUS = float(np.log(100))  # from here on facts are listed: 100 times likelier if wrong
MOST_WRONG = 50_000  # wrong facts that right ones are compared with
MOST_CONTRADICTED = 2_000  # facts for which the answers of strong rules are looked up
ADDED = 0.5  # the share of wrong facts that stand beside a right answer to the same question

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Suspicion:
    """What speaks against each fact of train, in the order of its rows: logarithms of wrong : right."""

    by_rules: Floats  # by the strongest rule behind it; zeros without rules
    by_kinds: Floats  # by how well subject and object fit
    by_answers: Floats  # by other answers to a question that should have one
    fits: Floats  # (facts, 2): how well subject and object fit
    worse: NDArray[np.int64]  # which of them is more suspicious
    supported: Supported | None  # the rules behind the facts; None without rules
    contradicted: Contradictions
    rules: RuleSet | None  # one fact short

    @property
    def total(self) -> Floats:
        """All of it."""
        summed: Floats = self.by_rules + self.by_kinds + self.by_answers - np.log1p(-self.contradicted.scores)
        return summed

    def order(self) -> NDArray[np.int64]:
        """Return the rows of train, the most suspicious first."""
        return np.argsort(-self.total, kind="stable")


def n_checked(n_train: int) -> int:
    """Return how many facts, right and wrong, rules are tried on."""
    return n_train + min(n_train, MOST_WRONG)


def find_suspicion(
    facts: DatasetFacts,
    functional: Sequence[Functional],
    rules: RuleSet | None,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: Progress | None = None,
) -> Suspicion:
    """Judge every fact of train; `progress` is called with the number of facts that rules were tried on."""
    wrong = make_wrong(facts, MOST_WRONG, np.random.default_rng(seed))
    fits, worse, by_kinds = _judge_kinds(facts, wrong)
    by_answers = _judge_answers(facts, functional)
    nothing = Contradictions.none(len(facts.train))
    if rules is None:
        return Suspicion(np.zeros(len(facts.train)), by_kinds, by_answers, fits, worse, None, nothing, None)
    short = one_short(rules, longest_judging_body(len(facts.train)))
    supported, by_rules = _judge_rules(facts, wrong, SupportFinder(facts.graph, short, threads), progress)
    suspicion = Suspicion(by_rules, by_kinds, by_answers, fits, worse, supported, nothing, short)
    return replace(suspicion, contradicted=_contradict(facts, functional, suspicion, short, threads))


def _judge_kinds(facts: DatasetFacts, wrong: Wrong) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return how well both ends of each fact fit, which one is worse, and how suspicious that is if either may be."""
    kinds = Kinds(facts.train, facts.n_entities, facts.n_relations)
    fits, wrong_fits = kinds.fits(facts.train, stated=True), kinds.fits(wrong.triples, stated=False)
    by_end = np.empty_like(fits)
    for end in (0, 1):
        chosen = wrong.ends == end
        compared = wrong_fits[chosen, end], wrong.triples[chosen, 1]
        by_end[:, end] = -log_odds_of_facts(fits[:, end], facts.train[:, 1], *compared, facts.n_relations)
    return fits, by_end.argmax(axis=1), np.logaddexp(by_end[:, 0], by_end[:, 1]) - np.log(2)


def _judge_rules(
    facts: DatasetFacts, wrong: Wrong, finder: SupportFinder, progress: Progress | None
) -> tuple[Supported, Floats]:
    supported, of_wrong = finder.find(facts.train, progress), finder.find(wrong.triples, progress)
    odds = log_odds_of_facts(
        supported.scores, facts.train[:, 1], of_wrong.scores, wrong.triples[:, 1], facts.n_relations
    )
    return supported, -odds


def _judge_answers(facts: DatasetFacts, functional: Sequence[Functional]) -> Floats:
    """A fact that breaks a functional relation is as suspicious as that is rare."""
    relations, suspicions = facts.train[:, 1], np.zeros(len(facts.train))
    sizes = np.bincount(relations, minlength=facts.n_relations)
    for one in functional:
        breaking = one.breaking(relations)
        shares = np.bincount(relations[breaking], minlength=facts.n_relations) / np.maximum(sizes, 1)
        suspicions[breaking] += np.maximum(np.log(ADDED / shares[relations[breaking]]), 0)
    return suspicions


def _contradict(
    facts: DatasetFacts, functional: Sequence[Functional], before: Suspicion, rules: RuleSet, threads: int | None
) -> Contradictions:
    """Ask strong rules about the most suspicious facts of functional relations."""
    total, contradictions = before.total, Contradictions.none(len(facts.train))
    for one in functional:
        order = before.order()
        rows = order[(total[order] > 0) & one.relations[facts.train[order, 1]]][:MOST_CONTRADICTED]
        answers = find_contradictions(facts, facts.train[rows], rules, threads, back=one.back)
        stronger = answers.scores > contradictions.scores[rows]
        for name in ("answers", "rows", "scores", "back"):
            getattr(contradictions, name)[rows[stronger]] = getattr(answers, name)[stronger]
    return contradictions


TELLING = float(np.log(2))  # what is less is no reason
INSISTENT = 0.8  # the least confidence of rules, one fact short, that make a fact a possible error
ENDS = ("subject", "object")
MOST_NAMED = 5  # relations in a sentence


@dataclass(frozen=True)
class Shown:
    """How many examples are shown, in all and of each relation, and of which relation if it is one only."""

    top: int
    per_relation: int
    relation: int | None = None

    def among(self, rows: NDArray[np.int64], relations: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the rows that may be shown."""
        return rows if self.relation is None else rows[relations[rows] == self.relation]

    def choose(self, rows: NDArray[np.int64], relations: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return the first rows of each relation, relation by relation; where one has few, others have no more."""
        if self.relation is not None:
            return rows[: self.top]
        _, firsts, groups = np.unique(relations[rows], return_index=True, return_inverse=True)
        order = np.lexsort((np.arange(len(rows)), firsts[groups]))
        starts = np.flatnonzero(np.diff(firsts[groups][order], prepend=-1))
        sizes = np.diff([*starts, len(rows)])
        turns = np.arange(len(rows)) - np.repeat(starts, sizes)
        return rows[order[turns < self.per_relation][: self.top]]


def by_relation(rows: NDArray[np.int64], facts: DatasetFacts) -> str:
    """Return how many of the rows each relation has, in words, the most first."""
    numbers, counts = np.unique(facts.train[rows, 1], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    names = [relation_name(label, facts.dataset.names) for label in facts.relation_labels(numbers[order[:MOST_NAMED]])]
    parts = [f"{n:,} of {name}" for name, n in zip(names, counts[order].tolist(), strict=False)]
    n_more = len(numbers) - len(parts)
    return ", ".join([*parts, *([f"others of {counted(n_more, 'relation')}"] if n_more else [])])


def suspicious_rows(suspicion: Suspicion) -> NDArray[np.int64]:
    """Return the facts of train that are 100 times likelier to be as they are if they are wrong, the worst first."""
    order = suspicion.order()
    return order[suspicion.total[order] >= SUSPICIOUS]


def check_suspects(
    facts: DatasetFacts, functional: Sequence[Functional], suspicion: Suspicion, shown: Shown
) -> list[Finding]:
    """Return suspicious facts of train, some of each relation."""
    total, relations = suspicion.total, facts.train[:, 1]
    rows = shown.among(suspicious_rows(suspicion), relations)
    if not len(rows):
        return []
    first = shown.choose(rows, relations)
    examples = suspects_frame(facts, functional, suspicion, first)
    by = "" if suspicion.rules is not None else ", by the relations of their entities alone (no rules)"
    n_facts = len(total) if shown.relation is None else int((relations == shown.relation).sum())
    verb = "looks" if len(rows) == 1 else "look"
    which = by_relation(rows, facts)
    sentence = f"{counted(len(rows), 'fact')} of {n_facts:,} in train {verb} wrong{by}, {which}: check by hand"
    return [Finding.of("suspects", Severity.WARNING, sentence, len(rows), examples)]


def suspects_frame(
    facts: DatasetFacts, functional: Sequence[Functional], suspicion: Suspicion, rows: NDArray[np.int64]
) -> pl.DataFrame:
    """Return facts of train with their suspicion and what speaks against them."""
    reasons = Reasons(facts, functional, suspicion)
    return facts.labels(facts.train[rows]).with_columns(
        pl.Series("suspicion", suspicion.total[rows].round(1)),
        pl.Series("why", [reasons.of(int(row)) for row in rows], pl.String),
    )


def check_conflicts(
    facts: DatasetFacts, functional: Sequence[Functional], suspicion: Suspicion, shown: Shown
) -> list[Finding]:
    """Return the facts for which strong rules predict another answer, where there should be one only: either
    the fact or the answer is wrong, unless both are true. Rules for the fact itself must be weaker.
    """
    if suspicion.supported is None:
        return []
    against, behind = suspicion.contradicted, suspicion.supported.scores
    rows = np.flatnonzero((against.answers >= 0) & (against.scores >= INSISTENT) & (against.scores > behind))
    rows = shown.among(rows, facts.train[:, 1])
    if not len(rows):
        return []
    first = shown.choose(rows[np.argsort(behind[rows] - against.scores[rows], kind="stable")], facts.train[:, 1])
    others = facts.train[first].copy()
    others[np.arange(len(first)), np.where(against.back[first], 0, 2)] = against.answers[first]
    reasons = Reasons(facts, functional, suspicion)
    instead = facts.labels(others).select(pl.concat_str(pl.all(), separator=" ").alias("or else"))
    examples = facts.labels(facts.train[first]).with_columns(
        pl.Series("for it", [reasons.behind(int(row)) for row in first]),
        instead["or else"],
        pl.Series("for that", [reasons.against(int(row)) for row in first]),
    )
    words = counted(len(rows), "fact contradicts", "facts contradict")
    which = by_relation(rows, facts)
    sentence = f"{words} strong rules, which give another answer where there should be one: one of the two may be wrong"
    sentence += f" ({which})"
    return [Finding.of("conflicts", Severity.WARNING, sentence, len(rows), examples)]


def check_kinds(facts: DatasetFacts, suspicion: Suspicion, top: int) -> list[Finding]:
    """Return the facts with a subject or an object that has other relations than those that fit."""
    rows = np.flatnonzero(suspicion.by_kinds >= SUSPICIOUS)
    if not len(rows):
        return []
    first = rows[np.argsort(-suspicion.by_kinds[rows], kind="stable")][:top]
    ends = [ENDS[end] for end in suspicion.worse[first]]
    examples = facts.labels(facts.train[first]).with_columns(pl.Series("does not fit", ends))
    words = counted(len(rows), "fact has", "facts have")
    sentence = f"{words} a subject or object whose relations differ from what is usual there"
    return [Finding.of("types", Severity.WARNING, sentence, len(rows), examples)]


class Reasons:
    """What speaks against facts, in words."""

    def __init__(self, facts: DatasetFacts, functional: Sequence[Functional], suspicion: Suspicion) -> None:
        self._facts, self._suspicion = facts, suspicion
        self._names = facts.dataset.names
        self._breaking = [(one, one.breaking(self._relations)) for one in functional]
        self._sorted: dict[tuple[int, int], Floats] = {}

    def of(self, row: int) -> str:
        """Return the reasons to suspect the fact at a row of train."""
        return "; ".join(self._parts(row))

    def behind(self, row: int) -> str:
        """Return the strongest rule for the fact at a row of train, the fact itself not counted."""
        supported = self._suspicion.supported
        if supported is None or supported.rows[row] < 0:
            return "no rule"
        return f"{supported.scores[row]:.2f}: {self._rule(int(supported.rows[row]))}"

    def against(self, row: int) -> str:
        """Return the strongest rule for another answer than the fact at a row of train."""
        contradicted = self._suspicion.contradicted
        return f"{contradicted.scores[row]:.2f}: {self._rule(int(contradicted.rows[row]))}"

    def _parts(self, row: int) -> Iterator[str]:
        suspicion = self._suspicion
        answer = int(suspicion.contradicted.answers[row])
        if answer >= 0:
            label, score = self._facts.dataset.vocabulary.entity_label(answer), suspicion.contradicted.scores[row]
            rule = self._rule(int(suspicion.contradicted.rows[row]))
            yield f"rules predict {self._names.get(label)} instead ({score:.2f}): {rule}"
        if suspicion.by_rules[row] >= TELLING:
            yield self._support(row)
        for one, breaking in self._breaking:
            if suspicion.by_answers[row] >= TELLING and breaking[row]:
                word, other = WORDS[one.back]
                yield f"one of {one.n_answers[row]} {other}s, where nearly every {word} has one"
        if suspicion.by_kinds[row] >= TELLING:
            yield self._fit(row)

    @property
    def _relations(self) -> NDArray[np.int32]:
        relations: NDArray[np.int32] = self._facts.train[:, 1]
        return relations

    def _support(self, row: int) -> str:
        supported = self._suspicion.supported
        assert supported is not None
        better = self._share_above(row, supported.scores, -1)
        if supported.rows[row] < 0:
            return f"no rule supports it, and rules support {better} of the facts of this relation"
        rule = self._rule(int(supported.rows[row]))
        return f"{better} of the facts of this relation have a better rule than {rule} ({supported.scores[row]:.2f})"

    def _fit(self, row: int) -> str:
        end = int(self._suspicion.worse[row])
        better = self._share_above(row, self._suspicion.fits[:, end], end)
        return f"its {ENDS[end]} fits worse than {better} of the {ENDS[end]}s of this relation"

    def _share_above(self, row: int, values: Floats, kind: int) -> str:
        """Return which share of the facts of the same relation has a higher value; sorted once for all its facts."""
        key = int(self._relations[row]), kind
        if key not in self._sorted:
            self._sorted[key] = np.sort(values[self._relations == key[0]])
        beside = self._sorted[key]
        return share_text(len(beside) - int(np.searchsorted(beside, values[row], "right")), len(beside))

    def _rule(self, row: int) -> str:
        assert self._suspicion.rules is not None
        return self._suspicion.rules.rule(row).named(self._names)
