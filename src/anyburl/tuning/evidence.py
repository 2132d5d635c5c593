"""The evidence for each of the best candidates of a query, as rows of features for a model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.graph.arrays import inverses
from anyburl.graph.lookup import answer_counts, degrees, relation_counts
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.kernel_evidence import N_BEST, PER_GROUP, UNIT
from anyburl.ranking.ready import ReadyRules
from anyburl.ruleset.ruleset import RuleSet

LONGEST_GROUP = 5
Floats = NDArray[np.float32]


def rule_groups(rules: RuleSet) -> NDArray[np.uint8]:
    """Put rules of one type and length into a group, lengths from 5 on together; groups are numbered from 0."""
    codes = rules.type.astype(np.int64) * (LONGEST_GROUP + 1) + np.minimum(rules.lengths, LONGEST_GROUP)
    present = np.bincount(codes, minlength=1) > 0
    groups: NDArray[np.uint8] = (np.cumsum(present) - 1)[codes].astype(np.uint8)
    return groups


def evidence_row(scores: NDArray[np.int64], groups: NDArray[np.uint8], n_columns: int) -> Floats:
    """Return the evidence that rules with these scores give, as the kernel `tell_evidence` tells it."""
    row = np.zeros(n_columns, np.float32)
    units = scores / UNIT
    row[: min(len(units), N_BEST)] = -np.sort(-units)[:N_BEST]
    for unit, group in zip(units.tolist(), groups.tolist(), strict=True):
        place = N_BEST + PER_GROUP * group
        row[place] = max(row[place], unit)
        row[place + 1] += unit
        row[place + 2] += 1
    return row


@dataclass(frozen=True)
class Lists:
    """The best candidates of some queries, query after query: `sizes` says how many each has."""

    sizes: NDArray[np.int64]
    candidates: NDArray[np.int32]
    evidence: Floats

    @property
    def questions(self) -> NDArray[np.int64]:
        """The query of each candidate."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def places(self) -> NDArray[np.int64]:
        """The place of each candidate in its list."""
        starts = np.cumsum(self.sizes) - self.sizes
        return np.arange(len(self.candidates)) - np.repeat(starts, self.sizes)


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
        np.log1p(lists.places),
        np.log1p(counts),
        counts / np.maximum(edges, 1),
        np.log1p(degrees(graph, lists.candidates)),
        np.log1p(degrees(graph, queries.entities))[questions],
        np.log1p(answer_counts(graph, queries.entities, queries.relations))[questions],
        np.log1p(answers_of),
        np.log1p(edges) - np.log1p(askers_of),
        np.log1p(answers.n_candidates)[questions],
    ]
    return np.column_stack([evidence, *context, *([] if more is None else [more])]).astype(np.float32)
