"""Ranks a split: metrics with their protocol, and files of the best filtered candidates.

An answer is ranked against all entities, or against a few drawn at random, as in GraIL and later papers. Among
negatives drawn at random, a rank depends on nothing but the full rank: it is drawn, or its mean computed, from how many
rivals are better and how many tie.

A ranking file has the best candidates of both queries of every triple. As text, in AnyBURL's format, three lines for a
triple:

    subject relation object
    Heads: candidate<TAB>score<TAB>candidate<TAB>score<TAB>
    Tails: candidate<TAB>score<TAB>

Heads are the answers of (?, relation, object), tails those of (subject, relation, ?). The triple's own entity is among
them, other known answers are not. As Parquet, one row for each query: subject, relation, object, direction (which of
the two is asked for), rank, candidates, scores.
"""

from __future__ import annotations

import gzip
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import __version__
from anyburl.base import checking
from anyburl.base.checking import callback, options_behind, whole
from anyburl.base.errors import DataError, InvalidOptionError
from anyburl.base.files import at_home
from anyburl.base.polars_unstable import sink_frames
from anyburl.base.writing import replacing
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.models.tuned.reranker import TunedReranker
from anyburl.models.tuned.train import Tuning
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.index import shown_scores
from anyburl.ranking.options import DIRECTIONS, PROTOCOLS, SCORES
from anyburl.ranking.queries import Ranks, make_queries, target_ranks
from anyburl.ranking.ranker import Progress, Ranker
from anyburl.reasoning.metrics import (
    HITS,
    Metrics,
    bootstrap_interval,
    grouped,
    mrr_lower_bound,
    summarise,
    summarise_random,
)
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS

TRIPLES_AT_A_TIME = 2048
SCHEMA = pl.Schema(
    {
        "subject": pl.String(),
        "relation": pl.String(),
        "object": pl.String(),
        "direction": pl.String(),
        "rank": pl.Float64(),
        "candidates": pl.List(pl.String()),
        "scores": pl.List(pl.Float64()),
    }
)


