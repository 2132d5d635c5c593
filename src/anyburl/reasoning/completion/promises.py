"""Hide-and-seek: hide facts, propose everything from what is left, and see what comes back.

That is how the probability of a proposed fact is found (`calibrate_ranker`), and how it is given to facts that are
proposed (`Judge`): both look at the same facts in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.table import TripleTable
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.lookup import answer_counts
from anyburl.graph.stored import graph_of
from anyburl.models.calibration import (
    N_CONTEXTS,
    WIDTH,
    Calibration,
    ProposalCounts,
    by_narrow_bin,
    choose_bins,
    corrected,
    fit_correction,
    fit_shares,
    least_scores,
    per_hidden,
    probability_table,
)
from anyburl.ranking.ranker import Progress, Ranker, make_ranker
from anyburl.reasoning.completion.conflicts import NOTHING, Conflicts, Properties, fact_keys, find_properties
from anyburl.reasoning.completion.facts import FactColumns, collected
from anyburl.reasoning.completion.options import MOST_MISSING
from anyburl.reasoning.completion.search import Narrowed, missing_facts
from anyburl.reasoning.predicting import answer_columns
from anyburl.reasoning.queries import QueryIds

PROMISES = (0.5, 0.8, 0.9, 0.95)
FEWEST_BACK = 20  # facts, to calibrate on
HIDDEN_SHARE = 0.1  # of train, where there is no valid split
LEAST_SCORE = 0.05  # of facts that are counted
LEAST_PROBABILITY = 0.1  # where a sample shows that facts are less likely, the others need not be counted
MANY_HIDDEN = 4_000  # facts in the sample
COUNTED_AT_A_TIME = 1 << 18  # facts
SHOWN = 0.1  # the lowest probability that errors and plots are about: nearly all facts are less likely
N_WIDTHS = 10
LISTED = 100  # answers to a question, among which a fact is looked up
LEAST_MISSING = 0.01  # that is assumed
LOST = 0.02  # of the likely facts may be lost where rules say too little for a model to be asked
SUREST = 0.1  # of the proposals that come back

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Triples = NDArray[np.int32]


def known_properties(dataset: Dataset) -> Properties:
    """Return the properties of relations that train and valid show; test is not looked at."""
    vocabulary = dataset.vocabulary
    facts = np.concatenate([dataset.train.triples, dataset.valid.triples])
    return find_properties(facts, vocabulary.n_entities, vocabulary.n_relations)


class Verdict(NamedTuple):
    """How likely a fact is, if that is known, and the stated fact that contradicts it, if there is one."""

    probability: float | None
    conflict: tuple[str, str, str] | None


def likely(calibration: Calibration | None, facts: FactColumns) -> Floats:
    """Return the probability of facts, with their contexts; nan where scores are not calibrated."""
    if calibration is None:
        return np.full(len(facts), np.nan)
    return calibration.probabilities(facts.triples[:, 1], facts.contexts, facts.scores)


@dataclass(frozen=True)
class Judge:
    """Tells which facts contradict stated ones, and how likely the others are."""

    ranker: Ranker
    dataset: Dataset
    conflicts: Conflicts
    judged: Ints = field(default_factory=lambda: np.empty(0, np.int64))  # sorted keys of facts with a verdict

    @classmethod
    def of(cls, ranker: Ranker, dataset: Dataset, properties: Properties, splits: Iterable[str] = SPLITS) -> Judge:
        """Return what judges proposals, by what some splits state."""
        stated = np.concatenate([dataset.split(split).triples for split in splits])
        return cls(ranker, dataset, Conflicts.of(stated, properties, dataset.vocabulary.n_entities))

    def with_verdicts(self, accepted: Triples, rejected: Triples) -> Judge:
        """Return a judge that takes accepted facts as stated, and proposes neither them nor the rejected ones."""
        stated = np.concatenate([self.conflicts.stated, accepted])
        sizes = self.dataset.vocabulary.n_entities, self.dataset.vocabulary.n_relations
        conflicts = Conflicts.of(stated, self.conflicts.properties, sizes[0])
        judged = np.sort(fact_keys(np.concatenate([accepted, rejected]), *sizes))
        return replace(self, conflicts=conflicts, judged=judged)

    def contexts_of(self, facts: FactColumns) -> Ints:
        """Return whether another value stands before each fact (1) or not (0).

        If a relation has one object, that is a value with a higher score; else, one that train states. All facts of a
        question (subject, relation, ?) must be there.
        """
        one_object = self.conflicts.properties.one_object
        subjects, relations, objects = facts.triples.T
        contexts = (answer_counts(self.ranker.graph, subjects, relations) > 0).astype(np.int64)
        rows = np.flatnonzero(one_object[relations])
        questions = subjects[rows].astype(np.int64) * len(one_object) + relations[rows]
        order = np.lexsort((objects[rows], -facts.n_rules[rows], -facts.scores[rows], questions))
        contexts[rows] = 0
        contexts[rows[order[1:]]] = questions[order[1:]] == questions[order[:-1]]
        return contexts

    def may_be_proposed(self, facts: FactColumns) -> NDArray[np.bool_]:
        """Return which facts, with their contexts, no stated fact contradicts and nobody has judged; of relations with
        one object, only the best value stays.
        """
        sizes = self.dataset.vocabulary.n_entities, self.dataset.vocabulary.n_relations
        is_judged = np.isin(fact_keys(facts.triples, *sizes), self.judged)
        later = self.conflicts.properties.one_object[facts.triples[:, 1]] & (facts.contexts > 0)
        return np.asarray(~later & ~is_judged & (self.conflicts.find(facts.triples) == NOTHING))

    def probabilities(self, calibration: Calibration | None, triples: Triples) -> tuple[Floats, Ints]:
        """Return how likely facts are, and the rows of stated facts that contradict them, see `Conflicts.find`.

        A probability is nan where there is no calibration, no rule predicts the fact, or a stated one contradicts it.
        """
        conflicts = self.conflicts.find(triples)
        if calibration is None:
            return np.full(len(triples), np.nan), conflicts
        facts, _ = self.look_up(triples)
        likely = calibration.probabilities(triples[:, 1], facts.contexts, facts.scores)
        return np.where((conflicts == NOTHING) & (facts.scores > 0), likely, np.nan), conflicts

    def verdicts(self, calibration: Calibration | None, triples: Triples) -> list[Verdict]:
        """Return what can be said of each fact."""
        likely, rows = self.probabilities(calibration, triples)
        return [
            Verdict(None if np.isnan(probability) else float(probability), conflict)
            for probability, conflict in zip(likely, self.stated_facts(triples, rows), strict=True)
        ]

    def stated_facts(self, triples: Triples, rows: Ints) -> list[tuple[str, str, str] | None]:
        """Return the labels of the stated facts at rows that `Conflicts.find` gave for triples; None where none is."""
        labels = self.dataset.vocabulary
        return [
            None if row == NOTHING else labels.triple_labels(*self.conflicts.fact(row, triple))
            for row, triple in zip(rows.tolist(), triples.tolist(), strict=True)
        ]

    def look_up(self, triples: Triples) -> tuple[FactColumns, Ints]:
        """Return each fact as an answer to (subject, relation, ?), and the value that stands before it, -1 if none.

        The score of what no rule predicts is 0, and its rule -1. Where a relation has one object, the best value stands
        before all others.
        """
        n, n_entities, n_relations = len(triples), self.ranker.graph.n_entities, self.ranker.graph.n_relations
        nothing = np.zeros(n, np.int64)
        facts = FactColumns(triples, np.zeros(n), np.full(n, -1, np.int32), np.zeros(n, np.int32), nothing)
        instead, wanted = np.full(n, -1, np.int64), fact_keys(triples, n_entities, n_relations)
        questions = np.unique(wanted // n_entities)
        asked = QueryIds((questions // n_relations).astype(np.int32), (questions % n_relations).astype(np.int32))
        one_object = self.conflicts.properties.one_object
        for answers in answer_columns(self.ranker, self.dataset, asked, top=LISTED, include_known=False):
            of_rules = answers.n_rules > 0
            listed = FactColumns(answers.triples, answers.scores, answers.rules, answers.n_rules).take(of_rules)
            keys, contexts = fact_keys(listed.triples, n_entities, n_relations), self.contexts_of(listed)
            if not len(keys):
                continue
            order = np.argsort(keys)
            at = order[np.minimum(np.searchsorted(keys, wanted, sorter=order), len(keys) - 1)]
            here = np.flatnonzero(keys[at] == wanted)
            for name, column in (("scores", listed.scores), ("rules", listed.rules), ("n_rules", listed.n_rules)):
                getattr(facts, name)[here] = column[at[here]]
            facts.contexts[here] = contexts[at[here]]
            best = np.flatnonzero((contexts == 0) & one_object[listed.triples[:, 1]])
            of_best = keys[best] // n_entities
            order = np.argsort(of_best)
            if len(best):
                at = order[np.minimum(np.searchsorted(of_best, wanted // n_entities, sorter=order), len(best) - 1)]
                here = np.flatnonzero((of_best[at] == wanted // n_entities) & (keys[best[at]] != wanted))
                instead[here] = listed.triples[best[at[here]], 2]
        return facts, instead


@dataclass(frozen=True)
class Hiding:
    """Facts that are hidden (`dataset.valid`), and a ranker that knows only the rest (`dataset.train`)."""

    ranker: Ranker
    dataset: Dataset
    split: str  # that the hidden facts are from


def hide_facts(ranker: Ranker, dataset: Dataset, seed: int) -> Hiding:
    """Hide the valid split or, if there is none, a tenth of train: rules are counted again on the rest.

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
        self.n_hidden, self.n_test = (
            np.bincount(part[:, 1], minlength=vocabulary.n_relations).astype(np.float64) for part in (hidden, test)
        )

    @property
    def counts(self) -> ProposalCounts:
        """The counts of all subjects."""
        return self.halves[0] + self.halves[1]

    @cached_property
    def fitted_to_other(self) -> list[tuple[Ints, Floats]]:
        """For each half, the bins and shares that are fitted to the other; to be asked for when all is counted."""
        return [(starts := choose_bins(other), fit_shares(other, starts)) for other in self.halves[::-1]]

    @cached_property
    def correction(self) -> tuple[float, float]:
        """How far shares that were fitted to one half of the subjects are off in the other."""
        expected = [by_narrow_bin(shares, starts) for starts, shares in self.fitted_to_other]
        own = (np.concatenate([getattr(half, name) for half in self.halves]) for name in ("proposed", "back"))
        return fit_correction(ProposalCounts(*own), np.concatenate(expected))

    def add(self, facts: FactColumns) -> None:
        """Count proposals, with their contexts; those that contradict what is stated or hidden would not be made."""
        facts = facts.take(self._conflicts.find(facts.triples) == NOTHING)
        keys, (subjects, relations, _) = fact_keys(facts.triples, *self._sizes), facts.triples.T
        is_back = np.isin(keys, self._hidden)
        for half, counts in enumerate(self.halves):
            own = subjects % 2 == half
            counts.add(relations[own], facts.contexts[own], facts.scores[own], is_back[own])
        is_new = ~is_back
        if len(self._test):
            is_test = np.isin(keys, self._test)
            self.test.add(relations[is_new], facts.contexts[is_new], facts.scores[is_new], is_test[is_new])
            is_new &= ~is_test & (self._all_conflicts.find(facts.triples) == NOTHING)
        self.new.add(relations[is_new], facts.contexts[is_new], facts.scores[is_new], is_back[is_new])


