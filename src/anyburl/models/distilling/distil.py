"""`distil_ranker`: the rules of a set that rank known answers best, as few as are asked for.

1. Survey: the best rules of many known answers; all others hardly matter, and are not looked at again.
2. Put these in an order in which each adds most (`choosing.py`). It is quick, and does not see what rules get wrong.
3. Of the first of them, several times as many as are asked for, list the contests of known answers once, and drop the
   rules that are worth least, round by round (`contests.py`). On the way there are sets of other sizes: the curve.
   Where many rules are to be kept, each has too few answers to be weighed by, and the order by more answers is better.
4. Measure the sets by answers that were not looked at before, and what each kept rule is worth.
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
from anyburl.learning.options import DistilOptions
from anyburl.models.distilling.choosing import Representation, Rows, Survey, find_representatives, shares_of
from anyburl.models.distilling.contests import DROPPED_AT_ONCE, ROUGHLY, Contests, drop_to, exchange
from anyburl.models.distilling.known import KnownFacts, Observer, in_answers
from anyburl.ranking.queries import target_ranks
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.rules.ruleset import RuleSet

MANY_RULES = 200_000  # of more, a plain `learn` keeps those that matter
JUDGED_FACTS = 1_500
WORTH_FACTS = 3_000  # by which the worth of kept rules is measured; of more than are weighed, by half as many
FACTS = 32_000  # with 20,000, 500 rules of CoDEx-S keep 1 % less of the MRR on held-out facts
FACTS_OF_A_RULE, MANY_FACTS = 20, 100_000  # of 50,000 facts, 50,000 rules of FB15k-237 keep .8 % less
FACTS_OF_MANY_RULES = 0.75
WIDTH = 12  # rules of each known answer in its contest
ENTRIES = 1_024  # of a contest
POOL, LEAST_POOL = 4, 4_000  # times the rules to keep are weighed, and at least so many
MOST_WEIGHED = 20_000  # rules: weighing 120,000 of FB15k-237 kept 3 % less of the MRR on held-out facts than the order
FEWER = 8  # times fewer rules than were listed: contests are listed again, for lower rules of the answers
FIRST_SIZES = (10, 30)  # and times 10, times 100, ...

Watch = Callable[[str, str], AbstractContextManager[object]]


def unwatched(doing: str, done: str) -> AbstractContextManager[object]:
    """Return a context that shows nothing."""
    return nullcontext()


@dataclass(frozen=True)
class Distilled:
    """The kept rules, the most useful first, with `worth`, `decides`, `only` and `stands_for`; and how they do.

    `curve` has pairs of a number of rules and the share of the MRR of all rules that so many have;
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


def distil_ranker(
    ranker: Ranker, dataset: Dataset, options: DistilOptions, watch: Watch = unwatched, *, for_model: bool = False
) -> Distilled:
    """Choose among the rules of `ranker`, for its aggregation. Only train and valid are looked at.

    `for_model`: a model will be fitted on valid beside the rules, so they are chosen by train; see `KnownFacts.draw`.
    """
    started = time.perf_counter()
    if not len(ranker.rules):
        raise RuleError("there are no rules to distil")
    facts = KnownFacts.draw(
        dataset,
        most=options.facts or facts_for(options.rules),
        most_judged=JUDGED_FACTS,
        blocked=ranker.block_connected,
        seed=options.seed,
        fits_valid=for_model or ranker.aggregation.needs_model,
    )
    work = _Distilling(ranker, facts, options, watch)
    with watch("choosing rules", "chose rules"):
        kept = work.choose()
    result = work.describe(kept)
    return replace(result, seconds=time.perf_counter() - started)


def facts_for(n_rules: int | None) -> int:
    """Return how many known facts to choose so many rules by."""
    n_rules = n_rules or 0
    return max(FACTS, min(FACTS_OF_A_RULE * n_rules, MANY_FACTS), int(FACTS_OF_MANY_RULES * n_rules))