def write_rankings(
    path: str | os.PathLike[str],
    ranker: Ranker,
    dataset: Dataset,
    *,
    split: str = "test",
    top_k: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> None:
    """Rank the queries of `split` and write the `top_k` best candidates of each, as Parquet if the name ends so.

    Text may be compressed (.gz). `progress` is called with the number of triples written.
    """
    if not len(dataset.split(split)):
        raise DataError(f"{dataset.name} has no triples in its {split} split")
    chosen = ranker.options.top_k if top_k is None else top_k
    write_ranking_frames(path, SCHEMA, ranking_frames(ranker, dataset, split, chosen, progress))


def write_ranking_frames(path: str | os.PathLike[str], schema: pl.Schema, frames: Iterator[pl.DataFrame]) -> None:
    """Write frames of rankings as Parquet if the name ends so, else as text, also with .gz."""
    target = at_home(path)
    with replacing(target) as unfinished:
        if target.suffix == ".parquet":
            sink_frames(schema, lambda: frames, lambda lazy: lazy.sink_parquet(unfinished))
        else:
            packed = target.suffix == ".gz"
            with (gzip.open if packed else open)(unfinished, "wt", encoding="utf-8") as file:
                for frame in frames:
                    _write_text(frame, file)


def ranking_frames(
    ranker: Ranker, dataset: Dataset, split: str, top_k: int, progress: Callable[[int], None] | None = None
) -> Iterator[pl.DataFrame]:
    """Yield frames of rankings: of a number of triples the queries (s, r, ?), then the queries (?, r, o)."""
    ranker.check_data(dataset)
    checking.whole("top_k", top_k, 1, checking.MOST_KEPT)
    checking.callback("progress", progress)
    triples, vocabulary = dataset.split(split).triples, dataset.vocabulary
    known = [dataset.split(name).triples for name in SPLITS]
    for start in range(0, len(triples), TRIPLES_AT_A_TIME):
        part = triples[start : start + TRIPLES_AT_A_TIME]
        queries, positions = make_queries(part, known, vocabulary.n_relations)
        most_targets = int(np.diff(queries.target_offsets).max())
        answers = ranker.answer(queries, top_k=top_k + most_targets - 1)
        ranks = target_ranks(queries, answers, vocabulary.n_entities).at(positions).realistic
        scores = shown_scores(answers.best_keys)
        n_best = answers.n_best[:, None]
        best = np.where(np.arange(answers.best.shape[1]) < n_best, answers.best, -1)
        lists = cut_lists(queries.target_offsets, queries.targets, best, scores, positions, top_k, vocabulary.entities)
        labels = vocabulary.decode_triples(part)
        frame = pl.concat([labels, labels])
        direction = pl.Series(["object"] * len(part) + ["subject"] * len(part))
        yield frame.with_columns(direction=direction, rank=pl.Series(ranks), **lists).select(SCHEMA.names())
        if progress:
            progress(len(part))


def cut_lists(
    offsets: NDArray[np.int64],
    targets: NDArray[np.int32],
    best: NDArray[np.int32],
    scores: NDArray[np.float64],
    positions: NDArray[np.int64],
    top_k: int,
    labels: pl.Series,
    *,
    leaves_out_others: bool = True,
) -> dict[str, pl.Series]:
    """Return for the target at each place the `top_k` best candidates of its question and their scores, in general
    without the other targets. `best` and `scores` have a row for each question, -1 where there are no more.
    """
    question = np.searchsorted(offsets, positions, side="right") - 1
    own = targets[positions]
    listed = best[question]
    kept = listed >= 0
    if leaves_out_others:
        kept &= ~_are_targets(offsets, targets, best)[question] | (listed == own[:, None])
    kept &= np.cumsum(kept, axis=1) <= top_k
    sizes = pl.Series(kept.sum(axis=1))
    return {
        "candidates": _cut(labels.gather(listed[kept]), sizes),
        "scores": _cut(pl.Series(scores[question][kept]), sizes),
    }


def _are_targets(offsets: NDArray[np.int64], targets: NDArray[np.int32], best: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Mark those of each question's best candidates that are its targets."""
    span = int(max(best.max(initial=0), targets.max(initial=0))) + 1
    target_keys = np.repeat(np.arange(len(best)), np.diff(offsets)) * span + targets
    return np.isin(np.arange(len(best))[:, None] * span + best, target_keys) & (best >= 0)


def _cut(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Cut a column into lists of these sizes."""
    row = pl.Series(np.repeat(np.arange(len(sizes)), sizes.to_numpy()))
    lists = pl.DataFrame({"row": row, "values": values}).group_by("row", maintain_order=True).agg("values")
    rows = pl.DataFrame({"row": pl.Series(np.arange(len(sizes)))})
    return rows.join(lists, on="row", how="left", maintain_order="left")["values"].fill_null([])


def _write_text(frame: pl.DataFrame, file: TextIO) -> None:
    """Write three lines for each triple; `frame` holds the queries for objects, then those for subjects.

    A fact with a time has that as its fourth word.
    """
    n, words = len(frame) // 2, [name for name in ("subject", "relation", "object", "time") if name in frame.columns]
    lines = [_line(*row) for row in frame.select("candidates", "scores").iter_rows()]
    triples = frame.select(words)[:n].iter_rows()
    for triple, tails, heads in zip(triples, lines[:n], lines[n:], strict=True):
        file.write(f"{' '.join(triple)}\nHeads: {heads}\nTails: {tails}\n")


def _line(candidates: list[str], scores: list[float]) -> str:
    return "".join(f"{candidate}\t{score!r}\t" for candidate, score in zip(candidates, scores, strict=True))


N_NEGATIVES = 49
AT_A_TIME = 1 << 22  # numbers held in memory

Ints = NDArray[np.int64]


def check_protocol(protocol: str) -> None:
    """Refuse what is no protocol."""
    if protocol not in PROTOCOLS:
        raise InvalidOptionError("protocol", f"one of {', '.join(PROTOCOLS)}", protocol)


def count_rivals(queries: QueryArrays, answers: AnswerArrays, n_entities: int) -> Ints:
    """Return against how many entities each target is ranked."""
    sizes = np.diff(queries.target_offsets)
    rivals: Ints = np.repeat(n_entities - answers.n_excluded - sizes, sizes)
    return rivals


def sample_ranks(ranks: Ranks, n_rivals: Ints, seed: int = 0) -> Ranks:
    """Return ranks against `N_NEGATIVES` rivals drawn without replacement; all where there are fewer."""
    rng = np.random.default_rng(seed)
    better, tied, worse = _split(ranks, n_rivals)
    n_drawn = np.minimum(N_NEGATIVES, better + tied + worse)
    drawn_better = rng.hypergeometric(better, tied + worse, n_drawn)
    drawn_tied = rng.hypergeometric(tied, worse, n_drawn - drawn_better)
    return Ranks(1 + drawn_better, 1 + drawn_better + drawn_tied)


def estimate_sampled(ranks: Ranks, n_rivals: Ints) -> dict[str, float]:
    """Return the means of hits@k and MRR that `sample_ranks` has over all draws, ties counted half."""
    if not len(n_rivals):
        return {**{f"hits@{k}": 0.0 for k in HITS}, "mrr": 0.0}
    cases, counts = np.unique(np.column_stack(_split(ranks, n_rivals)), axis=0, return_counts=True)
    drawn = np.arange(N_NEGATIVES + 1)
    rank = 1 + drawn[:, None] + drawn[None, :] / 2
    values = {**{f"hits@{k}": (rank <= k).astype(np.float64) for k in HITS}, "mrr": 1 / rank}
    totals = dict.fromkeys(values, 0.0)
    size = AT_A_TIME // rank.size
    for start in range(0, len(cases), size):
        chances = _chances(cases[start : start + size]) * counts[start : start + size, None, None]
        for name, value in values.items():
            totals[name] += float((chances * value).sum())
    return {name: total / len(n_rivals) for name, total in totals.items()}


def _split(ranks: Ranks, n_rivals: Ints) -> tuple[Ints, Ints, Ints]:
    """Return how many rivals are better, tie, and are worse."""
    better, tied = ranks.optimistic - 1, ranks.pessimistic - ranks.optimistic
    return better, tied, np.maximum(n_rivals - better - tied, 0)


def _chances(cases: Ints) -> NDArray[np.float64]:
    """Return the chance of drawing this many better and tied rivals, for each case: (cases, better, tied)."""
    better, tied, worse = (column[:, None, None] for column in cases.T)
    n_drawn = np.minimum(N_NEGATIVES, better + tied + worse)
    drawn = np.arange(N_NEGATIVES + 1)
    first, second = drawn[None, :, None], drawn[None, None, :]
    rest = n_drawn - first - second
    possible = (first <= better) & (second <= tied) & (rest >= 0) & (rest <= worse)
    logarithms = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, cases.sum(axis=1).max() + 1)))])

    def choose(n: Ints, k: Ints) -> NDArray[np.float64]:
        k = np.clip(k, 0, n)
        return np.asarray(logarithms[n] - logarithms[k] - logarithms[n - k])

    chances = choose(better, first) + choose(tied, second) + choose(worse, rest)
    return np.where(possible, np.exp(chances - choose(better + tied + worse, n_drawn)), 0.0)


def evaluate_split(
    ranker: Ranker,
    dataset: Dataset,
    split: str,
    seconds: Mapping[str, float],
    progress: Progress | None = None,
    *,
    protocol: str = "all",
    seed: int = 0,
    relations: Sequence[int] | None = None,
    sample: int | None = None,
) -> Metrics:
    """Rank both queries of every triple of `split` and return the filtered metrics.

    `seconds` holds how long it took to make the ranker; `progress` is called with the number of questions answered.
    `protocol` says what answers are ranked against, see `PROTOCOLS`. With `relations`, only their triples are ranked;
    with `sample`, so many triples, drawn at random.
    """
    check_protocol(protocol)
    callback("progress", progress)
    ranker.check_data(dataset)
    triples, restricted = choose_triples(dataset, split, relations, sample, seed)
    known = [dataset.split(name).triples for name in SPLITS]
    queries, positions = make_queries(triples, known, dataset.vocabulary.n_relations)
    started = time.perf_counter()
    answers = ranker.answer(queries, progress=progress)
    n_entities = dataset.vocabulary.n_entities
    ranks, n_rivals = (
        target_ranks(queries, answers, n_entities).at(positions),
        count_rivals(queries, answers, n_entities),
    )
    took = {
        "index": seconds.get("index", 0.0),
        "tune": seconds.get("tune", 0.0),
        "rank": time.perf_counter() - started,
    }
    types = _best_types(ranker.rules, answers.target_rules[positions])
    tuning = ranker.reranker.tuning if isinstance(ranker.reranker, TunedReranker) else None
    described: dict[str, object] = {"ranked_against": protocol, **restricted}
    estimated = {}
    if protocol != "all":
        described |= {"negatives": N_NEGATIVES, "seed": seed}
    if protocol == "sampled":
        ranks = sample_ranks(ranks, n_rivals[positions], seed)
    if protocol == "estimated":
        estimated = {"estimated": estimate_sampled(ranks, n_rivals[positions])}
    metrics = summarise_ranks(ranks, types, ranker, dataset, split, took, tuning, triples=triples)
    return replace(metrics, protocol={**metrics.protocol, **described}, metrics={**metrics.metrics, **estimated})


def choose_triples(
    dataset: Dataset, split: str, relations: Sequence[int] | None = None, sample: int | None = None, seed: int = 0
) -> tuple[NDArray[np.int32], dict[str, Any]]:
    """Return the triples of a split to be ranked, and the entries of the protocol if these are not all of them."""
    triples, described = dataset.split(split).triples, dict[str, Any]()
    if not len(triples):
        raise DataError(f"{dataset.name} has no triples in its {split} split")
    if relations is not None:
        labels = [dataset.vocabulary.relation_label(relation) for relation in relations]
        triples = triples[np.isin(triples[:, 1], np.array(relations, np.int32))]
        if not len(triples):
            raise DataError(f"the {split} split of {dataset.name} has no triples with {' or '.join(labels)}")
        described["relations"] = labels
    if sample is not None and whole("sample", sample, 1) < len(triples):
        rows = np.sort(np.random.default_rng(seed).choice(len(triples), sample, replace=False))
        described |= {"sample": sample, "sampled_from": len(triples), "seed": seed}
        triples = triples[rows]
    return triples, described


def _best_types(rules: RuleSet, best: NDArray[np.int32]) -> NDArray[np.str_]:
    """Return the type of the best rule behind each target, "none" where no rule predicts it."""
    names = np.array([*(str(kind) for kind in KINDS), "none"])
    codes = np.where(best >= 0, rules.type[np.maximum(best, 0)] if len(rules) else 0, len(KINDS))
    return np.asarray(names[codes])


def summarise_ranks(
    ranks: Ranks,
    types: NDArray[np.str_],
    ranker: Ranker,
    dataset: Dataset,
    split: str,
    seconds: dict[str, float],
    tuning: Tuning | None = None,
    *,
    triples: NDArray[np.int32] | None = None,
) -> Metrics:
    """Put the metrics and their protocol together; `triples` are all of the split by default."""
    options, realistic = ranker.options, ranks.of("realistic")
    recorded = options_behind(SCORES, options)
    triples = dataset.split(split).triples if triples is None else triples
    n = len(triples)
    return Metrics(
        protocol={
            "data": dataset.name,
            "fingerprint": dataset.fingerprint,
            "split": split,
            "queries": 2 * n,
            "filtered": True,
            "ties": "realistic",
            "block_connected": ranker.block_connected,
            "block_connected_choice": recorded.pop("block_connected"),
            **recorded,
            "fallback": options.fallback or tuning is not None,
            "rules": len(ranker.rules),
            **({} if tuning is None else {"tuned": tuning.described()}),
            "anyburl": __version__,
        },
        metrics={
            **summarise(realistic),
            "mrr_lower_bound": mrr_lower_bound(realistic, options.top_k),
            "mrr_lower_bound_k": options.top_k,
            "optimistic": summarise(ranks.of("optimistic")),
            "pessimistic": summarise(ranks.of("pessimistic")),
            "random": summarise_random(ranks),
            "interval": bootstrap_interval(realistic),
        },
        by_direction={"object": summarise(realistic[:n]), "subject": summarise(realistic[n:])},
        by_relation=figures_by_relation(realistic, triples[:, 1], dataset.vocabulary.relations.to_list()),
        by_rule_type=grouped(realistic, types),
        seconds={name: round(value, 3) for name, value in seconds.items()},
        ranks=ranks,
    )


def figures_by_relation(
    ranks: NDArray[np.float64], relations: NDArray[np.int32], labels: list[str]
) -> list[dict[str, Any]]:
    """Return the figures of every relation and direction, the most frequent relations first.

    The directions are kept apart, since (s, r, ?) and (?, r, o) may be answered very differently well.
    """
    n_relations = len(labels)
    figures = grouped(ranks, np.concatenate([relations, relations.astype(np.int64) + n_relations]))
    in_order = sorted(np.unique(relations).tolist(), key=lambda relation: -figures[relation]["queries"])
    return [
        {"relation": labels[relation], "direction": direction, **figures[relation + backward * n_relations]}
        for relation in in_order
        for backward, direction in enumerate(DIRECTIONS)
    ]