def play(hiding: Hiding, properties: Properties, seed: int, progress: Progress | None) -> Tally:
    """Propose everything, and count.

    A sample of the subjects shows how likely facts are by their scores. For the other subjects, those that are hardly
    likely are not counted any more.
    """
    n_relations, n_entities = hiding.dataset.vocabulary.n_relations, hiding.dataset.vocabulary.n_entities
    judge, tally = Judge.of(hiding.ranker, hiding.dataset, properties, ("train",)), Tally(hiding, properties)
    n_hidden, floors, sample = max(len(hiding.dataset.valid), 1), np.zeros(n_relations), list[FactColumns]()
    in_sample = np.random.default_rng(seed).random(n_entities) < MANY_HIDDEN / n_hidden
    least = np.full(n_relations, LEAST_SCORE)
    for subjects in (np.flatnonzero(in_sample), np.flatnonzero(~in_sample)):
        if not len(subjects):
            continue
        proposals = missing_facts(
            hiding.ranker,
            hiding.dataset,
            least,
            stated=("train",),
            subjects=subjects.astype(np.int32),
            narrowed=Narrowed(properties.one_object, floors, unseen=True),
            progress=progress,
        )
        for facts in collected(proposals, COUNTED_AT_A_TIME):
            tally.add(replace(facts, contexts=judge.contexts_of(facts)))
            if len(facts.listed) and not floors.any():
                sample.append(facts)
        counts = tally.counts
        starts = choose_bins(counts)
        table = probability_table(fit_shares(counts, starts), np.ones(n_relations), np.zeros(n_relations))
        least = np.maximum(least_scores(table, starts, LEAST_PROBABILITY), LEAST_SCORE)
        if sample:
            tally.floors = floors = listed_floors(FactColumns.concat(sample), least)
            sample = []
    return tally


