"""What the tests of ranking share: rules in columns, rankers, and what the reference says about a ranking."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from numpy.typing import NDArray

from anyburl import RuleSet, RuleType
from anyburl.ranking.arrays import AnswerArrays, QueryArrays
from anyburl.ranking.index import to_scores
from anyburl.ranking.options import RankOptions
from anyburl.ranking.ranker import Ranker
from anyburl.ranking.ranker import make_ranker as ranker_of
from kernels import arrays_of, table_of
from reference.graph import Triple
from reference.ranking import (
    Query,
    Rank,
    Strength,
    answered,
    best,
    connected,
    known_answers,
    predicting,
    rank,
    strength,
)
from strategies import RuleTuple, SmallGraph, binary_rules, graphs, grounded_rules, rules

AGGREGATIONS = ("max", "noisy-or", "noisy-or-top:1", "noisy-or-top:2", "noisy-or-top:7")

CODES = {str(name): name.code for name in RuleType}


class Scored(NamedTuple):
    """A rule and its counts; they need not be those of the graph."""

    rule: RuleTuple
    support: int
    predictions: int


class Case(NamedTuple):
    """A graph (its triples are train), rules, and triples that are held back."""

    graph: SmallGraph
    scored: list[Scored]
    valid: list[Triple]
    test: list[Triple]


def as_other_tools_write(rule: RuleTuple, n_entities: int, n_relations: int) -> RuleTuple:
    """The same rule with its atoms about `self` read backward: h(self,Y), b(self,A)."""
    kind, head, head_constant, body, body_constant = rule
    if head_constant == n_entities:
        head = (head + n_relations) % (2 * n_relations)
    if body_constant == n_entities:
        body = (*body[:-1], (body[-1] + n_relations) % (2 * n_relations))
    return kind, head, head_constant, body, body_constant


def any_rules(graph: SmallGraph) -> SearchStrategy[RuleTuple]:
    """Rules of all types, unary ones to length 3 and B to length 4; mostly such that predict."""
    n_entities, n_relations, triples = graph
    kinds = [rules(n_entities, n_relations), binary_rules(n_relations, max_length=4)]
    if triples:
        kinds += [grounded_rules(graph), grounded_rules(graph), grounded_rules(graph)]
    drawn = st.one_of(kinds)
    return st.one_of(drawn, drawn, drawn.map(lambda rule: as_other_tools_write(rule, n_entities, n_relations)))


def counts() -> SearchStrategy[tuple[int, int]]:
    """Support and predictions, so few that confidences are often equal; 0 and 1 among them."""
    return st.integers(1, 4).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@st.composite
def scored_rules(draw: DrawFn, graph: SmallGraph, max_rules: int = 14) -> list[Scored]:
    """Different rules, in any order."""
    found = draw(st.lists(any_rules(graph), max_size=max_rules, unique=True))
    return [Scored(rule, *draw(counts())) for rule in found]


@st.composite
def cases(draw: DrawFn, source: SearchStrategy[SmallGraph] | None = None) -> Case:
    """A graph with rules, and triples that may be held back or not, known or not."""
    graph = draw(graphs() if source is None else source)
    n_entities, n_relations, _ = graph
    entities = st.integers(0, n_entities - 1)
    held_back = st.lists(st.tuples(entities, st.integers(0, n_relations - 1), entities), unique=True, max_size=10)
    return Case(graph, draw(scored_rules(graph)), draw(held_back), draw(held_back))


def rule_set(graph: SmallGraph, scored: Sequence[Scored]) -> RuleSet:
    """The rules in columns."""
    bodies = list(dict.fromkeys(rule[3] for rule, _, _ in scored))
    width = max([1, *map(len, bodies)])
    found = [rule for rule, _, _ in scored]
    return RuleSet(
        vocabulary=table_of(graph).vocabulary,
        bodies=np.array([[*body, *[-1] * (width - len(body))] for body in bodies], np.int32).reshape(-1, width),
        type=np.array([CODES[rule[0]] for rule in found], np.uint8),
        head=np.array([rule[1] for rule in found], np.int32),
        body=np.array([bodies.index(rule[3]) for rule in found], np.int32),
        head_constant=np.array([-1 if rule[2] is None else rule[2] for rule in found], np.int32),
        body_constant=np.array([-1 if rule[4] is None else rule[4] for rule in found], np.int32),
        predictions=np.array([predictions for _, _, predictions in scored], np.int64),
        support=np.array([support for _, support, _ in scored], np.int32),
        exact=np.ones(len(found), np.bool_),
    )


def make_ranker(graph: SmallGraph, scored: Sequence[Scored], *, block: bool = False, **options: Any) -> Ranker:
    """A ranker on one thread, with confidences as they are."""
    chosen = RankOptions(**{"smoothing": 0.0, "threads": 1, **options})
    return ranker_of(arrays_of(graph), rule_set(graph, scored), chosen, block_connected=block)


def scores_of(scored: Sequence[Scored]) -> list[int]:
    """The whole scores that stand for the confidences."""
    confidences = [support / predictions for _, support, predictions in scored]
    return [int(score) for score in to_scores(np.array(confidences, np.float64))]


def all_queries(graph: SmallGraph) -> list[Query]:
    """Every question that can be asked."""
    return [(entity, d) for entity in range(graph[0]) for d in range(2 * graph[1])]


def as_table(triples: Iterable[Triple]) -> NDArray[np.int32]:
    return np.array(list(triples), np.int32).reshape(-1, 3)


NOT_COUNTED = -1


class Answer(NamedTuple):
    """All that comes of one query."""

    n_candidates: int  # NOT_COUNTED where ranks were found without looking at all candidates
    n_firings: int
    n_excluded: int  # targets are never counted
    best: list[tuple[int, int, int, int]]  # with the first number of their strength, their best rule, how many rules
    ranks: dict[int, Rank]
    target_rules: dict[int, int]


class Judge:
    """The reference's view of a case: what each rule answers is worked out once."""

    def __init__(self, case: Case, object_identity: bool = True) -> None:
        n_entities, n_relations, triples = case.graph
        self.case, self.scores = case, scores_of(case.scored)
        self.answers = [answered(triples, n_entities, n_relations, rule, object_identity) for rule, _, _ in case.scored]

    def firings(self, query: Query) -> list[tuple[int, int]]:
        """(candidate, rule) in order."""
        return sorted((candidate, row) for candidate, rows in predicting(self.answers, query).items() for row in rows)

    def targets(self) -> dict[Query, list[int]]:
        """The questions that the test triples ask, and their answers, in order."""
        found: dict[Query, set[int]] = {}
        for s, r, o in self.case.test:
            found.setdefault((s, r), set()).add(o)
            found.setdefault((o, r + self.case.graph[1]), set()).add(s)
        return {query: sorted(found[query]) for query in sorted(found)}

    def answer(self, query: Query, targets: Sequence[int], aggregation: str, block: bool, top_k: int) -> Answer:
        """Rank the targets; other known answers are left out, and with `block` all that is connected."""
        n_entities, n_relations, train = self.case.graph
        known = known_answers([train, self.case.valid, self.case.test], n_relations, query)
        blocked = connected(train, query[0]) if block else set()
        excluded = (known - set(targets)) | blocked
        rows = {c: found for c, found in predicting(self.answers, query).items() if c not in excluded}
        strengths = {c: self.strength(found, aggregation) for c, found in rows.items()}
        return Answer(
            n_candidates=len(rows),
            n_firings=sum(map(len, rows.values())),
            n_excluded=len(excluded - set(targets)),
            best=[(c, strengths[c][0], self.best_rule(rows[c]), len(rows[c])) for c in best(strengths, top_k)],
            ranks={t: rank(strengths, n_entities, t, known | blocked) for t in targets},
            target_rules={t: self.best_rule(rows[t]) if t in rows else -1 for t in targets},
        )

    def best_rule(self, rows: Iterable[int]) -> int:
        """The rule with the highest score, of equals the first."""
        return max(rows, key=lambda row: (self.scores[row], -row))

    def strength(self, rows: Iterable[int], aggregation: str) -> Strength:
        return strength([self.scores[row] for row in rows], aggregation)


