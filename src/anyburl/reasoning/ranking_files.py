"""Ranking files: the best filtered candidates of both queries of every triple in a split.

As text, in AnyBURL's format, three lines for a triple:

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
from collections.abc import Callable, Iterator
from typing import TextIO

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.base.errors import DataError
from anyburl.base.files import at_home
from anyburl.base.polars_unstable import sink_frames
from anyburl.base.writing import replacing
from anyburl.data.dataset import SPLITS, Dataset
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.index import shown_scores
from anyburl.ranking.queries import make_queries, target_ranks
from anyburl.ranking.ranker import Ranker

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
    target = at_home(path)
    chosen = ranker.options.top_k if top_k is None else top_k
    frames = ranking_frames(ranker, dataset, split, chosen, progress)
    with replacing(target) as unfinished:
        if target.suffix == ".parquet":
            sink_frames(SCHEMA, lambda: frames, lambda lazy: lazy.sink_parquet(unfinished))
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
        queries, places = make_queries(part, known, vocabulary.n_relations)
        most_targets = int(np.diff(queries.target_offsets).max())
        answers = ranker.answer(queries, top_k=top_k + most_targets - 1)
        ranks = target_ranks(queries, answers, vocabulary.n_entities).at(places).realistic
        lists = _lists(queries, answers, places, top_k, vocabulary.entities)
        labels = vocabulary.decode_triples(part)
        frame = pl.concat([labels, labels])
        direction = pl.Series(["object"] * len(part) + ["subject"] * len(part))
        yield frame.with_columns(direction=direction, rank=pl.Series(ranks), **lists).select(SCHEMA.names())
        if progress:
            progress(len(part))


def _lists(
    queries: QueryArrays, answers: AnswerArrays, places: NDArray[np.int64], top_k: int, labels: pl.Series
) -> dict[str, pl.Series]:
    """Return for the target at each place the `top_k` best candidates and their scores, without the other targets."""
    question = np.searchsorted(queries.target_offsets, places, side="right") - 1
    own = queries.targets[places]
    best = answers.best[question]
    kept = np.arange(best.shape[1])[None, :] < answers.n_best[question][:, None]
    kept &= ~_are_targets(queries, answers)[question] | (best == own[:, None])
    kept &= np.cumsum(kept, axis=1) <= top_k
    scores = shown_scores(answers.best_keys[question][kept])
    sizes = pl.Series(kept.sum(axis=1))
    return {
        "candidates": _cut(labels.gather(best[kept]), sizes),
        "scores": _cut(pl.Series(scores), sizes),
    }


def _are_targets(queries: QueryArrays, answers: AnswerArrays) -> NDArray[np.bool_]:
    """Tell of each question's best candidates which ones are its targets."""
    n_questions = len(queries.entities)
    span = int(max(answers.best.max(initial=0), queries.targets.max(initial=0))) + 1
    asked = np.repeat(np.arange(n_questions), np.diff(queries.target_offsets)) * span + queries.targets
    return np.isin(np.arange(n_questions)[:, None] * span + answers.best, asked) & (answers.best >= 0)


def _cut(values: pl.Series, sizes: pl.Series) -> pl.Series:
    """Cut a column into lists of these sizes."""
    row = pl.Series(np.repeat(np.arange(len(sizes)), sizes.to_numpy()))
    lists = pl.DataFrame({"row": row, "values": values}).group_by("row", maintain_order=True).agg("values")
    rows = pl.DataFrame({"row": pl.Series(np.arange(len(sizes)))})
    return rows.join(lists, on="row", how="left", maintain_order="left")["values"].fill_null([])


def _write_text(frame: pl.DataFrame, file: TextIO) -> None:
    """Write three lines for each triple; `frame` holds the queries for objects, then those for subjects."""
    n = len(frame) // 2
    lines = [_line(*row) for row in frame.select("candidates", "scores").iter_rows()]
    triples = frame.select("subject", "relation", "object")[:n].iter_rows()
    for triple, tails, heads in zip(triples, lines[:n], lines[n:], strict=True):
        file.write(f"{' '.join(triple)}\nHeads: {heads}\nTails: {tails}\n")


def _line(candidates: list[str], scores: list[float]) -> str:
    return "".join(f"{candidate}\t{score!r}\t" for candidate, score in zip(candidates, scores, strict=True))