def fitted_shares(tally: Tally) -> tuple[Ints, Floats]:
    """Return the bins of scores, and the share of proposals that come back by relation, context and bin.

    What is fitted to all facts errs half as much (in variance) as what is fitted to half of them.
    """
    counts, (a, b) = tally.counts, tally.correction
    starts = choose_bins(counts)
    return starts, corrected(fit_shares(counts, starts), (a / 2, (1 + b) / 2))


def listed_floors(facts: FactColumns, least: Floats) -> Floats:
    """Return, for each relation, the score by rules that nearly all facts reach to which a model gives the `least`
    score; 0 where there are too few to tell.
    """
    floors, relations = np.zeros(len(least)), facts.triples[:, 1]
    likely = facts.scores >= least[relations]
    for relation in np.unique(relations[likely]):
        listed = facts.listed[likely & (relations == relation)]
        if len(listed) >= FEWEST_BACK:
            floors[relation] = np.quantile(listed, LOST)
    return floors


@dataclass(frozen=True)
class Promise:
    """What holds for all facts that are at least as likely as some probability.

    `facts` that no split states are so likely, on average as likely as `promised`. To check that, other facts were
    hidden: of `checked` facts that were so likely then, a share of `expected` should have been true, and a share of
    `came_back` was. By chance alone, the two differ by about `sampling_error`.
    """

    facts: int
    promised: float | None
    checked: int = 0
    expected: float | None = None
    came_back: float | None = None
    sampling_error: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


