"""How well entities fit the places of relations, judged by the relations that they have.

The directed relations of an entity are its *kinds*: subject of this relation, object of that one. Those of the entities
at a place (the subjects of r, the objects of r) are compared with those of all entities, as naive Bayes does, and so is
how many other facts put an entity at this place. A fact does not speak for itself.

What a score says about a fact: how much likelier it is among right facts of a relation than among wrong ones.

Right facts are those of train, as far as anyone knows; wrong ones are made of them by putting a random entity in the
place of the subject or the object. Nothing has to be assumed about what a score means: a relation whose facts no rule
supports loses nothing by that, and one whose facts are all supported but for a few makes these few stand out.

Relations that have one answer to nearly every question, and the facts that break this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import counted
from anyburl.graph.build import held_by
from anyburl.ranking.arrays import offsets_of
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


FUNCTIONAL = 0.95  # the share of questions with one answer
FEWEST_QUESTIONS = 20
WORDS = {False: ("subject", "object"), True: ("object", "subject")}


@dataclass(frozen=True)
class Functional:
    """What train shows for questions (s, r, ?), or for (?, r, o) if `back`."""

    back: bool
    n_questions: NDArray[np.int64]  # relation -> how many different ones
    n_single: NDArray[np.int64]  # of these, how many have one answer
    n_answers: NDArray[np.int64]  # row of train -> how many answers its question has

    @property
    def relations(self) -> NDArray[np.bool_]:
        """Which relations are functional, or nearly so."""
        enough = self.n_questions >= FEWEST_QUESTIONS
        is_functional: NDArray[np.bool_] = enough & (self.n_single >= FUNCTIONAL * self.n_questions)
        return is_functional

    def breaking(self, relations: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Return which facts break a functional relation; `relations` are those of the rows of train."""
        is_breaking: NDArray[np.bool_] = self.relations[relations] & (self.n_answers > 1)
        return is_breaking


def find_functional(facts: DatasetFacts, *, back: bool) -> Functional:
    """Count the answers to every question that train answers."""
    questions, places, counts = np.unique(
        questions_of(facts.train, facts.n_relations, back=back), return_inverse=True, return_counts=True
    )
    relations = questions % facts.n_relations
    n_questions = np.bincount(relations, minlength=facts.n_relations)
    n_single = np.bincount(relations[counts == 1], minlength=facts.n_relations)
    return Functional(back, n_questions, n_single, counts[places])


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
