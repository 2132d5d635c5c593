"""Facts, answers and explanations in the portions that pages and the API show."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from anyburl.data.dataset import SPLITS
from anyburl.graph.build import known_answers, split_names
from anyburl.ranking.options import parse_aggregation
from anyburl.reasoning.explanation.explain import Explanation, near_misses
from anyburl.reasoning.explanation.record import Fact, NearMiss, Reason
from anyburl.reasoning.explanation.rule_examples import RuleExamples
from anyburl.reasoning.queries import AnswerColumns, Query, QueryIds, answer_columns, encode_queries, encode_query
from anyburl.reasoning.reasoner import Reasoner

Ints = NDArray[np.int32]


@dataclass(frozen=True)
class StatedEnd:
    """The other end of a fact, and the splits that state it."""

    entity: str
    splits: tuple[str, ...]


@dataclass(frozen=True)
class FactsOfRelation:
    """The facts of an entity by one relation, some of `n_facts`; `backward`: the entity is their object."""

    relation: str
    backward: bool
    n_facts: int
    facts: tuple[StatedEnd, ...]


class EntityFacts:
    """The facts of one entity in all splits."""

    def __init__(self, reasoner: Reasoner, entity: str) -> None:
        self._vocabulary, self._graph = reasoner.vocabulary, reasoner.ranker.graph
        self._entity = self._vocabulary.entity_id(entity)
        self._others = [self._held(reasoner.dataset.split(split).triples) for split in SPLITS[1:]]

    def _held(self, triples: Ints) -> Ints:
        """Return (directed relation, other end) of a split's facts about the entity."""
        forward, backward = triples[triples[:, 0] == self._entity], triples[triples[:, 2] == self._entity]
        shifted = np.column_stack([backward[:, 1] + self._vocabulary.n_relations, backward[:, 0]])
        return np.concatenate([forward[:, 1:], shifted])

    def groups(self, shown: int) -> list[FactsOfRelation]:
        """Return the facts by relation and direction, `shown` of each, the largest groups first."""
        groups = [self.group(directed, 0, shown) for directed in self._directed_relations()]
        return sorted(groups, key=lambda group: (group.backward, -group.n_facts, group.relation))

    def group(self, directed: int, first: int, top: int) -> FactsOfRelation:
        """Return `top` facts by one directed relation, from number `first` on."""
        parts = [known_answers(self._graph, self._entity, directed)]
        parts += [held[held[:, 0] == directed, 1] for held in self._others]
        ends = np.unique(np.concatenate(parts)).astype(np.int64)
        bits = np.zeros(len(ends), np.int64)
        for bit, part in enumerate(parts):
            bits[np.searchsorted(ends, part)] |= 1 << bit
        page = zip(ends[first : first + top].tolist(), bits[first : first + top].tolist(), strict=True)
        stated = tuple(StatedEnd(self._vocabulary.entity_label(end), split_names(held)) for end, held in page)
        relation, backward = directed % self._vocabulary.n_relations, directed >= self._vocabulary.n_relations
        return FactsOfRelation(self._vocabulary.relation_label(relation), backward, len(ends), stated)

    def held_out(self, top: int) -> list[Fact]:
        """Return up to `top` facts of valid and test."""
        vocabulary, facts = self._vocabulary, np.concatenate(self._others)[:top]
        own, n_relations = self._entity, vocabulary.n_relations
        return [
            vocabulary.triple_labels(own, relation, end)
            if relation < n_relations
            else vocabulary.triple_labels(end, relation - n_relations, own)
            for relation, end in facts.tolist()
        ]

    def _directed_relations(self) -> list[int]:
        start, end = (int(self._graph.segment_offsets[self._entity + i]) for i in (0, 1))
        in_train = {int(directed) for directed in self._graph.segment_relations[start:end]}
        return sorted(in_train.union(*(held[:, 0].tolist() for held in self._others)))


@dataclass(frozen=True)
class RelationFacts:
    """How often a relation is stated, and some of its facts in train."""

    n_facts: dict[str, int]
    n_subjects: int
    n_objects: int
    examples: tuple[tuple[str, str], ...]