@dataclass(frozen=True)
class ReliabilityBin:
    """Facts with about the same probability: its mean, the share that came back, and how many there are."""

    probability: float
    came_back: float
    facts: int


@dataclass(frozen=True)
class CalibrationReport:
    """What hide-and-seek showed.

    `promises` covers all relations together; `by_relation` has those of each relation, the ones with the most facts
    first. `missing` says what is assumed: which share of the true facts no split states, and why. `before` and `after`
    are equally wide bins of scores and of probabilities, for plots, and the errors are their mean distances, of facts
    that are at least 10 % likely.
    """

    promises: dict[str, Promise]
    by_relation: list[dict[str, Any]]
    missing: dict[str, Any]
    calibrated_on: dict[str, Any]
    checked_on: dict[str, Any]
    expected_calibration_error: float | None
    uncalibrated_error: float | None
    protocol: dict[str, Any]
    before: list[ReliabilityBin]
    after: list[ReliabilityBin]
    calibration: Calibration

    def to_json(self) -> dict[str, Any]:
        """Return everything but the calibration itself as plain values."""
        return {
            "protocol": self.protocol,
            "missing": self.missing,
            "expected_calibration_error": self.expected_calibration_error,
            "uncalibrated_error": self.uncalibrated_error,
            "promises": {name: promise.to_json() for name, promise in self.promises.items()},
            "by_relation": self.by_relation,
            "calibrated_on": self.calibrated_on,
            "checked_on": self.checked_on,
        }

    def __str__(self) -> str:
        promises = ", ".join(f"{name}: {promise.facts:,} facts" for name, promise in self.promises.items())
        return f"proposed with a probability of at least {promises}; if {self.missing['share']:.3f} of all is missing"