def read_answers(queries: QueryArrays, answers: AnswerArrays, n_entities: int) -> dict[Query, Answer]:
    """The kernels' answers, in the reference's words."""
    found: dict[Query, Answer] = {}
    for q, query in enumerate(zip(queries.entities.tolist(), queries.relations.tolist(), strict=True)):
        places = range(queries.target_offsets[q], queries.target_offsets[q + 1])
        kept = slice(0, int(answers.n_best[q]))
        columns = (answers.best, answers.best_keys, answers.best_rules, answers.best_counts)
        found[query] = Answer(
            n_candidates=int(answers.n_candidates[q]),
            n_firings=int(answers.n_firings[q]),
            n_excluded=int(answers.n_excluded[q]),
            best=list(zip(*(column[q, kept].tolist() for column in columns), strict=True)),
            ranks={int(queries.targets[i]): read_rank(answers, q, i, places, n_entities) for i in places},
            target_rules={int(queries.targets[i]): int(answers.target_rules[i]) for i in places},
        )
    return found


def assert_answers(found: dict[Query, Answer], expected: dict[Query, Answer], *, may_prune: bool) -> None:
    """The same answers; where it is allowed, and every target is predicted, candidates need not be counted."""
    assert found.keys() == expected.keys()
    for query, answer in found.items():
        wanted = expected[query]
        if answer.n_candidates == NOT_COUNTED:
            assert may_prune, query
            assert answer.ranks, query
            assert min(answer.target_rules.values()) >= 0, query
            wanted = wanted._replace(n_candidates=NOT_COUNTED, n_firings=NOT_COUNTED)
        assert answer == wanted, query


def read_rank(answers: AnswerArrays, q: int, i: int, places: range, n_entities: int) -> Rank:
    """A target that no rule predicts comes after all candidates but its fellow targets, and ties with the rest."""
    if answers.fired[i]:
        return Rank(int(answers.better[i]), int(answers.equal[i]))
    better = int(answers.n_candidates[q]) - sum(bool(answers.fired[place]) for place in places)
    return Rank(better, n_entities - int(answers.n_excluded[q]) - len(places) - better)
