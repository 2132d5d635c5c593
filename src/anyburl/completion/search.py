"""Chooses the rules that can lift a fact over the minimum score, and the questions to ask."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.arrays import FactArrays, ListArrays
from anyburl.completion.body_index import index_bodies
from anyburl.completion.facts import FactColumns
from anyburl.completion.finder import Finder
from anyburl.errors import OptionError
from anyburl.ranking.arrays import QueryArrays, empty_answers
from anyburl.ranking.backends.base import NO_GROUPS
from anyburl.ranking.ranker import Ranker, make_ready
from anyburl.ranking.scores import shown_scores, to_confidences, to_scores
from anyburl.rules.types import RuleType
from anyburl.tuning.evidence import Lists, rows_of
from anyburl.tuning.fallback import Fallback
from anyburl.tuning.held_out import take_groups
from anyburl.tuning.listing import TOP_K
from anyburl.tuning.model import TunedModel
from anyburl.tuning.rerank import logistic
from anyburl.tuning.reranker import TunedReranker

ROUNDING = 1e-11  # more than scores, as people see them, are rounded by

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """Finds the facts of some subjects: those with at least the least score of their relation.

    A question's answers are facts by their own scores, or by those that a model gives to its best candidates.
    """

    finder: Finder
    least: Scores  # by relation
    rows: NDArray[np.int64] | None  # of the rules in use, None: of all
    model: TunedModel | None
    fallback: Fallback | None = None  # whose columns the model knows

    @property
    def both_ways(self) -> bool:
        """Whether both questions of a fact are asked: they may give it different scores."""
        return len(self.finder.heads) > 0 and int(self.finder.heads.max()) >= len(self.least)

    def __call__(self, subjects: NDArray[np.int32]) -> FactColumns:
        """Return the facts that are answers to questions about these entities."""
        found, lists = self.finder(subjects)
        keys = found.keys
        if self.model is not None and self.fallback is not None:
            keys = self._judged(found, lists, self.model, self.fallback)
        facts = FactColumns.of_answers(found, shown_scores(keys), len(self.least))
        facts = facts.take(facts.scores >= self.least[facts.triples[:, 1]])
        return facts if self.rows is None else replace(facts, rules=self.rows[facts.rules].astype(np.int32))

    def _judged(self, found: FactArrays, lists: ListArrays, model: TunedModel, fallback: Fallback) -> NDArray[np.int64]:
        """Return keys that stand for the model's scores of listed candidates; what follows a list stays below it."""
        sizes = lists.sizes + lists.n_later
        questions = np.repeat(np.arange(len(sizes)), sizes)
        places = np.arange(len(questions)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        listed = places < lists.sizes[questions]
        nothing, offsets = np.empty(0, np.int32), np.zeros(len(sizes) + 1, np.int64)
        queries = QueryArrays(lists.entities, lists.relations, offsets, nothing, offsets, nothing)
        answers = empty_answers(len(sizes), 0, 0)._replace(n_candidates=lists.n_candidates)
        best = Lists(lists.sizes, found.candidates[listed], found.evidence[listed])
        fits = fallback.columns(queries.entities, queries.relations, best.questions, best.candidates)
        scores = np.empty(len(questions))
        scores[listed] = logistic(model.scores(rows_of(self.finder.ready, queries, answers, best, fits)))
        lowest = np.ones(len(sizes))
        np.minimum.at(lowest, questions[listed], scores[listed])
        scores[~listed] = to_confidences(found.keys[~listed]) * lowest[questions[~listed]]
        return to_scores(scores)


def make_search(ranker: Ranker, least: Scores) -> Search:
    """Choose the rules and questions for facts with at least the `least` score of their relation (inf: none).

    Where the best rule decides, only rules of at least that score matter; elsewhere, all rules with such a head do. One
    question of each fact is enough, (s, r, ?), unless a model judges its answers or there are rules without a body,
    which answer one question only.
    """
    reranker = ranker.reranker if isinstance(ranker.reranker, TunedReranker) else None
    model = reranker.model if reranker else None
    if reranker is not None and reranker.other is not None:
        raise OptionError(
            'aggregation="hybrid" ranks the answers to questions; to find all missing facts, take "tuned" or another'
        )
    lister, n_relations = ranker.lister(), ranker.graph.n_relations
    rows = _rows_that_matter(lister, least, by_best_rule=model is None and lister.aggregation.n_counted == 1)
    rules = lister.rules if rows is None else lister.rules.take(rows)
    ready = lister.ready
    if rows is not None:
        ready = make_ready(lister.graph, rules, lister.options, block_connected=lister.block_connected)
    both_ways = model is not None or bool((rules.lengths == 0).any())
    wanted = np.flatnonzero(np.isfinite(least)).astype(np.int32)
    index, bodies = index_bodies(rules, ready.index, both_ways=both_ways)
    keys = to_scores(np.where(np.isfinite(least), np.maximum(least - ROUNDING, 0), 1))
    groups = NO_GROUPS if reranker is None or model is None else reranker.groups
    finder = Finder(
        replace(ready, index=index),
        bodies,
        lister.aggregation,
        np.concatenate([wanted, wanted + n_relations]).astype(np.int32) if both_ways else wanted,
        np.concatenate([keys, keys]),
        groups if rows is None or not len(groups) else take_groups(groups, rows),
        TOP_K if model else 0,
    )
    fallback = reranker.fallback(ranker) if reranker and model else None
    return Search(finder, least, rows, model and replace(model, threads=1), fallback)


def _rows_that_matter(ranker: Ranker, least: Scores, *, by_best_rule: bool) -> NDArray[np.int64] | None:
    """Return the rules that can lift a fact over its least score; None if that may be any."""
    least_of_rules, least_binary = least[ranker.rules.head % ranker.graph.n_relations], ranker.aggregation.least_binary
    confidences = ranker.confidences(np.arange(len(ranker.rules))) if by_best_rule or least_binary else np.empty(0)
    if by_best_rule:
        return np.flatnonzero(confidences >= least_of_rules - ROUNDING)
    kept = np.isfinite(least_of_rules)
    if least_binary:
        kept &= (ranker.rules.type != RuleType.BINARY.code) | (to_scores(confidences) >= to_scores(least_binary))
    return None if kept.all() else np.flatnonzero(kept)
