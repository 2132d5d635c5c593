"""Evidence for and against stated facts: how well entities fit the places of relations, and what rules say.

The directed relations of an entity are its *kinds*: subject of this relation, object of that one. Those of the entities
at a place (the subjects of r, the objects of r) are compared with those of all entities, as naive Bayes does, and so is
how many other facts put an entity at this place. A fact does not speak for itself.

Rules count every fact one short, too: support s of n predictions becomes s - 1 of n - 1. For a fact that the rule
predicts, that is what the other facts say about the rule; a rule with one fact says nothing. A fact is contradicted if
strong rules answer a question that has one answer differently.

What a score says about a fact: how much likelier it is among right facts of a relation than among wrong ones. Right
facts are those of train, as far as anyone knows; wrong ones are made of them by putting a random entity in the place of
the subject or the object. Nothing has to be assumed about what a score means: a relation whose facts no rule supports
loses nothing by that, and one whose facts are all supported but for a few makes these few stand out.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import counted
from anyburl.base.machine import available_cores, stream_from_threads
from anyburl.graph.build import all_known_answers, held_by
from anyburl.graph.kernel import GraphArrays
from anyburl.ranking.arrays import QueryArrays, offsets_of
from anyburl.ranking.index import to_confidences
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import make_ranker
from anyburl.reasoning.completion.conflicts import mostly_one
from anyburl.reasoning.explanation.kernel import CheckedRules, empty_search, find_support
from anyburl.rules.columns import confidence
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import MAX_LENGTH, SMOOTHING
from anyburl.tools.doctor.findings import DatasetFacts, Finding, Severity, Triples, questions_of

FEWEST_ENTITIES = 20  # at a place, from which on their kinds say something
LEVELS = 9  # of how many facts put an entity at a place: 0, 1, 2 to 3, 4 to 7 and so on

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class Kinds:
    """The kinds of every entity, as far as `triples` show, and how many facts say so."""

    def __init__(self, triples: Triples, n_entities: int, n_relations: int) -> None:
        self.n_relations, self.width = n_relations, 2 * n_relations
        ends = [(triples[:, 2 * end].astype(np.int64), triples[:, 1] + end * n_relations) for end in (0, 1)]
        keys, self._counts = np.unique(
            np.concatenate([entities * self.width + kinds for entities, kinds in ends]), return_counts=True
        )
        self._entities, self._kinds = np.divmod(keys, self.width)
        self._offsets = offsets_of(self._entities, n_entities)
        self._by_kind = np.argsort(self._kinds, kind="stable")
        self._kind_offsets = offsets_of(self._kinds[self._by_kind], self.width)
        self._n_known = int(np.count_nonzero(np.diff(self._offsets)))
        self._overall = (np.diff(self._kind_offsets) + 0.5) / (self._n_known + 1)

    def fits(self, triples: Triples, *, stated: bool) -> Floats:
        """Return how well the subject and the object of each triple fit: (triples, 2).

        A fit is the logarithm of how much likelier such an entity is at this place than anywhere; 0 where a place has
        too few entities to tell. Where the triples are `stated`, each is left out of what speaks for it.
        """
        fits = np.zeros((len(triples), 2))
        order = np.argsort(triples[:, 1], kind="stable")
        starts = offsets_of(triples[order, 1], self.n_relations)
        for end in (0, 1):
            for relation in np.flatnonzero(np.diff(starts)):
                rows = order[starts[relation] : starts[relation + 1]]
                place = int(relation) + end * self.n_relations
                fits[rows, end] = self._fit(place, triples[rows, 2 * end], stated=stated)
        return fits

    def _fit(self, place: int, entities: NDArray[np.int32], *, stated: bool) -> Floats:
        members = self._by_kind[self._kind_offsets[place] : self._kind_offsets[place + 1]]
        if len(members) < FEWEST_ENTITIES:
            return np.zeros(len(entities))
        different, places = np.unique(entities, return_inverse=True)
        numbers, rows = self._rows_of(different)
        weights, base = self._weights(place, members)
        sums = base + np.bincount(numbers, weights=weights[self._kinds[rows]], minlength=len(different))
        here, n_facts = self._kinds[rows] == place, np.zeros(len(different), np.int64)
        n_facts[numbers[here]] = self._counts[rows[here]] - stated
        sums += self._level_weights(members)[_levels(n_facts)]
        return np.asarray(sums[places], np.float64)

    def _weights(self, place: int, members: Ints) -> tuple[Floats, float]:
        """Return what having each other kind says about an entity at this place, and what having none would say."""
        _, rows = self._rows_of(self._entities[members])
        counts = np.bincount(self._kinds[rows], minlength=self.width)
        here, overall = (counts + 0.5) / (len(members) + 1), self._overall
        absent = np.log1p(-here) - np.log1p(-overall)
        weights = np.log(here) - np.log(overall) - absent
        weights[place] = absent[place] = 0.0
        return weights, float(absent.sum())

    def _level_weights(self, members: Ints) -> Floats:
        """Return the log-odds from how many other facts put an entity in this place."""
        counts = self._counts[members]
        of_facts = np.bincount(_levels(counts - 1), weights=counts, minlength=LEVELS) + 0.5
        of_all = np.bincount(_levels(counts), minlength=LEVELS) + 0.5
        of_all[0] += self._n_known - len(members)
        return np.asarray(np.log(of_facts / of_facts.sum()) - np.log(of_all / of_all.sum()), np.float64)

    def _rows_of(self, entities: NDArray[np.int32] | Ints) -> tuple[Ints, Ints]:
        """Return the rows of the kinds of each entity, and beside each row the entity's place in the list."""
        sizes = self._offsets[entities + 1] - self._offsets[entities]
        numbers = np.repeat(np.arange(len(entities)), sizes)
        firsts = np.cumsum(sizes) - sizes
        return numbers, np.arange(len(numbers)) + np.repeat(self._offsets[entities] - firsts, sizes)


