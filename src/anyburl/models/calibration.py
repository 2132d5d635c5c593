"""How likely a proposed fact is to be true, from how often such facts came back after they had been hidden.

Facts are hidden, everything is proposed from what is left, and proposals are counted by relation, context and score:
how many there were (`proposed`), and how many of them were hidden facts (`back`).

What was hidden is known; what is missing is not. If m facts are missing for each hidden one, and a share q of some
proposals comes back, m q of them are missing facts, and 1 - q of them are not among the hidden ones: the probability of
those is m q / (1 - q). Even if all proposals are true, only a share of 1 / (1 + m) comes back (`most`). So what is
fitted is the share of true proposals, t = q / most, from 0 to 1, in four steps, each shrunk to the one before:

1. the whole: isotonic regression (pool adjacent violators) over all relations;
2. a line for each relation, logit t = a + b logit whole, with priors around a = 0 and b = 1;
3. isotonic regression for each relation, where its line adds `PRIOR` proposals to every bin;
4. steps 2 and 3 for each context of a relation, with the relation in place of the whole.

Where a share is close to the highest possible one, and counts are few, it is lowered as far as they are uncertain (see
`below_most`): m q / (1 - q) multiplies the noise of q about fourfold there, which nothing above 1 can make up for.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.base.writing import KeptKey, StoredValues, damaged, load_kept, save_kept

N_QUANTILES = 60
PRIOR = 40.0
UNCERTAINTY = 0.5  # standard errors; 0 promises 0.06 too much from 0.8 on on geo, 1 promises 0.04 too little on UMLS
SPREAD, SLOPE_SPREAD = 1.0, 0.5  # standard deviations of a and b
LEAST_SLOPE = 0.02
STEEPEST_CORRECTION = 2.0
FAR_BEYOND = 10.0  # standard errors above the highest possible share: nothing is left of the distribution
STEPS = 25  # of Newton's method; it ends long before
LEAST, CERTAIN = 1e-6, 0.999  # no probability is higher: nothing that was counted could tell it from 1
LEAST_CORRECTED = 0.05  # share; lower ones are not corrected, see `fit_correction`
N_CONTEXTS = 2
"""Whether another value of the subject stands before a fact: see `reasoning.completion.judging.Judge.contexts_of`."""
WIDTH = 0.02  # of the narrow bins that facts are counted in, in units of -log(1 - score)
N_NARROW = 750  # up to a score of 1 - 3e-7
ROUNDING = 1e-9  # of a narrow bin: a score at which one starts belongs to it
FEW_HIDDEN = 10.0  # facts of a relation: with fewer, its share of hidden facts is more that of all relations

CALIBRATION = "calibration"  # the folder in a run folder
FORMAT = 4

Floats = NDArray[np.float64]
Ids = NDArray[np.int32] | NDArray[np.int64]


def narrow_bins(scores: Floats) -> NDArray[np.int64]:
    """Return the narrow bin of each score."""
    doubt = np.log(np.maximum(1 - scores, np.exp(-WIDTH * (N_NARROW - 0.5))))
    return np.asarray(np.minimum(-doubt / WIDTH + ROUNDING, N_NARROW - 1), np.int64)


def narrow_middles() -> Floats:
    """Return the score in the middle of each narrow bin."""
    return np.asarray(1 - np.exp(-WIDTH * (np.arange(N_NARROW) + 0.5)), np.float64)


def bins_of(starts: NDArray[np.int64], scores: Floats) -> NDArray[np.int64]:
    """Return the wide bin of each score, given the narrow bins at which wide ones start."""
    return np.asarray(np.searchsorted(starts, narrow_bins(scores), side="right") - 1, np.int64)


@dataclass(frozen=True)
class ProposalCounts:
    """Numbers of proposed facts and of those that came back: arrays of (relations, contexts, narrow bins)."""

    proposed: Floats
    back: Floats

    @classmethod
    def empty(cls, n_relations: int) -> ProposalCounts:
        """Return counts of nothing."""
        return cls(*np.zeros((2, n_relations, N_CONTEXTS, N_NARROW)))

    @classmethod
    def of(
        cls, n_relations: int, relations: Ids, contexts: Ids, scores: Floats, is_back: NDArray[np.bool_]
    ) -> ProposalCounts:
        """Return the counts of some facts."""
        counts = cls.empty(n_relations)
        counts.add(relations, contexts, scores, is_back)
        return counts

    def __add__(self, other: ProposalCounts) -> ProposalCounts:
        return ProposalCounts(self.proposed + other.proposed, self.back + other.back)

    def add(self, relations: Ids, contexts: Ids, scores: Floats, is_back: NDArray[np.bool_]) -> None:
        """Count some more facts."""
        shape = self.proposed.shape
        cells = (relations.astype(np.int64) * N_CONTEXTS + contexts) * N_NARROW + narrow_bins(scores)
        size = int(np.prod(shape))
        self.proposed[:] += np.bincount(cells, minlength=size).reshape(shape)
        self.back[:] += np.bincount(cells[is_back], minlength=size).reshape(shape)


def choose_bins(counts: ProposalCounts) -> NDArray[np.int64]:
    """Return the narrow bins at which wider ones start, at quantiles of all proposals and of those that came back."""
    shares = np.linspace(0, 1, N_QUANTILES + 1)[1:-1]
    starts = [np.zeros(1, np.int64)]
    for column in (counts.proposed, counts.back):
        running = np.cumsum(column.sum(axis=(0, 1)))
        if running[-1]:
            starts.append(np.searchsorted(running, shares * running[-1]) + 1)
    return np.unique(np.minimum(np.concatenate(starts), N_NARROW - 1))


def fit_true(counts: ProposalCounts, starts: NDArray[np.int64], most: Floats) -> Floats:
    """Return the share of true proposals by relation, context and bin; if all of a relation's are, `most` come back."""
    proposed, back = (np.add.reduceat(column, starts, axis=2) for column in (counts.proposed, counts.back))
    whole = fit_whole((proposed * most[:, None, None]).sum(axis=(0, 1)), back.sum(axis=(0, 1)))
    base = np.broadcast_to(whole, proposed[:, 0].shape)
    of_relations = fit_groups(proposed.sum(axis=1), back.sum(axis=1), base, most, uncertainty=0.0)
    flat_proposed, flat_back = (column.reshape(-1, len(starts)) for column in (proposed, back))
    base, highest = (np.repeat(column, N_CONTEXTS, axis=0) for column in (of_relations, most))
    return fit_groups(flat_proposed, flat_back, base, highest).reshape(proposed.shape)


