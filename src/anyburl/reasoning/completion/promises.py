"""How likely proposed facts are to be true, by hide-and-seek, and what became of such promises."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.data.vocabulary import Vocabulary
from anyburl.models.calibration import (
    N_CONTEXTS,
    Calibration,
    by_narrow_bin,
    corrected,
    missing_as_hidden,
    most_back,
    narrow_middles,
    per_hidden,
    probability_table,
)
from anyburl.ranking.ranker import Progress, Ranker
from anyburl.reasoning.completion.conflicts import Properties
from anyburl.reasoning.completion.hiding import FEWEST_BACK, HIDDEN_SHARE, Fit, Tally, hide_facts, play
from anyburl.reasoning.completion.options import MOST_MISSING

PROMISES = (0.5, 0.8, 0.9, 0.95)
SHOWN = 0.1  # the lowest probability that errors and plots are about: nearly all facts are less likely
N_WIDTHS = 10
LEAST_MISSING = 0.01  # that is assumed
SUREST = 0.1  # of the proposals that come back

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Promise:
    """What holds for all facts that are at least as likely as some probability.

    `facts` that no split states are so likely, on average as likely as `promised`. To check that, other facts were
    hidden: of `checked` facts that were so likely then, a share of `expected` should have been true, and a share of
    `came_back` was. By chance alone, in what is true and in what was counted before, the two differ by about
    `sampling_error`.
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
    calibration = Calibration(
        starts=np.zeros(1, np.int64),
        shares=np.zeros((len(stated), N_CONTEXTS, 1)),
        hidden=tally.n_hidden,
        stated=stated,
        elsewhere=tally.n_test,
        missing=missing_as_hidden(share, stated, tally.n_hidden),
        floors=tally.floors,
        shift=np.zeros_like(stated),
    )
    if missing is not None:
        calibration, reason = calibration.with_missing(missing), "given"
    most = most_back(calibration.missing_per_hidden(), per_hidden(tally.n_test, tally.n_hidden))
    fit = tally.fit(most)
    calibration = replace(calibration, starts=fit.starts, shares=most[:, None, None] * fit.shares, blend=fit.blend)
    checked = "test" if len(dataset.test) else f"{hiding.split}, each half of it by the other"
    return CalibrationReport(
        **_summarised(calibration, tally, fit, dataset.vocabulary),
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
    That share is taken a standard error lower, since chance alone makes it too high as often as too low. Two standard
    errors were tried: 130 facts in place of 16 are proposed from 0.5 on where all splits of geo are stated.
    """
    back = proposed = 0.0
    as_many = most_back(np.ones_like(tally.n_hidden), per_hidden(tally.n_test, tally.n_hidden))
    for own, shares in tally.fit(as_many).checked:
        order = np.argsort(-shares.ravel(), kind="stable")
        n_back = np.cumsum(own.back.ravel()[order])
        enough = int(np.searchsorted(n_back, max(FEWEST_BACK, SUREST * n_back[-1]))) + 1
        back += float(own.back.ravel()[order[:enough]].sum())
        proposed += float(own.proposed.ravel()[order[:enough]].sum())
    elsewhere = tally.n_test.sum() / tally.n_hidden.sum()
    share = back / max(proposed, 1)
    lowest = max(share - math.sqrt(share * (1 - share) / max(proposed, 1)), 1 / max(proposed, 1))
    return max(1 / lowest - 1 - float(elsewhere), 0.0)


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
        ratio = per_hidden(tally.n_test, tally.n_hidden)
        most = most_back(ratio, nothing)
        fit = tally.fit(most)
        table = by_narrow_bin(probability_table(most[:, None, None] * fit.shares, ratio, nothing), fit.starts)
        return Checked(fit.test.proposed * tally.is_made, table, fit.test.back * tally.is_made)
    parts, ratio = list[Checked](), nothing + 1 if missing is None else missing
    most = most_back(ratio, nothing)
    fit = tally.fit(most)
    for own, shares in fit.checked:
        table = probability_table(most[:, None, None] * corrected(shares, fit.line), ratio, nothing)
        not_back = (own.proposed - own.back) * tally.is_made
        parts.append(Checked(not_back, table, own.back * tally.is_made * ratio[:, None, None]))
    proposed = np.concatenate([part.proposed for part in parts], axis=1)
    promised, true = (np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("promised", "true"))
    return Checked(proposed, promised, true)


def _summarised(calibration: Calibration, tally: Tally, fit: Fit, vocabulary: Vocabulary) -> dict[str, Any]:
    """Return what is promised for the facts to come, and what became of the promises that were checked."""
    likely, new = calibration.narrow_table(), fit.new.proposed * tally.is_made
    checked = check_promises(tally, calibration.missing_per_hidden())
    scores = np.broadcast_to(narrow_middles(), checked.promised.shape)
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
    # Whether each fact is true is chance, and so is how many hidden ones the promise was made from: about as many as
    # should be true, a Poisson number.
    error = np.sqrt((expected * (1 - expected) + expected) / n_checked)
    return replace(promise, checked=int(n_checked), expected=expected, came_back=true, sampling_error=float(error))


def _bins(checked: Checked) -> list[ReliabilityBin]:
    """Return equally wide bins of probabilities, from the lowest that matters on."""
    positions = np.minimum((checked.promised * N_WIDTHS).astype(np.int64), N_WIDTHS - 1)
    bins = []
    for position in range(int(SHOWN * N_WIDTHS), N_WIDTHS):
        chosen = positions == position
        n = checked.proposed[chosen].sum()
        if n:
            mean, true = ((column[chosen]).sum() / n for column in (checked.promised * checked.proposed, checked.true))
            bins.append(ReliabilityBin(float(mean), float(true), int(n)))
    return bins


def _error(bins: Sequence[ReliabilityBin]) -> float | None:
    """Return the mean distance of probability and share, over all facts; None if there are none."""
    n_facts = sum(one.facts for one in bins)
    return sum(abs(one.probability - one.came_back) * one.facts for one in bins) / n_facts if n_facts else None
