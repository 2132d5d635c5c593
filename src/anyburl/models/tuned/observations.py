"""The best candidates of each query as rows of features, reordered by a model; scored answers compared with a split."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anyburl.data.table import find_keys
from anyburl.graph.build import answer_counts, degrees, relation_counts
from anyburl.graph.kernel import inverses
from anyburl.models.calibration import logistic
from anyburl.models.tuned.kernel import sort_lists
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.index import to_confidences, to_scores
from anyburl.ranking.kernel_order import N_BEST, PER_GROUP, UNIT
from anyburl.ranking.ranker import ReadyRules
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS, TYPE_OF_END

TOP_K = 100  # candidates of the rules that the model reorders; others stay behind them
LONGEST_GROUP = 5
Floats = NDArray[np.float32]


def rule_groups(rules: RuleSet) -> NDArray[np.uint8]:
    """Put rules of one type and length into a group, lengths from 5 on together; groups are numbered from 0.

    Rules with a condition are in the groups of those without.
    """
    types = np.array([TYPE_OF_END[kind.form.without_condition or kind.form.end].code for kind in KINDS])[rules.type]
    lengths = rules.lengths - (rules.has_condition & rules.is_binary)
    codes = types * (LONGEST_GROUP + 1) + np.minimum(lengths, LONGEST_GROUP)
    present = np.bincount(codes, minlength=1) > 0
    groups: NDArray[np.uint8] = (np.cumsum(present) - 1)[codes].astype(np.uint8)
    return groups


def evidence_row(scores: NDArray[np.int64], groups: NDArray[np.uint8], n_columns: int) -> Floats:
    """Return the evidence of rules with these scores, as the kernel `tell_evidence` writes it."""
    row = np.zeros(n_columns, np.float32)
    units = scores / UNIT
    row[: min(len(units), N_BEST)] = -np.sort(-units)[:N_BEST]
    for unit, group in zip(units.tolist(), groups.tolist(), strict=True):
        column = N_BEST + PER_GROUP * group
        row[column] = max(row[column], unit)
        row[column + 1] += unit
        row[column + 2] += 1
    return row


@dataclass(frozen=True)
class Lists:
    """The best candidates of some queries, query after query; each has `sizes`."""

    sizes: NDArray[np.int64]
    candidates: NDArray[np.int32]
    evidence: Floats

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """The first candidate of each query, and how many there are."""
        return np.concatenate([[0], np.cumsum(self.sizes)]).astype(np.int64)

    @cached_property
    def questions(self) -> NDArray[np.int64]:
        """The query of each candidate."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def positions(self) -> NDArray[np.int64]:
        """The position of each candidate in its list."""
        return np.arange(len(self.candidates)) - np.repeat(self.offsets[:-1], self.sizes)


def lists_of(answers: AnswerArrays, longest: int) -> Lists:
    """Return the lists of candidates in `answers`, cut to `longest`."""
    sizes = np.minimum(answers.n_best, longest)
    kept = np.arange(answers.best.shape[1])[None, :] < sizes[:, None]
    return Lists(sizes, answers.best[kept], answers.evidence[kept])


def rows_of(
    ready: ReadyRules, queries: QueryArrays, answers: AnswerArrays, lists: Lists, more: Floats | None = None
) -> Floats:
    """Return one row for each candidate: the evidence for it, how that compares, and how common all of it is.

    `more` are columns of another model.
    """
    evidence, questions = lists.evidence, lists.questions
    sums = evidence[:, N_BEST + 1 :: PER_GROUP].sum(axis=1)
    n_rules = evidence[:, N_BEST + 2 :: PER_GROUP].sum(axis=1)
    best = np.full(len(lists.sizes), -np.inf, np.float32)
    np.maximum.at(best, questions, sums)
    relations = queries.relations[questions]
    graph, back = ready.facts, inverses(queries.relations, ready.facts.n_relations)
    counts = answer_counts(graph, lists.candidates, back[questions])
    all_counts = relation_counts(ready.graph, ready.index.edges.starts)
    edges, answers_of, askers_of = (figures[relations] for figures in all_counts)
    context = [
        sums,
        best[questions] - sums,
        n_rules,
        np.log1p(lists.positions),
        np.log1p(counts),
        counts / np.maximum(edges, 1),
        np.log1p(degrees(graph, lists.candidates)),
        np.log1p(degrees(graph, queries.entities))[questions],
        np.log1p(answer_counts(graph, queries.entities, queries.relations))[questions],
        np.log1p(answers_of),
        np.log1p(edges) - np.log1p(askers_of),
        np.log1p(answers.n_candidates)[questions],
    ]
    n_columns = evidence.shape[1]
    rows = np.empty((len(evidence), n_columns + len(context) + (0 if more is None else more.shape[1])), np.float32)
    rows[:, :n_columns] = evidence
    for column, values in enumerate(context, n_columns):
        rows[:, column] = values
    if more is not None:
        rows[:, n_columns + len(context) :] = more
    return rows