class _Distilling:
    """What is computed once for one choice of rules. Rules are rows of `few`, those that predict a known answer."""

    def __init__(self, ranker: Ranker, facts: KnownFacts, options: DistilOptions, watch: Watch) -> None:
        self.ranker, self.facts, self.options, self.watch = ranker, facts, options, watch
        self.least_support = int(ranker.rules.support.min())
        self.judged = facts.to_judge_by()
        self.contested = facts.first(options.facts or FACTS).to_choose_by()
        n_rules = len(ranker.rules)
        with watch(f"looking for the best of {n_rules:,} rules", f"looked for the best of {n_rules:,} rules"):
            self.survey = Survey.make(
                ranker.lister(), facts.to_choose_by(), self.least_support, allowed=self._allowed()
            )
            self.full_mrr = self.mrr(ranker.lister())
        self.few = self.survey.rules
        self.share_of: dict[int, float] = {}

    def _allowed(self) -> NDArray[np.bool_] | None:
        """Mark the rules for the relations to choose for; None if that is all of them."""
        if self.options.relations is None:
            return None
        rules = self.ranker.rules
        numbers = [rules.vocabulary.relation_id(label) for label in self.options.relations]
        allowed = np.isin(rules.head % rules.vocabulary.n_relations, numbers)
        if not allowed.any():
            raise RuleError(f"there are no rules for {', '.join(self.options.relations)}")
        return allowed

    def ranker_of(self, rows: Rows) -> Ranker:
        """Return a ranker of fewer rules, with the same options."""
        lister = self.ranker.lister()
        made = make_ranker(lister.graph, self.few.take(rows), lister.options, block_connected=lister.block_connected)
        return replace(made, aggregation=lister.aggregation)

    def mrr(self, ranker: Ranker) -> float:
        """Return the mean reciprocal rank of the answers that choices are judged by."""
        if self.judged.from_train:
            return Observer(ranker, self.least_support).worth([self.judged])[0] / max(1, len(self.judged))
        answers = ranker.answer(self.judged.queries)
        return float((1 / target_ranks(self.judged.queries, answers, ranker.graph.n_entities).realistic).mean())

    def share(self, rows: Rows) -> float:
        """Return the share of the MRR of all rules that some of them have; it is a point of the curve."""
        share = self.mrr(self.ranker_of(rows)) / self.full_mrr if self.full_mrr else 1.0
        self.share_of[len(rows)] = max(share, self.share_of.get(len(rows), 0.0))
        return share

    def order(self, room: int | None = None) -> Rows:
        """Return the rules in the order in which they add most, see `Survey.order`."""
        return self.survey.order(shares_of(self.ranker.lister().aggregation), room)

    def contests(self, rows: Rows) -> Contests:
        """Return the contests of known answers among some rules."""
        return Observer(self.ranker_of(rows), self.least_support).contests(self.contested, WIDTH, ENTRIES)

    def choose(self) -> Rows:
        """Return the rules to keep."""
        options = self.options
        if options.per_relation is not None:
            n_relations = len(np.unique(self.survey.relations))
            pool = self.order(max(POOL * options.per_relation, -(-LEAST_POOL // max(1, n_relations))))
            groups = self.survey.relations[pool]
            room = np.full(int(groups.max(initial=0)) + 1, options.per_relation)
            kept = drop_to(self.contests(pool), np.ones(len(pool), np.bool_), room, groups)
            order = pool[kept]
        else:
            order = self.order()
        sizes = [first * 10**power for power in range(8) for first in FIRST_SIZES]
        sizes = [n for n in sizes if n < len(order)]
        n_kept = options.rules
        if n_kept is None and options.quality is None:
            self.share(order)
            return order
        if n_kept is None:
            return self._smallest(order, sizes, float(options.quality or 0))
        return self._descend(order, n_kept, sizes)

    def _smallest(self, order: Rows, sizes: list[int], quality: float) -> Rows:
        """Return as few rules as reach a share: the first in order that do, and then as many as can be dropped."""
        kept = order
        for n_rules in sizes:
            if self.share(order[:n_rules]) >= quality:
                kept = order[: max(2 * n_rules, LEAST_POOL)]
                break
        if len(kept) > MOST_WEIGHED:
            return kept[: max(1, len(kept) // 2)] if len(kept) < len(order) else kept
        pool = _Pool(self, kept)
        high = len(kept)
        for n_rules in sorted((n for n in sizes if n < high), reverse=True):
            if self.share(pool.reduce(n_rules)) < quality:
                break
            high = n_rules
        low = max((n for n in sizes if n < high), default=1)
        best = pool.set_of(high)
        for _ in range(3):
            middle = round((low * high) ** 0.5)
            if not low < middle < high:
                break
            tried = pool.reduce(middle, start=high)
            if self.share(tried) >= quality:
                high, best = middle, tried
            else:
                low = middle
        if high not in self.share_of:  # no smaller set is good enough
            self.share(best)
        return best

    def _descend(self, order: Rows, n_kept: int, sizes: list[int]) -> Rows:
        """Return this number of rules; sets of other sizes are measured on the way."""
        n_weighed = max(POOL * n_kept, LEAST_POOL)
        for n_rules in sizes:
            if n_rules > n_weighed or n_weighed > MOST_WEIGHED:
                self.share(order[:n_rules])
        self.share(order)
        if n_kept >= len(order) or n_weighed > MOST_WEIGHED:
            self.share(order[:n_kept])
            return order[:n_kept]
        pool = _Pool(self, order[:n_weighed])
        for n_rules in sorted((n for n in sizes if n_kept < n < len(pool.rows)), reverse=True):
            self.share(pool.reduce(n_rules))
        sets = [pool.reduce(n_kept), pool.exchange(n_kept), order[:n_kept]]
        kept = pool.sets[n_kept] = max(sets, key=self.share)
        for n_rules in sorted((n for n in sizes if n < n_kept), reverse=True):
            self.share(pool.reduce(n_rules, at_once=ROUGHLY))
        return kept

    def describe(self, kept: Rows) -> Distilled:
        """Return the kept rules with what each is worth, the most useful first."""
        with self.watch("measuring what each rule is worth", "measured what each rule is worth"):
            known = self.facts.first(WORTH_FACTS // (1 + (len(kept) > MOST_WEIGHED))).to_choose_by()
            _, values = Observer(self.ranker_of(kept), self.least_support).worth(known)
        order = np.lexsort((np.arange(len(kept)), -values.worth))
        kept, every = kept[order], self.ranker.rules
        all_rows = self.survey.rows[kept]
        positions = np.full(len(every), -1, np.int64)
        positions[all_rows] = np.arange(len(kept))
        representation = find_representatives(self.survey.best.rules, positions)
        nearest = np.lexsort((-representation.overlaps, positions[representation.kept]))
        left_rows, by = representation.rows[nearest], positions[representation.kept[nearest]]
        distilled = self.few.take(kept).replace(
            worth=in_answers(values.worth[order]),
            decides=values.decides[order],
            only=values.only[order],
            stands_for=np.bincount(by, minlength=len(kept)).astype(np.int32),
        )
        facts = self.facts
        return Distilled(
            rules=distilled,
            n_rules=len(every),
            quality=self.share_of[len(kept)],
            curve=tuple(sorted(self.share_of.items())),
            seconds=0.0,
            full_mrr=self.full_mrr,
            judged_by=f"{len(facts.judged):,} facts of {'train' if self.judged.from_train else 'valid'}",
            n_facts=len(facts.valid) + len(facts.train),
            rows=all_rows,
            left_out=every.take(left_rows),
            representation=Representation(np.arange(len(left_rows)), by, representation.overlaps[nearest]),
        )


class _Pool:
    """Rules that are weighed against each other, and the sets that are left when those worth least are dropped."""

    def __init__(self, work: _Distilling, rows: Rows) -> None:
        self._work, self.rows = work, rows
        self._listed, self._contests = rows, work.contests(rows)  # which rules contests were last listed with
        self.sets: dict[int, Rows] = {len(rows): rows}

    def set_of(self, n_rules: int) -> Rows:
        """Return a set that there is already."""
        return self.sets[n_rules]

    def reduce(self, n_rules: int, start: int | None = None, at_once: float = DROPPED_AT_ONCE) -> Rows:
        """Drop rules of the set of `start` rules, or of the smallest one so far, until there are `n_rules`."""
        rows = self.sets[min(n for n in self.sets if n >= n_rules) if start is None else start]
        if FEWER * len(rows) <= len(self._listed):
            self._listed, self._contests = rows, self._work.contests(rows)
        one_group = np.zeros(len(self._listed), np.int32)
        kept = drop_to(self._contests, np.isin(self._listed, rows), np.array([n_rules]), one_group, at_once)
        self.sets[n_rules] = self._listed[kept]
        return self.sets[n_rules]

    def exchange(self, n_rules: int) -> Rows:
        """Exchange rules of a set for others of the pool that are worth more; return the set, which takes its place."""
        kept = exchange(self._contests, np.isin(self._listed, self.sets[n_rules]))
        self.sets[n_rules] = self._listed[kept]
        return self.sets[n_rules]
