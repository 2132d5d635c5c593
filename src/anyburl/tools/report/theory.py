"""`make_theory`: from rules and data to a `Theory`; a few rules for each relation that together explain most of it.

Rules can be laws if they are right often, and more often than the base rate of their heads. Candidates are those of
them that distilling would choose for a relation: the rules of a distilled set or, of another one, the first in the
order of distilling. Of these, laws are taken one by one, each time the one that adds most: the sum over facts of how
much surer the best rule makes a fact than its commonness alone does, see `added_values`. Short rules come first where
the difference is small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import DataError, RuleError
from anyburl.bodies.rescore import base_rates, rescore
from anyburl.data.dataset import SPLITS, Dataset, load_dataset
from anyburl.data.names import Names
from anyburl.data.table import TripleTable
from anyburl.graph.build import answer_counts, degrees, on_tiny_table, with_loops
from anyburl.graph.kernel import GraphArrays
from anyburl.graph.stored import graph_of
from anyburl.learning.options import LearnOptions
from anyburl.models.distilling.choosing import Evidence, Survey, find_representatives, order_by_gain, shares_of
from anyburl.models.distilling.known import KnownAnswers
from anyburl.ranking.options import RankOptions
from anyburl.ranking.queries import make_queries, take_queries
from anyburl.ranking.ranker import Ranker, make_ranker
from anyburl.reasoning.explanation.record import Fact
from anyburl.reasoning.explanation.relatives import predicted_facts_of
from anyburl.reasoning.explanation.rule_examples import Example, examine_rule, triple_ids
from anyburl.rules.columns import surprise
from anyburl.rules.ruleset import RuleSet, one_rule
from anyburl.rules.types import SMOOTHING
from anyburl.tools.options import ReportOptions
from anyburl.tools.report.record import Case, Law, RelationTheory, Theory
from anyburl.tools.report.words import Wording, find_idea

Rows = NDArray[np.int64]
Triples = NDArray[np.int32]

LEAST = 0.25  # how far above the base rate a rule must be to be a law
FEWEST = 3  # right predictions
CANDIDATES = 60  # of a relation
WIDTH = 40  # rules of each fact: among the 12 that distilling looks at, general rules of many exceptions are missing
LEAST_GAIN = 0.01  # of the facts: a rule that adds less is no law
PER_ATOM = 0.85  # what a longer rule counts, for each further atom
BEST_ALONE = np.ones(1, np.float32)


@dataclass(frozen=True)
class Choice:
    """The rules chosen for a relation, and which of the facts looked at each predicts."""

    rows: Rows
    covers: NDArray[np.bool_]  # chosen rules x facts


class LawCandidates:
    """The rules that laws are chosen from, by relation.

    `rows` are all rules that can be laws: those far enough above the base rate of their heads, `base_rates`.
    """

    def __init__(self, rules: RuleSet, graph: GraphArrays, facts: Triples, ranking: RankOptions) -> None:
        self._rules = rules
        rows = np.flatnonzero((rules.support >= FEWEST) & (rules.confidence() > LEAST))
        part = rules.take(rows)
        rates = base_rates(graph, part)
        is_law = surprise(part.support, part.predictions, rates).astype(np.float64) >= LEAST
        self.rows, self.base_rates = rows[is_law], rates[is_law]
        part, order = part.take(is_law), np.empty(0, np.int64)
        self._survey: Survey | None = None
        if part.worth is not None:
            order = np.argsort(-part.worth, kind="stable")
        elif len(part):
            ranker = make_ranker(graph, part, ranking, block_connected=False)
            self._survey = Survey.make(ranker, [_object_questions(facts, graph.n_relations)], FEWEST - 1, width=WIDTH)
            order = self._survey.rows[self._survey.order(shares_of(ranker.aggregation), CANDIDATES)]
        self._order: Rows = order
        self._relations = part.head[order] % max(1, graph.n_relations)

    def choose(self, relation: int, most: int) -> Rows:
        """Return at most so many candidates for a relation, the best first: rows of `rows`."""
        rows: Rows = self._order[self._relations == relation]
        return rows[:most]

    def count_similar(self, chosen: Rows) -> NDArray[np.int64]:
        """Return for each of some rules how many of the others predict nearly the same, see `find_representatives`."""
        if self._rules.stands_for is not None:
            return self._rules.stands_for[chosen].astype(np.int64)
        if self._survey is None:
            return np.zeros(len(chosen), np.int64)
        positions = np.full(len(self.rows), -1, np.int64)
        positions[np.searchsorted(self.rows, chosen)] = np.arange(len(chosen))
        representatives = find_representatives(self._survey.best.rules, positions)
        return np.bincount(positions[representatives.kept], minlength=len(chosen))


def _object_questions(facts: Triples, n_relations: int) -> KnownAnswers:
    """Return the question for the object of each fact: the rules that predict a fact are the same for its subject."""
    queries, _ = make_queries(facts, [], n_relations)
    return KnownAnswers(take_queries(queries, np.flatnonzero(queries.relations < n_relations)), from_train=True)


def commonness(graph: GraphArrays, facts: Triples) -> NDArray[np.float64]:
    """Return the chance of guessing each fact from the commonest answers alone.

    This is the share of the subjects of its relation that have its object or, of a relation with more objects than
    subjects, the share of the objects that have its subject.
    """
    sizes, n_relations = np.maximum(np.diff(graph.domain_offsets), 1), graph.n_relations
    by_subject = sizes[facts[:, 1]] >= sizes[facts[:, 1] + n_relations]
    answers = np.where(by_subject, facts[:, 2], facts[:, 0])
    backward = facts[:, 1] + np.where(by_subject, n_relations, 0).astype(np.int32)
    return answer_counts(graph, answers, backward) / sizes[np.where(by_subject, facts[:, 1], facts[:, 1] + n_relations)]


def added_values(
    rules: RuleSet, rates: NDArray[np.float64], common: NDArray[np.float64], covers: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return how much each rule adds to each fact that it covers (rules x facts).

    This is how far its confidence is above the base rate of its head (`rates`) or, for a binary rule, how `common` the
    fact is: a rule that is right in 7 of 10 cases because 7 of 10 things have that value adds nothing. Of rules that
    say the same, short ones count more.
    """
    known = np.where(rules.is_binary[:, None], common, rates[:, None])
    above = (
        np.maximum(rules.confidence(SMOOTHING)[:, None] - known, 0)
        * PER_ATOM ** np.maximum(rules.lengths - 1, 0)[:, None]
    )
    return np.asarray(np.where(covers, above, 0.0), np.float64)


