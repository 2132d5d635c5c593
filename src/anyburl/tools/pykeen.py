"""PyKEEN: its data sets, its models in `aggregation="hybrid"`, and our rules in its evaluator and beside its models."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import choose_options
from anyburl.base.errors import DataError, MissingExtraError, OptionError
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.graph.build import neighbours
from anyburl.ranking.arrays import FiringArrays, empty_candidates
from anyburl.ranking.kernel_order import order_candidates
from anyburl.ranking.options import FIXED_AGGREGATIONS, RankKeywords, RankOptions, parse_aggregation
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.reasoner import Reasoner
from anyburl.reasoning.shortcuts import evaluate
from anyburl.rules.ruleset import RuleSet

if TYPE_CHECKING:
    from pykeen.evaluation import Evaluator, MetricResults
    from pykeen.models import Model
    from pykeen.triples import TriplesFactory


def import_pykeen(what: str, module: str = "pykeen.triples") -> Any:
    """Import a module; the error says which extra `what` needs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(what, "pykeen") from error


def dataset_from_pykeen(
    training: TriplesFactory,
    validation: TriplesFactory | None = None,
    testing: TriplesFactory | None = None,
    *,
    name: str = "pykeen",
) -> Dataset:
    """Make a data set of the labelled triples of PyKEEN's factories; inverse triples are left to the rules."""
    import_pykeen("dataset_from_pykeen")
    return Dataset.from_triples(training, validation, testing, name=name)


def triples_factories(data: Dataset) -> tuple[TriplesFactory, TriplesFactory, TriplesFactory]:
    """Return PyKEEN's factories of train, valid and test; entities and relations have the ids that they have here.

    A model that is trained on the first of them can be given to `compare`.
    """
    kind = import_pykeen("triples_factories").TriplesFactory
    entities = {label: id for id, label in enumerate(data.vocabulary.entities)}
    relations = {label: id for id, label in enumerate(data.vocabulary.relations)}
    train, valid, test = (
        kind(mapped_triples=mapped_triples(data, split), entity_to_id=entities, relation_to_id=relations)
        for split in SPLITS
    )
    return train, valid, test


def mapped_triples(data: Dataset, split: str) -> Any:
    """Return the ids of a split as a tensor."""
    torch = import_pykeen("triples_factories", "torch")
    return torch.tensor(data.split(split).triples.tolist(), dtype=torch.long).reshape(-1, 3)


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
    few = testing.clone_and_exchange_triples(
        training.mapped_triples[:1]
    )  # the pipeline evaluates at the end, which we do later
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
    words, n_relations = data.vocabulary, getattr(model, "num_real_relations", model.num_relations)
    if (model.num_entities, n_relations) != (words.n_entities, words.n_relations):
        raise DataError(
            f"expected a model with {words.n_entities} entities and {words.n_relations} relations, as in {data.name}, "
            f"got {model.num_entities} and {n_relations}: train it on triples_factories(data)"
        )


def _evaluate(model: Any, data: Dataset, split: str) -> dict[str, float]:
    evaluator = import_pykeen("compare", "pykeen.evaluation").RankBasedEvaluator(filtered=True)
    known = [mapped_triples(data, name) for name in SPLITS]
    results = evaluator.evaluate(
        model,
        mapped_triples(data, split),
        batch_size=BATCH_SIZE,
        additional_filter_triples=known,
        use_tqdm=False,
        device=model.device,
    )
    return {name: float(results.get_metric(f"both.realistic.{key}")) for name, key in FIGURES.items()}