def fit_correction(counts: ProposalCounts, expected: Floats, most: Floats) -> tuple[float, float]:
    """Return a and b of the line logit t = a + b logit `expected` that what came back follows, by narrow bins.

    `expected` shares of true proposals were fitted to other facts. Where these are few, noise takes high ones too high,
    and lowers those that are as high as can be. Proposals that are hardly ever true do not count: nearly all are.
    """
    chosen = (expected >= LEAST_CORRECTED) & (counts.proposed > 0)
    highest = np.broadcast_to(most[:, None, None], expected.shape)
    proposed, back, base, highest = (c[chosen][None] for c in (counts.proposed, counts.back, expected, highest))
    a, b = line_parameters(proposed, back, base, highest)
    return float(a[0, 0]), float(np.clip(b[0, 0], LEAST_SLOPE, STEEPEST_CORRECTION))


def corrected(shares: Floats, line: tuple[float, float]) -> Floats:
    """Return shares of true proposals on a line that `fit_correction` found; the low ones stay."""
    a, b = line
    moved = logistic(a + b * np.log(shares / (1 - shares)))
    return np.where(shares >= LEAST_CORRECTED, np.clip(moved, LEAST_CORRECTED, CERTAIN), shares)


def fit_whole(proposed: Floats, back: Floats) -> Floats:
    """Return the share in each bin, all relations taken together."""
    blocks = np.cumsum(np.diff(isotonic(back, proposed), prepend=-1.0) != 0) - 1
    n_back, n_proposed = (np.bincount(blocks, column).astype(np.float64) for column in (back, proposed))
    # Half a fact on either side is Jeffreys' prior. It moves small blocks most, even below the one before.
    shares = isotonic(n_back + 0.5, n_proposed + 1)
    return np.asarray(np.clip(shares[blocks], LEAST, CERTAIN), np.float64)


