"""The scores of another model for every entity, as further candidates and features.

`ScoredAnswers`: another model's scores, from a table of questions, candidates and scores.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet
from anyburl.data.dataset import Dataset
from anyburl.graph.lookup import neighbours
from anyburl.models.tuned.observations import Floats, Lists
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.backend import ReadyRules

MORE_CANDIDATES = 50  # of the other model, beside those of the rules
LEAST = np.float32(-30.0)  # the lowest log-probability that is distinguished
RANK_COLUMN = 1  # minus the logarithm of 1 + the number of better entities


class Scorer(Protocol):
    """Scores every entity as an answer; only differences between the answers to one query matter."""

    def scores(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> Floats:
        """Return a score for each query (entity, directed relation, ?) and entity: the logarithm of something that is
        in proportion to its probability.
        """
        ...


class OtherModel(Scorer, Protocol):
    """A model that is known besides the rules."""

    @property
    def digest(self) -> str:
        """What tells one model from another."""
        ...


@dataclass(frozen=True)
class Opinion:
    """Scores of all entities for some queries; -inf for those that must not be ranked.

    Of a query that is not `asked`, there is no opinion.
    """

    scores: Floats
    asked: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Scorer, ready: ReadyRules, queries: QueryArrays, asked: NDArray[np.bool_]) -> Opinion:
        """Ask the model; known answers and, where they are blocked, neighbours are not ranked."""
        scores = np.full((len(asked), ready.graph.n_entities), -np.inf, np.float32)
        if asked.any():
            scores[asked] = model.scores(queries.entities[asked], queries.relations[asked])
        questions = np.repeat(np.arange(len(scores)), np.diff(queries.excluded_offsets))
        scores[questions, queries.excluded] = -np.inf
        if ready.block_connected:
            for row, entity in enumerate(queries.entities.tolist()):
                scores[row, neighbours(ready.facts, entity)] = -np.inf
        return cls(scores, asked)

    @cached_property
    def _ordered(self) -> Floats:
        return np.asarray(np.sort(self.scores, axis=1), np.float32)

    def columns(self, lists: Lists) -> Floats:
        """Return for each listed candidate its log-probability among all entities, its rank among them, and how far it
        is below the best.
        """
        best = self._ordered[:, -1:]
        with np.errstate(invalid="ignore", divide="ignore"):
            totals = np.log(np.exp(self.scores - best).sum(axis=1)) + best[:, 0]
        own, questions = self.scores[lists.questions, lists.candidates], lists.questions
        ranks = np.empty(len(own), np.float32)
        ends = np.cumsum(lists.sizes)
        for row, (first, last) in enumerate(zip(ends - lists.sizes, ends, strict=True)):
            ranks[first:last] = self.scores.shape[1] - np.searchsorted(self._ordered[row], own[first:last], "right")
        with np.errstate(invalid="ignore"):
            columns = [own - totals[questions], -np.log1p(ranks), own - best[questions, 0]]
        told = np.nan_to_num(np.maximum(np.column_stack(columns), LEAST), nan=float(LEAST))
        return np.asarray(told, np.float32)

    def add_candidates(self, answers: AnswerArrays, lists: Lists) -> tuple[AnswerArrays, Lists]:
        """Return answers and lists with the best entities of this opinion behind those that rules predict."""
        asked = np.flatnonzero(self.asked)
        scores, n_more = self.scores[asked], min(MORE_CANDIDATES, self.scores.shape[1])
        is_listed = np.zeros(self.scores.shape, np.bool_)
        is_listed[lists.questions, lists.candidates] = True
        rows = np.arange(len(asked))[:, None]
        found = np.argpartition(-scores, n_more - 1, axis=1)[:, :n_more].astype(np.int32)
        found = found[rows, np.argsort(-scores[rows, found], axis=1, kind="stable")]
        is_new = ~is_listed[asked[:, None], found] & np.isfinite(scores[rows, found])
        questions, candidates = asked[np.nonzero(is_new)[0]], found[is_new]
        order = np.argsort(np.concatenate([lists.questions, questions]), kind="stable")
        blank = np.zeros((len(candidates), lists.evidence.shape[1]), np.float32)
        longer = Lists(
            sizes=lists.sizes + np.bincount(questions, minlength=len(lists.sizes)),
            candidates=np.concatenate([lists.candidates, candidates])[order],
            evidence=np.concatenate([lists.evidence, blank])[order],
        )
        return _make_room(answers, lists.sizes, longer), longer

    def rank_the_rest(
        self, lists: Lists, queries: QueryArrays, found: NDArray[np.int64], answers: AnswerArrays
    ) -> None:
        """Overwrite in `answers` where targets stand that are not listed: after the lists, in the order of the opinion.

        `found` is what `find_answers` gave. Afterwards no target of a query that was asked counts as one that nothing
        predicts.
        """
        rivals_listed = np.bincount(lists.questions[found < 0], minlength=len(lists.sizes))
        is_listed = np.zeros(len(queries.targets), np.bool_)
        is_listed[found[found >= 0]] = True
        questions = np.repeat(np.arange(len(lists.sizes)), np.diff(queries.target_offsets))
        ends = np.cumsum(lists.sizes)
        for target in np.flatnonzero(~is_listed & self.asked[questions]):
            row = questions[target]
            is_rival = np.ones(self.scores.shape[1], np.bool_)
            is_rival[lists.candidates[ends[row] - lists.sizes[row] : ends[row]]] = False
            is_rival[queries.targets[queries.target_offsets[row] : queries.target_offsets[row + 1]]] = False
            is_rival[queries.excluded[queries.excluded_offsets[row] : queries.excluded_offsets[row + 1]]] = False
            rivals, own = self.scores[row, is_rival], self.scores[row, queries.targets[target]]
            answers.better[target] = rivals_listed[row] + (rivals > own).sum()
            answers.equal[target] = (rivals == own).sum()
        answers.fired[self.asked[questions]] = True


def _make_room(answers: AnswerArrays, old_sizes: NDArray[np.int64], lists: Lists) -> AnswerArrays:
    """Return answers in which the lists stand first, without their evidence; candidates behind the old lists follow."""
    added = lists.sizes - old_sizes
    n_queries, width = answers.best.shape
    questions, places = np.nonzero(np.arange(width)[None, :] < answers.n_best[:, None])
    moved = places + np.where(places >= old_sizes[questions], added[questions], 0)
    changed = {"n_best": answers.n_best + added}
    for name, empty in (("best", -1), ("best_keys", 0), ("best_rules", -1), ("best_counts", 0)):
        column = getattr(answers, name)
        wide = np.full((n_queries, width + int(added.max(initial=0))), empty, column.dtype)
        wide[questions, moved] = column[questions, places]
        changed[name] = wide
    changed["best"][lists.questions, lists.places] = lists.candidates
    changed["evidence"] = np.empty((*changed["best"].shape, 0), np.float32)  # it is in the lists
    return answers._replace(**changed)


COLUMNS = ("entity", "relation", "asked", "candidate", "score")
ASKED = ("object", "subject")
UNSCORED = np.float32(10.0)  # how far a candidate without a score is below the lowest of its question

Ints = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class ScoredAnswers:
    """The scores of some candidates of some questions, question by question."""

    n_entities: int
    n_directed: int
    keys: NDArray[np.int64]  # of the questions, sorted
    offsets: NDArray[np.int64]
    candidates: Ints
    values: Floats

    @classmethod
    def read(cls, path: str | Path, dataset: Dataset) -> ScoredAnswers:
        """Read a Parquet file with the columns entity, relation, asked ("object" or "subject"), candidate and score.

        A row of (France, capital, object, Paris) scores Paris as the answer to (France, capital, ?), one of (Paris,
        capital, subject, France) scores France as that to (?, capital, Paris).
        """
        try:
            table = scan_parquet(path).select(COLUMNS).collect()
        except UNREADABLE as error:
            reason = " ".join(str(error).split())[:200]
            raise DataError(
                f"{path}: expected a Parquet file with the columns {', '.join(COLUMNS)} ({reason})"
            ) from error
        return cls.of(table, dataset, str(path))

    @classmethod
    def of(cls, table: pl.DataFrame, dataset: Dataset, source: str = "the table") -> ScoredAnswers:
        """Take a table with these columns."""
        words = dataset.vocabulary
        values = _numbers(table, source)
        entities, candidates = (_ids(words.encode_entities, table, name, source) for name in ("entity", "candidate"))
        relations = _ids(words.encode_relations, table, "relation", source).astype(np.int64)
        asked = _texts(table, "asked", source).to_list()
        if not set(asked) <= set(ASKED):
            row = next(row for row, text in enumerate(asked) if text not in ASKED)
            raise DataError(f"{source}, row {row + 1}: expected {' or '.join(ASKED)} as asked, got {asked[row]!r}")
        relations += np.fromiter((text == ASKED[1] for text in asked), np.int64, len(asked)) * words.n_relations
        keys = entities.astype(np.int64) * (2 * words.n_relations) + relations
        order = np.argsort(keys, kind="stable")
        questions, firsts = np.unique(keys[order], return_index=True)
        offsets = np.append(firsts, len(order)).astype(np.int64)
        return cls(words.n_entities, 2 * words.n_relations, questions, offsets, candidates[order], values[order])

    @cached_property
    def digest(self) -> str:
        """What tells one table from another."""
        told = hashlib.blake2b(digest_size=16)
        for array in (self.keys, self.offsets, self.candidates, self.values):
            told.update(array.tobytes())
        return told.hexdigest()

    def scores(self, entities: Ints, relations: Ints) -> Floats:
        """Return a score for each question and entity; without a score, a low one; a question without any, zeros."""
        found = np.zeros((len(entities), self.n_entities), np.float32)
        wanted = entities.astype(np.int64) * self.n_directed + relations
        places = np.minimum(np.searchsorted(self.keys, wanted), max(0, len(self.keys) - 1))
        for row, place in enumerate(places.tolist()):
            if len(self.keys) and self.keys[place] == wanted[row]:
                own = slice(self.offsets[place], self.offsets[place + 1])
                found[row] = self.values[own].min() - UNSCORED
                found[row, self.candidates[own]] = self.values[own]
        return found


def _numbers(table: pl.DataFrame, source: str) -> Floats:
    column = table["score"]
    numbers = column.cast(pl.Float32) if column.dtype.is_numeric() else None
    if numbers is None or numbers.null_count() or not numbers.is_finite().all():
        raise DataError(f"{source}: expected finite numbers in the column 'score', got {column.dtype}")
    return numbers.to_numpy().copy()


def _ids(encode: Callable[[pl.Series], Ints], table: pl.DataFrame, name: str, source: str) -> Ints:
    labels = _texts(table, name, source)
    ids = encode(labels)
    if (ids < 0).any():
        row = int((ids < 0).argmax())
        raise DataError(f"{source}, row {row + 1}: the data has no {name} {labels[row]!r}")
    return ids


def _texts(table: pl.DataFrame, name: str, source: str) -> pl.Series:
    column = table[name]
    if column.dtype.is_nested() or column.dtype in (pl.Binary, pl.Duration):
        raise DataError(f"{source}: expected labels in the column {name!r}, got {column.dtype}")
    return column.cast(pl.String)
