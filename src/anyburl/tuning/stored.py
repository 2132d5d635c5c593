"""A tuned model in a run folder, with a record of what it was trained on."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from anyburl.kept import Kept, KeptKey, damaged, load_kept, save_kept
from anyburl.ranking.aggregation import parse_aggregation
from anyburl.tuning.checks import checked_forest, checked_observations
from anyburl.tuning.kernel import ForestArrays
from anyburl.tuning.model import FEW_ROUNDS, PARAMETERS, ROUNDS, SMALL, TunedModel
from anyburl.tuning.observations import Observations
from anyburl.tuning.train import FEW_LOST, MORE_QUESTIONS, MOST_QUESTIONS, MUCH, N_FOLDS, WEAK, Tuning

TUNED = "tuned"  # the folder in a run folder
FORMAT = 7
COLUMNS = tuple(field.name for field in fields(Observations))


def tuning_key(rules: str, data: str, options: dict[str, Any]) -> KeptKey:
    """Return what a model depends on: the rules, the data, how rules are applied, and how it is trained."""
    return KeptKey(
        rules,
        data,
        options,
        [FORMAT, ROUNDS, PARAMETERS, FEW_ROUNDS, SMALL, N_FOLDS, MOST_QUESTIONS, MORE_QUESTIONS, WEAK, MUCH, FEW_LOST],
    )


def save_tuning(run: Path, tuning: Tuning, key: KeptKey) -> Path:
    """Write what tuning chose; return the file."""
    about = {
        "aggregation": tuning.aggregation,
        "validation": tuning.validation,
        "questions": tuning.questions,
        "seconds": tuning.seconds,
        "facts": tuning.facts,
        "least_binary": tuning.least_binary,
        "has_model": tuning.model is not None,
    }
    arrays = {} if tuning.model is None else tuning.model.forest._asdict()
    if tuning.observations is not None:
        arrays |= {name: getattr(tuning.observations, name) for name in COLUMNS}
    return save_kept(run / TUNED, key, Kept(about, arrays))


def load_tuning(run: Path, key: KeptKey, threads: int) -> Tuning | str:
    """Return what tuning chose before, or why that cannot be used: "" if there is nothing."""
    found = load_kept(run / TUNED, key)
    if isinstance(found, str):
        return found
    about, arrays = found.about, found.arrays
    try:
        model = observations = None
        if about["has_model"]:
            model = TunedModel(checked_forest(ForestArrays(*(arrays[name] for name in ForestArrays._fields))), threads)
            observations = checked_observations(Observations(*(arrays[name] for name in COLUMNS)))
        parse_aggregation(about["aggregation"])
        chosen = about["aggregation"], dict(about["validation"]), int(about["questions"]), float(about["seconds"])
        facts, least_binary = int(about["facts"]), float(about["least_binary"])
        if not 0 <= least_binary < 1:
            raise ValueError(f"a least confidence of {least_binary}")
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        return damaged(run / TUNED / key.name, error)
    return Tuning(model, *chosen, stored=True, observations=observations, facts=facts, least_binary=least_binary)
