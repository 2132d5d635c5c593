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

from anyburl import __version__
from anyburl.base.checking import from_keywords
from anyburl.base.errors import RunError
from anyburl.base.files import at_home
from anyburl.base.machine import available_cores
from anyburl.base.writing import replace_text, replacing
from anyburl.data.options import ReadOptions
from anyburl.data.sources import lasting_source
from anyburl.rules.files.run_folder import (
    OPTIONS,
    RULES,
    TEMPORAL,
    described_run,
    is_temporal_run,
    read_vocabulary,
    write_vocabulary,
)
from anyburl.temporal.calibration import TemporalCalibration
from anyburl.temporal.clock import Clock
from anyburl.temporal.facts import TemporalDataset, load_temporal_dataset
from anyburl.temporal.model import model_arrays, model_of
from anyburl.temporal.options import TemporalOptions
from anyburl.temporal.rule_files import read_temporal_rules
from anyburl.temporal.rules import TemporalRules

ARRAYS = "temporal.npz"


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