def fit_groups(
    proposed: Floats, back: Floats, base: Floats, most: Floats, prior: float = PRIOR, uncertainty: float = UNCERTAINTY
) -> Floats:
    """Return the share of true proposals in each bin for every group, shrunk to its `base`: arrays of (groups, bins).

    If all proposals of a group are true, a share of `most` comes back.
    """
    lines = fit_lines(proposed, back, base, most)
    fitted = lines.copy()
    for group in np.flatnonzero(proposed.any(axis=1)):
        # Bins without proposals take their share from the line, or from a neighbour that proposals speak for.
        added, highest = np.where(proposed[group] > 0, prior, LEAST), float(most[group])
        sizes = proposed[group] + added
        shares = isotonic(back[group] + added * highest * lines[group], sizes)
        blocks = np.cumsum(np.diff(shares, prepend=-1.0) != 0) - 1
        errors = uncertainty * np.sqrt(shares * (1 - shares) / np.maximum(np.bincount(blocks, sizes)[blocks], prior))
        fitted[group] = np.maximum.accumulate(below_most(shares, errors, highest)) / highest
    return np.asarray(np.clip(fitted, LEAST, CERTAIN), np.float64)


def below_most(shares: Floats, errors: Floats, most: float) -> Floats:
    """Return what is to be expected of shares with such standard errors if none can be higher than `most`: the mean of
    a normal distribution around each, cut off there.
    """
    errors = np.maximum(errors, LEAST)
    beyond = np.minimum((shares - most) / errors, FAR_BEYOND)
    left = np.array([math.erfc(z / math.sqrt(2)) / 2 for z in beyond.tolist()])  # of the distribution
    density = np.exp(-(beyond**2) / 2) / math.sqrt(2 * math.pi)
    return np.asarray(np.maximum(most + errors * (beyond - density / left), 0.0), np.float64)


def fit_lines(proposed: Floats, back: Floats, base: Floats, most: Floats) -> Floats:
    """Return the share of true proposals in each bin for every group: a line through the logit of its base."""
    a, b = line_parameters(proposed, back, base, most[:, None])
    return logistic(a + np.maximum(b, LEAST_SLOPE) * np.log(base / (1 - base)))


def line_parameters(
    proposed: Floats,
    back: Floats,
    base: Floats,
    most: Floats,
    spread: float = SPREAD,
    slope_spread: float = SLOPE_SPREAD,
) -> tuple[Floats, Floats]:
    """Return a and b of each group, for the most likely line logit t = a + b logit base, where t * `most` come back; a
    and b have such standard deviations around 0 and 1.
    """
    x = np.log(base / (1 - base))
    a, b = np.zeros((len(back), 1)), np.ones((len(back), 1))
    for _ in range(STEPS):
        expected = np.minimum(logistic(a + b * x), 1 - LEAST**2)
        slopes = (1 - expected) / (1 - expected * most)  # by the chain rule: of the logit of t, not of t * most
        surplus = (back - proposed * expected * most) * slopes
        weights = proposed * expected * most * (1 - expected) * slopes
        toward_a = _total(surplus) - a / spread**2
        toward_b = _total(surplus * x) - (b - 1) / slope_spread**2
        aa, ab = _total(weights) + spread**-2, _total(weights * x)
        bb = _total(weights * x * x) + slope_spread**-2
        determinant = aa * bb - ab * ab
        a += np.clip((bb * toward_a - ab * toward_b) / determinant, -1, 1)
        b += np.clip((aa * toward_b - ab * toward_a) / determinant, -1, 1)
    return a, b


