"""`evaluate`: rank a split and report, protocol included."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.errors import DataError, OptionError
from anyburl.evaluation.metrics import Metrics, bootstrap_interval, grouped, lower_bound, summarise, summarise_random
from anyburl.learning.options import ENGINES
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import make_queries
from anyburl.ranking.ranker import Ranker, fixed_ranker
from anyburl.ranking.ranks import Ranks, target_ranks
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import Dataset
from anyburl.tuning.ranker import TunedRanker, make_ranker, tuned
from anyburl.tuning.train import Tuning


def evaluate(
    rules: RuleSet,
    dataset: Dataset,
    *,
    split: str = "test",
    options: RankOptions | None = None,
    ranker: Ranker | None = None,
    progress: Callable[[int], None] | None = None,
    seed: int = 0,
    engine: str = "threads",
    address: str | None = None,
    **changes: Any,
) -> Metrics:
    """Rank both queries of every triple of `split` and return the filtered metrics.

    `options`, or the fields of `RankOptions` as keywords, say how candidates are ranked. A `ranker` made ready before
    is used as it is. `progress` is told how many questions were answered. `seed` matters to `aggregation="tuned"` only.
    With `engine="ray"`, the workers of the Ray cluster at `address`, or of one on this machine, answer.
    """
    if ranker is None and engine != "threads":
        base = fixed_ranker(rules, dataset, replace(options or RankOptions(), **changes))
        with distributed(base, engine, address) as spread:
            return evaluate(rules, dataset, split=split, ranker=spread, progress=progress, seed=seed)
    table = dataset.split(split)
    if not len(table):
        raise DataError(f"{dataset.name} has no triples in its {split} split")
    if ranker is None:
        ranker = make_ranker(rules, dataset, options, seed=seed, **changes)
    else:
        ranker = tuned(ranker, dataset, seed=seed)
    queries, places = make_queries(
        table.triples,
        [dataset.train.triples, dataset.valid.triples, dataset.test.triples],
        dataset.vocabulary.n_relations,
    )
    started = time.perf_counter()
    answers = ranker.answer(queries, progress=progress)
    ranks = target_ranks(queries, answers, dataset.vocabulary.n_entities)
    tuning = ranker.tuning if isinstance(ranker, TunedRanker) else None
    seconds = {
        "index": ranker.seconds_indexing,
        "tune": tuning.seconds if tuning else 0.0,
        "rank": time.perf_counter() - started,
    }
    types = _best_types(ranker.rules, answers.best_rules[places])
    return summarise_ranks(ranks.at(places), types, ranker, dataset, split, seconds, tuning)


@contextmanager
def distributed(
    ranker: Ranker, engine: str, address: str | None, say: Callable[[str], None] = lambda note: None
) -> Iterator[Ranker]:
    """Let the workers of a Ray cluster answer in the place of `ranker`; `say` is told of those that are lost."""
    if engine not in ENGINES:
        raise OptionError(f"engine must be one of {', '.join(ENGINES)}, got {engine!r}")
    if engine == "threads":
        yield ranker
        return
    from anyburl.ranking.ray import RayRanker

    spread = RayRanker(ranker, address, say)
    try:
        yield spread
    finally:
        spread.close()


def _best_types(rules: RuleSet, best: NDArray[np.int32]) -> NDArray[np.str_]:
    """Return the type of the best rule behind each target, "none" where no rule predicts it."""
    names = np.array([*(str(name) for name in RuleType), "none"])
    codes = np.where(best >= 0, rules.type[np.maximum(best, 0)] if len(rules) else 0, len(RuleType))
    return np.asarray(names[codes])


def summarise_ranks(
    ranks: Ranks,
    types: NDArray[np.str_],
    ranker: Ranker,
    dataset: Dataset,
    split: str,
    seconds: dict[str, float],
    tuning: Tuning | None = None,
) -> Metrics:
    """Put the figures and their protocol together."""
    options, table = ranker.options, dataset.split(split)
    realistic = ranks.of("realistic")
    n = len(table)
    labels = dataset.vocabulary.relations.to_list()
    per_relation = grouped(realistic, np.concatenate([table.triples[:, 1]] * 2))
    by_relation = [{"relation": labels[relation], **figures} for relation, figures in per_relation.items()]
    return Metrics(
        protocol={
            "data": dataset.name,
            "fingerprint": dataset.fingerprint,
            "split": split,
            "queries": 2 * n,
            "filtered": True,
            "ties": "realistic",
            "block_connected": ranker.block_connected,
            "block_connected_choice": options.block_connected,
            "aggregation": options.aggregation,
            "smoothing": options.smoothing,
            "weights": dict(options.weights),
            "object_identity": options.object_identity,
            "rules": len(ranker.rules),
            **({} if tuning is None else {"tuned": tuning.described()}),
            "anyburl": __version__,
        },
        metrics={
            **summarise(realistic),
            "mrr_lower_bound": lower_bound(realistic, options.top_k),
            "mrr_lower_bound_k": options.top_k,
            "optimistic": summarise(ranks.of("optimistic")),
            "pessimistic": summarise(ranks.of("pessimistic")),
            "random": summarise_random(ranks),
            "interval": bootstrap_interval(realistic),
        },
        by_direction={"object": summarise(realistic[:n]), "subject": summarise(realistic[n:])},
        by_relation=sorted(by_relation, key=lambda row: -row["queries"]),
        by_rule_type=grouped(realistic, types),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        ranks=ranks,
    )
