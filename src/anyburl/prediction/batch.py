"""The best answers of many queries, each with the rule that speaks most for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.known import holding_splits, known_answers
from anyburl.prediction.queries import Query
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.index import to_confidences
from anyburl.ranking.ranker import Ranker
from anyburl.rules.rule import Rule
from anyburl.triples.dataset import Dataset

QUERIES_AT_A_TIME = 1024
DIGITS = 12


@dataclass(frozen=True)
class Candidate:
    """An answer; `known` names the splits that hold it, `rule` is the best of those that predict it."""

    rank: int
    entity: str
    score: float
    known: tuple[str, ...]
    triple: tuple[str, str, str]
    rule: Rule


@dataclass(frozen=True)
class Answered:
    """A query and its best candidates; `n_candidates` counts all, `n_known` the answers in train that are left out."""

    query: Query
    candidates: tuple[Candidate, ...]
    n_candidates: int
    n_known: int


def answer_queries(
    ranker: Ranker,
    dataset: Dataset,
    queries: Sequence[Query],
    *,
    top: int = 10,
    include_known: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Iterator[Answered]:
    """Yield the `top` best answers of each query, in order; without those in the train split unless `include_known`."""
    for start in range(0, len(queries), QUERIES_AT_A_TIME):
        part = queries[start : start + QUERIES_AT_A_TIME]
        ids = np.array([query.ids(dataset.vocabulary) for query in part], np.int32).reshape(-1, 2)
        known = [np.empty(0, np.int32), *(known_answers(ranker.graph, *query) for query in ids.tolist())]
        offsets = np.cumsum([len(answers) for answers in known])
        asked = QueryArrays(
            entities=ids[:, 0].copy(),
            relations=ids[:, 1].copy(),
            target_offsets=np.zeros(len(part) + 1, np.int64),
            targets=np.empty(0, np.int32),
            excluded_offsets=np.zeros_like(offsets) if include_known else offsets,
            excluded=known[0] if include_known else np.concatenate(known),
        )
        answers = ranker.answer(asked, top_k=top, progress=progress)
        n_excluded = np.diff(asked.excluded_offsets)
        yield from _describe(ranker, dataset, part, answers, _best_rules(ranker, asked, answers), n_excluded)


def _best_rules(ranker: Ranker, asked: QueryArrays, answers: AnswerArrays) -> NDArray[np.int32]:
    """Ask again, for these candidates: the answer tells the best rule of each, whatever orders them."""
    kept = np.arange(answers.best.shape[1])[None, :] < answers.n_best[:, None]
    offsets = np.concatenate([[0], np.cumsum(answers.n_best)]).astype(np.int64)
    targets = asked._replace(targets=answers.best[kept], target_offsets=offsets)
    return ranker.with_aggregation(ranker.fixed_aggregation).answer(targets).best_rules


def _describe(
    ranker: Ranker,
    dataset: Dataset,
    queries: Sequence[Query],
    answers: AnswerArrays,
    best_rules: NDArray[np.int32],
    n_excluded: NDArray[np.int64],
) -> Iterator[Answered]:
    place = 0
    for number, query in enumerate(queries):
        n = int(answers.n_best[number])
        ids = answers.best[number, :n].tolist()
        found = dataset.vocabulary.decode_entities(ids).to_list()
        scores = to_confidences(answers.best_keys[number, :n]).round(DIGITS).tolist()
        candidates = []
        for rank, (id, entity, score) in enumerate(zip(ids, found, scores, strict=True), 1):
            known = holding_splits(dataset, query.fact_ids(id, dataset.vocabulary))
            rule = ranker.rules.rule(int(best_rules[place]))
            candidates.append(Candidate(rank, entity, score, known, query.fact(entity), rule))
            place += 1
        yield Answered(query, tuple(candidates), int(answers.n_candidates[number]), int(n_excluded[number]))