def _total(rows: Floats) -> Floats:
    return np.asarray(rows.sum(axis=1, keepdims=True), np.float64)


def logistic(values: Floats) -> Floats:
    """Return numbers from 0 to 1 in the same order, such as the shares of which these are the logits."""
    return np.asarray(1 / (1 + np.exp(-values)), np.float64)


def isotonic(part: Floats, whole: Floats) -> Floats:
    """Return shares of `part` in `whole` that never fall from bin to bin, by pooling neighbours that do."""
    parts, wholes, sizes = list[float](), list[float](), list[int]()  # of each block, the last ones at the end
    for n_part, n_whole in zip(part.tolist(), whole.tolist(), strict=True):
        size = 1
        while wholes and parts[-1] * n_whole >= n_part * wholes[-1]:
            n_part, n_whole, size = parts.pop() + n_part, wholes.pop() + n_whole, sizes.pop() + size
        parts.append(n_part)
        wholes.append(n_whole)
        sizes.append(size)
    shares = [n_part / n_whole if n_whole else 0.0 for n_part, n_whole in zip(parts, wholes, strict=True)]
    return np.repeat(shares, sizes)


@dataclass(frozen=True)
class Blend:
    """Puts the score that a model gives to a fact and that of its best rule into one: the share of true proposals among
    facts like it, see `models.blending`.

    Either score, by relation, context and its bin, has a term of the logit of that share.
    """

    starts: NDArray[np.int64]  # of bins of the model's score
    terms: Floats  # (relations, contexts, bins)
    rule_starts: NDArray[np.int64]
    rule_terms: Floats

    def shares(self, relations: Ids, contexts: Ids, scores: Floats, rule_scores: Floats) -> Floats:
        """Return the share of true proposals among facts with such scores by the model and by their best rules."""
        terms, of_rules = (
            table[relations, contexts, bins_of(starts, values)]
            for starts, table, values in (
                (self.starts, self.terms, scores),
                (self.rule_starts, self.rule_terms, rule_scores),
            )
        )
        return np.asarray(np.clip(logistic(terms + of_rules), LEAST, CERTAIN), np.float64)

    def highest(self) -> Floats:
        """Return the highest share by relation, context and bin of the model's score, whatever the best rule says."""
        return np.asarray(np.clip(logistic(self.terms + self.rule_terms.max(axis=2, keepdims=True)), LEAST, CERTAIN))


