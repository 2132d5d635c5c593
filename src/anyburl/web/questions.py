"""The answers to a question, as pages and the API show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.explanation.record import Fact
from anyburl.graph.lookup import split_names
from anyburl.reasoning.predicting import AnswerColumns, answer_columns
from anyburl.reasoning.queries import Query, Questions, encode_queries, encode_query
from anyburl.reasoning.reasoner import Reasoner


@dataclass(frozen=True)
class Candidate:
    """One answer."""

    rank: int
    entity: str
    triple: Fact
    score: float
    probability: float | None
    known: tuple[str, ...]
    rule: int | None  # the row of the best; None if no rule predicts it
    n_rules: int


@dataclass(frozen=True)
class Ranking:
    """Some of the answers to one question, and how many there are."""

    query: Query
    candidates: tuple[Candidate, ...]
    n_candidates: int
    n_known: int  # answers in train that were left out


def ask(reasoner: Reasoner, query: Query, *, first: int = 0, top: int, include_known: bool) -> Ranking:
    """Return the answers from place `first` (counted from 0) on, at most `top`."""
    entity, relation = encode_query(query, reasoner.vocabulary, reasoner.names)
    (found,) = answer_columns(
        reasoner.ranker, reasoner.dataset, Questions.one(entity, relation), top=first + top, include_known=include_known
    )
    return Ranking(query, tuple(candidates(reasoner, found)[first:]), int(found.n_candidates[0]), int(found.n_known[0]))


def candidates(reasoner: Reasoner, found: AnswerColumns) -> list[Candidate]:
    """Return rows of answers as objects."""
    vocabulary = reasoner.vocabulary
    probabilities = _probabilities(reasoner, found.triples[:, 1], found.scores)
    return [
        Candidate(
            rank=int(found.ranks[row]),
            entity=vocabulary.entity_label(int(found.entities[row])),
            triple=vocabulary.triple_labels(*triple),
            score=float(found.scores[row]),
            probability=probabilities[row],
            known=split_names(int(found.known[row])),
            rule=int(found.rules[row]) if found.rules[row] >= 0 else None,
            n_rules=int(found.n_rules[row]),
        )
        for row, triple in enumerate(found.triples.tolist())
    ]


def _probabilities(
    reasoner: Reasoner, relations: NDArray[np.int32], scores: NDArray[np.float64]
) -> list[float] | list[None]:
    if reasoner.calibration is None:
        return [None] * len(scores)
    return [float(value) for value in reasoner.calibration.probabilities(relations, scores)]


def probability_of(reasoner: Reasoner, relation: str, score: float) -> float | None:
    """Return the probability of one fact; None where scores are not calibrated."""
    number = reasoner.vocabulary.relation_id(relation)
    return _probabilities(reasoner, np.array([number], np.int32), np.array([score]))[0]


def predicted_facts(reasoner: Reasoner, entity: str, *, top: int, per_question: int = 5) -> list[Candidate]:
    """Return the best new facts that rules predict about an entity, of all relations and in both directions."""
    number, n_relations = reasoner.vocabulary.entity_id(entity), reasoner.vocabulary.n_relations
    relations = np.arange(2 * n_relations, dtype=np.int32)
    questions = Questions(np.full(len(relations), number, np.int32), relations)
    found = [
        candidate
        for columns in answer_columns(
            reasoner.ranker, reasoner.dataset, questions, top=per_question, include_known=False
        )
        for candidate in candidates(reasoner, columns)
        if not candidate.known and candidate.rule is not None
    ]
    distinct = {candidate.triple: candidate for candidate in sorted(found, key=lambda one: one.score)}
    return sorted(distinct.values(), key=lambda one: (-one.score, -one.n_rules, one.triple))[:top]


def ask_many(reasoner: Reasoner, queries: Sequence[Query], *, top: int, include_known: bool) -> list[list[Candidate]]:
    """Return the best answers to each of many questions."""
    questions = encode_queries(queries, reasoner.vocabulary, reasoner.names)
    found: list[list[Candidate]] = [[] for _ in queries]
    for columns in answer_columns(reasoner.ranker, reasoner.dataset, questions, top=top, include_known=include_known):
        for number, candidate in zip(columns.questions.tolist(), candidates(reasoner, columns), strict=True):
            found[number].append(candidate)
    return found
