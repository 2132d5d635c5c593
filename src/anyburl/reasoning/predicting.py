"""From queries to the best answers of each, in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl import checking
from anyburl.graph.lookup import all_known_answers, held_by, split_names
from anyburl.ranking.arrays import QueryArrays
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.scores import shown_scores
from anyburl.reasoning.queries import Questions
from anyburl.ruleset.labels import RuleTexts
from anyburl.triples.dataset import Dataset
from anyburl.tuning.listing import TOP_K

ANSWERS_AT_A_TIME = 1 << 18
FEWEST_QUESTIONS, MOST_QUESTIONS = 64, 4096  # at a time
KNOWN = pl.Series([",".join(split_names(bits)) for bits in range(8)])


@dataclass(frozen=True)
class AnswerColumns:
    """The best answers of some queries, query after query, one row each.

    Of each query, `sizes` says how many rows it has, `n_candidates` how many candidates there were, and `n_known` how
    many answers in train were left out.
    """

    sizes: NDArray[np.int64]
    n_candidates: NDArray[np.int64]
    n_known: NDArray[np.int64]
    questions: NDArray[np.int64]  # row -> the number of its query
    ranks: NDArray[np.int64]
    triples: NDArray[np.int32]  # (rows, 3)
    entities: NDArray[np.int32]
    scores: NDArray[np.float64]
    known: NDArray[np.uint8]  # the splits that hold the triple, as bits
    rules: NDArray[np.int32]
    n_rules: NDArray[np.int32]


def answer_columns(
    ranker: Ranker,
    dataset: Dataset,
    questions: Questions,
    *,
    top: int,
    include_known: bool,
    progress: Progress | None = None,
) -> Iterator[AnswerColumns]:
    """Yield the `top` best answers of the questions, some questions at a time, in order.

    Answers that the train split states are left out unless `include_known`.
    """
    ranker.check_data(dataset)
    checking.whole("top", top, 1, checking.MOST_KEPT)
    checking.flag("include_known", include_known)
    checking.callback("progress", progress)
    size = min(max(ANSWERS_AT_A_TIME // top, FEWEST_QUESTIONS), MOST_QUESTIONS)
    for start in range(0, len(questions), size):
        part = questions.part(start, start + size)
        yield _answer_part(ranker, dataset, part, start, top, include_known, progress)


def _answer_part(
    ranker: Ranker,
    dataset: Dataset,
    questions: Questions,
    start: int,
    top: int,
    include_known: bool,
    progress: Progress | None,
) -> AnswerColumns:
    n, nothing = len(questions), np.empty(0, np.int32)
    offsets, excluded = np.zeros(n + 1, np.int64), nothing
    if not include_known:
        offsets, excluded = all_known_answers(ranker.graph, questions.entities, questions.relations)
    asked = QueryArrays(
        entities=questions.entities,
        relations=questions.relations,
        target_offsets=np.zeros(n + 1, np.int64),
        targets=nothing,
        excluded_offsets=offsets,
        excluded=excluded,
    )
    answers = ranker.answer(asked, top_k=top, keep_known=include_known, progress=progress)
    kept = np.arange(answers.best.shape[1])[None, :] < answers.n_best[:, None]
    rows = np.repeat(np.arange(n), answers.n_best)
    entities, rules, n_rules = answers.best[kept], answers.best_rules[kept], answers.best_counts[kept]
    for question in np.unique(rows[(rules < 0) & (answers.n_candidates[rows] > TOP_K)]):
        _find_rules(ranker, questions, int(question), rows, entities, rules, n_rules)
    triples = _triples(questions, rows, entities, ranker.graph.n_relations)
    return AnswerColumns(
        sizes=answers.n_best,
        n_candidates=answers.n_candidates,
        n_known=np.diff(offsets),
        questions=start + rows,
        ranks=np.nonzero(kept)[1] + 1,
        triples=triples,
        entities=entities,
        scores=shown_scores(answers.best_keys[kept]),
        known=held_by(dataset, triples),
        rules=rules,
        n_rules=n_rules,
    )


def _find_rules(
    ranker: Ranker,
    questions: Questions,
    question: int,
    rows: NDArray[np.int64],
    entities: NDArray[np.int32],
    rules: NDArray[np.int32],
    n_rules: NDArray[np.int32],
) -> None:
    """Write which rules predict answers that another model listed: they may stand far down in the rules' own order."""
    firings = ranker.fire(int(questions.entities[question]), int(questions.relations[question]))
    for place in np.flatnonzero((rows == question) & (rules < 0)):
        own = np.flatnonzero(firings.candidates == entities[place])
        if len(own):
            n_rules[place] = len(own)
            rules[place] = min(firings.rules[own[firings.scores[own] == firings.scores[own].max()]])


def _triples(
    questions: Questions, rows: NDArray[np.int64], entities: NDArray[np.int32], n_relations: int
) -> NDArray[np.int32]:
    """Return the triples that the answers make."""
    given, directed = questions.entities[rows], questions.relations[rows]
    backward = directed >= n_relations
    subjects, objects = np.where(backward, entities, given), np.where(backward, given, entities)
    return np.column_stack([subjects, directed % n_relations, objects])


class AnswerFrames:
    """Turns columns of ids into frames of labels."""

    def __init__(self, ranker: Ranker) -> None:
        self._vocabulary, self._texts = ranker.vocabulary, RuleTexts(ranker.rules)

    def empty(self) -> pl.DataFrame:
        """Return a frame without answers."""
        whole, narrow = np.empty(0, np.int64), np.empty(0, np.int32)
        triples, scores, known = np.empty((0, 3), np.int32), np.empty(0), np.empty(0, np.uint8)
        return self.frame(
            AnswerColumns(whole, whole, whole, whole, whole, triples, narrow, scores, known, narrow, narrow)
        )

    def frame(self, columns: AnswerColumns) -> pl.DataFrame:
        """Return one row per answer: the number of its query, the triple, rank, entity, score, the splits that hold the
        triple, the best rule, and how many rules there are.
        """
        return pl.DataFrame(
            {
                "query": columns.questions.astype(np.uint32),
                **self._vocabulary.decode_triples(columns.triples).to_dict(),
                "rank": columns.ranks.astype(np.uint32),
                "entity": self._vocabulary.entities.gather(columns.entities),
                "score": columns.scores,
                "known": KNOWN.gather(columns.known),
                "rule": self._texts.of_rows(columns.rules),
                "rules": columns.n_rules,
            }
        )