def calibrate_ranker(
    ranker: Ranker,
    dataset: Dataset,
    seed: int,
    *,
    properties: Properties,
    missing: float | Mapping[int, float] | None = None,
    protocol: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> CalibrationReport:
    """Hide facts, propose, and fit probabilities to what comes back; check them on test, or on hidden facts.

    `missing` is the share of the true facts that no split states, overall or by relation; by default, as many facts are
    missing as valid has. Without a valid split, obligatory relations tell, if there are some.
    """
    ranker.check_data(dataset)
    hiding = hide_facts(ranker, dataset, seed)
    tally = play(hiding, properties, seed, progress)
    n_hidden, n_back = len(hiding.dataset.valid), int(tally.counts.back.sum())
    if n_back < FEWEST_BACK:
        raise DataError(
            f"{dataset.name} has too few facts to calibrate on: {n_back} of {n_hidden} hidden facts come back, "
            f"expected at least {FEWEST_BACK}"
        )
    stated = facts_by_relation(dataset)
    share, reason = assumed_missing(dataset, properties, tally)
    starts, shares = fitted_shares(tally)
    calibration = Calibration(
        starts=starts,
        shares=shares,
        hidden=tally.n_hidden,
        stated=stated,
        elsewhere=tally.n_test,
        missing=missing_as_hidden(share, stated, tally.n_hidden),
        floors=tally.floors,
        shift=np.zeros_like(stated),
    )
    if missing is not None:
        calibration, reason = calibration.with_missing(missing), "given"
    checked = "test" if len(dataset.test) else f"{hiding.split}, each half of it by the other"
    return CalibrationReport(
        **_summarised(calibration, tally, dataset.vocabulary),
        missing={"share": overall_share(calibration.missing, stated), "because": reason},
        calibrated_on={"split": hiding.split, "facts": n_hidden, "came_back": n_back},
        checked_on={"split": checked, "facts": len(dataset.test) or n_hidden},
        protocol={"data": dataset.name, "rules": len(ranker.rules), **(protocol or {})},
        calibration=calibration,
    )


def facts_by_relation(dataset: Dataset) -> Floats:
    """Return how many facts of each relation all splits state."""
    n_relations = dataset.vocabulary.n_relations
    counts = [np.bincount(dataset.split(split).triples[:, 1], minlength=n_relations) for split in SPLITS]
    return np.asarray(np.sum(counts, axis=0), np.float64)


def missing_as_hidden(share: float, stated: Floats, hidden: Floats) -> Floats:
    """Return the share of each relation's facts that is missing, if a `share` of all is: for each hidden fact, equally
    many are. Splits need not be drawn from all relations alike.
    """
    ratio = share / (1 - share) * stated.sum() / hidden.sum()
    return np.asarray(np.minimum(ratio / (ratio + per_hidden(stated, hidden)), MOST_MISSING), np.float64)


def overall_share(missing: Floats, stated: Floats) -> float:
    """Return which share of all facts is missing, given that of each relation."""
    facts = stated * missing / (1 - missing)
    return float(facts.sum() / (stated + facts).sum())


def assumed_missing(dataset: Dataset, properties: Properties, tally: Tally) -> tuple[float, str]:
    """Return the share of facts that is taken to be missing where nobody says it, and why."""
    stated = facts_by_relation(dataset)
    share, reason = HIDDEN_SHARE, "nothing in the data tells more"
    suggested = properties.missing(stated)
    if len(dataset.valid):
        share, reason = len(dataset.valid) / (stated.sum() + len(dataset.valid)), "as many as the valid split has"
    elif suggested is not None:
        share, reason = suggested, "so many values of obligatory relations are"
    most = most_missing(tally) * tally.n_hidden.sum()
    if most / (stated.sum() + most) < share:
        share, reason = (
            most / (stated.sum() + most),
            "if there were more, fewer of the surest proposals would be hidden ones",
        )
    return float(min(max(share, LEAST_MISSING), MOST_MISSING)), reason


def most_missing(tally: Tally) -> float:
    """Return how many facts are missing, at most, for each hidden one.

    Of the surest proposals, which are nearly all true, a share q comes back: the others are stated by the test split or
    missing. Which are the surest is said by one half of the subjects, and their share is taken from the other.
    """
    back = proposed = 0.0
    for own, (starts, fitted) in zip(tally.halves, tally.fitted_to_other, strict=True):
        shares = by_narrow_bin(fitted, starts).ravel()
        order = np.argsort(-shares, kind="stable")
        n_back = np.cumsum(own.back.ravel()[order])
        enough = int(np.searchsorted(n_back, max(FEWEST_BACK, SUREST * n_back[-1]))) + 1
        back += float(own.back.ravel()[order[:enough]].sum())
        proposed += float(own.proposed.ravel()[order[:enough]].sum())
    elsewhere = tally.n_test.sum() / tally.n_hidden.sum()
    return max(proposed / max(back, 1) - 1 - float(elsewhere), 0.0)


@dataclass(frozen=True)
class Checked:
    """Promises and what became of them, by relation, context and narrow bin: how many facts were `proposed`, how
    likely they were said to be, and how many of them turned out to be true.
    """

    proposed: Floats
    promised: Floats
    true: Floats

    def above(self, least: float, rows: slice) -> tuple[float, float, float]:
        """Return how many facts were at least so likely, the mean of the promises, and the share that was true."""
        chosen = self.promised[rows] >= least
        n = self.proposed[rows][chosen].sum()
        likely = (self.promised[rows] * self.proposed[rows])[chosen].sum()
        return float(n), float(likely / max(n, 1)), float(self.true[rows][chosen].sum() / max(n, 1))


def check_promises(tally: Tally, missing: Floats | None = None) -> Checked:
    """Compare promises with the test split or, if there is none, with what came back.

    In the latter case, each half of the subjects has promises that were fitted to the other half, and for each fact
    that came back, so many of its relation are `missing` (by default, one): that is what was promised.
    """
    nothing = np.zeros_like(tally.n_hidden)
    if tally.n_test.any():
        (starts, shares), ratio = fitted_shares(tally), per_hidden(tally.n_test, tally.n_hidden)
        table = probability_table(shares, ratio, nothing)
        return Checked(
            tally.test.proposed * tally.is_made, by_narrow_bin(table, starts), tally.test.back * tally.is_made
        )
    parts, line, ratio = [], tally.correction, nothing + 1 if missing is None else missing
    for own, (starts, shares) in zip(tally.halves, tally.fitted_to_other, strict=True):
        table = probability_table(corrected(shares, line), ratio, nothing)
        not_back = (own.proposed - own.back) * tally.is_made
        parts.append(Checked(not_back, by_narrow_bin(table, starts), own.back * tally.is_made * ratio[:, None, None]))
    proposed = np.concatenate([part.proposed for part in parts], axis=1)
    promised, true = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("promised", "true"))
    return Checked(proposed, promised, true)


