"""Facts that strong rules contradict, by answering a question that has one answer differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.doctor.facts import Facts, Triples
from anyburl.doctor.support import SMOOTHING
from anyburl.graph.lookup import all_known_answers
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.ranking.scores import to_confidences
from anyburl.ruleset.ruleset import RuleSet

STRONG = 0.5  # the least confidence of a rule that contradicts


@dataclass(frozen=True)
class Contradictions:
    """What strong rules say instead of each of some facts."""

    answers: NDArray[np.int32]  # -1 where they say nothing else
    rows: NDArray[np.int32]  # of the rule set
    scores: NDArray[np.float64]

    @classmethod
    def none(cls, n: int) -> Contradictions:
        """Return that nothing speaks against `n` facts."""
        return cls(np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.zeros(n))


def find_contradictions(
    facts: Facts, triples: Triples, rules: RuleSet, threads: int | None, *, back: bool
) -> Contradictions:
    """Return the best answer to the question (s, r, ?) of each triple, or to (?, r, o) if `back`, that strong rules
    give and train does not state.
    """
    strong = np.flatnonzero(rules.confidence(SMOOTHING) >= STRONG)
    if not len(strong) or not len(triples):
        return Contradictions.none(len(triples))
    options = RankOptions(smoothing=SMOOTHING, threads=threads)
    ranker = make_ranker(facts.graph, rules.take(strong), options, block_connected=False)
    entities = triples[:, 2 if back else 0].copy()
    relations = (triples[:, 1] + (facts.n_relations if back else 0)).astype(np.int32)
    offsets, known = all_known_answers(facts.graph, entities, relations)
    none = np.zeros(len(triples) + 1, np.int64)
    answers = ranker.answer(QueryArrays(entities, relations, none, np.empty(0, np.int32), offsets, known), top_k=1)
    found = answers.n_best > 0
    return Contradictions(
        np.where(found, answers.best[:, 0], -1).astype(np.int32),
        np.where(found, strong[answers.best_rules[:, 0]], -1).astype(np.int32),
        np.where(found, to_confidences(answers.best_keys[:, 0]), 0.0),
    )
