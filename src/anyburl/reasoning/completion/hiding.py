"""Hide-and-seek: hide facts, propose everything from what is left, and count what comes back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import Dataset
from anyburl.data.table import TripleTable
from anyburl.graph.stored import graph_of
from anyburl.models.blending import ScoredFacts, fit_blend
from anyburl.models.calibration import (
    N_CONTEXTS,
    N_NARROW,
    Blend,
    ProposalCounts,
    by_narrow_bin,
    choose_bins,
    corrected,
    fit_correction,
    fit_true,
    least_scores,
    most_back,
    narrow_middles,
    probability_table,
)
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.ranking.ranker import Progress, Ranker, make_ranker
from anyburl.reasoning.completion.conflicts import NOTHING, Conflicts, Properties, fact_keys
from anyburl.reasoning.completion.facts import FactColumns, by_best_rule, collected
from anyburl.reasoning.completion.judging import Judge
from anyburl.reasoning.completion.search import Narrowed, missing_facts

FEWEST_BACK = 20  # facts, to calibrate on
HIDDEN_SHARE = 0.1  # of train, where there is no valid split
LEAST_SCORE = 0.05  # of facts that are counted
LEAST_PROBABILITY = 0.1  # where a sample shows that facts are less likely, the others need not be counted
MANY_HIDDEN = 4_000  # facts in the sample
COUNTED_AT_A_TIME = 1 << 18  # facts
LEAST_BY_RULES = 0.03  # probability by rules alone: a model does not score less likely facts
LOST = 0.02  # of the likely facts may be lost since rules score them too low for a model to see them

BACK, TEST, REFUSED, LEFT = range(4)
"""A proposal was hidden, is a fact of the test split, contradicts one of it, or is left."""
SAME = 9  # decimals: shares that differ less are taken for the same

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Hiding:
    """Facts that are hidden (`dataset.valid`), and a ranker that knows only the rest (`dataset.train`)."""

    ranker: Ranker
    dataset: Dataset
    split: str  # that the hidden facts are from


def hide_facts(ranker: Ranker, dataset: Dataset, seed: int) -> Hiding:
    """Hide the valid split or, if there is none, a tenth of train: rules are counted again on the rest.

    Hiding further parts of train beside valid, to have more facts to count, was tried and made promises worse: on UMLS
    0.81 was promised where 0.92 is true, since less comes back from a graph that has lost more.

    There, a tenth of what a rule predicts rightly is hidden. Without making up for that, rules would have lower scores
    than they have on all of train, which is where facts will be proposed.
    """
    if len(dataset.valid):
        return Hiding(ranker, dataset, "valid")
    train, options = dataset.train, ranker.options
    drawn = np.random.default_rng(seed).permutation(len(train))
    chosen = np.zeros(len(train), np.bool_)
    chosen[drawn[: round(HIDDEN_SHARE * len(train))]] = True
    rest, hidden = (TripleTable(train.vocabulary, train.triples[part]) for part in (~chosen, chosen))
    rules = rescore(ranker.rules, rest, object_identity=options.object_identity, threads=options.threads)
    right = np.rint(rules.support / (1 - HIDDEN_SHARE)).astype(rules.support.dtype)
    rules = rules.replace(support=np.minimum(right, rules.predictions).astype(rules.support.dtype))
    counted = make_ranker(graph_of(rest), rules, options, block_connected=ranker.block_connected)
    counted = replace(counted, aggregation=ranker.aggregation, reranker=ranker.reranker)
    left = replace(dataset, train=rest, valid=hidden, stored_fingerprint=None)
    return Hiding(counted, left, "train")


@dataclass(frozen=True)
class Fit:
    """The share of true proposals by relation, context and bin, fitted to what came back.

    `checked` are counts of proposals, each with the shares by narrow bin that facts of other subjects tell, which are
    off by `line`. `test` and `new` are counted by the score that the shares are of: that of the ranker or, where a
    model scores facts, what `blend` makes of it.
    """

    starts: Ints
    shares: Floats
    checked: list[tuple[ProposalCounts, Floats]]
    line: tuple[float, float]
    test: ProposalCounts
    new: ProposalCounts
    blend: Blend | None = None


class Tally:
    """Counts proposals, those of them that were hidden, and those of the others that are facts of the test split.

    `halves` are counts of hidden facts by half of the subjects, so that each can be checked with the other. `new` are
    the facts that no split states or contradicts. `is_made` says in which contexts a relation's facts are proposed at
    all: where it has one object, only the best value is.
    """

    def __init__(self, hiding: Hiding, properties: Properties) -> None:
        vocabulary, hidden, test = hiding.dataset.vocabulary, hiding.dataset.valid.triples, hiding.dataset.test.triples
        self._sizes = vocabulary.n_entities, vocabulary.n_relations
        stated = np.concatenate([hiding.dataset.train.triples, hidden])
        self._conflicts = Conflicts.of(stated, properties, vocabulary.n_entities)
        if len(test):
            self._all_conflicts = Conflicts.of(np.concatenate([stated, test]), properties, vocabulary.n_entities)
        self._hidden, self._test = (np.sort(fact_keys(part, *self._sizes)) for part in (hidden, test))
        self.halves = [ProposalCounts.empty(vocabulary.n_relations) for _ in range(2)]
        self.test, self.new = (ProposalCounts.empty(vocabulary.n_relations) for _ in range(2))
        self.is_made = np.ones((vocabulary.n_relations, N_CONTEXTS, 1), np.bool_)
        self.is_made[properties.one_object, 1] = False
        self.floors = np.zeros(vocabulary.n_relations)  # see `listed_floors`
        self._fits: dict[bytes, Fit] = {}
        self.ranker = hiding.ranker
        self._listed = list[FactColumns]()  # where a model scores facts
        self._kinds = list[NDArray[np.int8]]()  # of these: `BACK` and so on
        self.n_hidden, self.n_test = (
            np.bincount(part[:, 1], minlength=vocabulary.n_relations).astype(np.float64) for part in (hidden, test)
        )

    @property
    def counts(self) -> ProposalCounts:
        """The counts of all subjects."""
        return self.halves[0] + self.halves[1]

    def fit(self, most: Floats) -> Fit:
        """Return what the counts tell; if all proposals of a relation are true, `most` come back."""
        key = np.round(most, SAME).tobytes()
        if key not in self._fits:
            self._fits[key] = self._fit_scores(most) if not self._listed else self._fit_blend(most)
        return self._fits[key]

    def _fit_scores(self, most: Floats) -> Fit:
        """Fit shares to the counts; correct them by how far those of one half of the subjects are off in the other."""
        checked = list[tuple[ProposalCounts, Floats]]()
        for own, other in zip(self.halves, self.halves[::-1], strict=True):
            starts = choose_bins(other)
            checked.append((own, by_narrow_bin(fit_true(other, starts, most), starts)))
        counts = (np.concatenate([getattr(half, name) for half in self.halves]) for name in ("proposed", "back"))
        expected = np.concatenate([shares for _, shares in checked])
        line = fit_correction(ProposalCounts(*counts), expected, np.tile(most, len(self.halves)))
        starts = choose_bins(self.counts)
        shares = corrected(fit_true(self.counts, starts, most), line)
        return Fit(starts, shares, checked, line, self.test, self.new)

    def _fit_blend(self, most: Floats) -> Fit:
        """Put the model's scores and those of the best rules into one, which is a share of true proposals already."""
        facts, kinds = FactColumns.concat(self._listed), np.concatenate(self._kinds)
        relations, contexts = facts.triples[:, 1], facts.contexts
        is_back, by_rule = kinds == BACK, by_best_rule(self.ranker, facts)
        scored = ScoredFacts(facts.triples[:, 0], relations, contexts, facts.scores, by_rule, is_back)
        blend, by_others = fit_blend(scored, self.is_made[relations, contexts, 0], most)
        shares = blend.shares(relations, contexts, facts.scores, by_rule)

        def count(rows: NDArray[np.bool_], scores: Floats, is_true: NDArray[np.bool_]) -> ProposalCounts:
            return ProposalCounts.of(len(most), relations[rows], contexts[rows], scores[rows], is_true[rows])

        same = np.broadcast_to(narrow_middles(), (len(most), N_CONTEXTS, N_NARROW))
        every = count(np.ones(len(facts), np.bool_), by_others, is_back)
        test, new = count(~is_back, shares, kinds == TEST), count(kinds == LEFT, shares, is_back)
        return Fit(np.arange(N_NARROW), same, [(every, same)], (0.0, 1.0), test, new, blend)

    def add(self, facts: FactColumns) -> None:
        """Count proposals, with their contexts; those that contradict what is stated or hidden would not be made."""
        self._fits.clear()
        facts = facts.take(self._conflicts.find(facts.triples) == NOTHING)
        keys, (subjects, relations, _) = fact_keys(facts.triples, *self._sizes), facts.triples.T
        is_back = np.isin(keys, self._hidden)
        for half, counts in enumerate(self.halves):
            own = subjects % 2 == half
            counts.add(relations[own], facts.contexts[own], facts.scores[own], is_back[own])
        kinds = np.where(is_back, BACK, LEFT)
        if len(self._test):
            is_test, is_new = ~is_back & np.isin(keys, self._test), ~is_back
            self.test.add(relations[is_new], facts.contexts[is_new], facts.scores[is_new], is_test[is_new])
            is_refused = ~is_back & (self._all_conflicts.find(facts.triples) != NOTHING)
            kinds[is_refused], kinds[is_test] = REFUSED, TEST
        is_new = kinds == LEFT
        self.new.add(relations[is_new], facts.contexts[is_new], facts.scores[is_new], is_back[is_new])
        if has_model(self.ranker):
            self._listed.append(facts)
            self._kinds.append(kinds.astype(np.int8))


