"""A tuned model in a run folder, with what it was trained on."""

from __future__ import annotations

import hashlib
import json
import zipfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from anyburl.errors import RunError
from anyburl.tuning.kernel import ForestArrays
from anyburl.tuning.model import PARAMETERS, ROUNDS, TunedModel
from anyburl.tuning.train import Tuning
from anyburl.writing import replacing

TUNED = "tuned"  # the folder in a run folder
FORMAT = 1


@dataclass(frozen=True)
class TuningKey:
    """What a model depends on: the rules, the data, and how rules are applied."""

    rules: str
    data: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        """The name of the file: one for each choice of options."""
        options = json.dumps([FORMAT, ROUNDS, PARAMETERS, self.options], sort_keys=True)
        return f"{hashlib.blake2b(options.encode(), digest_size=8).hexdigest()}.npz"


def save_tuning(run: Path, tuning: Tuning, key: TuningKey) -> Path:
    """Write what tuning chose; return the file."""
    path = run / TUNED / key.name
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as refusal:
        raise RunError(f"{path.parent}: the folder cannot be written ({refusal.strerror or refusal})") from refusal
    about = {
        "rules": key.rules,
        "data": key.data,
        "options": key.options,
        "aggregation": tuning.aggregation,
        "validation": tuning.validation,
        "questions": tuning.questions,
        "seconds": tuning.seconds,
        "has_model": tuning.model is not None,
    }
    arrays = {} if tuning.model is None else tuning.model.forest._asdict()
    with replacing(path, RunError) as unfinished, unfinished.open("wb") as file:
        np.savez(file, about=np.array(json.dumps(about)), **arrays)
    return path


def load_tuning(run: Path, key: TuningKey, threads: int) -> Tuning | str:
    """Return what tuning chose before, or why that cannot be used: "" if there is nothing."""
    path = run / TUNED / key.name
    if not path.is_file():
        return ""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
            about = json.loads(str(stored["about"]))
            if about["rules"] != key.rules:
                return "the rules have changed"
            if about["data"] != key.data:
                return "the data has changed"
            model = None
            if about["has_model"]:
                model = TunedModel(ForestArrays(*(stored[name] for name in ForestArrays._fields)), threads)
            chosen = about["aggregation"], about["validation"], about["questions"], about["seconds"]
            return Tuning(model, *chosen, stored=True)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        return f"{path.name} is damaged ({' '.join(str(error).split())[:100]})"
