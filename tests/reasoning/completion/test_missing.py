"""Missing facts: exactly those that asking every question gives, with the same scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import anyburl.reasoning.completion.facts
import anyburl.reasoning.completion.search
from anyburl.base.errors import OptionError
from anyburl.data.dataset import Dataset
from anyburl.data.table import TripleTable
from anyburl.models.calibration import N_CONTEXTS, Calibration, narrow_bins
from anyburl.ranking.index import to_confidences
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.complete import complete_graph
from anyburl.reasoning.completion.facts import LEVELS, FactColumns
from anyburl.reasoning.completion.judging import Judge as Proposals
from anyburl.reasoning.completion.options import PER_CHOICES, CompleteOptions
from anyburl.reasoning.completion.search import missing_facts
from kernels import examples, random_graphs, table_of
from ranked import AGGREGATIONS, Case, Judge, Scored, as_table, cases, make_ranker
from reasoning.completion.test_conflicts import LOW, low_properties
from reference.completion import (
    Facts,
    Known,
    Limits,
    Missing,
    best_by_level,
    contexts,
    contradicting,
    keep_best,
    keep_fitting,
    keep_possible,
    missing,
    properties,
)
from reference.graph import Triple
from strategies import grounded_rules

LEAST = st.sampled_from([0.0, 0.25, 0.3, 0.5, 2 / 3, 0.75, 0.9, 1.0, np.inf])


def dataset_of(case: Case) -> Dataset:
    train = table_of(case.graph)
    valid, test = (TripleTable.from_ids(as_table(table), train.vocabulary) for table in (case.valid, case.test))
    return Dataset("case", train, valid, test)


def as_facts(parts: list[FactColumns]) -> dict[Triple, tuple[float, int, int]]:
    """Fact to score, best rule and number of rules; no fact comes twice."""
    facts = FactColumns.concat(parts)
    triples = [(s, r, o) for s, r, o in facts.triples.tolist()]
    assert len(set(triples)) == len(triples)
    said = zip(facts.scores.tolist(), facts.rules.tolist(), facts.n_rules.tolist(), strict=True)
    return dict(zip(triples, said, strict=True))


def found(case: Case, least: list[float], *, block: bool, **options: Any) -> dict[Triple, tuple[float, int, int]]:
    ranker = make_ranker(case.graph, case.scored, block=block, **options)
    return as_facts(list(missing_facts(ranker, dataset_of(case), np.array(least))))


def expected(
    judge: Judge, least: list[float], aggregation: str, *, block: bool
) -> dict[Triple, tuple[float, int, int]]:
    """The reference, with scores as people see them; a key is enough if its score is, as people see it."""
    case, (n_entities, n_relations, train) = judge.case, judge.case.graph
    keys = sorted({*all_keys(judge, aggregation), *judge.scores})
    seen = {key: float(to_confidences(np.array([key], np.int64)).round(12)[0]) for key in keys}
    floors = [min((key for key in keys if seen[key] >= score), default=2**62) for score in least]
    facts = missing(
        train,
        [*case.valid, *case.test],
        n_entities,
        n_relations,
        judge.answers,
        judge.scores,
        aggregation,
        floors,
        seen,
        block=block,
    )
    return {fact: said(told, seen) for fact, told in facts.items()}


def said(told: Missing, seen: dict[int, float]) -> tuple[float, int, int]:
    return seen[told.key], told.rule, told.n_rules


def all_keys(judge: Judge, aggregation: str) -> list[int]:
    """The keys that candidates have, as answers to any question."""
    n_entities, n_relations, _ = judge.case.graph
    found = []
    for entity in range(n_entities):
        for d in range(2 * n_relations):
            rows: dict[int, list[int]] = {}
            for candidate, row in judge.firings((entity, d)):
                rows.setdefault(candidate, []).append(row)
            found += [judge.strength(some, aggregation)[0] for some in rows.values()]
    return found


@pytest.mark.kernel
@settings(max_examples=examples(300, 40))
@given(cases(), st.booleans(), st.booleans(), st.sampled_from(AGGREGATIONS), st.data())
def test_exactly_what_asking_every_question_gives(
    case: Case, object_identity: bool, block: bool, aggregation: str, data: st.DataObject
) -> None:
    """All aggregations, blocked and not, with and without object identity, another least score for each relation."""
    judge = Judge(case, object_identity)
    least = data.draw(st.lists(LEAST, min_size=case.graph[1], max_size=case.graph[1]))
    facts = found(case, least, block=block, aggregation=aggregation, object_identity=object_identity)
    assert facts == expected(judge, least, aggregation, block=block)


@pytest.mark.kernel
@settings(max_examples=examples(25, 2))
@given(cases(random_graphs(12, [2, 3], 30)), st.booleans(), st.sampled_from(AGGREGATIONS), LEAST)
def test_in_larger_graphs(case: Case, block: bool, aggregation: str, score: float) -> None:
    least = [score] * case.graph[1]
    facts = found(case, least, block=block, aggregation=aggregation)
    assert facts == expected(Judge(case), least, aggregation, block=block)


@pytest.mark.kernel
@settings(max_examples=examples(25, 2))
@given(cases(random_graphs(12, [2, 3], 30)), st.sampled_from(AGGREGATIONS), st.booleans())
def test_whatever_the_room(case: Case, aggregation: str, block: bool) -> None:
    """Buffers that are too small for firings, ends of bodies or facts are made larger, or emptied, and nothing is lost;
    facts that do not fit into memory go to files.
    """
    least = [0.0] * case.graph[1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyburl.reasoning.completion.search, "ROOM", 1)
        patch.setattr(anyburl.reasoning.completion.search, "LISTS", 1)
        patch.setattr(anyburl.reasoning.completion.facts, "MOST_FACTS", 7)
        patch.setattr(anyburl.reasoning.completion.facts, "FACTS_AT_A_TIME", 3)
        patch.setattr(anyburl.reasoning.completion.search, "SUBJECTS_AT_A_TIME", 2)
        cramped = found(case, least, block=block, aggregation=aggregation, threads=2)
    assert cramped == found(case, least, block=block, aggregation=aggregation)


@pytest.mark.kernel
@settings(max_examples=examples(25, 3))
@given(cases(), st.sampled_from(AGGREGATIONS), st.data())
def test_some_subjects_only(case: Case, aggregation: str, data: st.DataObject) -> None:
    subjects = data.draw(st.lists(st.integers(0, case.graph[0] - 1), max_size=3))
    ranker, dataset = make_ranker(case.graph, case.scored, aggregation=aggregation), dataset_of(case)
    least = np.zeros(case.graph[1])
    some = as_facts(list(missing_facts(ranker, dataset, least, subjects=np.array(subjects, np.int32))))
    every = as_facts(list(missing_facts(ranker, dataset, least)))
    assert some == {fact: told for fact, told in every.items() if fact[0] in subjects}


@pytest.mark.kernel
@settings(max_examples=examples(25, 3))
@given(cases(), st.sampled_from(AGGREGATIONS))
def test_facts_of_other_splits_may_be_kept(case: Case, aggregation: str) -> None:
    ranker, least = make_ranker(case.graph, case.scored, aggregation=aggregation), np.zeros(case.graph[1])
    kept = as_facts(list(missing_facts(ranker, dataset_of(case), least, stated=("train",))))
    unseen = case._replace(valid=[], test=[])
    assert kept == as_facts(list(missing_facts(ranker, dataset_of(unseen), least)))


class Filters(NamedTuple):
    """One choice of every filter of completion, by ids."""

    min_score: float | None
    probability: float | None
    top: int | None
    per: str
    relations: list[int] | None
    subjects: list[int] | None
    functional: list[int] | None
    exempt: list[int]
    types: int | None

    @property
    def least(self) -> float:
        """The least score, which is 0.8 where nothing else says how many facts there will be."""
        if self.min_score is not None:
            return self.min_score
        return 0.8 if self.top is None and self.probability is None else 0.0


NO_FILTERS = Filters(0.0, None, None, "relation", None, None, None, [], None)


def filters(names: Sequence[str], n_entities: int, n_relations: int) -> st.SearchStrategy[Filters]:
    """Values for the filters of these names; the others let everything pass."""
    relations, entities = st.integers(0, n_relations - 1), st.integers(0, n_entities - 1)
    some = st.lists(relations, unique=True, min_size=1, max_size=n_relations)
    choices: dict[str, st.SearchStrategy[dict[str, Any]]] = {
        "min_score": st.fixed_dictionaries({"min_score": st.sampled_from([None, 0.25, 0.5])}),
        "probability": st.fixed_dictionaries({"probability": st.sampled_from([0.1, 0.2])}),
        "top": st.fixed_dictionaries({"top": st.sampled_from([1, 2, 4]), "per": st.sampled_from(PER_CHOICES)}),
        "relations": st.fixed_dictionaries({"relations": some}),
        "subjects": st.fixed_dictionaries({"subjects": st.lists(entities, min_size=1, max_size=4)}),
        "functional": st.fixed_dictionaries({"functional": st.just([]) | st.just(list(range(n_relations))) | some}),
        "exempt": st.fixed_dictionaries({"exempt": some}),
        "types": st.fixed_dictionaries({"types": st.sampled_from([0, 0, 0, 0, n_relations - 1])}),
    }
    drawn = st.tuples(*(choices[name] for name in names))
    return drawn.map(lambda parts: NO_FILTERS._replace(**{k: v for part in parts for k, v in part.items()}))


def calibration_of(n_relations: int) -> Calibration:
    """Probabilities that differ by relation and context and rise with the score."""
    starts = np.concatenate([[0], narrow_bins(np.array([0.3, 0.5, 0.7]))])
    rising = np.array([0.0, 0.1, 0.2, 0.35])
    table = [
        [rising / (1 + relation % 2) / (1 + context) for context in range(N_CONTEXTS)]
        for relation in range(n_relations)
    ]
    sizes = (np.full(n_relations, value) for value in (10.0, 90.0, 0.0, 0.1, 0.0, 0.0))
    return Calibration(starts, np.array(table).reshape(-1, N_CONTEXTS, 4), *sizes)


def known_of(case: Case, wanted: Filters) -> Known:
    """The properties that train and valid show, and what the filters say about relations."""
    _, n_relations, train = case.graph
    known = properties([*train, *case.valid], n_relations, Limits(*LOW.values()))
    if wanted.functional is not None:
        known = known._replace(one_object=set(wanted.functional))
    exempt = set(wanted.exempt)
    return Known(
        *(found - exempt for found in known[:4]), known.obligatory, {d for d in known.disjoint if d[0] not in exempt}
    )


def taken_otherwise(case: Case, wanted: Filters) -> set[int]:
    """The relations asked for that the filters take otherwise than the data shows them."""
    before, after = known_of(case, NO_FILTERS), known_of(case, wanted)
    changed = set().union(*(one ^ other for one, other in zip(before[:4], after[:4], strict=True)))
    changed |= {pair[0] for pair in before.disjoint ^ after.disjoint}
    return changed if wanted.relations is None else changed & set(wanted.relations)


def filtered_by_reference(judge: Judge, wanted: Filters, aggregation: str, *, block: bool) -> Facts:
    """First what fits alone, then what nothing contradicts, then the likely ones, then the best."""
    case, (_, n_relations, train) = judge.case, judge.case.graph
    calibration, known = calibration_of(n_relations), known_of(case, wanted)

    def find(least: list[float]) -> Facts:
        facts = expected(judge, least, aggregation, block=block)
        if wanted.subjects is not None:
            facts = {fact: told for fact, told in facts.items() if fact[0] in wanted.subjects}
        if wanted.types is not None:
            facts = keep_fitting(facts, train, wanted.types)
        places = contexts(facts, train, known.one_object)
        facts = keep_possible(facts, [*train, *case.valid, *case.test], known)
        if wanted.probability is None:
            return facts
        one = {
            fact: (np.array([fact[1]]), np.array([places[fact]]), np.array([said[0]])) for fact, said in facts.items()
        }
        return {
            fact: said for fact, said in facts.items() if calibration.probabilities(*one[fact])[0] >= wanted.probability
        }

    asked = range(n_relations) if wanted.relations is None else wanted.relations
    least = [wanted.least if relation in asked else np.inf for relation in range(n_relations)]
    if wanted.probability is not None:
        # Rules below the least score are not counted, whichever option it comes from.
        least = np.maximum(least, calibration.least_scores(wanted.probability)).tolist()
    if wanted.top is None:
        return find(least)
    if wanted.per != "relation":
        return keep_best(find(least), wanted.top, wanted.per)
    decides = aggregation in ("max", "noisy-or-top:1")
    return best_by_level(find, least, wanted.top, list(LEVELS) if decides else [0.0])


@st.composite
def typed_cases(draw: st.DrawFn) -> Case:
    """Cases in which relation 0 states types, and subjects have several predicted objects of which some fit."""
    n_entities, n_relations, triples = draw(random_graphs(8, [3], 40))
    kinds = draw(st.lists(st.sampled_from([1, 1, 2, 0]), min_size=n_entities, max_size=n_entities))
    types = [(entity, 0, kind) for entity, kind in enumerate(kinds) if kind]
    linked, stated = ([triple for triple in triples if triple[1] == relation] for relation in (1, 2))
    graph = n_entities, n_relations, types + linked[:8] + stated[:2]
    constants = draw(st.permutations(range(n_entities)))[:5]
    several = [("Ud", 2, constant, (draw(st.sampled_from([0, 1, 4])),), None) for constant in constants]
    rules = list(dict.fromkeys([*several, *draw(st.lists(grounded_rules(graph), max_size=6))]))
    confident = st.sampled_from([(1, 2), (2, 3), (1, 3), (3, 4), (4, 5)])
    held_back = st.sampled_from([[], triples[:1], triples[-3:]])
    return Case(graph, [Scored(rule, *draw(confident)) for rule in rules], draw(held_back), draw(held_back))


def proposals(ranker: Ranker, dataset: Dataset) -> Proposals:
    """What judges proposals, by the properties that train and valid show with low limits."""
    facts = np.concatenate([dataset.train.triples, dataset.valid.triples])
    known = low_properties(facts, dataset.vocabulary.n_entities, dataset.vocabulary.n_relations)
    return Proposals.of(ranker, dataset, known)


FILTERS = ("min_score", "probability", "top", "relations", "subjects", "functional", "exempt", "types")


@pytest.mark.parametrize("names", [*combinations(FILTERS, 2), FILTERS], ids="-".join)
@settings(max_examples=examples(45, 30))
@given(case=typed_cases(), block=st.booleans(), aggregation=st.sampled_from(AGGREGATIONS), data=st.data())
def test_every_pair_of_filters(
    names: tuple[str, ...], case: Case, block: bool, aggregation: str, data: st.DataObject
) -> None:
    """Every filter beside every other, as the reference applies them: the best of what the others keep."""
    n_entities, n_relations, _ = case.graph
    wanted = data.draw(filters(names, n_entities, n_relations))
    dataset = dataset_of(case)
    entities, relations = (labels.to_list() for labels in (dataset.vocabulary.entities, dataset.vocabulary.relations))
    options = CompleteOptions(
        min_score=wanted.min_score,
        min_probability=wanted.probability,
        top=wanted.top,
        per=wanted.per,
        relations=None if wanted.relations is None else [relations[relation] for relation in wanted.relations],
        subjects=None if wanted.subjects is None else [entities[entity] for entity in wanted.subjects],
        functional="auto" if wanted.functional is None else [relations[relation] for relation in wanted.functional],
        exempt=[relations[relation] for relation in wanted.exempt],
        types=None if wanted.types is None else relations[wanted.types],
    )
    ranker = make_ranker(case.graph, case.scored, block=block, aggregation=aggregation)
    frames = complete_graph(proposals(ranker, dataset), options, calibration=calibration_of(n_relations))
    if wanted.probability is not None and taken_otherwise(case, wanted):
        with pytest.raises(OptionError, match="holds for relations as the data shows them"):
            next(frames)
        return
    rows = pl.concat(list(frames)).select("subject", "relation", "object", "score", "rules").rows()
    told = {(entities.index(s), relations.index(r), entities.index(o)): said for s, r, o, *said in rows}
    assert len(told) == len(rows)
    reference = filtered_by_reference(Judge(case), wanted, aggregation, block=block)
    assert told == {fact: [score, n_rules] for fact, (score, _, n_rules) in reference.items()}


@settings(max_examples=examples(45, 15))
@given(case=typed_cases(), aggregation=st.sampled_from(AGGREGATIONS))
def test_contexts_and_what_may_be_proposed(case: Case, aggregation: str) -> None:
    """A fact that a stated one contradicts is proposed with that one if it is asked for, and not otherwise."""
    dataset, ranker = dataset_of(case), make_ranker(case.graph, case.scored, aggregation=aggregation)
    judge, known = proposals(ranker, dataset), known_of(case, NO_FILTERS)
    every = FactColumns.concat(list(missing_facts(ranker, dataset, np.zeros(case.graph[1]))))
    every = replace(every, contexts=judge.contexts_of(every))
    found, stated = as_facts([every]), [*case.graph[2], *case.valid, *case.test]
    places = contexts(found, case.graph[2], known.one_object)
    assert every.contexts.tolist() == list(places.values())
    possible = keep_possible(found, stated, known)
    assert judge.may_be_proposed(every).tolist() == [fact in possible for fact in found]
    entities, relations = (labels.to_list() for labels in (dataset.vocabulary.entities, dataset.vocabulary.relations))
    (frame,) = complete_graph(judge, CompleteOptions(min_score=0.0, conflicts=True))
    assert len(frame) == len(found)
    for s, r, o, told in frame.select("subject", "relation", "object", "conflict").rows():
        against = contradicting((entities.index(s), relations.index(r), entities.index(o)), stated, known)
        labels = {(entities[s], relations[r], entities[o]) for s, r, o in against}
        assert (told is None and not labels) or tuple(told) in labels
    likely, _ = judge.probabilities(calibration_of(case.graph[1]), every.triples)
    if not (ranker.rules.lengths == 0).any():  # a rule without a body answers one question only
        sure = calibration_of(case.graph[1]).probabilities(every.triples[:, 1], every.contexts, every.scores)
        fine = judge.conflicts.find(every.triples) == -1
        assert np.array_equal(np.isnan(likely), ~fine | (every.scores == 0))
        assert np.allclose(likely[~np.isnan(likely)], sure[~np.isnan(likely)])
