"""`compare`: our rules and PyKEEN's models on the same split, in one table."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from anyburl.errors import DataError
from anyburl.pykeen.factories import import_pykeen, mapped_triples, triples_factories
from anyburl.ranking.options import RankOptions
from anyburl.reasoning.shortcuts import evaluate
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import SPLITS, Dataset

if TYPE_CHECKING:
    from pykeen.models import Model

FIGURES = {"hits@1": "hits_at_1", "hits@3": "hits_at_3", "hits@10": "hits_at_10", "mrr": "inverse_harmonic_mean_rank"}
BATCH_SIZE = 32


def compare(
    rules: RuleSet,
    data: Dataset,
    model: str | Model | Sequence[str | Model] = "TransE",
    *,
    split: str = "test",
    options: RankOptions | None = None,
    epochs: int = 5,
    seed: int = 0,
    **pipeline: Any,
) -> pl.DataFrame:
    """Rank both queries of every triple of a split with our rules and with PyKEEN's models; return one row for each.

    A `model` is a name, which is trained on the train split for some `epochs` (further arguments go to PyKEEN's
    `pipeline`), or a trained model with the ids of `triples_factories(data)`. All ranks are filtered
    against train, valid and test, with realistic ties. Connected pairs are not blocked unless `options` ask for it,
    since the models do not block either.
    """
    import_pykeen("compare", "pykeen.pipeline")
    chosen = options or RankOptions(block_connected="off")
    models = [model] if isinstance(model, str) or not isinstance(model, Sequence) else list(model)
    started = time.perf_counter()
    metrics = evaluate(rules, data, split=split, options=chosen)
    ours = {name: float(metrics.metrics[name]) for name in FIGURES}
    blocked = bool(metrics.protocol["block_connected"])
    rows = [_row(f"anyburl {chosen.aggregation}", ours, blocked, None, time.perf_counter() - started)]
    rows += (_model_row(one, data, split, epochs, seed, pipeline) for one in models)
    return pl.DataFrame(rows, schema_overrides={"seconds_training": pl.Float64})


def _row(name: str, figures: dict[str, float], blocked: bool, training: float | None, ranking: float) -> dict[str, Any]:
    seconds = {"seconds_training": training and round(training, 3), "seconds_ranking": round(ranking, 3)}
    return {"model": name, **figures, "connected_blocked": blocked, **seconds}


def _model_row(
    model: str | Model, data: Dataset, split: str, epochs: int, seed: int, pipeline: dict[str, Any]
) -> dict[str, Any]:
    started = time.perf_counter()
    trained: Any = _train(model, data, epochs, seed, pipeline) if isinstance(model, str) else model
    seconds_training = time.perf_counter() - started if isinstance(model, str) else None
    _check_ids(trained, data)
    started = time.perf_counter()
    figures = _evaluate(trained, data, split)
    return _row(type(trained).__name__, figures, False, seconds_training, time.perf_counter() - started)


def _train(model: str, data: Dataset, epochs: int, seed: int, pipeline: dict[str, Any]) -> Any:
    training, validation, testing = triples_factories(data)
    few = testing.clone_and_exchange_triples(training.mapped_triples[:1])  # it evaluates at the end: not its turn yet
    chosen = {
        "training": training,
        "validation": validation if validation.num_triples else None,
        "testing": few,
        "model": model,
        "epochs": epochs,
        "random_seed": seed,
        "use_tqdm": False,
        "device": "cpu",
        "evaluation_kwargs": {"batch_size": 1},
        **pipeline,
    }
    return import_pykeen("compare", "pykeen.pipeline").pipeline(**chosen).model


def _check_ids(model: Any, data: Dataset) -> None:
    words = data.vocabulary
    if (model.num_entities, model.num_real_relations) != (words.n_entities, words.n_relations):
        raise DataError(
            f"expected a model with {words.n_entities} entities and {words.n_relations} relations, as in {data.name}, "
            f"got {model.num_entities} and {model.num_real_relations}: train it on triples_factories(data)"
        )


def _evaluate(model: Any, data: Dataset, split: str) -> dict[str, float]:
    evaluator = import_pykeen("compare", "pykeen.evaluation").RankBasedEvaluator(filtered=True)
    known = [mapped_triples(data, name) for name in SPLITS]
    asked = mapped_triples(data, split)
    found = evaluator.evaluate(
        model, asked, batch_size=BATCH_SIZE, additional_filter_triples=known, use_tqdm=False, device=model.device
    )
    return {name: float(found.get_metric(f"both.realistic.{key}")) for name, key in FIGURES.items()}