def choose_laws(rows: Rows, values: NDArray[np.float64], covers: NDArray[np.bool_], most: int) -> Choice:
    """Take up to `most` of the candidates, each time the one that adds most to the facts; `values` are added ones."""
    numbers = np.where(covers.T, np.arange(len(rows)), -1).astype(np.int32)
    evidence = Evidence(numbers, values.T.astype(np.float32))
    least = LEAST_GAIN * max(1, covers.shape[1])
    chosen = order_by_gain(evidence, len(rows), BEST_ALONE, room=most, least_gain=least)
    return Choice(rows[chosen], covers[chosen])


Progress = Callable[[int], object]

MOST_LOOKED_AT, FEW_LOOKED_AT = (
    1000,
    100,
)  # facts of a relation that laws are chosen by, if it is reported in full or not
FEW_CANDIDATES = 16  # of a relation that is not reported in full
N_SHOWN = 3  # examples, exceptions, unexplained facts, common values
EXAMINED = 8  # cases of each kind that the best known are taken from
N_ENTITIES = 8  # the best known, listed at the front
MOST_TRIED = 500  # facts and predictions that the examples and exceptions of a law are found among
SECONDS = 10.0  # for them: rather a bound on the number, so that the report is the same each time
COMMON = 0.5  # of the facts have one of the commonest values, or no values are shown


def make_theory(
    rules: RuleSet,
    dataset: Dataset,
    options: ReportOptions | None = None,
    *,
    names: Names | None = None,
    object_identity: bool = True,
    progress: Progress | None = None,
) -> Theory:
    """Return the laws of each relation of a data set, chosen from rules that were learned on it.

    The facts of all splits are facts here: laws are chosen from what was learned on train, then counted on everything.
    `progress` is called with 1 twice for each relation: when its laws are chosen, and when its section is written.
    """
    began, chosen = time.perf_counter(), options or ReportOptions()
    if not len(rules):
        raise RuleError("there are no rules to report on")
    author = _Author(rules, _with_all_facts(dataset), chosen, names, RankOptions(object_identity=object_identity))
    done = progress or (lambda n: None)
    choices = []
    for relation, sample, in_full in author.samples():
        choices.append((sample, author.choose(relation, sample, in_full=in_full)))
        done(1)
    author.count([choice for _, choice in choices])
    sections = []
    for position, (sample, choice) in enumerate(choices):
        sections.append(author.section(author.relations[position], sample, choice, in_full=position < chosen.sections))
        done(1)
    return Theory(
        name=dataset.name,
        n_facts=len(author.triples),
        n_entities=len(np.unique(author.triples[:, [0, 2]])),
        n_rules=len(rules),
        n_sections=chosen.sections,
        things=author.best_known(N_ENTITIES),
        relations=tuple(sections),
        seconds=time.perf_counter() - began,
        wording=author.wording,
    )