def play(hiding: Hiding, properties: Properties, seed: int, progress: Progress | None) -> Tally:
    """Propose everything, and count.

    A sample of the subjects shows how likely facts are by their scores. For the other subjects, those that are hardly
    likely are not counted any more. Where a model scores facts, the rules alone are tried on the sample first: what
    they show to be unlikely, the model does not score, which would take far longer than all the rest.
    """
    game, tally, by_model = _Game(hiding, properties), Tally(hiding, properties), has_model(hiding.ranker)
    n_relations, n_entities = hiding.dataset.vocabulary.n_relations, hiding.dataset.vocabulary.n_entities
    in_sample = np.random.default_rng(seed).random(n_entities) < MANY_HIDDEN / max(len(hiding.dataset.valid), 1)
    sample, others = (np.flatnonzero(chosen).astype(np.int32) for chosen in (in_sample, ~in_sample))
    least, floors = np.full(n_relations, LEAST_SCORE), np.zeros(n_relations)
    if by_model:
        by_rules = replace(hiding, ranker=hiding.ranker.lister())
        tally_by_rules = Tally(by_rules, properties)
        for facts in _Game(by_rules, properties).proposals(sample, least, floors):
            tally_by_rules.add(facts)
        floors = np.minimum(_scores_from(tally_by_rules, LEAST_BY_RULES), 1.0)
        least = np.zeros(n_relations)  # what the model thinks little of may be what a rule is sure of
    listed = list[FactColumns]()
    for facts in game.proposals(sample, least, floors, progress):
        tally.add(facts)
        listed.append(facts)
    if by_model:
        tally.floors = floors = np.maximum(floors, listed_floors(tally, FactColumns.concat(listed)))
    else:
        least = np.maximum(_scores_from(tally, LEAST_PROBABILITY), LEAST_SCORE)
    for facts in game.proposals(others, least, floors, progress):
        tally.add(facts)
    return tally