def _levels(counts: Ints) -> Ints:
    return np.minimum(np.ceil(np.log2(counts + 1)).astype(np.int64), LEVELS - 1)


BINS = 32
PRIOR = 20.0  # facts of all relations that each relation's own are mixed with


class Wrong(NamedTuple):
    """Wrong facts, and which end of each is wrong: 0 for the subject, 1 for the object."""

    triples: Triples
    ends: NDArray[np.int64]


def make_wrong(facts: DatasetFacts, most: int, rng: np.random.Generator) -> Wrong:
    """Return up to `most` facts of train with a random subject or object out of train; none that a split states."""
    n_train = len(facts.train)
    rows = np.arange(n_train) if n_train <= most else np.sort(rng.choice(n_train, most, replace=False))
    wrong, ends = facts.train[rows].copy(), rng.integers(0, 2, len(rows))
    wrong[np.arange(len(rows)), 2 * ends] = rng.choice(np.unique(facts.train[:, [0, 2]]), len(rows))
    is_new = held_by(facts.dataset, wrong) == 0
    return Wrong(wrong[is_new], ends[is_new])


def log_odds_of_facts(
    right: Floats,
    right_relations: NDArray[np.int32],
    wrong: Floats,
    wrong_relations: NDArray[np.int32],
    n_relations: int,
) -> Floats:
    """Return for each right fact the logarithm of right : wrong, given its score and its relation.

    Scores are put into bins; a higher score never speaks against a fact.
    """
    edges = _edges(np.concatenate([right, wrong]))
    n_bins, bins = len(edges) + 1, np.searchsorted(edges, right)
    of_right = _counts(bins, right_relations, n_relations, n_bins)
    of_wrong = _counts(np.searchsorted(edges, wrong), wrong_relations, n_relations, n_bins)
    odds, weights = _log_shares(of_right) - _log_shares(of_wrong), of_right + of_wrong + PRIOR / n_bins
    table = np.array([_rising(*row) for row in zip(odds, weights, strict=True)]).reshape(n_relations, n_bins)
    log_odds: Floats = table[right_relations, bins]
    return log_odds


def _edges(scores: Floats) -> Floats:
    """Return the highest score of each bin but the last, so that about as many are in each and none is empty."""
    if not len(scores):
        return scores
    levels = np.quantile(scores, np.linspace(0, 1, BINS + 1)[1:-1], method="lower")
    different = np.unique(levels)
    return np.asarray(different[different < scores.max()], np.float64)


def _counts(bins: NDArray[np.int64], relations: NDArray[np.int32], n_relations: int, n_bins: int) -> Floats:
    counts = np.bincount(relations.astype(np.int64) * n_bins + bins, minlength=n_relations * n_bins)
    return counts.reshape(n_relations, n_bins).astype(np.float64)


def _log_shares(counts: Floats) -> Floats:
    """Return the logarithm of the share of each bin, by relation, drawn towards that of all relations."""
    overall = (counts.sum(axis=0) + 1) / (counts.sum() + counts.shape[1])
    shares: Floats = (counts + PRIOR * overall) / (counts.sum(axis=1, keepdims=True) + PRIOR)
    return np.log(shares)