@dataclass(frozen=True)
class Calibration:
    """Turns the score of a proposed fact into the probability that it is true.

    Where a model scores facts, `blend` puts its score and that of the best rule into one, which is what is turned.

    `shares` is the share of such facts that came back when `hidden` facts of each relation were hidden; `stated` facts
    of each relation are stated by all splits, `elsewhere` of them by a split that was neither hidden nor proposed from.
    `missing` is the assumption that the graph itself cannot confirm: the share of each relation's true facts that no
    split states.
    """

    starts: NDArray[np.int64]  # of bins, see `choose_bins`
    shares: Floats  # (relations, contexts, bins)
    hidden: Floats
    stated: Floats
    elsewhere: Floats
    missing: Floats
    floors: Floats  # where a model scores facts: the score by rules below which hardly any fact is likely
    shift: Floats  # of logits: what reviewers' verdicts say about each relation
    blend: Blend | None = None

    def probabilities(self, relations: Ids, contexts: Ids, scores: Floats, rule_scores: Floats | None = None) -> Floats:
        """Return the probability of facts that no split states; those of a model also need the scores of their best
        rules.
        """
        if self.blend is not None:
            assert rule_scores is not None
            scores = self.blend.shares(relations, contexts, scores, rule_scores)
        return self._table[relations, contexts, bins_of(self.starts, scores)]

    def least_scores(self, probability: float) -> Floats:
        """Return, for each relation, a score below which no fact is that likely; inf if none is."""
        if not 0 <= probability <= 1:
            raise InvalidOptionError("probability", "from 0 to 1", probability)
        if self.blend is None:
            return least_scores(self._table, self.starts, probability)
        bins = bins_of(self.starts, self.blend.highest())
        return least_scores(np.take_along_axis(self._table, bins, axis=2), self.blend.starts, probability)

    def narrow_table(self) -> Floats:
        """Return the probability by relation, context and narrow bin."""
        return by_narrow_bin(self._table, self.starts)

    def with_missing(self, missing: float | Mapping[int, float]) -> Calibration:
        """Return the calibration under another assumption: the share of facts that is missing, overall or by the number
        of a relation.
        """
        if not isinstance(missing, Mapping):
            spread = missing_as_hidden(missing, self.stated, self.hidden)
            facts = self.stated * spread / (1 - spread)
            facts *= missing / (1 - missing) * self.stated.sum() / max(facts.sum(), LEAST)  # exactly that share
            return replace(self, missing=np.minimum(facts / np.maximum(self.stated + facts, LEAST), CERTAIN))
        shares = self.missing.copy()
        for relation, share in missing.items():
            shares[relation] = share
        return replace(self, missing=shares)

    def with_verdicts(self, relations: Ids, probabilities: Floats, is_true: NDArray[np.bool_]) -> Calibration:
        """Return the calibration corrected by facts that somebody judged, which had these probabilities.

        The logits of a relation are shifted so that verdicts become most likely, with a normal prior around 0.
        """
        shift, judged = np.zeros(len(self.missing)), np.clip(probabilities, LEAST, CERTAIN)
        logits = np.log(judged / (1 - judged))
        for _ in range(STEPS):
            expected = logistic(logits + shift[relations])
            surplus, weights = is_true - expected, expected * (1 - expected)
            totals = (np.bincount(relations, column, len(shift)) for column in (surplus, weights))
            toward, curvature = totals
            shift += np.clip((toward - shift / SPREAD**2) / (curvature + SPREAD**-2), -1, 1)
        return replace(self, shift=shift)

    def missing_per_hidden(self) -> Floats:
        """Return how many facts of each relation are missing for a hidden one."""
        return per_hidden(self.stated, self.hidden) * self.missing / (1 - self.missing)

    @cached_property
    def _table(self) -> Floats:
        """Return the probability by relation, context and bin."""
        table = probability_table(self.shares, self.missing_per_hidden(), per_hidden(self.elsewhere, self.hidden))
        if not self.shift.any():
            return table
        likely = np.clip(table, LEAST, CERTAIN)
        return np.minimum(logistic(np.log(likely / (1 - likely)) + self.shift[:, None, None]), CERTAIN)


def per_hidden(facts: Floats, hidden: Floats) -> Floats:
    """Return how many facts of each relation there are for a hidden one; where those are few, as in all relations."""
    overall = float(facts.sum() / max(hidden.sum(), 1))
    return (facts + FEW_HIDDEN * overall) / (hidden + FEW_HIDDEN)


def missing_as_hidden(share: float, stated: Floats, hidden: Floats) -> Floats:
    """Return the share of each relation's facts that is missing, if a `share` of all is: for each hidden fact, equally
    many are. Splits need not be drawn from all relations alike.
    """
    ratio = share / (1 - share) * stated.sum() / hidden.sum()
    return np.asarray(np.minimum(ratio / (ratio + per_hidden(stated, hidden)), CERTAIN), np.float64)


def most_back(missing: Floats, elsewhere: Floats) -> Floats:
    """Return the share of each relation's proposals that comes back if all are true: those that are neither missing nor
    stated elsewhere.
    """
    return np.asarray(1 / (1 + missing + elsewhere), np.float64)


def probability_table(shares: Floats, missing: Floats, elsewhere: Floats) -> Floats:
    """Return the probability by relation, context and bin.

    For each hidden fact of a relation, so many are `missing`, and so many are stated `elsewhere`: such proposals are
    not made.
    """
    m, others = missing[:, None, None], elsewhere[:, None, None]
    left = np.maximum(1 - shares * (1 + others), LEAST)
    return np.asarray(np.clip(m * shares / left, 0, CERTAIN), np.float64)


