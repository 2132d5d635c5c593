"""`examine_rule`: where a rule is right, where it is wrong, and what new facts it predicts.

An *example* is a prediction that train states. A *counter-example* is one that no split states and that the partial
completeness assumption judges to be wrong: train states other facts of the head's relation about the same subject (or
the same object, whichever is the more functional direction of the relation). What remains is *new*: predictions that
train does not state and nothing speaks against, those that valid or test state among them.

Groundings are the facts that make a rule predict a triple (`find_groundings`).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base import checking
from anyburl.bodies.conditions import is_conditional, members_of, walk_of
from anyburl.data.dataset import Dataset
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import Ids, held_by, known_answers, split_names
from anyburl.graph.kernel import inverses
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.explanation.kernel import ANYWHERE, WalkGoal, degree_along, empty_search, find_walks
from anyburl.reasoning.explanation.record import Fact, Grounding
from anyburl.rules.rule import Rule
from anyburl.rules.ruleset import RuleSet

MOST_TRIED = 200_000
"""Once there is a grounding, others are looked for among this many entities."""


class Task(NamedTuple):
    """What a rule needs to predict a fact: where its body starts and ends, see `make_task`."""

    body: NDArray[np.int32]  # without a condition
    start: int
    end: int  # -1 for anywhere,
    ends: NDArray[np.bool_]  # but there the condition of the rule has to hold; empty if it has none
    avoided: int


def body_ends(
    rules: RuleSet, rows: NDArray[np.integer], subjects: NDArray[np.int32] | int, objects: NDArray[np.int32] | int
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return where the bodies of rules must start and end (-1: anywhere) to predict facts with these subjects and
    objects, and the entity that they must avoid (-1: none): the head's constant.
    """
    constants = rules.head_constant[rows]
    starts = np.where(rules.head[rows] < rules.vocabulary.n_relations, subjects, objects).astype(np.int32)
    ends = np.where(constants < 0, objects, rules.body_constant[rows]).astype(np.int32)
    return starts, ends, constants


def make_task(rules: RuleSet, row: int, start: int, end: int) -> Task:
    """Return what has to be walked for the rule at `row` to hold between two entities; -1 for any `end`."""
    body, ends = walk_of(rules, row, start)
    return Task(body, start, end, ends, int(rules.head_constant[row]))


def task_of(rules: RuleSet, row: int, triple: Ids) -> Task:
    """Return what has to be walked for the rule at `row` to predict `triple`."""
    start, end, _ = (int(one[0]) for one in body_ends(rules, np.array([row]), triple[0], triple[2]))
    return make_task(rules, row, start, end)


def find_groundings(ranker: Ranker, row: int, triple: Ids, limit: int) -> tuple[Grounding, ...]:
    """Return up to `limit` groundings of the rule at `row` that predict `triple`."""
    rule = ranker.rules.rule(row)
    if limit < 1 or not rule.parts:
        return ()
    walks = find_task_walks(ranker, task_of(ranker.rules, row, triple), limit)
    return tuple(grounding(rule, walk, ranker.vocabulary) for walk in walks)


def grounding(rule: Rule, walk: Sequence[int], vocabulary: Vocabulary) -> Grounding:
    """Return the facts of a rule along a walk; a step to `self` is a reflexive fact."""
    return tuple((str(s), r, str(o)) for s, r, o in rule.facts(walk, vocabulary))


def find_task_walks(ranker: Ranker, task: Task, limit: int) -> list[list[int]]:
    """Return up to `limit` walks from the start; they are looked for from the end if that has fewer neighbours."""
    graph, length, identity = ranker.ready.graph, len(task.body), ranker.options.object_identity
    if task.end >= 0 and len(task.ends) and not task.ends[task.end]:
        return []
    backward = inverses(task.body[::-1], graph.n_relations)
    out = np.empty((limit, length + 1), np.int32)
    from_end = task.end >= 0 and degree_along(graph, task.end, int(backward[0])) < degree_along(
        graph, task.start, int(task.body[0])
    )
    body, start, end = (
        (backward, task.end, task.start) if from_end else (np.ascontiguousarray(task.body), task.start, task.end)
    )
    goal = WalkGoal(start, end, task.avoided, identity)
    n = find_walks(graph, body, goal, MOST_TRIED, empty_search(length, task.ends), out)
    walks = out[:n, ::-1] if from_end else out[:n]
    return [[int(entity) for entity in walk] for walk in walks]