def _with_all_facts(dataset: Dataset) -> Dataset:
    """Return a data set with the facts of all splits in train."""
    tables = [dataset.split(split) for split in SPLITS]
    if not any(map(len, tables)):
        raise DataError(f"{dataset.source or dataset.name} has no triples to report on")
    vocabulary, none = dataset.vocabulary, np.empty((0, 3), np.int32)
    every = TripleTable.from_ids(np.concatenate([table.triples for table in tables]), vocabulary)
    nothing = TripleTable.from_ids(none, vocabulary)
    return Dataset(dataset.name, every, nothing, nothing, names=dataset.names)


class _Author:
    """Writes the sections of a theory."""

    def __init__(
        self, rules: RuleSet, dataset: Dataset, options: ReportOptions, names: Names | None, ranking: RankOptions
    ) -> None:
        self.rules, self.dataset, self.options, self.ranking = (
            rules.with_vocabulary(dataset.vocabulary),
            dataset,
            options,
            ranking,
        )
        self.vocabulary, self.triples = dataset.vocabulary, dataset.train.triples
        self.wording = Wording(self.vocabulary.relations.to_list(), names or dataset.names)
        self.graph: GraphArrays = graph_of(dataset.train)
        self.walked = self.graph if ranking.object_identity else with_loops(self.graph)
        n_relations = self.vocabulary.n_relations
        self._facts_of = _grouped(self.triples[:, 1], n_relations)
        self._rules_of = _grouped(self.rules.head % max(1, n_relations), n_relations)
        self.relations = self._ordered_relations()
        self._ranker: Ranker | None = None
        self._rows: dict[int, int] = {}
        self._similar = np.empty(0, np.int64)

    def _ordered_relations(self) -> list[int]:
        """Return the relations to report on, those with most facts first."""
        if self.options.relations:
            return [self.vocabulary.relation_id(label) for label in self.options.relations]
        sizes = np.array([len(rows) for rows in self._facts_of])
        return [int(relation) for relation in np.argsort(-sizes, kind="stable") if sizes[relation]]

    def samples(self) -> list[tuple[int, Triples, bool]]:
        """Return the relations, the facts of each that are looked at, and whether it is reported in full."""
        listed = []
        for position, relation in enumerate(self.relations):
            in_full, facts = position < self.options.sections, self.triples[self._facts_of[relation]]
            most = MOST_LOOKED_AT if in_full else FEW_LOOKED_AT
            if len(facts) > most:
                facts = facts[np.sort(np.random.default_rng(0).choice(len(facts), most, replace=False))]
            listed.append((relation, facts, in_full))
        return listed

    @cached_property
    def _candidates(self) -> LawCandidates:
        facts = np.concatenate([self.triples[:0], *(facts for _, facts, _ in self.samples())])
        return LawCandidates(self.rules, self.graph, facts, self.ranking)

    def choose(self, relation: int, facts: Triples, *, in_full: bool) -> Choice:
        """Return the laws chosen for some facts of a relation."""
        known = self._candidates
        candidates = known.choose(relation, CANDIDATES if in_full else FEW_CANDIDATES)
        rows, identity = known.rows[candidates], self.ranking.object_identity
        covers = predicted_facts_of(self.walked, self.rules, rows, facts, object_identity=identity)
        rates, common = known.base_rates[candidates], commonness(self.graph, facts)
        values = added_values(self.rules.take(rows), rates, common, covers)
        return choose_laws(rows, values, covers, self.options.laws if in_full else 1)

    def count(self, choices: Sequence[Choice]) -> None:
        """Count the chosen rules on all facts, and make them ready to show examples."""
        rows = np.concatenate([np.empty(0, np.int64), *(choice.rows for choice in choices)])
        few = rescore(
            self.rules.take(rows),
            self.dataset.train,
            object_identity=self.ranking.object_identity,
            budget=LearnOptions.budget,
        )
        self._rows = {int(row): position for position, row in enumerate(rows)}
        self._similar = self._candidates.count_similar(rows)
        self._ranker = make_ranker(self.graph, few, self.ranking, block_connected=False)

    def section(self, relation: int, sample: Triples, choice: Choice, *, in_full: bool) -> RelationTheory:
        """Return what there is to know about one relation."""
        facts = self.triples[self._facts_of[relation]]
        is_explained = np.logical_or.reduce(choice.covers, axis=0, initial=False)
        sizes = np.diff(self.graph.domain_offsets)[[relation, relation + self.vocabulary.n_relations]]
        laws = [self._law(choice, position, in_full=in_full) for position in range(len(choice.rows))]
        shown = self._well_known(sample, N_SHOWN)
        return RelationTheory(
            label=self.vocabulary.relation_label(relation),
            n_facts=len(facts),
            n_subjects=int(sizes[0]),
            n_objects=int(sizes[1]),
            values=self._common_values(facts),
            facts=shown,
            laws=tuple(laws),
            n_rules=len(self._rules_of[relation]),
            looked_at=len(sample),
            explained=int(is_explained.sum()),
            unexplained=self._well_known(sample[~is_explained], N_SHOWN, without=shown),
        )

    def _law(self, choice: Choice, position: int, *, in_full: bool) -> Law:
        assert self._ranker is not None, "count comes first"
        row, rules = self._rows[int(choice.rows[position])], self._ranker.rules
        rule = rules.rule(row)
        cases = (
            examine_rule(self._ranker, self.dataset, row, top=EXAMINED, seconds=SECONDS, most=MOST_TRIED)
            if in_full
            else None
        )
        examples = self._best(cases.examples, 1) if cases else ()
        return Law(
            text=str(rule),
            words=self.wording.rule(rule),
            idea=find_idea(rule),
            relation=rule.head.relation,
            body=tuple(atom.relation for atom in rule.body),
            support=int(rules.support[row]),
            predictions=int(rules.predictions[row]),
            exact=bool(rules.exact[row]),
            explains=int(choice.covers[position].sum()),
            stands_for=int(self._similar[row]),
            example=examples[0] if examples else None,
            exceptions=self._best(cases.counter_examples, N_SHOWN) if cases else (),
            unknown=self._best(cases.new_predictions, N_SHOWN) if cases else (),
        )

    def best_known(self, most: int) -> tuple[str, ...]:
        """Return the entities with most facts."""
        n_facts = degrees(self.graph, np.arange(self.graph.n_entities, dtype=np.int32))
        best = np.argsort(-n_facts, kind="stable")[:most]
        return tuple(self.vocabulary.entity_label(int(entity)) for entity in best)

    def _best(self, examples: Sequence[Example], most: int) -> tuple[Case, ...]:
        """Return the cases whose entities are best known: those with most facts."""
        fame = [self._fame(example.triple) for example in examples]
        order = sorted(range(len(examples)), key=lambda position: -fame[position])[:most]
        return tuple(_case(examples[position]) for position in order)

    def _fame(self, triple: Fact) -> float:
        subject, _, object = triple_ids(self.vocabulary, triple)
        return float(np.log1p(degrees(self.graph, np.array([subject, object], np.int32))).sum())

    def _well_known(self, facts: Triples, most: int, without: Sequence[Fact] = ()) -> tuple[Fact, ...]:
        """Return facts of the best known entities, no two with the same subject or object."""
        if not len(facts):
            return ()
        fame = np.log1p(degrees(self.graph, facts[:, 0])) + 0.5 * np.log1p(degrees(self.graph, facts[:, 2]))
        chosen: list[int] = []
        left_out = [triple_ids(self.vocabulary, fact) for fact in without]
        subjects, objects = {ids[0] for ids in left_out}, {ids[2] for ids in left_out}
        for position in np.argsort(-fame, kind="stable"):
            subject, object = int(facts[position, 0]), int(facts[position, 2])
            if subject not in subjects and object not in objects:
                chosen.append(int(position))
                subjects.add(subject)
                objects.add(object)
            if len(chosen) == most:
                break
        return tuple(self.vocabulary.triple_labels(*map(int, facts[position])) for position in chosen)

    def _common_values(self, facts: Triples) -> tuple[tuple[str, int], ...]:
        """Return the commonest objects, if a few of them have most of the facts."""
        objects, counts = np.unique(facts[:, 2], return_counts=True)
        order = np.argsort(-counts, kind="stable")[:N_SHOWN]
        if counts[order].sum() < COMMON * len(facts) or counts[order[0]] < N_SHOWN:
            return ()
        return tuple(
            (self.vocabulary.entity_label(int(objects[position])), int(counts[position])) for position in order
        )


def _case(example: Example) -> Case:
    return Case(example.triple, example.facts, example.known, example.instead, example.replaced)


def _grouped(numbers: NDArray[np.int32], n_groups: int) -> list[Rows]:
    """Return the rows of each number."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.searchsorted(numbers[order], np.arange(1, n_groups)))


def warm_up_report(n_relations: int) -> None:
    """Compile the kernels of reports, for data with `n_relations`, or load them."""
    on_tiny_table(_report_on_tiny, n_relations)


def _report_on_tiny(table: TripleTable) -> None:
    make_theory(one_rule(table.vocabulary), load_dataset(table))
