"""Run folders of temporal rules: what they hold, and how they differ from those of rules without time.

options.json        says `"sort": "temporal"`, options, versions, the data and its clock
vocabulary.parquet  the labels of the data
rules.parquet       all rules
temporal.npz        how forms of rules are mixed, the model, and the calibration

The calibration turns scores into probabilities: what share of the answers with such a score turned out to be right.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.checking import from_keywords
from anyburl.base.errors import DataError, RuleError, RunError
from anyburl.base.files import at_home
from anyburl.base.machine import available_cores
from anyburl.base.sealed import scan_parquet
from anyburl.base.writing import replace_text, replacing
from anyburl.data.clock import Clock
from anyburl.data.options import ReadOptions
from anyburl.data.sources import lasting_source
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.options import TEMPORAL_FORMS, TemporalOptions
from anyburl.models.calibration import isotonic
from anyburl.rules.run_folder import (
    OPTIONS,
    RULES,
    TEMPORAL,
    described_run,
    is_temporal_run,
    read_vocabulary,
    write_vocabulary,
)
from anyburl.temporal.evaluation import EvaluationProtocol, ranked_parts, split_questions
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.kernel_bodies import N_CELLS, N_FADES, N_RECENCY, ConstantArrays, HopArrays
from anyburl.temporal.learner import is_answer
from anyburl.temporal.model import model_arrays, model_of
from anyburl.temporal.rules import SCHEMA, PairRules, TemporalRules

N_BINS = 200
LEAST_RIGHT = 20  # right candidates of a bin
N_ERROR_BINS = 15
GIVEN_SHARE = 0.5  # of the held-out facts, in the order of time: they are stated, the others are predicted

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class TemporalCalibration:
    """The share of right candidates by the probability that their scores give them among those of their question."""

    aggregation: str
    edges: Floats  # ascending; the bin of a value is how many edges are at or below it
    shares: Floats

    def probabilities(self, scores: Floats, sizes: NDArray[np.int64]) -> Floats:
        """Return a probability for each candidate, given that its question has an answer; lists are of `sizes`."""
        return np.asarray(
            self.shares[np.searchsorted(self.edges, spread_scores(self.aggregation, scores, sizes), "right")]
        )


@dataclass(frozen=True)
class TemporalCalibrationReport:
    """A calibration, and how far it is off on facts that it was not fitted on."""

    calibration: TemporalCalibration
    expected_calibration_error: float
    uncalibrated_error: float
    n_candidates: int
    bins: list[dict[str, float]]
    protocol: str

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain values."""
        return {
            "expected_calibration_error": self.expected_calibration_error,
            "uncalibrated_error": self.uncalibrated_error,
            "candidates": self.n_candidates,
            "bins": self.bins,
            "protocol": self.protocol,
        }

    def __str__(self) -> str:
        return (
            f"expected calibration error {self.expected_calibration_error:.4f} "
            f"(before: {self.uncalibrated_error:.4f}), {self.n_candidates:,} candidates  [{self.protocol}]"
        )


def spread_scores(aggregation: str, scores: Floats, sizes: NDArray[np.int64]) -> Floats:
    """Return scores as probabilities: those of a model compete within a list, all others are shares."""
    if aggregation != "model" or not len(scores):
        return np.clip(scores, 0, 1)
    used = sizes[sizes > 0]
    starts = np.cumsum(used) - used
    weights = np.exp(scores - np.repeat(np.maximum.reduceat(scores, starts), used))
    return np.asarray(weights / np.repeat(np.add.reduceat(weights, starts), used))