def triple_ids(vocabulary: Vocabulary, triple: Fact) -> Ids:
    """Return the ids of a triple; an unknown label raises `UnknownLabelError`."""
    subject, relation, object = triple
    return vocabulary.entity_id(subject), vocabulary.relation_id(relation), vocabulary.entity_id(object)


MOST_STARTS = 2000
"""How many entities a rule is tried with, drawn from those that its body can start from."""

WALKS_OF_A_START = 8
WALKS_OF_A_CONSTANT = 4096
MOST_INSTEAD = 3
AT_A_TIME = 64


@dataclass(frozen=True)
class Example:
    """A prediction of a rule, the splits that state it, and the facts of one grounding.

    `instead` are entities that train states in place of the predicted one, `replaced`; up to three of them.
    """

    triple: Fact
    known: tuple[str, ...]
    facts: Grounding
    instead: tuple[str, ...] = ()
    replaced: str = ""


@dataclass(frozen=True)
class RuleExamples:
    """Some predictions of a rule; `is_complete` if there are no other counter-examples and new predictions."""

    rule: Rule
    examples: tuple[Example, ...]
    counter_examples: tuple[Example, ...]
    new_predictions: tuple[Example, ...]
    is_complete: bool


class _Prediction(NamedTuple):
    triple: Ids
    walk: list[int]  # the entities of a grounding, from the head's variable


def examine_rule(
    ranker: Ranker, dataset: Dataset, row: int, *, top: int = 10, seconds: float = 0.2, most: int | None = None
) -> RuleExamples:
    """Return up to `top` examples, counter-examples and new predictions of the rule at a row of `ranker.rules`.

    A rule with many predictions is tried with a sample of entities, the same each time, and for about `seconds`, or
    with about `most` facts and predictions.
    """
    checking.whole("top", top, 1, checking.MOST_KEPT)
    began = time.monotonic()
    examiner = _Examiner(ranker, dataset, row % len(ranker.rules))
    right = examiner.examples(top, began + seconds / 2, most)
    wrong, new = examiner.judge(top, began + seconds, most)
    return RuleExamples(examiner.rule, tuple(right), tuple(wrong), tuple(new), not examiner.was_cut)


