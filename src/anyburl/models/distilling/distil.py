"""`distil_ranker`: the rules of a set that rank known answers best, for any number of them.

1. Survey: the best rules of many known answers; all others hardly matter, and are not looked at again.
2. For each known answer, where it would rank by each of its rules alone.
3. Choose one rule after the other (`choosing.py`), by a part of the answers; rank the others with the first n rules
   for several n: the curve.
4. Choose again by all of them, as many as are asked for, and measure what each kept rule is worth to the set.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import RuleError
from anyburl.data.dataset import Dataset
from anyburl.learning.store import canonical_keys
from anyburl.models.distilling.choosing import (
    Evidence,
    Representation,
    Rows,
    find_representatives,
    order_by_gain,
    shares_of,
)
from anyburl.models.distilling.general import implied_rules
from anyburl.models.distilling.known import KnownAnswers, KnownFacts, Observer, in_answers, take_answers
from anyburl.models.distilling.options import DistilOptions
from anyburl.ranking.queries import target_ranks
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.rules.ruleset import RuleSet

MANY_RULES = 200_000  # of more, only those are looked at that are among the best of some known answer
SURVEYED = 12  # rules of each known answer
WIDTH = 30  # rules of each known answer that are ranked by
JUDGED_FACTS = 1_500
WORTH_FACTS = 3_000  # by which the worth of kept rules is measured
LEVELS = (10_000, 3_000, 1_000, 300, 100, 30)  # rules
MOST_REFINED = 10_000  # questions of each kind
MORE = (1.5, 1.3, 1.15)  # times the rules to keep are weighed, then so many, ...
MOST_PRUNED = 10_000  # rules: weighing more takes long, and gains little
MOST_WEIGHED = 5_000  # questions of each kind
FIRST_SIZES = (10, 30)  # and times 10, times 100, ...

Watch = Callable[[str, str], AbstractContextManager[object]]


def unwatched(doing: str, done: str) -> AbstractContextManager[object]:
    """Return a context that tells nobody what is done."""
    return nullcontext()


@dataclass(frozen=True)
class Distilled:
    """The kept rules, the most useful first, with `worth`, `decides`, `only` and `stands_for`; and how they do.

    `curve` has pairs of a number of rules and the share of the MRR of all rules that the best so many have;
    `quality` is the share of the kept ones. `judged_by` says what that was measured on.
    """

    rules: RuleSet
    n_rules: int
    quality: float
    curve: tuple[tuple[int, float], ...]
    seconds: float
    full_mrr: float
    judged_by: str
    n_facts: int
    rows: Rows = field(repr=False)
    """Of the kept rules among the given ones."""
    left_out: RuleSet = field(repr=False)
    representation: Representation = field(repr=False)
    """Of `left_out`, in their order: `rows` counts them, `kept` are rows of `rules`."""

    def to_json(self) -> dict[str, Any]:
        """Return what `distil --json` prints."""
        return {
            "rules": self.n_rules,
            "kept": len(self.rules),
            "quality": round(self.quality, 4),
            "curve": [[n_rules, round(share, 4)] for n_rules, share in self.curve],
            "seconds": round(self.seconds, 3),
            "mrr_of_all": round(self.full_mrr, 4),
            "judged_by": self.judged_by,
            "facts": self.n_facts,
        }

    def represented(self, row: int) -> RuleSet:
        """Return the rules that were left out and that the kept rule at `row` stands for, the nearest first."""
        return self.left_out.take(np.flatnonzero(self.representation.kept == row))


def distil_ranker(ranker: Ranker, dataset: Dataset, options: DistilOptions, watch: Watch = unwatched) -> Distilled:
    """Choose among the rules of `ranker`, for its aggregation. Only train and valid are looked at."""
    started = time.perf_counter()
    rules = ranker.rules
    if not len(rules):
        raise RuleError("there are no rules to distil")
    facts = KnownFacts.draw(
        dataset,
        most=options.facts,
        most_judged=JUDGED_FACTS,
        blocked=ranker.block_connected,
        seed=options.seed,
    )
    work = _Distilling(ranker, facts, options, watch)
    curve, quality, n_kept = work.judge()
    kept = work.choose(n_kept)
    result = work.describe(kept)
    return replace(
        result, curve=curve, quality=quality(len(kept)), seconds=time.perf_counter() - started, full_mrr=work.full_mrr
    )


class _Distilling:
    """What is computed once for one choice of rules."""

    def __init__(self, ranker: Ranker, facts: KnownFacts, options: DistilOptions, watch: Watch) -> None:
        self.ranker, self.facts, self.options, self.watch = ranker, facts, options, watch
        self.least_support = int(ranker.rules.support.min(initial=1))
        self.shares = shares_of(ranker.lister().aggregation)
        known = facts.to_choose_by(with_judged=False)
        judged = facts.to_judge_by()
        self.known, self.judged = known, judged
        self.lists: NDArray[np.int32] | None = None
        rows = self._candidates([*known, judged])
        # In an order that depends on the rules alone, ties are settled in the same way however they were found.
        self.rows = rows[np.argsort(canonical_keys(ranker.rules.take(rows)), kind="stable")]
        self.few = ranker.rules.take(self.rows)
        with watch("ranking known answers", "ranked known answers"):
            observer = Observer(self._ranker_of(self.few), self.least_support)
            self.evidence = Evidence.of([observer.witnesses(some, WIDTH) for some in known])
            self.judged_evidence = Evidence.of([observer.witnesses(judged, WIDTH)])
        if self.lists is None:
            self.lists = np.concatenate([self.evidence.rules, self.judged_evidence.rules])
        self.full_mrr = 0.0

    def _candidates(self, known: list[KnownAnswers]) -> Rows:
        """Return the rows of the rules to choose from: all, or those that are among the best of a known answer."""
        rules = self.ranker.rules
        allowed = np.ones(len(rules), np.bool_)
        if self.options.relations is not None:
            allowed = np.zeros(len(rules), np.bool_)
            for label in self.options.relations:
                number = rules.vocabulary.relation_id(label)
                allowed |= rules.head % rules.vocabulary.n_relations == number
            if not allowed.any():
                raise RuleError(f"there are no rules for {', '.join(self.options.relations)}")
        if len(rules) <= MANY_RULES:
            return np.flatnonzero(allowed)
        with self.watch(
            f"looking for the best of {len(rules):,} rules", f"looked for the best of {len(rules):,} rules"
        ):
            observer = Observer(self.ranker.lister(), self.least_support)
            found = [observer.witnesses(some, SURVEYED, only_targets=True).rules for some in known]
        self.lists = np.concatenate(found)
        is_listed = np.zeros(len(rules), np.bool_)
        is_listed[self.lists[self.lists >= 0]] = True
        return np.flatnonzero(is_listed & allowed)

    def _ranker_of(self, rules: RuleSet) -> Ranker:
        """Return a ranker of fewer rules, with the same options."""
        lister = self.ranker.lister()
        made = make_ranker(lister.graph, rules, lister.options, block_connected=lister.block_connected)
        return replace(made, aggregation=lister.aggregation)

    def mrr(self, ranker: Ranker) -> float:
        """Return the mean reciprocal rank of the answers that choices are judged by."""
        if self.judged.from_train:
            return float(Observer(ranker, self.least_support).reciprocal_ranks(self.judged).mean())
        answers = ranker.answer(self.judged.queries)
        return float((1 / target_ranks(self.judged.queries, answers, ranker.graph.n_entities).realistic).mean())

    def judge(self) -> tuple[tuple[tuple[int, float], ...], Callable[[int], float], int | None]:
        """Return the curve, a function that tells the quality of a number of rules, and how many to keep: None for as
        many as each relation may have.
        """
        with self.watch("choosing rules", "chose rules"):
            order = self._refined(self._order(self.evidence), self.known)
        with self.watch("measuring sets of several sizes", "measured sets of several sizes"):
            self.full_mrr = self.mrr(self.ranker.lister())
            share_of: dict[int, float] = {}

            def share(n_rules: int) -> float:
                n_rules = min(n_rules, len(order))
                if n_rules not in share_of:
                    mrr = self.mrr(self._ranker_of(self.few.take(order[:n_rules])))
                    share_of[n_rules] = mrr / self.full_mrr if self.full_mrr else 1.0
                return share_of[n_rules]

            sizes = [first * 10**power for power in range(8) for first in FIRST_SIZES]
            for n_rules in (n for n in sizes if n < len(order)):
                share(n_rules)
            share(len(order))
            n_kept = self.options.rules
            if n_kept is None and self.options.quality is not None:
                n_kept = self._smallest(share, share_of, self.options.quality)
            measured = tuple(sorted(share_of.items()))
            if n_kept is not None and n_kept <= MOST_PRUNED and self.full_mrr:
                pruned = self.few.take(self._pruned(order, n_kept, self.known))
                share_of[len(pruned)] = self.mrr(self._ranker_of(pruned)) / self.full_mrr
        return measured, share, n_kept

    def _smallest(self, share: Callable[[int], float], share_of: dict[int, float], quality: float) -> int:
        """Return how few of the first rules reach a share: a step of the curve, narrowed by halving it three times."""
        good = [n_rules for n_rules, reached in sorted(share_of.items()) if reached >= quality]
        if not good:
            return max(share_of)
        high = good[0]
        low = max((n_rules for n_rules in share_of if n_rules < high), default=1)
        for _ in range(3):
            middle = round((low * high) ** 0.5)
            if not low < middle < high:
                break
            low, high = (low, middle) if share(middle) >= quality else (middle, high)
        return high

    def _order(self, evidence: Evidence) -> Rows:
        """Return rows of `few` in the order in which they add most; rules implied by one of them are left out."""
        groups = None
        if self.options.per_relation is not None:
            groups = (self.few.head % self.few.vocabulary.n_relations).astype(np.int32)
        order = order_by_gain(
            evidence,
            len(self.few),
            self.shares,
            groups=groups,
            room=self.options.per_relation,
        )
        return order[~implied_rules(self.few.take(order))]

    def choose(self, n_kept: int | None) -> Rows:
        """Return rows of `few`: the rules to keep, chosen by all answers."""
        order = self._order(self.evidence.join(self.judged_evidence))
        known = [*self.known, self.judged]
        return self._pruned(self._refined(order, known), n_kept, known)

    def _pruned(self, order: Rows, n_kept: int | None, known: list[KnownAnswers]) -> Rows:
        """Return the first rules in order; of a few more, if they are few, those that are worth least are dropped.

        Gains do not see what a rule does wrong. On CoDEx-S, 500 rules rank held-out facts with 95 % of the MRR instead
        of 91 %.
        """
        if n_kept is None or n_kept > MOST_PRUNED or self.options.per_relation is not None:
            return order[:n_kept]
        some = [take_answers(part, MOST_WEIGHED, self.options.seed) for part in known]
        kept = order[: int(MORE[0] * n_kept)]
        for more in (*MORE[1:], 1.0):
            n_left = max(n_kept, int(more * n_kept))
            if len(kept) > n_left:
                observer = Observer(self._ranker_of(self.few.take(kept)), self.least_support)
                worth = observer.worth(some).worth
                kept = kept[np.sort(np.lexsort((np.arange(len(kept)), -worth))[:n_left])]
        return kept

    def _refined(self, order: Rows, known: list[KnownAnswers]) -> Rows:
        """Put the first rules in order again and again, fewer each time, by where answers rank among these alone.

        With few rules, rivals have fewer rules as well, so that others are worth choosing.
        """
        if self.options.per_relation is not None:
            return order
        order = order.copy()
        some = [take_answers(part, MOST_REFINED, self.options.seed) for part in known]
        for n_rules in (n for n in LEVELS if n < len(order)):
            first = order[:n_rules].copy()
            observer = Observer(self._ranker_of(self.few.take(first)), self.least_support)
            evidence = Evidence.of([observer.witnesses(part, WIDTH) for part in some])
            chosen = order_by_gain(evidence, n_rules, self.shares)
            rest = np.setdiff1d(np.arange(n_rules), chosen)
            order[:n_rules] = first[np.concatenate([chosen, rest])]
        return order

    def describe(self, kept: Rows) -> Distilled:
        """Return the kept rules with what each is worth."""
        rules = self.few.take(kept)
        with self.watch("measuring what each rule is worth", "measured what each rule is worth"):
            observer = Observer(self._ranker_of(rules), self.least_support)
            some = replace(self.facts, valid=self.facts.valid[:WORTH_FACTS], train=self.facts.train[:WORTH_FACTS])
            known = some.to_choose_by(with_judged=True)
            found = observer.worth(known)
        all_rows, every = self.rows[kept], self.ranker.rules
        places = np.full(len(every), -1, np.int64)
        places[all_rows] = np.arange(len(kept))
        lists = self._lists_of_all()
        representation = find_representatives(lists, places)
        order = np.lexsort((-representation.overlaps, places[representation.kept]))
        left_rows = representation.rows[order]
        by = places[representation.kept[order]]
        distilled = rules.replace(
            worth=in_answers(found.worth),
            decides=found.decides,
            only=found.only,
            stands_for=np.bincount(by, minlength=len(kept)).astype(np.int32),
        )
        return Distilled(
            rules=distilled,
            n_rules=len(every),
            quality=1.0,
            curve=(),
            seconds=0.0,
            full_mrr=0.0,
            judged_by=f"{len(self.facts.judged):,} facts of {'train' if self.judged.from_train else 'valid'}",
            n_facts=len(self.facts.valid) + len(self.facts.train) + len(self.facts.judged),
            rows=all_rows,
            left_out=every.take(left_rows),
            representation=Representation(np.arange(len(left_rows)), by, representation.overlaps[order]),
        )

    def _lists_of_all(self) -> NDArray[np.int32]:
        """Return the best rules of each answer as rows of all rules."""
        assert self.lists is not None
        if len(self.ranker.rules) > MANY_RULES:
            return self.lists
        return np.where(self.lists >= 0, self.rows[np.maximum(self.lists, 0)], -1).astype(np.int32)