def _summarised(calibration: Calibration, tally: Tally, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return what is promised for the facts to come, and what became of the promises that were checked."""
    likely, new = calibration.narrow_table(), tally.new.proposed * tally.is_made
    checked = check_promises(tally, calibration.missing_per_hidden())
    scores = np.broadcast_to(1 - np.exp(-WIDTH * (np.arange(likely.shape[2]) + 0.5)), checked.promised.shape)
    before, after = (_bins(replace(checked, promised=values)) for values in (scores, checked.promised))

    def promises(rows: slice) -> dict[str, Promise]:
        return {str(least): _promise(least, likely[rows], new[rows], checked.above(least, rows)) for least in PROMISES}

    rows = [
        {
            "relation": vocabulary.relation_label(relation),
            "hidden": int(tally.n_hidden[relation]),
            "missing": float(calibration.missing[relation]),
            "promises": {name: one.to_json() for name, one in promises(slice(relation, relation + 1)).items()},
        }
        for relation in np.flatnonzero(tally.n_hidden + new.sum(axis=(1, 2))).tolist()
    ]
    first = str(PROMISES[0])
    return {
        "promises": promises(slice(None)),
        "by_relation": sorted(rows, key=lambda row: (-row["promises"][first]["facts"], -row["hidden"])),
        "before": before,
        "after": after,
        "expected_calibration_error": _error(after),
        "uncalibrated_error": _error(before),
    }


def _promise(least: float, likely: Floats, new: Floats, checked: tuple[float, float, float]) -> Promise:
    facts, total = new[likely >= least].sum(), (new * likely)[likely >= least].sum()
    n_checked, expected, true = checked
    promise = Promise(int(facts), float(total / facts) if facts else None)
    if not n_checked:
        return promise
    error = np.sqrt(max(expected * (1 - expected), expected / n_checked) / n_checked)
    return replace(promise, checked=int(n_checked), expected=expected, came_back=true, sampling_error=float(error))


def _bins(checked: Checked) -> list[ReliabilityBin]:
    """Return equally wide bins of probabilities, from the lowest that matters on."""
    places = np.minimum((checked.promised * N_WIDTHS).astype(np.int64), N_WIDTHS - 1)
    bins = []
    for place in range(int(SHOWN * N_WIDTHS), N_WIDTHS):
        chosen = places == place
        n = checked.proposed[chosen].sum()
        if n:
            mean, true = ((column[chosen]).sum() / n for column in (checked.promised * checked.proposed, checked.true))
            bins.append(ReliabilityBin(float(mean), float(true), int(n)))
    return bins


def _error(bins: Sequence[ReliabilityBin]) -> float | None:
    """Return the mean distance of probability and share, over all facts; None if there are none."""
    n_facts = sum(one.facts for one in bins)
    return sum(abs(one.probability - one.came_back) * one.facts for one in bins) / n_facts if n_facts else None