class _Examiner:
    """Finds what one rule predicts: from the facts of its head, and from its body."""

    def __init__(self, ranker: Ranker, dataset: Dataset, row: int) -> None:
        self._ranker, self._dataset, self._row = ranker, dataset, row
        rules, graph = ranker.rules, ranker.graph
        self.rule = rules.rule(row)
        self._graph, self._head = graph, int(rules.head[row])
        self._constant, self._end = int(rules.head_constant[row]), int(rules.body_constant[row])
        self._is_binary = self._constant < 0
        self._relation = self._head % graph.n_relations
        body = rules.bodies[rules.body[row]]
        self._body = np.ascontiguousarray(body[body >= 0])
        subjects, objects = np.diff(graph.domain_offsets)[[self._relation, self._relation + graph.n_relations]]
        self._judged_by_subject = bool(subjects >= objects)
        self.was_cut = False  # whether some predictions were not looked at

    def examples(self, top: int, end: float, most: int | None) -> list[Example]:
        """Return facts of train that the rule predicts, until there are enough or time is up."""
        examples: list[Example] = []
        for triple in islice(self._stated(), most):
            walks = self._first_walk(triple)
            if walks:
                examples.append(self._example(_Prediction(triple, walks[0])))
            if len(examples) == top or time.monotonic() > end:
                break
        return examples

    def _first_walk(self, triple: Ids) -> list[list[int]]:
        """Return a grounding that predicts the triple, if there is one."""
        task = task_of(self._ranker.rules, self._row, triple)
        if task.start == task.end and self._ranker.options.object_identity:
            return []
        return find_task_walks(self._ranker, task, 1)

    def _stated(self) -> Iterator[Ids]:
        """Yield facts of train that can be the head."""
        if self._is_binary:
            for start in _sample(self._domain(self._head)):
                for end in known_answers(self._graph, int(start), self._head):
                    yield self._triple(int(start), int(end))
            return
        inverse = int(inverses(np.array([self._head], np.int32), self._graph.n_relations)[0])
        for start in _sample(known_answers(self._graph, self._constant, inverse)):
            # Under object identity, c h c is a fact for the head h(X,self) only.
            if start != self._constant or not self._ranker.options.object_identity:
                yield self._triple(int(start), -1)

    def _predicted(self) -> Iterator[_Prediction]:
        """Yield predictions of the rule, stated or not, each once for a start."""
        if not len(self._body):
            self.was_cut = True
        elif self._end >= 0:
            backward = inverses(self._body[::-1], self._graph.n_relations)
            walks = self._walks(Task(backward, self._end, -1, ANYWHERE, self._constant), WALKS_OF_A_CONSTANT)
            yield from (_Prediction(self._triple(walk[-1], -1), walk[::-1]) for walk in walks)
        else:
            starts = self._starts()
            self.was_cut |= len(starts) > MOST_STARTS
            for start in _sample(starts):
                yield from self._predicted_for(int(start))

    def _starts(self) -> NDArray[np.int32]:
        """Return where the body may start: at all that satisfy a condition, or that the first step leads from."""
        rules, identity = self._ranker.rules, self._ranker.options.object_identity
        if is_conditional(rules, self._row) and not self._is_binary:
            return members_of(self._ranker.ready.graph, rules, self._row, object_identity=identity)
        return self._domain(int(self._body[0]))

    def _predicted_for(self, start: int) -> Iterator[_Prediction]:
        if start == self._constant and self._ranker.options.object_identity:
            return
        task = make_task(self._ranker.rules, self._row, start, -1)
        walks = self._walks(task, WALKS_OF_A_START) if self._is_binary else find_task_walks(self._ranker, task, 1)
        yield from (_Prediction(self._triple(start, walk[-1]), walk) for walk in walks)

    def _walks(self, task: Task, limit: int) -> list[list[int]]:
        walks = find_task_walks(self._ranker, task, limit)
        self.was_cut |= len(walks) == limit
        return walks

    def _domain(self, relation: int) -> NDArray[np.int32]:
        walked = self._ranker.ready.graph
        first, last = walked.domain_offsets[relation : relation + 2]
        return walked.domains[first:last]

    def _triple(self, start: int, end: int) -> Ids:
        """Return what a grounding from `start` to `end` predicts."""
        other = end if self._is_binary else start if self._constant == self._graph.n_entities else self._constant
        is_forward = self._head < self._graph.n_relations
        return (start, self._relation, other) if is_forward else (other, self._relation, start)

    def judge(self, top: int, end: float, most: int | None) -> tuple[list[Example], list[Example]]:
        """Return counter-examples and new predictions, until there are enough of both or time is up."""
        wrong: dict[Ids, Example] = {}
        new: dict[Ids, Example] = {}
        predicted = islice(self._predicted(), most)
        while batch := list(islice(predicted, AT_A_TIME)):
            bits = held_by(self._dataset, np.array([prediction.triple for prediction in batch], np.int32)).tolist()
            for prediction, held in zip(batch, bits, strict=True):
                if not held & 1:
                    self._sort_in(prediction, [] if held else self._others(prediction.triple), wrong, new, top)
            if len(wrong) == len(new) == top or time.monotonic() > end:
                self.was_cut = True
                break
        self.was_cut |= most is not None and next(self._predicted(), None) is not None
        return list(wrong.values()), list(new.values())

    def _sort_in(
        self,
        prediction: _Prediction,
        others: list[int],
        wrong: dict[Ids, Example],
        new: dict[Ids, Example],
        top: int,
    ) -> None:
        kept = wrong if others else new
        if len(kept) < top:
            kept.setdefault(prediction.triple, self._example(prediction, others))
        elif prediction.triple not in kept:
            self.was_cut = True

    def _others(self, triple: Ids) -> list[int]:
        """Return what train states in place of the object, or of the subject, of a prediction."""
        subject, relation, object = triple
        if self._judged_by_subject:
            answers = known_answers(self._graph, subject, relation)
        else:
            answers = known_answers(self._graph, object, relation + self._graph.n_relations)
        return [int(other) for other in answers[:MOST_INSTEAD]]

    def _example(self, prediction: _Prediction, others: Sequence[int] = ()) -> Example:
        """Return a prediction in labels."""
        labels = self._ranker.vocabulary
        subject, relation, object = prediction.triple
        bits = int(held_by(self._dataset, np.array([prediction.triple], np.int32))[0])
        replaced = object if self._judged_by_subject else subject
        return Example(
            labels.triple_labels(subject, relation, object),
            split_names(bits),
            grounding(self.rule, prediction.walk, labels),
            tuple(labels.entity_label(other) for other in others),
            labels.entity_label(replaced) if others else "",
        )


def _sample(entities: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return some of many entities, the same each time."""
    if len(entities) <= MOST_STARTS:
        return entities
    return entities[np.random.default_rng(0).choice(len(entities), MOST_STARTS, replace=False)]
