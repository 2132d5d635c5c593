"""Ranks a split and returns metrics with their protocol."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.checking import callback
from anyburl.errors import DataError
from anyburl.evaluation.metrics import Metrics, bootstrap_interval, grouped, lower_bound, summarise, summarise_random
from anyburl.evaluation.protocol import N_NEGATIVES, check_protocol, count_rivals, estimate_sampled, sample_ranks
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.queries import make_queries
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.ranks import Ranks, target_ranks
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet
from anyburl.triples.dataset import SPLITS, Dataset
from anyburl.tuning.reranker import TunedReranker
from anyburl.tuning.train import Tuning


def evaluate_split(
    ranker: Ranker,
    dataset: Dataset,
    split: str,
    seconds: Mapping[str, float],
    progress: Progress | None = None,
    *,
    protocol: str = "all",
    seed: int = 0,
) -> Metrics:
    """Rank both queries of every triple of `split` and return the filtered metrics.

    `seconds` holds how long it took to make the ranker; `progress` is called with the number of questions answered.
    `protocol` says against whom answers are ranked, see `protocol.py`.
    """
    check_protocol(protocol)
    callback("progress", progress)
    ranker.check_data(dataset)
    table = dataset.split(split)
    if not len(table):
        raise DataError(f"{dataset.name} has no triples in its {split} split")
    known = [dataset.split(name).triples for name in SPLITS]
    queries, places = make_queries(table.triples, known, dataset.vocabulary.n_relations)
    started = time.perf_counter()
    answers = ranker.answer(queries, progress=progress)
    n_entities = dataset.vocabulary.n_entities
    ranks, n_rivals = target_ranks(queries, answers, n_entities).at(places), count_rivals(queries, answers, n_entities)
    took = {
        "index": seconds.get("index", 0.0),
        "tune": seconds.get("tune", 0.0),
        "rank": time.perf_counter() - started,
    }
    types = _best_types(ranker.rules, answers.target_rules[places])
    tuning = ranker.reranker.tuning if isinstance(ranker.reranker, TunedReranker) else None
    told: dict[str, object] = {"ranked_against": protocol}
    estimated = {}
    if protocol != "all":
        told |= {"negatives": N_NEGATIVES, "seed": seed}
    if protocol == "sampled":
        ranks = sample_ranks(ranks, n_rivals[places], seed)
    if protocol == "estimated":
        estimated = {"estimated": estimate_sampled(ranks, n_rivals[places])}
    found = summarise_ranks(ranks, types, ranker, dataset, split, took, tuning)
    return replace(found, protocol={**found.protocol, **told}, metrics={**found.metrics, **estimated})


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
    """Put the metrics and their protocol together."""
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
            "fallback": options.fallback or tuning is not None,
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