class _Game:
    """Proposes facts from train, with their contexts."""

    def __init__(self, hiding: Hiding, properties: Properties) -> None:
        self._hiding, self._one_object = hiding, properties.one_object
        self._judge = Judge.of(hiding.ranker, hiding.dataset, properties, ("train",))

    def proposals(
        self, subjects: NDArray[np.int32], least: Floats, floors: Floats, progress: Progress | None = None
    ) -> Iterator[FactColumns]:
        """Yield what is proposed about subjects, many facts at a time."""
        if not len(subjects):
            return
        proposals = missing_facts(
            self._judge.ranker,
            self._hiding.dataset,
            least,
            stated=("train",),
            subjects=subjects,
            narrowed=Narrowed(self._one_object, floors),
            progress=progress,
        )
        for facts in collected(proposals, COUNTED_AT_A_TIME):
            yield replace(facts, contexts=self._judge.contexts_of(facts))


def has_model(ranker: Ranker) -> bool:
    """Return whether a model scores facts, in place of rules."""
    return isinstance(ranker.reranker, TunedReranker) and ranker.reranker.model is not None


def _scores_from(tally: Tally, probability: float) -> Floats:
    """Return, for each relation, the score below which no counted fact is that likely, if as much is missing as was
    hidden.
    """
    counts, n_relations = tally.counts, len(tally.n_hidden)
    starts, as_many, nothing = choose_bins(counts), np.ones(n_relations), np.zeros(n_relations)
    most = most_back(as_many, nothing)
    table = probability_table(most[:, None, None] * fit_true(counts, starts, most), as_many, nothing)
    return least_scores(table, starts, probability)


def listed_floors(tally: Tally, facts: FactColumns) -> Floats:
    """Return, for each relation, the score by rules that nearly all facts reach that are likely, if as much is missing
    as was hidden; 0 where there are too few to tell. These facts, and no others, must have been counted.
    """
    floors, relations = np.zeros(len(tally.n_hidden)), facts.triples[:, 1]
    if not len(facts):
        return floors
    as_many, nothing = np.ones(len(floors)), np.zeros(len(floors))
    most = most_back(as_many, nothing)
    blend = tally.fit(most).blend
    assert blend is not None
    shares = blend.shares(relations, facts.contexts, facts.scores, by_best_rule(tally.ranker, facts))
    back = most[relations] * shares
    likely = back / (1 - back) >= LEAST_PROBABILITY
    for relation in np.unique(relations[likely]):
        listed = facts.listed[likely & (relations == relation)]
        if len(listed) >= FEWEST_BACK:
            floors[relation] = np.quantile(listed, LOST)
    return floors