def _rising(values: Floats, weights: Floats) -> Floats:
    """Return the nearest values that never fall: where they do, neighbours are given their common mean."""
    means, sums, sizes = list[float](), list[float](), list[int]()
    for value, weight in zip(values.tolist(), weights.tolist(), strict=True):
        mean, total, size = value, weight, 1
        while means and means[-1] > mean:
            before = sums.pop()
            mean = (means.pop() * before + mean * total) / (before + total)
            total, size = total + before, size + sizes.pop()
        means.append(mean)
        sums.append(total)
        sizes.append(size)
    return np.repeat(np.array(means), sizes)


WORDS = {False: ("subject", "object"), True: ("object", "subject")}


@dataclass(frozen=True)
class Functional:
    """What train shows for questions (s, r, ?), or for (?, r, o) if `back`."""

    back: bool
    n_questions: NDArray[np.int64]  # relation -> how many different ones
    n_facts: NDArray[np.int64]  # relation -> how many answers they have together
    n_single: NDArray[np.int64]  # of these, how many have one answer
    n_answers: NDArray[np.int64]  # row of train -> how many answers its question has

    @property
    def relations(self) -> NDArray[np.bool_]:
        """Which relations are functional, or nearly so; completion takes the same for relations with one object."""
        return mostly_one(self.n_questions, self.n_facts)

    def breaking(self, relations: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which facts break a functional relation; `relations` are those of the rows of train."""
        is_breaking: NDArray[np.bool_] = self.relations[relations] & (self.n_answers > 1)
        return is_breaking


def find_functional(facts: DatasetFacts, *, back: bool) -> Functional:
    """Count the answers to every question that train answers."""
    questions, rows_of_questions, counts = np.unique(
        questions_of(facts.train, facts.n_relations, back=back), return_inverse=True, return_counts=True
    )
    relations = questions % facts.n_relations
    n_questions = np.bincount(relations, minlength=facts.n_relations)
    n_single = np.bincount(relations[counts == 1], minlength=facts.n_relations)
    n_facts = np.bincount(facts.train[:, 1], minlength=facts.n_relations)
    return Functional(back, n_questions, n_facts, n_single, counts[rows_of_questions])


def check_functional(facts: DatasetFacts, both: list[Functional], top: int) -> list[Finding]:
    """Return, for either direction, the nearly functional relations and the facts that break them."""
    return [finding for functional in both for finding in _check(facts, functional, top)]


def _check(facts: DatasetFacts, functional: Functional, top: int) -> list[Finding]:
    relations = np.flatnonzero(functional.relations)
    if not len(relations):
        return []
    one, other = WORDS[functional.back]
    triples, breaking = facts.train, functional.breaking(facts.train[:, 1])
    words = counted(len(relations), "relation has", "relations have")
    sentence = f"{words} one {other} for (nearly) every {one}"
    if not breaking.any():
        labels = facts.relation_labels(relations[:top])
        examples = pl.DataFrame({"relation": labels, f"{one}s": functional.n_questions[relations[:top]]})
        return [Finding.of("functional", Severity.NOTE, sentence, 0, examples)]
    shares = functional.n_single / np.maximum(functional.n_questions, 1)
    rows = np.flatnonzero(breaking)
    questions = questions_of(triples[rows], facts.n_relations, back=functional.back)
    rows = rows[np.lexsort((questions, -shares[triples[rows, 1]]))][:top]
    examples = facts.labels(triples[rows]).with_columns(
        pl.Series(f"{other}s of this {one}", functional.n_answers[rows]),
        pl.Series("share with one", shares[triples[rows, 1]].round(3)),
    )
    n = int(breaking.sum())
    return [
        Finding.of(
            "functional", Severity.WARNING, f"{sentence}; {counted(n, 'fact breaks', 'facts break')} this", n, examples
        )
    ]


MOST_BINARY = 100  # rules of one head that are looked at: those with the highest support x confidence
MOST_UNARY = 20
FACTS_WITH_LONG_BODIES = 200_000
FACTS_AT_A_TIME = 2048

Progress = Callable[[int], None]


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
    ranks = np.arange(len(order)) - np.searchsorted(keys[order], keys[order])
    most = np.where(rules.is_binary[order], MOST_BINARY, MOST_UNARY)
    order = order[ranks < most]
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
    """The answers that strong rules give in place of each of some facts."""

    answers: NDArray[np.int32]  # -1 where they say nothing else
    rows: NDArray[np.int32]  # of the rule set
    scores: NDArray[np.float64]
    back: NDArray[np.bool_]  # whether the answer is another subject, not another object

    @classmethod
    def none(cls, n: int) -> Contradictions:
        """Return a record of `n` facts none of which is contradicted."""
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
