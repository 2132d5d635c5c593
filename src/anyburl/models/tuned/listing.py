"""The candidates of queries with all their features, from rules and other models; the questions a model learns from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Protocol, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.errors import DataError
from anyburl.base.machine import stream_from_threads
from anyburl.base.polars_unstable import UNREADABLE
from anyburl.base.sealed import scan_parquet
from anyburl.bodies.rescore import rescore
from anyburl.data.dataset import Dataset
from anyburl.data.table import Ids, TripleTable, find_keys
from anyburl.graph.build import neighbours
from anyburl.graph.stored import graph_of
from anyburl.models.tuned.fallback import Fallback
from anyburl.models.tuned.kernel import fill_best
from anyburl.models.tuned.observations import TOP_K, Floats, Lists, find_answers, lists_of, rows_of
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.queries import Ranks, joins_unconnected, make_queries, take_queries, target_ranks
from anyburl.ranking.ranker import Progress, Ranker, ReadyRules, make_ranker

MORE_CANDIDATES = 50  # of the other model, beside those of the rules
LEAST = np.float32(-30.0)  # the lowest log-probability that is distinguished
RANK_COLUMN = 1  # minus the logarithm of 1 + the number of better entities

Answered = TypeVar("Answered")


class Scorer(Protocol):
    """Scores every entity as an answer; only differences between the answers to one query matter."""

    def scores(self, entities: NDArray[np.int32], relations: NDArray[np.int32]) -> Floats:
        """Return a score for each query (entity, directed relation, ?) and entity: log-probability plus a constant."""
        ...


class OtherModel(Scorer, Protocol):
    """A model besides the rules."""

    @property
    def digest(self) -> str:
        """A digest of the model."""
        ...


@dataclass(frozen=True)
class Opinion:
    """A model's scores of all entities for the `chosen` queries; -inf for those that must not be ranked."""

    scores: Floats  # a row for each of the chosen
    chosen: NDArray[np.bool_]

    @classmethod
    def of(cls, model: Scorer, ready: ReadyRules, queries: QueryArrays, chosen: NDArray[np.bool_]) -> Opinion:
        """Score entities by the model; known answers and, where they are blocked, neighbours are not ranked."""
        scores = np.empty((np.count_nonzero(chosen), ready.graph.n_entities), np.float32)
        if chosen.any():
            scores[:] = model.scores(queries.entities[chosen], queries.relations[chosen])
        rows = np.repeat(np.where(chosen, np.cumsum(chosen) - 1, -1), np.diff(queries.excluded_offsets))
        scores[rows[rows >= 0], queries.excluded[rows >= 0]] = -np.inf
        if ready.block_connected:
            for row, entity in enumerate(queries.entities[chosen].tolist()):
                scores[row, neighbours(ready.facts, entity)] = -np.inf
        return cls(scores, chosen)

    @cached_property
    def _ordered(self) -> Floats:
        return np.asarray(np.sort(self.scores, axis=1), np.float32)

    def columns(self, lists: Lists) -> Floats:
        """Return the log-probability of each listed candidate, its rank and its distance from the best.

        All queries have to be chosen.
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
        clipped = np.nan_to_num(np.maximum(np.column_stack(columns), LEAST), nan=float(LEAST))
        return np.asarray(clipped, np.float32)

    def add_candidates(self, answers: AnswerArrays, lists: Lists) -> tuple[AnswerArrays, Lists]:
        """Return answers and lists with the best entities of the model after those that rules predict."""
        chosen = np.flatnonzero(self.chosen)
        best = np.empty((len(chosen), min(MORE_CANDIDATES, self.scores.shape[1])), np.int32)
        fill_best(self.scores, chosen, lists.offsets, lists.candidates, best)
        added = np.zeros(len(lists.sizes), np.int64)
        added[chosen] = (best >= 0).sum(axis=1)
        sizes = lists.sizes + added
        is_new = np.arange(sizes.sum()) >= np.repeat(np.cumsum(sizes) - added, sizes)
        candidates = np.empty(len(is_new), np.int32)
        candidates[is_new], candidates[~is_new] = best[best >= 0], lists.candidates
        evidence = np.zeros((len(is_new), lists.evidence.shape[1]), np.float32)
        evidence[~is_new] = lists.evidence
        longer = Lists(sizes, candidates, evidence)
        return _make_room(answers, lists.sizes, longer), longer

    def rank_the_rest(
        self, lists: Lists, queries: QueryArrays, target_rows: NDArray[np.int64], answers: AnswerArrays
    ) -> None:
        """Overwrite in `answers` the ranks of targets that are not listed: after the lists, in the order of the model.

        `target_rows` come from `find_answers`. Afterwards all targets of the chosen queries count as predicted.
        """
        rivals_listed = np.bincount(lists.questions[target_rows < 0], minlength=len(lists.sizes))
        is_listed = np.zeros(len(queries.targets), np.bool_)
        is_listed[target_rows[target_rows >= 0]] = True
        questions = np.repeat(np.arange(len(lists.sizes)), np.diff(queries.target_offsets))
        scores_of = np.cumsum(self.chosen) - 1
        for target in np.flatnonzero(~is_listed & self.chosen[questions]):
            row = questions[target]
            scores = self.scores[scores_of[row]]
            is_rival = np.ones(len(scores), np.bool_)
            is_rival[lists.candidates[lists.offsets[row] : lists.offsets[row + 1]]] = False
            is_rival[queries.targets[queries.target_offsets[row] : queries.target_offsets[row + 1]]] = False
            is_rival[queries.excluded[queries.excluded_offsets[row] : queries.excluded_offsets[row + 1]]] = False
            rivals, own = scores[is_rival], scores[queries.targets[target]]
            answers.better[target] = rivals_listed[row] + (rivals > own).sum()
            answers.equal[target] = (rivals == own).sum()
        answers.fired[self.chosen[questions]] = True


def _make_room(answers: AnswerArrays, old_sizes: NDArray[np.int64], lists: Lists) -> AnswerArrays:
    """Return answers that begin with the lists, without their evidence; candidates after the old lists follow."""
    added = lists.sizes - old_sizes
    n_queries, width = answers.best.shape
    longer = np.flatnonzero(added)
    rows, columns = np.nonzero(np.arange(width)[None, :] < answers.n_best[longer, None])
    questions = longer[rows]
    moved = columns + np.where(columns >= old_sizes[questions], added[questions], 0)
    changed = {"n_best": answers.n_best + added}
    for name, empty in (("best", -1), ("best_keys", 0), ("best_rules", -1), ("best_counts", 0)):
        narrow = getattr(answers, name)
        wide = np.full((n_queries, width + int(added.max(initial=0))), empty, narrow.dtype)
        wide[:, :width] = narrow
        wide[longer] = empty
        wide[questions, moved] = narrow[questions, columns]
        changed[name] = wide
    changed["best"][lists.questions, lists.positions] = lists.candidates
    changed["evidence"] = np.empty((*changed["best"].shape, 0), np.float32)  # the lists have it
    return answers._replace(**changed)


COLUMNS = ("entity", "relation", "asked", "candidate", "score")
ASKED = ("object", "subject")
UNSCORED = np.float32(10.0)  # how far a candidate without a score is below the lowest of its question


@dataclass(frozen=True, eq=False)
class ScoredAnswers:
    """The scores of some candidates of some questions, question by question."""

    n_entities: int
    n_directed: int
    keys: NDArray[np.int64]  # of the questions, sorted
    offsets: NDArray[np.int64]
    candidates: Ids
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
        sides = _texts(table, "asked", source).to_list()
        if not set(sides) <= set(ASKED):
            row = next(row for row, text in enumerate(sides) if text not in ASKED)
            raise DataError(f"{source}, row {row + 1}: expected {' or '.join(ASKED)} as asked, got {sides[row]!r}")
        relations += np.fromiter((text == ASKED[1] for text in sides), np.int64, len(sides)) * words.n_relations
        keys = entities.astype(np.int64) * (2 * words.n_relations) + relations
        order = np.argsort(keys, kind="stable")
        questions, firsts = np.unique(keys[order], return_index=True)
        offsets = np.append(firsts, len(order)).astype(np.int64)
        return cls(words.n_entities, 2 * words.n_relations, questions, offsets, candidates[order], values[order])

    @cached_property
    def digest(self) -> str:
        """A digest of the table."""
        digest = hashlib.blake2b(digest_size=16)
        for array in (self.keys, self.offsets, self.candidates, self.values):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def scores(self, entities: Ids, relations: Ids) -> Floats:
        """Return a score for each question and entity: a low one for those without, zeros for questions without any."""
        scores = np.zeros((len(entities), self.n_entities), np.float32)
        keys = entities.astype(np.int64) * self.n_directed + relations
        for row, position in enumerate(find_keys(keys, self.keys).tolist()):
            if position >= 0:
                own = slice(self.offsets[position], self.offsets[position + 1])
                scores[row] = self.values[own].min() - UNSCORED
                scores[row, self.candidates[own]] = self.values[own]
        return scores


def _numbers(table: pl.DataFrame, source: str) -> Floats:
    column = table["score"]
    numbers = column.cast(pl.Float32) if column.dtype.is_numeric() else None
    if numbers is None or numbers.null_count() or not numbers.is_finite().all():
        raise DataError(f"{source}: expected finite numbers in the column 'score', got {column.dtype}")
    return numbers.to_numpy().copy()


def _ids(encode: Callable[[pl.Series], Ids], table: pl.DataFrame, name: str, source: str) -> Ids:
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


SHORT = 50  # lists with fewer candidates are filled with those that fit without a rule
MOST_SCORES = 1 << 26  # of all entities, held in memory at a time
QUESTIONS_AT_A_TIME = 1024  # whose features are held in memory


@dataclass(frozen=True)
class Listing:
    """The answers of some queries, the candidates that the model reorders, and a row of features for each.

    `target_rows` are the rows of candidates among the targets, or -1; `fits` are the columns of the fallback, `more`
    those of another model; `ranks` are those of the targets by rules alone.
    """

    queries: QueryArrays
    answers: AnswerArrays
    lists: Lists
    target_rows: NDArray[np.int64]
    rows: Floats
    fits: Floats
    more: Floats | None
    ranks: Ranks


def list_candidates(
    lister: Ranker,
    queries: QueryArrays,
    groups: NDArray[np.uint8],
    fallback: Fallback,
    other: OtherModel | None = None,
    *,
    top_k: int = 0,
    keep_known: bool = False,
    progress: Progress | None = None,
) -> Listing:
    """Return the answers of `lister`, at least as many candidates as the model reorders, with their features.

    The best candidates of the `other` model follow those of the rules; without one, those of the `fallback` do where
    rules predict few.
    """
    answers = lister.answer(queries, top_k=max(TOP_K, top_k), keep_known=keep_known, groups=groups, progress=progress)
    lists = lists_of(answers, TOP_K)
    ranks = target_ranks(queries, answers, lister.graph.n_entities)
    chosen = (lists.sizes < SHORT) | (other is not None)
    opinion = Opinion.of(fallback if other is None else other, lister.ready, queries, chosen)
    answers, lists = opinion.add_candidates(answers, lists)
    target_rows = find_answers(lists, queries)
    opinion.rank_the_rest(lists, queries, target_rows, answers)
    fits = fallback.columns(queries.entities, queries.relations, lists.questions, lists.candidates)
    more = None if other is None else opinion.columns(lists)
    rows = rows_of(lister.ready, queries, answers, lists, joined_columns(fits, more))
    return Listing(queries, answers, lists, target_rows, rows, fits, more, ranks)


def joined_columns(fits: Floats, more: Floats | None) -> Floats:
    """Return all columns that do not come from rules."""
    return fits if more is None else np.column_stack([fits, more])


def answer_in_parts(
    lister: Ranker, queries: QueryArrays, answer: Callable[[QueryArrays], Answered]
) -> Iterator[tuple[NDArray[np.int64], Answered]]:
    """Yield the rows of some queries at a time, in order, with what `answer` makes of these.

    A few parts are under way together, since much of the work on one takes a single thread.
    """
    n_queries = len(queries.entities)
    size = max(1, min(QUESTIONS_AT_A_TIME, MOST_SCORES // max(1, lister.graph.n_entities)))
    parts = [np.arange(start, min(start + size, n_queries)) for start in range(0, n_queries, size)]
    at_once = 1 if len(parts) == 1 else lister.backend.at_once
    with closing(stream_from_threads(lambda rows: answer(take_queries(queries, rows)), parts, at_once)) as answered:
        yield from zip(parts, answered, strict=True)


def list_in_parts(
    lister: Ranker, queries: QueryArrays, groups: NDArray[np.uint8], other: OtherModel | None
) -> list[Listing]:
    """List the candidates of many queries, in parts."""
    fallback = Fallback(lister.graph, lister.backend.threads)
    listed = answer_in_parts(lister, queries, lambda part: list_candidates(lister, part, groups, fallback, other))
    return [listing for _, listing in listed]


ENOUGH_QUESTIONS = 1_500  # of the valid split: with fewer, facts of train are hidden and used as well
FEWEST_FOLDS = 10  # of train; there are more of a large one, since a graph that misses less is more like the whole
QUESTIONS_PER_FACT = 1.5  # or more: two, but for facts that answer the same question
MOST_FOLDS = 3  # that are used

Groups = NDArray[np.uint8]


@dataclass(frozen=True)
class HeldOutQuestions:
    """Questions whose answers `ranker` has not seen."""

    ranker: Ranker
    queries: QueryArrays
    groups: Groups
    n_facts: int

    def some(self, rows: NDArray[np.int64]) -> HeldOutQuestions:
        """Return some of the questions."""
        return replace(self, queries=take_queries(self.queries, rows))


def held_out_questions(
    ranker: Ranker, dataset: Dataset, groups: Groups, *, most: int, seed: int, from_train: bool = True
) -> list[HeldOutQuestions]:
    """Return at most `most` questions: those of the valid split and, where these are few, of folds of train.

    Only train and valid are used: filtering with test triples would leak. Without `from_train`, for a model that
    has seen all of train, valid must be enough.
    """
    rng, parts = np.random.default_rng(seed), []
    train, valid = dataset.train.triples, dataset.valid.triples
    if len(valid):
        queries, _ = make_queries(valid, [train, valid], dataset.vocabulary.n_relations)
        drawn = np.sort(rng.permutation(len(queries.entities))[:most])
        parts.append(HeldOutQuestions(ranker, queries, groups, len(valid)).some(drawn))
    can_be_hidden = np.ones(len(train), np.bool_)
    if ranker.block_connected:  # connected answers would be blocked
        can_be_hidden = joins_unconnected(train)
    n_folds = max(FEWEST_FOLDS, int(QUESTIONS_PER_FACT * can_be_hidden.sum()) // most)
    folds = np.where(can_be_hidden, np.random.default_rng(seed).permutation(len(train)) % n_folds, n_folds)
    enough = min(ENOUGH_QUESTIONS, most) if len(valid) else most
    for fold in range(MOST_FOLDS if from_train else 0):
        n_questions, chosen = sum(len(part.queries.entities) for part in parts), folds == fold
        if n_questions >= enough or not chosen.any() or chosen.all():
            break
        hidden = hide(ranker, dataset.train, chosen, groups)
        drawn = np.sort(rng.permutation(len(hidden.queries.entities))[: most - n_questions])
        parts.append(hidden.some(drawn))
    if not parts:
        lacks = "too few facts" if from_train else "no valid split"
        raise DataError(f"tuning needs held-out facts, and {dataset.name} has {lacks}")
    return parts


def hide(ranker: Ranker, train: TripleTable, chosen: NDArray[np.bool_], groups: Groups) -> HeldOutQuestions:
    """Return questions for some facts of train, with rules that are counted and applied on the other facts only.

    Rules with less support there than any learned rule has would not have been learned: they are left out.
    """
    options, rest = ranker.options, TripleTable(train.vocabulary, train.triples[~chosen])
    rules = rescore(ranker.rules, rest, object_identity=options.object_identity, threads=options.threads)
    least = int(ranker.rules.support.min()) if len(rules) else 1
    kept = np.flatnonzero(rules.support >= least)
    counted = make_ranker(graph_of(rest), rules.take(kept), options, block_connected=ranker.block_connected)
    queries, _ = make_queries(train.triples[chosen], [train.triples], ranker.graph.n_relations)
    return HeldOutQuestions(counted, queries, take_groups(groups, kept), int(chosen.sum()))


def take_groups(groups: Groups, rows: NDArray[np.int64]) -> Groups:
    """Return the groups of some rules and the highest group, so that there are as many groups as before."""
    return np.append(groups[rows], groups.max()).astype(np.uint8) if len(groups) else groups