def relation_facts(reasoner: Reasoner, relation: str, *, first: int, top: int) -> RelationFacts:
    """Return the counts of a relation, and `top` of its facts in train from number `first` on."""
    vocabulary, graph = reasoner.vocabulary, reasoner.ranker.graph
    number = vocabulary.relation_id(relation)
    train = reasoner.dataset.train.triples
    rows = np.flatnonzero(train[:, 1] == number)
    shown = train[rows[first : first + top]][:, [0, 2]].tolist()
    domain = graph.domain_offsets
    return RelationFacts(
        {split: int((reasoner.dataset.split(split).triples[:, 1] == number).sum()) for split in SPLITS},
        int(domain[number + 1] - domain[number]),
        int(domain[number + vocabulary.n_relations + 1] - domain[number + vocabulary.n_relations]),
        tuple((vocabulary.entity_label(subject), vocabulary.entity_label(object)) for subject, object in shown),
    )


@dataclass(frozen=True)
class Paging:
    """Which rows of `n_rows` a page shows, `size` at a time; pages count from 1."""

    page: int
    size: int
    n_rows: int

    @property
    def first(self) -> int:
        return (self.page - 1) * self.size

    @property
    def last(self) -> int:
        return min(self.first + self.size, self.n_rows)

    @property
    def n_pages(self) -> int:
        return max(1, -(-self.n_rows // self.size))


@dataclass(frozen=True)
class Candidate:
    """One answer."""

    rank: int
    entity: str
    triple: Fact
    score: float
    probability: float | None
    conflict: Fact | None  # what is stated, and contradicts it
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


def answer_question(reasoner: Reasoner, query: Query, *, first: int = 0, top: int, include_known: bool) -> Ranking:
    """Return at most `top` answers from number `first` (counted from 0) on."""
    entity, relation = encode_query(query, reasoner.vocabulary, reasoner.names, reasoner.dataset.train.triples)
    (columns,) = answer_columns(
        reasoner.ranker, reasoner.dataset, QueryIds.one(entity, relation), top=first + top, include_known=include_known
    )
    rows = np.arange(first, len(columns.entities))
    shown = judged(reasoner, candidates(reasoner, columns, rows), columns.triples[rows])
    return Ranking(query, tuple(shown), int(columns.n_candidates[0]), int(columns.n_known[0]))


def candidates(reasoner: Reasoner, columns: AnswerColumns, rows: NDArray[np.int64] | None = None) -> list[Candidate]:
    """Return all or some rows of answers as objects, not `judged` yet."""
    vocabulary = reasoner.vocabulary
    chosen = np.arange(len(columns.entities)) if rows is None else rows
    return [
        Candidate(
            rank=int(columns.ranks[row]),
            entity=vocabulary.entity_label(int(columns.entities[row])),
            triple=vocabulary.triple_labels(*triple),
            score=float(columns.scores[row]),
            probability=None,
            conflict=None,
            known=split_names(int(columns.known[row])),
            rule=int(columns.rules[row]) if columns.rules[row] >= 0 else None,
            n_rules=int(columns.n_rules[row]),
        )
        for row, triple in zip(chosen.tolist(), columns.triples[chosen].tolist(), strict=True)
    ]


def judged(reasoner: Reasoner, answers: Sequence[Candidate], triples: Ints) -> list[Candidate]:
    """Return answers with probabilities and the stated facts that contradict them; what is stated has neither.

    `triples` are the ids of the answers, a row each.
    """
    new = [row for row, answer in enumerate(answers) if not answer.known]
    verdicts = reasoner.judge.verdicts(reasoner.calibration, triples[new].astype(np.int32)) if new else []
    with_verdicts = list(answers)
    for row, verdict in zip(new, verdicts, strict=True):
        with_verdicts[row] = replace(answers[row], **verdict._asdict())
    return with_verdicts


def predicted_facts(
    reasoner: Reasoner, entity: str, *, top: int, per_question: int = 5, at_a_time: int | None = None
) -> Iterator[list[Candidate]]:
    """Yield the best new facts that rules predict about an entity, of all relations and in both directions.

    With `at_a_time`, so many relations are asked for first, those that the entity has facts of, and twice as many each
    time after that. The best so far are yielded each time: of a hub, some questions take seconds.
    """
    number, n_relations = reasoner.vocabulary.entity_id(entity), reasoner.vocabulary.n_relations
    graph = reasoner.ranker.graph
    first, last = (int(graph.segment_offsets[number + i]) for i in (0, 1))
    relations = np.arange(2 * n_relations, dtype=np.int32)
    sizes = np.zeros(2 * n_relations, np.int64)
    sizes[graph.segment_relations[first:last]] = np.diff(graph.segment_starts[first : last + 1])
    relations = relations[np.lexsort((sizes, sizes == 0))]  # of the relations it has, the largest take longest
    best: list[tuple[Candidate, Ints]] = []
    start, size = 0, at_a_time or len(relations)
    while start < len(relations):
        part = relations[start : start + size]
        start, size = start + size, 2 * size
        questions = QueryIds(np.full(len(part), number, np.int32), part)
        for columns in answer_columns(
            reasoner.ranker, reasoner.dataset, questions, top=per_question, include_known=False
        ):
            rows = _best_rows(columns, top)
            best += zip(candidates(reasoner, columns, rows), columns.triples[rows], strict=True)
        distinct = {one.triple: (one, ids) for one, ids in reversed(best)}
        best = sorted(distinct.values(), key=lambda one: (-one[0].score, -one[0].n_rules, one[0].triple))[:top]
        ids = np.array([ids for _, ids in best], np.int32).reshape(-1, 3)
        yield judged(reasoner, [one for one, _ in best], ids)


def _best_rows(columns: AnswerColumns, top: int) -> NDArray[np.int64]:
    """Return the rows of the `top` new facts that rules predict with the highest scores, each fact once."""
    rows = np.flatnonzero((columns.known == 0) & (columns.rules >= 0))
    subjects, relations, objects = columns.triples[rows].T
    rows = rows[np.lexsort((objects, relations, subjects, -columns.n_rules[rows], -columns.scores[rows]))]
    _, firsts = np.unique(columns.triples[rows], axis=0, return_index=True)  # of a fact that both questions have
    chosen: NDArray[np.int64] = rows[np.sort(firsts)[:top]]
    return chosen


def answer_questions(
    reasoner: Reasoner, queries: Sequence[Query], *, top: int, include_known: bool
) -> list[list[Candidate]]:
    """Return the best answers to each of many questions."""
    questions = encode_queries(queries, reasoner.vocabulary, reasoner.names)
    answers: list[list[Candidate]] = [[] for _ in queries]
    for columns in answer_columns(reasoner.ranker, reasoner.dataset, questions, top=top, include_known=include_known):
        shown = judged(reasoner, candidates(reasoner, columns), columns.triples)
        for number, candidate in zip(columns.questions.tolist(), shown, strict=True):
            answers[number].append(candidate)
    return answers


LOW = 10  # explanations of candidates below this rank list rules that nearly fire
N_NEAR = 3


@dataclass(frozen=True)
class Step:
    """One rule's part of the score: its share, and the score of this rule and all before it."""

    reason: Reason
    total: float | None


@dataclass(frozen=True)
class Why:
    """The reasons for a triple, what they add up to, where the best rule was wrong, and which rules nearly fire."""

    explanation: Explanation
    score: float
    probability: float | None
    conflict: Fact | None
    steps: tuple[Step, ...]
    examples: RuleExamples | None
    near_misses: tuple[NearMiss, ...]


def explain_for_page(
    reasoner: Reasoner, triple: Fact, examples_of: Callable[[int], RuleExamples], *, top: int, groundings: int
) -> Why:
    """Explain a triple, with examples of the best rule, and rules that nearly fire if it is ranked low or unranked."""
    explanation = reasoner.explain(triple, top=top, groundings=groundings)
    score = explanation.score or explanation.score_subject
    best = explanation.reasons[0].row if explanation.reasons else None
    return Why(
        explanation,
        score,
        *reasoner.verdict(triple),
        _steps(explanation.reasons, explanation.aggregation),
        None if best is None else examples_of(best),
        _near_misses(reasoner, explanation),
    )


def _near_misses(reasoner: Reasoner, explanation: Explanation) -> tuple[NearMiss, ...]:
    ranks = [rank for rank in (explanation.rank, explanation.rank_subject) if rank is not None]
    if explanation.n_reasons and (explanation.blocked or any(rank <= LOW for rank in ranks)):
        return ()
    return near_misses(reasoner.ranker, explanation.triple, top=N_NEAR)


def _steps(reasons: Sequence[Reason], aggregation: str) -> tuple[Step, ...]:
    """Return the score after each rule; None where a model combines them."""
    parsed = parse_aggregation(aggregation)
    if parsed.needs_model:
        return tuple(Step(reason, None) for reason in reasons)
    counted, left = parsed.n_counted, 1.0
    steps = []
    for i, reason in enumerate(reasons):
        if counted is None or i < counted:
            left *= 1 - reason.confidence
        steps.append(Step(reason, 1 - left))
    return tuple(steps)
