"""How suspicious each fact of train is.

Suspicion is the logarithm of wrong : right: how much likelier what speaks for and against a fact is if one end of it
was drawn at random than if it is like the other facts of its relation. It adds up what the strongest rule behind a fact
says (or that there is none), how well subject and object fit, and whether the fact breaks a functional relation.
For the most suspicious facts, what strong rules say instead is added as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.doctor.contradictions import Contradictions, find_contradictions
from anyburl.doctor.facts import Facts
from anyburl.doctor.functional import Functional
from anyburl.doctor.kinds import Kinds
from anyburl.doctor.odds import Wrong, log_odds, make_wrong
from anyburl.doctor.support import Progress, Supported, SupportFinder, longest_body, one_short
from anyburl.ruleset.ruleset import RuleSet

SUSPICIOUS = float(np.log(100))  # from here on facts are listed: 100 times likelier if wrong
MOST_WRONG = 50_000  # wrong facts that right ones are compared with
MOST_ASKED = 2_000  # facts for which strong rules are asked what they say instead
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
        found: Floats = self.by_rules + self.by_kinds + self.by_answers - np.log1p(-self.contradicted.scores)
        return found

    def order(self) -> NDArray[np.int64]:
        """Return the rows of train, the most suspicious first."""
        return np.argsort(-self.total, kind="stable")


def n_checked(n_train: int) -> int:
    """Return how many facts, right and wrong, rules are tried on."""
    return n_train + min(n_train, MOST_WRONG)


def find_suspicion(
    facts: Facts,
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
    short = one_short(rules, longest_body(len(facts.train)))
    supported, by_rules = _judge_rules(facts, wrong, SupportFinder(facts.graph, short, threads), progress)
    found = Suspicion(by_rules, by_kinds, by_answers, fits, worse, supported, nothing, short)
    return replace(found, contradicted=_contradict(facts, functional, found, short, threads))


def _judge_kinds(facts: Facts, wrong: Wrong) -> tuple[Floats, NDArray[np.int64], Floats]:
    """Return how well both ends of each fact fit, which one is worse, and how suspicious that is if either may be."""
    kinds = Kinds(facts.train, facts.n_entities, facts.n_relations)
    fits, wrong_fits = kinds.fits(facts.train, stated=True), kinds.fits(wrong.triples, stated=False)
    by_end = np.empty_like(fits)
    for end in (0, 1):
        chosen = wrong.ends == end
        compared = wrong_fits[chosen, end], wrong.triples[chosen, 1]
        by_end[:, end] = -log_odds(fits[:, end], facts.train[:, 1], *compared, facts.n_relations)
    return fits, by_end.argmax(axis=1), np.logaddexp(by_end[:, 0], by_end[:, 1]) - np.log(2)


def _judge_rules(
    facts: Facts, wrong: Wrong, finder: SupportFinder, progress: Progress | None
) -> tuple[Supported, Floats]:
    supported, of_wrong = finder.find(facts.train, progress), finder.find(wrong.triples, progress)
    odds = log_odds(supported.scores, facts.train[:, 1], of_wrong.scores, wrong.triples[:, 1], facts.n_relations)
    return supported, -odds


def _judge_answers(facts: Facts, functional: Sequence[Functional]) -> Floats:
    """A fact that breaks a functional relation is as suspicious as that is rare."""
    relations, found = facts.train[:, 1], np.zeros(len(facts.train))
    sizes = np.bincount(relations, minlength=facts.n_relations)
    for one in functional:
        breaking = one.breaking(relations)
        shares = np.bincount(relations[breaking], minlength=facts.n_relations) / np.maximum(sizes, 1)
        found[breaking] += np.maximum(np.log(ADDED / shares[relations[breaking]]), 0)
    return found


def _contradict(
    facts: Facts, functional: Sequence[Functional], before: Suspicion, rules: RuleSet, threads: int | None
) -> Contradictions:
    """Ask strong rules about the most suspicious facts of functional relations."""
    total, found = before.total, Contradictions.none(len(facts.train))
    for one in functional:
        order = before.order()
        asked = order[(total[order] > 0) & one.relations[facts.train[order, 1]]][:MOST_ASKED]
        said = find_contradictions(facts, facts.train[asked], rules, threads, back=one.back)
        stronger = said.scores > found.scores[asked]
        for name in ("answers", "rows", "scores"):
            getattr(found, name)[asked[stronger]] = getattr(said, name)[stronger]
    return found