def find_answers(lists: Lists, queries: QueryArrays) -> NDArray[np.int64]:
    """Return the row of each candidate of the lists among the targets, or -1 if it is none.

    The targets of a question are sorted, and questions follow each other: question and entity make sorted keys.
    """
    span = int(max(lists.candidates.max(initial=0), queries.targets.max(initial=0))) + 1
    keys = np.repeat(np.arange(len(lists.sizes)), np.diff(queries.target_offsets)) * span + queries.targets
    candidates = lists.questions * span + lists.candidates
    return find_keys(candidates, keys)


def rerank(
    lists: Lists,
    queries: QueryArrays,
    targets: NDArray[np.int64],
    scores: NDArray[np.float64],
    answers: AnswerArrays,
) -> None:
    """Overwrite in `answers` how many candidates rank before each target, and with it.

    `targets` come from `find_answers`. Other targets are known answers: they do not count against each other. A target
    that is not listed ranks after all that are, also after those that it tied with.
    """
    rivals_listed = np.bincount(lists.questions[targets < 0], minlength=len(lists.sizes))
    before = np.repeat(rivals_listed, np.diff(queries.target_offsets)) - answers.better
    moved = np.clip(before, 0, answers.equal)
    answers.better[:] += moved
    answers.equal[:] -= moved
    table = np.full((len(lists.sizes), int(lists.sizes.max(initial=0))), -np.inf)
    questions = lists.questions
    table[questions, lists.positions] = np.where(targets >= 0, -np.inf, scores)
    rows = np.flatnonzero(targets >= 0)
    rivals, own = table[questions[rows]], scores[rows, None]
    answers.better[targets[rows]] = (rivals > own).sum(axis=1)
    answers.equal[targets[rows]] = (rivals == own).sum(axis=1)


def reorder(lists: Lists, scores: NDArray[np.float64], answers: AnswerArrays) -> None:
    """Sort the candidates in `answers.best` by `scores`, and set their `best_keys`.

    Keys stand for the logistic of the model's score: an order from 0 to 1, not a probability. What comes after the
    lists stays below them.
    """
    questions, positions, order = lists.questions, lists.positions, np.empty(len(scores), np.int64)
    sort_lists(lists.offsets, scores, lists.candidates, order)
    confidences = logistic(scores[order])
    for column in (answers.best, answers.best_rules, answers.best_counts):
        column[questions, positions] = column[questions, positions][order]
    lowest = np.ones(len(lists.sizes))
    np.minimum.at(lowest, questions, confidences)
    later = np.arange(answers.best.shape[1])[None, :] >= lists.sizes[:, None]
    below = to_confidences(answers.best_keys) * lowest[:, None]
    answers.best_keys[later] = to_scores(below[later])
    answers.best_keys[questions, positions] = to_scores(confidences)


def question_folds(entities: NDArray[np.int32], relations: NDArray[np.int32], n_folds: int) -> NDArray[np.int64]:
    """Put questions (entity, directed relation, ?) into folds, at random but always in the same way."""
    mixed = np.zeros(len(entities), np.uint64)
    for column in (entities, relations):
        mixed = (mixed ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    return (mixed % np.uint64(n_folds)).astype(np.int64)


def folds_of_other_questions(
    relations: NDArray[np.int32], lists: Lists, n_relations: int, n_folds: int
) -> NDArray[np.int64]:
    """Return, for each candidate of a question (entity, directed relation, ?), the fold of the question that has the
    entity as an answer: (candidate, inverse relation, ?). Both are about the same fact.
    """
    back = inverses(relations, n_relations)[lists.questions]
    return question_folds(lists.candidates, back.astype(np.int32), n_folds)
