"""How strongly rules support a fact if the fact itself does not count, and which facts strong rules contradict.

Every rule is counted one fact short: support s of n predictions becomes s - 1 of n - 1. For a fact that the rule
predicts, that is what the other facts say about the rule; a rule with one fact says nothing. A fact is contradicted if
strong rules answer a question that has one answer differently.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.base.machine import available_cores, stream_from_threads
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.build import all_known_answers
from anyburl.ranking.arrays import QueryArrays, offsets_of
from anyburl.ranking.index import to_confidences
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.explanation.kernel import empty_search
from anyburl.rules.columns import confidence
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import MAX_LENGTH
from anyburl.tools.doctor.findings import DatasetFacts, Triples
from anyburl.tools.doctor.kernel import CheckedRules, find_support

SMOOTHING = 5.0
MOST_BINARY = 100  # rules of one head that are looked at: those with the highest support x confidence
MOST_UNARY = 20
FACTS_WITH_LONG_BODIES = 200_000
FACTS_AT_A_TIME = 2048

Progress = Callable[[int], None]
Ints = NDArray[np.int64]


def longest_judging_body(n_facts: int) -> int:
    """Return how long the bodies are that facts can be judged by in seconds."""
    return 3 if n_facts <= FACTS_WITH_LONG_BODIES else 2


def one_short(rules: RuleSet, longest: int = MAX_LENGTH) -> RuleSet:
    """Return the rules as they would be counted without one of the facts that they predict.

    Rules with one fact go, and those with bodies longer than `longest`, or without one.
    """
    kept = rules.take((rules.support > 1) & (rules.lengths > 0) & (rules.lengths <= longest))
    return kept.replace(support=kept.support - 1, predictions=kept.predictions - 1)


@dataclass(frozen=True)
class Supported:
    """The strongest rule behind each of some facts: its row, -1 for none, and its confidence one fact short."""

    rows: NDArray[np.int32]
    scores: NDArray[np.float64]


class SupportFinder:
    """Finds the strongest of `rules`, which are `one_short`, that predict facts from the graph."""

    def __init__(self, graph: GraphArrays, rules: RuleSet, threads: int | None = None) -> None:
        self._graph, self._threads = graph, threads or available_cores()
        self._width = graph.n_entities + 2
        self._keys, self._rules = _grouped(rules, self._width)

    def find(self, triples: Triples, progress: Progress | None = None) -> Supported:
        """Return the strongest rule behind each triple; `progress` is called with the number of triples done."""
        out = np.full(len(triples), -1, np.int32)
        constants = self._constants(triples)
        groups = self._groups(triples, constants)

        def run(start: int) -> int:
            part = slice(start, start + FACTS_AT_A_TIME)
            longest = self._rules.bodies.shape[1]
            search, walk = empty_search(longest), np.empty((1, longest + 1), np.int32)
            own = triples[part].copy(), groups[part].copy(), constants[part].copy()  # kernels are compiled for those
            find_support(self._graph, self._rules, *own, True, search, walk, out[part])
            return len(triples[part])

        starts = range(0, len(triples), FACTS_AT_A_TIME)
        with closing(stream_from_threads(run, starts, self._threads)) as done:
            for n_done in done:
                if progress:
                    progress(n_done)
        scores = np.where(out >= 0, np.append(self._rules.scores, 0.0)[out], 0.0)
        return Supported(np.where(out >= 0, np.append(self._rules.rows, -1)[out], -1).astype(np.int32), scores)

    def _constants(self, triples: Triples) -> NDArray[np.int32]:
        """Return object and subject as heads name them: `self` where they are the same."""
        both = triples[:, [2, 0]].astype(np.int32)
        both[triples[:, 0] == triples[:, 2]] = self._graph.n_entities
        return both

    def _groups(self, triples: Triples, constants: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the groups of the rules that may predict each triple, -1 where there is none."""
        relations = triples[:, 1].astype(np.int64)
        backward = relations + self._graph.n_relations
        keys = np.stack(
            [
                relations * self._width,
                relations * self._width + constants[:, 0] + 1,
                backward * self._width + constants[:, 1] + 1,
            ],
            axis=1,
        )
        rows = np.searchsorted(self._keys, keys)
        groups = np.where(np.append(self._keys, -1)[rows] == keys, rows, -1)
        groups[triples[:, 0] == triples[:, 2], 0] = -1  # object identity: X and Y differ
        return groups.astype(np.int32)


def _grouped(rules: RuleSet, width: int) -> tuple[Ints, CheckedRules]:
    """Return the rules of each group that say most, and a number for each group: head relation and constant."""
    scores = confidence(rules.support, rules.predictions, SMOOTHING)
    keys = rules.head.astype(np.int64) * width + rules.head_constant + 1
    order = np.lexsort((rules.lengths, -rules.support * scores, keys))
    places = np.arange(len(order)) - np.searchsorted(keys[order], keys[order])
    most = np.where(rules.is_binary[order], MOST_BINARY, MOST_UNARY)
    order = order[places < most]
    order = order[np.lexsort((order, -scores[order], keys[order]))]
    different, numbers = np.unique(keys[order], return_inverse=True)
    checked = CheckedRules(
        offsets=offsets_of(numbers, len(different)),
        bodies=np.ascontiguousarray(rules.bodies[rules.body[order]]),
        lengths=rules.lengths[order],
        ends=rules.body_constant[order],
        scores=scores[order],
        rows=order.astype(np.int32),
    )
    return different, checked


STRONG = 0.5  # the least confidence of a rule that contradicts


@dataclass(frozen=True)
class Contradictions:
    """What strong rules say instead of each of some facts."""

    answers: NDArray[np.int32]  # -1 where they say nothing else
    rows: NDArray[np.int32]  # of the rule set
    scores: NDArray[np.float64]
    back: NDArray[np.bool_]  # whether the answer is another subject, not another object

    @classmethod
    def none(cls, n: int) -> Contradictions:
        """Return that nothing speaks against `n` facts."""
        return cls(np.full(n, -1, np.int32), np.full(n, -1, np.int32), np.zeros(n), np.zeros(n, np.bool_))


def find_contradictions(
    facts: DatasetFacts, triples: Triples, rules: RuleSet, threads: int | None, *, back: bool
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
    has_answer = answers.n_best > 0
    return Contradictions(
        np.where(has_answer, answers.best[:, 0], -1).astype(np.int32),
        np.where(has_answer, strong[answers.best_rules[:, 0]], -1).astype(np.int32),
        np.where(has_answer, to_confidences(answers.best_keys[:, 0]), 0.0),
        np.full(len(triples), back),
    )