def fit_calibration(aggregation: str, scores: Floats, right: NDArray[np.bool_]) -> TemporalCalibration:
    """Return the calibration of `scores`: the share that was `right` among those of a score, never falling, by bins.

    Bins have as many right candidates each: few candidates are likely, and bins of equal width would be nearly empty
    where it matters most.
    """
    n_bins = int(np.clip(right.sum() // LEAST_RIGHT, 1, N_BINS))
    edges = np.unique(np.quantile(scores[right] if right.any() else scores, np.linspace(0, 1, n_bins + 1)[:-1]))
    bins = np.searchsorted(edges, scores, "right")
    n = np.bincount(bins, minlength=len(edges) + 1).astype(np.float64)
    n_right = np.bincount(bins, right.astype(np.float64), len(edges) + 1)
    middles = np.clip(np.concatenate([edges[:1] / 2, (edges[1:] + edges[:-1]) / 2, [(edges[-1] + 1) / 2]]), 0, 1)
    return TemporalCalibration(aggregation, edges, isotonic(n_right + middles, n + 1.0))


def calibration_error(chances: Floats, right: NDArray[np.bool_]) -> tuple[float, list[dict[str, float]]]:
    """Return the expected calibration error over bins of equal width, weighed by their candidates, and the bins."""
    bins = np.minimum((chances * N_ERROR_BINS).astype(np.int64), N_ERROR_BINS - 1)
    rows: list[dict[str, float]] = []
    error = 0.0
    for number in np.unique(bins):
        own = bins == number
        promised, true = float(chances[own].mean()), float(right[own].mean())
        error += abs(promised - true) * float(own.mean())
        rows.append({"promised": round(promised, 5), "true": round(true, 5), "candidates": int(own.sum())})
    return error, rows


def scored_candidates(reasoner: Any, split: str) -> tuple[Floats, NDArray[np.bool_], NDArray[np.int64]]:
    """Return for the best candidates of all questions of a split their scores as probabilities, whether they are right,
    and their positions.
    """
    questions, _ = split_questions(reasoner.dataset, reasoner.facts, EvaluationProtocol(split, filter="raw"))
    scores, right, positions = [], [], []
    for part in ranked_parts(reasoner.answerer, questions, reasoner.model, reasoner.rules.options.candidates):
        used = part.rows()
        scores.append(spread_scores(reasoner.aggregation, part.scores[used], part.sizes))
        right.append(is_answer(questions, part.start + used // part.n_kept, part.kept[used]))
        positions.append(used % part.n_kept)
    return np.concatenate(scores), np.concatenate(right), np.concatenate(positions)


def calibrate_temporal(
    dataset: TemporalDataset,
    aggregation: str,
    make: Callable[[TemporalDataset], Any],
    say: Callable[[str], None],
) -> TemporalCalibrationReport:
    """Learn without the last part of valid (of train, if there is none), and see which of its answers come out.

    The first half of that part, by question, fits the calibration that the report measures on the other half; the one
    that is kept is fitted on both.
    """
    held = dataset.valid if len(dataset.valid) else dataset.train
    times = np.unique(held.times)
    if len(times) < 2:
        raise DataError(f"{dataset.name} has too few moments to calibrate on: it needs at least two in valid or train")
    cut = int(held.times[min(int(len(held) * GIVEN_SHARE), len(held) - 1)])
    cut = max(cut, int(times[1]))
    first, last = int(held.times[0]), int(held.times[-1]) + 1
    group = held.between(cut, last)
    if len(dataset.valid):
        without = replace(dataset, valid=dataset.valid.between(first, cut), test=group)
    else:
        without = replace(dataset, train=dataset.train.between(first, cut), test=group)
    say("learning without the facts to be calibrated on")
    reasoner = make(without)
    say("calibrating")
    chances, right, positions = scored_candidates(reasoner, "test")
    half = np.cumsum(positions == 0) % 2 == 0
    trial = fit_calibration(aggregation, chances[half], right[half])
    tried = trial.shares[np.searchsorted(trial.edges, chances[~half], "right")]
    error, bins = calibration_error(tried, right[~half])
    before, _ = calibration_error(chances[~half], right[~half])
    n = int((~half).sum())
    protocol = f"{dataset.name}, {len(group)} facts held out, single-step, {aggregation}"
    return TemporalCalibrationReport(fit_calibration(aggregation, chances, right), error, before, n, bins, protocol)


ARRAYS = "temporal.npz"

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class OpenedRun:
    """What a temporal run folder holds."""

    rules: TemporalRules
    dataset: TemporalDataset
    calibration: TemporalCalibration | None


def check_is_temporal(folder: Path) -> dict[str, Any]:
    """Return the description of a temporal run; refuse a run without time."""
    described = described_run(folder)
    if described.get("sort") != TEMPORAL:
        raise RunError(f"{folder} holds rules without time: open it with Reasoner.open, or learn from data with times")
    return described


def save_temporal_run(
    folder: Path, rules: TemporalRules, dataset: TemporalDataset, calibration: TemporalCalibration | None
) -> None:
    """Write a run folder; one that holds rules without time is refused."""
    folder = at_home(folder)
    if (folder / OPTIONS).exists() and not is_temporal_run(folder):
        raise RunError(f"{folder} holds rules without time: choose another folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunError(f"cannot write the run folder {folder}: {error.strerror}") from error
    described = {
        "sort": TEMPORAL,
        "anyburl": __version__,
        "data": {
            "name": dataset.name,
            "source": lasting_source(dataset.source),
            "fingerprint": dataset.fingerprint,
            "train": len(dataset.train),
            "reading": dataset.reading.to_json(),
            "clock": dataset.clock.to_json(),
        },
        "options": rules.options.to_json(),
        "learned": rules.about,
        "rules": rules.sizes,
    }
    write_vocabulary(folder, rules.vocabulary)
    rules.save(folder / RULES)
    arrays: dict[str, Any] = {"weights": rules.weights, "vectors": rules.vectors, **model_arrays(rules.model)}
    if calibration is not None:
        arrays |= {"edges": calibration.edges, "shares": calibration.shares}
        arrays["aggregation"] = np.array(calibration.aggregation)
    with replacing(folder / ARRAYS, RunError) as unfinished, unfinished.open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    replace_text(folder / OPTIONS, json.dumps(described, indent=2) + "\n", RunError)


def open_temporal_run(folder: Path, data: Any = None) -> OpenedRun:
    """Read a run folder, and load its data unless other data is passed."""
    folder = at_home(folder)
    described = check_is_temporal(folder)
    about = described["data"]
    options = from_keywords(TemporalOptions, described["options"])
    vocabulary, clock = read_vocabulary(folder), Clock(**about["clock"])
    rules = read_temporal_rules(folder / RULES, vocabulary, clock, options)
    try:
        with np.load(folder / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError) as error:
        raise RunError(f"{folder / ARRAYS} cannot be read ({error}): learn again") from error
    model = model_of(arrays, options.threads or available_cores())
    rules = rules.with_parts(
        weights=arrays["weights"], vectors=arrays["vectors"], model=model, about=described.get("learned", {})
    )
    calibration = None
    if "edges" in arrays:
        calibration = TemporalCalibration(str(arrays["aggregation"]), arrays["edges"], arrays["shares"])
    if data is None:
        if about.get("source") is None:
            raise RunError(f"{folder} does not record where its data came from: pass data")
        dataset = load_temporal_dataset(about["source"], ReadOptions.from_json(about["reading"]))
    else:
        dataset = data if isinstance(data, TemporalDataset) else load_temporal_dataset(data)
    return OpenedRun(rules, dataset, calibration)


def read_temporal_rules(path: Path, vocabulary: Vocabulary, clock: Clock, options: TemporalOptions) -> TemporalRules:
    """Read what `TemporalRules.save` wrote, with the ids of a vocabulary that has all its labels.

    How forms are mixed, vectors and the model are not in the file: a run folder has them.
    """
    frame = scan_parquet(path).collect()
    if missing := [name for name in SCHEMA if name not in frame.columns]:
        raise RuleError(f"{path} holds no temporal rules: it has no column {missing[0]}")
    read = _Rows(frame, vocabulary)
    constants, constant_counts = read.constants()
    hops, hop_counts = read.hops()
    nothing = np.zeros((vocabulary.n_entities, 0), np.float32)
    return TemporalRules(
        vocabulary,
        clock,
        options,
        read.pairs(),
        read.favour(),
        constants,
        constant_counts,
        hops,
        hop_counts,
        np.zeros(0),
        nothing,
    )


class _Rows:
    """The rows of a file, with ids."""

    def __init__(self, frame: pl.DataFrame, vocabulary: Vocabulary) -> None:
        self.frame, self.vocabulary = frame, vocabulary
        self.n = n = vocabulary.n_relations
        self.heads = vocabulary.encode_relations(frame["head"]) + n * (frame["asks"] == "subject").to_numpy()
        self.bodies = [self._directed(position) for position in range(3)]
        forms = frame["form"].to_numpy()
        self.at = {form: np.flatnonzero(forms == form) for form in TEMPORAL_FORMS}
        self.counts = np.stack([frame["right"].to_numpy(), frame["cases"].to_numpy()]).astype(np.int64)
        self.confidences = frame["confidence"].to_numpy().astype(np.float32)

    def _directed(self, position: int) -> Ints:
        """Return the directed relations at a place of bodies, -1 where there is none."""
        labels, forward = (self.frame[name].list.get(position, null_on_oob=True) for name in ("body", "forward"))
        ids = self.vocabulary.encode_relations(labels.fill_null("")).astype(np.int64)
        backward = ~forward.fill_null(True).to_numpy()
        return np.where(labels.is_null().to_numpy(), -1, ids + self.n * backward)

    def _table(self, name: str, rows: Ints, width: int, kind: Any) -> NDArray[Any]:
        """Return a column of lists, all of the same length, as a table."""
        values = self.frame[name].gather(rows).explode().to_numpy() if len(rows) else np.empty(0)
        return np.array(values.reshape(len(rows), width), kind)  # writable: kernels are compiled again for read-only

    def pairs(self) -> PairRules:
        """Return the rules about what two entities did before."""
        rows = self.at["pair"]
        return PairRules(
            self.heads[rows].astype(np.int32),
            self.bodies[0][rows].astype(np.int32),
            self._table("right_cells", rows, N_CELLS, np.int64),
            self._table("case_cells", rows, N_CELLS, np.int64),
            self._table("cells", rows, N_CELLS, np.float32),
            self._table("alone", rows, N_CELLS, np.float32),
            self._table("curve", rows, N_RECENCY, np.float32),
        )

    def constants(self) -> tuple[ConstantArrays, Ints]:
        """Return the rules with constants, and their counts."""
        rows, words = self.at["constant"], self.vocabulary
        labels, answers = self.frame["constant"].gather(rows), self.frame["answer"].gather(rows)
        width = words.n_entities + 1
        ids = words.encode_entities(labels.fill_null(""))
        keys = (self.bodies[0][rows] + 1) * width + np.where(labels.is_null().to_numpy(), width - 1, ids)
        given = words.encode_entities(answers)
        order = np.lexsort((given, keys, self.heads[rows]))
        rows, keys, given = rows[order], keys[order], given[order]
        heads = self.heads[rows]
        changed = np.ones(len(rows), np.bool_)
        changed[1:] = (np.diff(heads) != 0) | (np.diff(keys) != 0)
        firsts = np.flatnonzero(changed)
        made = ConstantArrays(
            np.searchsorted(heads[firsts], np.arange(2 * self.n + 1)).astype(np.int64),
            keys[firsts].astype(np.int64),
            np.append(firsts, len(rows)).astype(np.int64),
            given.astype(np.int32),
            self.confidences[rows],
        )
        return made, self.counts[:, rows]

    def hops(self) -> tuple[HopArrays, Ints]:
        """Return the rules of two and three hops, and their counts."""
        rows, width = self.at["hops"], 2 * self.n
        first, second, third = (column[rows] for column in self.bodies)
        bodies = np.where(third < 0, first * width + second, ((first + 1) * width + second) * width + third)
        order = np.lexsort((bodies, self.heads[rows]))
        rows, bodies = rows[order], bodies[order]
        offsets = np.searchsorted(self.heads[rows], np.arange(2 * self.n + 1)).astype(np.int64)
        return HopArrays(offsets, bodies, self.confidences[rows]), self.counts[:, rows]

    def favour(self) -> NDArray[np.float64]:
        """Return the intensity of popularity of every relation."""
        rows = self.at["popular"]
        favour = np.zeros((2 * self.n, N_FADES))
        favour[self.heads[rows]] = self._table("cells", rows, N_FADES, np.float64)
        return favour