def least_scores(table: Floats, starts: NDArray[np.int64], probability: float) -> Floats:
    """Return, for each relation, a score below which no fact is that likely in any context; inf if none is."""
    enough: NDArray[np.bool_] = np.any(table >= probability, axis=1)
    scores = 1 - np.exp(-WIDTH * np.maximum(starts - 2 * ROUNDING, 0))
    return np.where(enough.any(axis=1), scores[enough.argmax(axis=1)], np.inf)


def by_narrow_bin(table: Floats, starts: NDArray[np.int64]) -> Floats:
    """Return a table by bins as one by narrow bins."""
    return np.repeat(table, np.diff(starts, append=N_NARROW), axis=2)


def calibration_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return what a calibration depends on: the rules, the data, how facts are scored, and how it is fitted."""
    return KeptKey(rules, data, options, [FORMAT, N_QUANTILES, PRIOR, UNCERTAINTY, WIDTH, N_NARROW])


BLEND = "blend"
_ARRAYS = tuple(field.name for field in fields(Calibration) if field.name != BLEND)


def save_calibration(run: Path, calibration: Calibration, report: dict[str, Any], key: KeptKey) -> Path:
    """Write a calibration, and the report on it; return the file."""
    arrays = {name: getattr(calibration, name) for name in _ARRAYS}
    if calibration.blend is not None:
        arrays |= {f"{BLEND}_{field.name}": getattr(calibration.blend, field.name) for field in fields(Blend)}
    return save_kept(run / CALIBRATION, key, StoredValues({"report": report}, arrays))


def load_calibration(run: Path, key: KeptKey, n_relations: int) -> Calibration | str:
    """Return the calibration that was kept, or why it cannot be used: "" if there is none."""
    kept = load_kept(run / CALIBRATION, key)
    if isinstance(kept, str):
        return kept
    try:
        parts = [kept.arrays.get(f"{BLEND}_{field.name}") for field in fields(Blend)]
        blend = None if any(part is None for part in parts) else Blend(*parts)  # type: ignore[arg-type]
        return _checked(Calibration(**{name: kept.arrays[name] for name in _ARRAYS}, blend=blend), n_relations)
    except (KeyError, ValueError) as error:
        return damaged(run / CALIBRATION / key.name, error)


def _checked(calibration: Calibration, n_relations: int) -> Calibration:
    starts, shares = calibration.starts, calibration.shares
    numbers = (
        calibration.hidden,
        calibration.stated,
        calibration.elsewhere,
        calibration.missing,
        calibration.floors,
        calibration.shift,
    )
    if starts.dtype != np.int64 or any(array.dtype != np.float64 for array in (shares, *numbers)):
        raise ValueError("its tables have unexpected types")
    if shares.shape != (n_relations, N_CONTEXTS, len(starts)) or any(part.shape != (n_relations,) for part in numbers):
        raise ValueError("its tables have unexpected sizes")
    if not len(starts) or starts[0] != 0 or not (np.diff(starts) > 0).all():
        raise ValueError("its bins are not in order")
    counts, of_all = np.concatenate([*numbers[:3], calibration.floors]), np.append(shares, calibration.missing)
    counted = ((counts >= 0) & (counts < np.inf)).all() and np.isfinite(calibration.shift).all()
    if not counted or not ((of_all >= 0) & (of_all < 1)).all():
        raise ValueError("its tables have values that are no shares")
    if (blend := calibration.blend) is not None:
        for own, terms in ((blend.starts, blend.terms), (blend.rule_starts, blend.rule_terms)):
            if own.dtype != np.int64 or terms.dtype != np.float64 or terms.shape != (n_relations, N_CONTEXTS, len(own)):
                raise ValueError("its tables have unexpected types or sizes")
            if not len(own) or own[0] != 0 or not (np.diff(own) > 0).all() or not np.isfinite(terms).all():
                raise ValueError("its bins are not in order")
    return calibration