class PyKEENModel:
    """Scores of a trained model that has the ids of `triples_factories(data)`.

    `Reasoner(rules, data, aggregation="hybrid", other=PyKEENModel(model, data))`
    """

    def __init__(self, model: Model, data: Dataset) -> None:
        self._torch = import_pykeen("PyKEENModel", "torch")
        self._model, self._n_relations = model, data.vocabulary.n_relations
        _check_ids(model, data)

    @cached_property
    def digest(self) -> str:
        """A digest of the model's parameters."""
        digest = hashlib.blake2b(digest_size=16)
        for name, values in sorted(self._model.state_dict().items()):
            digest.update(name.encode() + values.detach().cpu().numpy().tobytes())
        return digest.hexdigest()

    def scores(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> NDArray[np.float32]:
        """Return a score for each question (entity, directed relation, ?) and entity."""
        scores = np.empty((len(entities), self._model.num_entities), np.float32)
        is_backward = relations >= self._n_relations
        for chosen, first, second, predict in (
            (~is_backward, entities, relations, self._model.predict_t),
            (is_backward, relations - self._n_relations, entities, self._model.predict_h),
        ):
            if chosen.any():
                pairs = np.column_stack([first[chosen], second[chosen]]).astype(np.int64)
                scores[chosen] = predict(self._torch.from_numpy(pairs)).detach().cpu().numpy()
        return scores


def query_scores(ranker: Ranker, entity: int, relation: int) -> NDArray[np.float32]:
    """Score every entity as the answer of (entity, directed relation, ?); known answers are scored like others.

    A score is a position from below: 0 for entities that no rule predicts, 1 for the weakest candidates, and so on;
    ties have the same. It ranks like the aggregation (`max` compares whole lists of rules, which no probability
    reflects), but means nothing across queries. Blocked entities, which are connected, have NaN.
    """
    firings = ranker.fire(entity, relation)
    scores = np.zeros(ranker.graph.n_entities, np.float32)
    lister = ranker.lister()
    if lister.aggregation.breaks_ties:
        _rank_lists(firings, scores)
    else:
        n = len(firings.candidates)
        candidates = empty_candidates(ranker.graph.n_entities)
        n_counted = lister.ready.protocol(lister.aggregation, 0).n_counted
        listed = candidates.listed[: order_candidates(candidates, firings, n, n_counted)]
        scores[listed] = np.unique(candidates.keys[listed], return_inverse=True)[1] + 1
    if ranker.block_connected:
        scores[neighbours(ranker.graph, entity)] = np.nan
    return scores


def _rank_lists(firings: FiringArrays, ranks: NDArray[np.float32]) -> None:
    """Write the ranks of candidates by their lists of scores, highest first, compared like strings of bytes."""
    order = np.lexsort((-firings.scores, firings.candidates))
    candidates, firsts = np.unique(firings.candidates[order], return_index=True)
    width = firings.scores.itemsize
    text = firings.scores[order].astype(">i8").tobytes()
    ends = np.append(firsts, len(order))[1:]
    lists = [text[first * width : end * width] for first, end in zip(firsts.tolist(), ends.tolist(), strict=True)]
    numbers = {one: number for number, one in enumerate(sorted(set(lists)), 1)}
    ranks[candidates] = [numbers[one] for one in lists]


TARGETS = {"tail": 2, "head": 0}
"""PyKEEN's names of objects and subjects, and their columns."""

TRIPLES_AT_A_TIME = 256


def evaluate_with_pykeen(
    rules: RuleSet,
    data: Dataset,
    *,
    split: str = "test",
    options: RankOptions | None = None,
    evaluator: Evaluator | None = None,
    **keywords: Unpack[RankKeywords],
) -> MetricResults:
    """Let PyKEEN's evaluator rank and filter the rules' scores for both queries of every triple of a split.

    Without an `evaluator`, PyKEEN's `RankBasedEvaluator` is used; its metrics equal those of `anyburl.evaluate`, and
    many more. `options`, or the fields of `RankOptions` as keywords, say how candidates are ranked.
    """
    evaluation = import_pykeen("evaluate_with_pykeen", "pykeen.evaluation")
    chosen = choose_options(RankOptions, options, keywords)
    if parse_aggregation(chosen.aggregation).needs_model:
        raise OptionError(
            f"evaluate_with_pykeen takes one of {FIXED_AGGREGATIONS}, got aggregation {chosen.aggregation}"
        )
    if evaluator is not None and evaluator.requires_positive_mask:
        kind = type(evaluator).__name__  # it would compare scores of different queries
        raise OptionError(f"evaluate_with_pykeen: expected a rank-based evaluator, got {kind}")
    if not len(data.split(split)):
        raise DataError(f"{data.name} has no triples in its {split} split")
    ranker = Reasoner(rules, data, chosen).ranker
    judge = evaluation.RankBasedEvaluator(filtered=True) if evaluator is None else evaluator
    known = import_pykeen("evaluate_with_pykeen", "torch").cat([mapped_triples(data, name) for name in SPLITS])
    for batch in mapped_triples(data, split).split(TRIPLES_AT_A_TIME):
        for target in TARGETS:
            _judge(judge, ranker, batch, target, known)
    return judge.finalize()


def _judge(judge: Any, ranker: Ranker, batch: Any, target: str, known: Any) -> None:
    """Pass the scores of some triples to the evaluator, as PyKEEN's own evaluation does."""
    torch, inner = import_pykeen("", "torch"), import_pykeen("", "pykeen.evaluation.evaluator")
    column, rows = TARGETS[target], torch.arange(len(batch))
    backward = ranker.graph.n_relations if column == 0 else 0
    queries = [(int(triple[2 - column]), int(triple[1]) + backward) for triple in batch.numpy()]
    scores = torch.as_tensor(np.array([query_scores(ranker, *query) for query in queries]))
    # A blocked target counts as one that no rule predicts.
    true_scores = torch.nan_to_num(scores[rows, batch[:, column]], nan=0.0)
    positive, _ = inner.create_sparse_positive_filter_(batch, known, filter_col=column)
    if judge.filtered:
        scores = inner.filter_scores_(scores, positive)
    scores[rows, batch[:, column]] = true_scores
    judge.process_scores_(hrt_batch=batch, target=target, scores=scores, true_scores=true_scores.unsqueeze(-1))
