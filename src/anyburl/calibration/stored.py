"""A calibration in a run folder, with a record of what it was fitted to."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from anyburl.calibration.calibration import Calibration
from anyburl.calibration.facts import LEAST_PROBABILITY, LEAST_SCORE
from anyburl.calibration.fit import N_QUANTILES, PRIOR
from anyburl.calibration.observations import TOP_K
from anyburl.kept import Kept, KeptKey, damaged, load_kept, save_kept

CALIBRATION = "calibration"  # the folder in a run folder
FORMAT = 1
ARRAYS = tuple(field.name for field in fields(Calibration))


def calibration_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return what a calibration depends on: the rules, the data, how answers are scored, and how it is fitted."""
    return KeptKey(rules, data, options, [FORMAT, TOP_K, N_QUANTILES, PRIOR, LEAST_SCORE, LEAST_PROBABILITY])


def save_calibration(run: Path, calibration: Calibration, report: dict[str, Any], key: KeptKey) -> Path:
    """Write a calibration, and the report on it; return the file."""
    arrays = {name: getattr(calibration, name) for name in ARRAYS}
    return save_kept(run / CALIBRATION, key, Kept({"report": report}, arrays))


def load_calibration(run: Path, key: KeptKey, n_relations: int) -> Calibration | str:
    """Return the calibration that was kept, or why it cannot be used: "" if there is none."""
    found = load_kept(run / CALIBRATION, key)
    if isinstance(found, str):
        return found
    try:
        return _checked(Calibration(*(found.arrays[name] for name in ARRAYS)), n_relations)
    except (KeyError, ValueError) as error:
        return damaged(run / CALIBRATION / key.name, error)


def _checked(calibration: Calibration, n_relations: int) -> Calibration:
    edges, tables = calibration.edges, (calibration.probability, calibration.closed)
    if any(array.dtype != np.float64 for array in (edges, *tables)) or edges.ndim != 1:
        raise ValueError("its tables have unexpected types")
    if any(table.shape != (n_relations, len(edges) + 1) for table in tables) or not (np.diff(edges) > 0).all():
        raise ValueError("its tables have unexpected sizes")
    return calibration
