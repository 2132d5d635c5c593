"""Chooses a few rules for each relation that together explain most of its facts.

Rules can be laws if they are right often, and more often than the base rate of their heads. Candidates are those of
them that distilling would choose for a relation: the rules of a distilled set or, of another one, the first in the
order of distilling. Of these, laws are taken one by one, each time the one that adds most: the sum over facts of how
much surer the best rule of a fact becomes. Short rules come first where the difference is small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.rescore import base_rates
from anyburl.graph.arrays import GraphArrays
from anyburl.models.distilling.choosing import Evidence, Survey, find_representatives, order_by_gain, shares_of
from anyburl.models.distilling.known import KnownAnswers
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import make_ranker
from anyburl.rules.columns import surprise
from anyburl.rules.ruleset import RuleSet

Rows = NDArray[np.int64]
Triples = NDArray[np.int32]

LEAST = 0.25  # how far above the base rate a rule must be to be a law
FEWEST = 3  # right predictions
CANDIDATES = 60  # of a relation
WIDTH = 40  # rules of each fact: among the 12 that distilling looks at, general rules of many exceptions are missing
LEAST_GAIN = 0.01  # of the facts: a rule that adds less is no law
PER_ATOM = 0.85  # what a longer rule counts, for each further atom
BEST_ALONE = np.ones(1, np.float32)


@dataclass(frozen=True)
class Choice:
    """The rules chosen for a relation, and which of the facts looked at each predicts."""

    rows: Rows
    covers: NDArray[np.bool_]  # chosen rules x facts


class LawCandidates:
    """The rules that laws are chosen from, by relation.

    `rows` are all rules that can be laws, and `surprises` how far each is above the base rate.
    """

    def __init__(self, rules: RuleSet, graph: GraphArrays, facts: Triples, ranking: RankOptions) -> None:
        self._rules = rules
        rows = np.flatnonzero((rules.support >= FEWEST) & (rules.confidence() > LEAST))
        part = rules.take(rows)
        surprises = surprise(part.support, part.predictions, base_rates(graph, part)).astype(np.float64)
        is_law = surprises >= LEAST
        self.rows, self.surprises = rows[is_law], surprises[is_law]
        part, order = part.take(is_law), np.empty(0, np.int64)
        self._survey: Survey | None = None
        if part.worth is not None:
            order = np.argsort(-part.worth, kind="stable")
        elif len(part):
            ranker = make_ranker(graph, part, ranking, block_connected=False)
            self._survey = Survey.make(ranker, [_asked(facts, graph.n_relations)], FEWEST - 1, width=WIDTH)
            order = self._survey.rows[self._survey.order(shares_of(ranker.aggregation), CANDIDATES)]
        self._order: Rows = order
        self._relations = part.head[order] % max(1, graph.n_relations)

    def choose(self, relation: int, most: int) -> Rows:
        """Return at most so many candidates for a relation, the best first: rows of `rows`."""
        rows: Rows = self._order[self._relations == relation]
        return rows[:most]

    def count_similar(self, chosen: Rows) -> NDArray[np.int64]:
        """Return for each of some rules how many of the others predict nearly the same, see `find_representatives`."""
        if self._rules.stands_for is not None:
            return self._rules.stands_for[chosen].astype(np.int64)
        if self._survey is None:
            return np.zeros(len(chosen), np.int64)
        places = np.full(len(self.rows), -1, np.int64)
        places[np.searchsorted(self.rows, chosen)] = np.arange(len(chosen))
        found = find_representatives(self._survey.best.rules, places)
        return np.bincount(places[found.kept], minlength=len(chosen))


def _asked(facts: Triples, n_relations: int) -> KnownAnswers:
    """Return the question for the object of each fact: the rules that predict a fact are the same for its subject."""
    queries, _ = make_queries(facts, [], n_relations)
    return KnownAnswers(take_queries(queries, np.flatnonzero(queries.relations < n_relations)), from_train=True)


def choose_laws(
    rules: RuleSet, rows: Rows, surprises: NDArray[np.float64], covers: NDArray[np.bool_], most: int
) -> Choice:
    """Take up to `most` of the candidates, each time the one that makes the facts surer by most."""
    values = surprises * PER_ATOM ** np.maximum(rules.take(rows).lengths - 1, 0)
    numbers = np.where(covers.T, np.arange(len(rows)), -1).astype(np.int32)
    evidence = Evidence(numbers, np.where(covers.T, values, 0).astype(np.float32))
    least = LEAST_GAIN * max(1, covers.shape[1])
    chosen = order_by_gain(evidence, len(rows), BEST_ALONE, room=most, least_gain=least)
    return Choice(rows[chosen], covers[chosen])
