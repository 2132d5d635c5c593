"""Run folders of temporal rules: what they hold, and how they are told from those of rules without time.

options.json        says `"sort": "temporal"`, options, versions, the data and its clock
vocabulary.parquet  the labels of the data
rules.parquet       all rules
temporal.npz        how forms of rules are mixed, the model, and the calibration
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base.checking import from_keywords
from anyburl.base.errors import RuleError, RunError
from anyburl.base.files import at_home
from anyburl.base.machine import available_cores
from anyburl.base.sealed import scan_parquet
from anyburl.base.writing import replace_text, replacing
from anyburl.data.options import ReadOptions
from anyburl.data.sources import lasting_source
from anyburl.data.vocabulary import Vocabulary
from anyburl.learning.options import FORMS, TemporalOptions
from anyburl.rules.run_folder import (
    OPTIONS,
    RULES,
    TEMPORAL,
    described_run,
    is_temporal_run,
    read_vocabulary,
    write_vocabulary,
)
from anyburl.temporal.arrays import N_CELLS, N_FADES, N_RECENCY, ConstantArrays, HopArrays
from anyburl.temporal.calibration import TemporalCalibration
from anyburl.temporal.clock import Clock
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.model import model_arrays, model_of
from anyburl.temporal.rules import SCHEMA, PairRules, TemporalRules

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
        self.bodies = [self._directed(place) for place in range(3)]
        forms = frame["form"].to_numpy()
        self.at = {form: np.flatnonzero(forms == form) for form in FORMS}
        self.counts = np.stack([frame["right"].to_numpy(), frame["cases"].to_numpy()]).astype(np.int64)
        self.confidences = frame["confidence"].to_numpy().astype(np.float32)

    def _directed(self, place: int) -> Ints:
        """Return the directed relations at a place of bodies, -1 where there is none."""
        labels, forward = (self.frame[name].list.get(place, null_on_oob=True) for name in ("body", "forward"))
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
