"""Put rules in an order by what they are worth to known answers, one by one; and which kept rule stands for others.

A `Survey` lists the best rules of known answers; what distils and what reports chooses from these. A rule that predicts
just what a more general one predicts is not surveyed (`implied_rules`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.data.table import find_keys
from anyburl.graph.kernel import inverses
from anyburl.models.distilling.kernel import AnswerRules, ChoiceArrays, ValueArrays, choose_more, start_choice
from anyburl.models.distilling.known import KnownAnswers, Observer
from anyburl.ranking.options import UNIT, Aggregation
from anyburl.ranking.ranker import Ranker
from anyburl.rules.columns import RuleColumns
from anyburl.rules.combine import distinct_rows, rule_keys
from anyburl.rules.ruleset import RuleSet

Rows = NDArray[np.int64]
Ids = NDArray[np.int64] | NDArray[np.int32]
AT_A_TIME = 2_000_000


class Generalisations:
    """Finds the rules that are more general than others, see `RuleLattice`; by keys of head and body."""

    def __init__(self, rules: RuleColumns) -> None:
        self._rules = rules
        self._paths = self._all_paths(rules)
        lengths = (self._paths >= 0).sum(axis=1)
        self._bodies, self._numbers = distinct_rows(self._paths)
        self._lengths = lengths
        is_dangling = (rules.head_constant >= 0) & (rules.body_constant < 0) & (rules.lengths > 0)
        is_dangling &= ~rules.has_condition
        rows = np.flatnonzero(is_dangling | rules.is_binary)
        keys = self._keys(rules.head[rows], rules.head_constant[rows], self._numbers[rules.body[rows]])
        order = np.argsort(keys, kind="stable")
        self._sorted_keys, self._sorted_rows = keys[order], rows[order]

    def pairs(self, start: int, stop: int) -> Iterator[tuple[Rows, Rows]]:
        """Yield rows from `start` to before `stop` together with the rows of rules that are more general."""
        rules, slots = self._rules, slice(start, stop)
        heads, constants, ends = rules.head[slots], rules.head_constant[slots], rules.body_constant[slots]
        bodies, rows = rules.body[slots], np.arange(start, stop)
        lengths = self._lengths[bodies]
        is_unary, own = constants >= 0, rules.vocabulary.self_id
        # Of a body that ends in a constant of its own, the U_d rule of the whole body is more general as well.
        longest = np.where((ends >= 0) & (ends != constants) & (ends != own), lengths, lengths - 1)
        for length in range(1, int(lengths.max(initial=0)) + 1):
            chosen = np.flatnonzero(is_unary & (longest >= length))
            numbers = self._prefix_numbers(length)[bodies[chosen]]
            yield from self._matches(rows[chosen], heads[chosen], constants[chosen], numbers)
        grounded = np.flatnonzero(is_unary & (ends == constants) & (ends != own))
        backward = heads[grounded] >= rules.vocabulary.n_relations
        for chosen, shift, table in (
            (grounded[~backward], 0, np.arange(len(rules.bodies))),
            (grounded[backward], rules.vocabulary.n_relations, np.arange(len(rules.bodies)) + len(rules.bodies)),
        ):
            turned = self._numbers[table[bodies[chosen]]]
            yield from self._matches(rows[chosen], heads[chosen] - shift, np.full(len(chosen), -1), turned)

    def _matches(self, rows: Rows, heads: Ids, constants: Ids, numbers: Ids) -> Iterator[tuple[Rows, Rows]]:
        known = numbers >= 0
        keys = self._keys(heads[known], constants[known], numbers[known])
        positions = find_keys(keys, self._sorted_keys)
        yield rows[known][positions >= 0], self._sorted_rows[positions[positions >= 0]]

    def _keys(self, heads: Ids, constants: Ids, numbers: Ids) -> Rows:
        """Return a number for each head relation, constant and body."""
        n_constants = self._rules.vocabulary.n_entities + 2
        return np.asarray((heads.astype(np.int64) * n_constants + constants + 1) * len(self._bodies) + numbers)

    def _prefix_numbers(self, length: int) -> Rows:
        """Return for each body of the table the number of its first atoms as a body; -1 where it is none."""
        n_bodies = len(self._rules.bodies)
        prefixes = self._paths[:n_bodies].copy()
        prefixes[:, length:] = -1
        return find_rows(self._bodies, prefixes)

    def _all_paths(self, rules: RuleColumns) -> NDArray[np.int32]:
        """Return all bodies, and then all of them read from their other end."""
        bodies, n_relations = rules.bodies, rules.vocabulary.n_relations
        lengths = (bodies >= 0).sum(axis=1)
        positions = lengths[:, None] - 1 - np.arange(bodies.shape[1])[None, :]
        turned = np.take_along_axis(bodies, np.maximum(positions, 0), axis=1)
        return np.vstack([bodies, np.where(positions >= 0, inverses(turned, n_relations), -1)])


def find_rows(table: NDArray[np.int32], rows: NDArray[np.int32]) -> Rows:
    """Return where each row stands in a table of distinct rows, -1 where it does not."""
    both, numbers = distinct_rows(np.vstack([table, rows]))
    positions = np.full(len(both), -1, np.int64)
    positions[numbers[: len(table)]] = np.arange(len(table))
    return positions[numbers[len(table) :]]


def implied_rules(rules: RuleColumns) -> NDArray[np.bool_]:
    """Mark the rules that predict just what a more general rule of the set predicts."""
    marked = np.zeros(len(rules), np.bool_)
    known = Generalisations(rules)
    for start in range(0, len(rules), AT_A_TIME):
        for rows, general in known.pairs(start, min(start + AT_A_TIME, len(rules))):
            same = rules.predictions[rows] == rules.predictions[general]
            marked[rows[same]] = True
    return marked


SURVEYED = 12  # rules of each known answer
GAINS_AT_A_TIME = 200_000  # about a tenth of a second
NO_GAIN = 1e-7
SHARES_OF_MAX = (1.0, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01)  # the next rules break ties
MOST_SHARES = 10


def shares_of(aggregation: Aggregation) -> NDArray[np.float32]:
    """Return how much the best rules of an answer count, one by one, for the value of a set.

    With the best rule alone, no set of FB15k-237's rules reached 90 % of the MRR on held-out facts; with the next six,
    20,000 rules reach 97 %. What adds up scores, or has a model look at them, needs more rules of each answer.
    """
    if aggregation.breaks_ties:
        return np.array(SHARES_OF_MAX, np.float32)
    n = MOST_SHARES if aggregation.n_counted is None or aggregation.needs_model else aggregation.n_counted
    return (1 / np.arange(1, min(n, MOST_SHARES) + 1)).astype(np.float32)


@dataclass(frozen=True)
class Survey:
    """The best rules of known answers: all others hardly matter.

    `best` has rows of all rules, `rows` are the distinct ones, and `rules` are those, in an order that depends on the
    rules alone, so that ties do not depend on the order in which they were learned.
    """

    best: AnswerRules
    rows: Rows
    rules: RuleSet
    n_all: int

    @classmethod
    def make(
        cls,
        ranker: Ranker,
        known: Sequence[KnownAnswers],
        least_support: int,
        *,
        allowed: NDArray[np.bool_] | None = None,
        width: int = SURVEYED,
    ) -> Survey:
        """List the `width` best rules of known answers; of these, the `allowed` ones may be chosen."""
        observer, every = Observer(ranker, least_support), ranker.rules
        listed = [observer.best_rules(some, width) for some in known]
        best = AnswerRules(*(np.concatenate(column) for column in zip(*listed, strict=True)))
        is_listed = np.zeros(len(every), np.bool_)
        is_listed[best.rules[best.rules >= 0]] = True
        rows = np.flatnonzero(is_listed if allowed is None else is_listed & allowed)
        rows = rows[np.argsort(rule_keys(every.take(rows))[0], kind="stable")]
        return cls(best, rows, every.take(rows), len(every))

    @property
    def relations(self) -> NDArray[np.int32]:
        """The relation that each of `rules` is about."""
        return (self.rules.head % self.rules.vocabulary.n_relations).astype(np.int32)

    def order(self, shares: NDArray[np.float32], room: int | None = None) -> Rows:
        """Return rows of `rules` in the order in which they add most, at most `room` for each relation.

        By their places among the rules of answers, and by their confidences: in turns, since either is better on some
        data. Rules implied by one of them are left out.
        """
        numbers = np.full(self.n_all + 1, -1, np.int32)
        numbers[self.rows] = np.arange(len(self.rows))
        rules = numbers[self.best.rules]
        confidences = -np.expm1(-self.best.scores / UNIT)
        groups = None if room is None else self.relations
        orders = []
        for values in (1 / np.arange(1, rules.shape[1] + 1), confidences):
            evidence = Evidence(rules, np.where(rules >= 0, values, 0).astype(np.float32))
            orders.append(order_by_gain(evidence, len(self.rules), shares, groups=groups, room=room))
        turns = np.concatenate([np.arange(len(order)) for order in orders])
        both = np.concatenate(orders)[np.argsort(turns, kind="stable")]
        order = both[np.sort(np.unique(both, return_index=True)[1])]
        return order[~implied_rules(self.rules.take(order))]


@dataclass(frozen=True)
class Evidence:
    """For each known answer the rules that predict it, and what each is worth to it."""

    rules: NDArray[np.int32]  # (answers, width), -1 where there are no more
    values: NDArray[np.float32]


def order_by_gain(
    evidence: Evidence,
    n_rules: int,
    shares: NDArray[np.float32],
    *,
    groups: NDArray[np.int32] | None = None,
    room: int | None = None,
    least_gain: float = NO_GAIN,
) -> Rows:
    """Return the rows of rules (of `n_rules`) in the order in which they add most; at most `room` of each group.

    Rules that predict a known answer, but add nothing to others that do, follow at the end, by the sum of their values.
    """
    answers, positions = np.nonzero(evidence.rules >= 0)
    rules = evidence.rules[answers, positions]
    order = np.argsort(rules, kind="stable")
    counts = np.bincount(rules, minlength=n_rules)
    limits = np.full(1 if groups is None else int(groups.max(initial=0)) + 1, n_rules if room is None else room)
    table = ValueArrays(
        offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        answers=answers[order].astype(np.int32),
        values=evidence.values[answers, positions][order],
        weights=np.ones(len(evidence.rules), np.float32),
        shares=shares,
        groups=np.zeros(n_rules, np.int32) if groups is None else groups,
    )
    choice = ChoiceArrays(
        best=np.zeros((len(evidence.rules), len(shares)), np.float32),
        gains=np.zeros(n_rules, np.float64),
        computed=np.zeros(n_rules, np.int64),
        heap=np.zeros(n_rules, np.int32),
        n_left=np.zeros(1, np.int64),
        room=limits.astype(np.int64),
        chosen=np.zeros(n_rules, np.int32),
        gained=np.zeros(n_rules, np.float64),
        n_chosen=np.zeros(1, np.int64),
    )
    start_choice(table, choice)
    while choose_more(table, choice, n_rules, least_gain, GAINS_AT_A_TIME):
        pass
    chosen = choice.chosen[: choice.n_chosen[0]].astype(np.int64)
    if room is not None:
        return chosen
    is_left = counts > 0
    is_left[chosen] = False
    rest = np.flatnonzero(is_left)
    totals = np.bincount(rules, weights=evidence.values[answers, positions], minlength=n_rules)
    return np.concatenate([chosen, rest[np.lexsort((rest, -totals[rest]))]])


@dataclass(frozen=True)
class Representation:
    """Rules that were left out (`rows`), the kept rule that predicts nearly the same as each, and how nearly: the share
    of the known answers of the one that the other predicts as well.
    """

    rows: Rows
    kept: Rows
    overlaps: NDArray[np.float64]


NEARLY = 0.5


def find_representatives(listed: NDArray[np.int32], positions: Rows) -> Representation:
    """Return for rules that were left out the kept one with which they share most known answers, if it is half or more.

    `listed` are the best rules of each known answer, `places` those of the kept rules in their order, -1 of the others;
    of equals, the first one stands for a rule.
    """
    n_rules = len(positions)
    kept = (positions >= 0)[np.maximum(listed, 0)] & (listed >= 0)
    left = ~kept & (listed >= 0)
    pairs: list[Rows] = [np.empty(0, np.int64)]
    for position in range(listed.shape[1]):
        for other in range(listed.shape[1]):
            both = left[:, position] & kept[:, other]
            pairs.append(listed[both, position].astype(np.int64) * n_rules + listed[both, other])
    keys, counts = np.unique(np.concatenate(pairs), return_counts=True)
    rows, by = keys // n_rules, keys % n_rules
    order = np.lexsort((positions[by], -counts, rows))
    rows, by, counts = rows[order], by[order], counts[order]
    first = np.ones(len(rows), np.bool_)
    first[1:] = rows[1:] != rows[:-1]
    rows, by, counts = rows[first], by[first], counts[first]
    overlaps = counts / np.bincount(listed[left], minlength=n_rules)[rows]
    near = overlaps >= NEARLY
    return Representation(rows[near], by[near], overlaps[near])
