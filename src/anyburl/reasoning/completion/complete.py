"""`complete_graph`: the missing facts that are wanted, in frames of labels.

Filters facts that others contradict: a second object where there should be one, or a type that does not fit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import callback
from anyburl.base.errors import OptionError
from anyburl.data.dataset import SPLITS, Dataset, all_types, stated_types
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.models.calibration.fit import Calibration
from anyburl.ranking.backend import Progress
from anyburl.ranking.ranker import Ranker
from anyburl.reasoning.completion.facts import FactColumns, Find, best_by_relation, best_of_each, groups_of
from anyburl.reasoning.completion.options import AUTO, CompleteOptions
from anyburl.reasoning.completion.reasons import TRIPLES, reasons_of
from anyburl.reasoning.completion.search import missing_facts
from anyburl.rules.labels import RuleTexts

FUNCTIONAL = 0.98  # subjects for each fact, from which on a relation counts as functional
FEWEST_FACTS = 20  # to learn that from

Filter = Callable[[FactColumns], FactColumns]
Ints = NDArray[np.int64]


def functional_relations(dataset: Dataset) -> NDArray[np.int32]:
    """Return the relations that have one object for nearly every subject, as far as train shows."""
    n_relations = dataset.vocabulary.n_relations
    questions, relations = _questions(dataset.train.triples, n_relations), dataset.train.triples[:, 1]
    n_facts = np.bincount(relations, minlength=n_relations)
    n_subjects = np.bincount(np.unique(questions) % n_relations, minlength=n_relations)
    found = (n_facts >= FEWEST_FACTS) & (n_subjects >= FUNCTIONAL * n_facts)
    return np.flatnonzero(found).astype(np.int32)


def one_object_each(dataset: Dataset, relations: NDArray[np.int32]) -> Filter:
    """Return a filter: of each question of these relations that no split answers, the best fact stays.

    The facts of a question must come together.
    """
    n_relations = dataset.vocabulary.n_relations
    tables = [dataset.split(split).triples for split in SPLITS]
    answered = np.unique(
        np.concatenate([_questions(table[np.isin(table[:, 1], relations)], n_relations) for table in tables])
    )

    def keep(facts: FactColumns) -> FactColumns:
        concerned = np.isin(facts.triples[:, 1], relations)
        questions = _questions(facts.triples, n_relations)
        order = np.lexsort((facts.triples[:, 2], -facts.n_rules, -facts.scores, questions))
        firsts = np.ones(len(order), np.bool_)
        firsts[1:] = questions[order][1:] != questions[order][:-1]
        is_best = np.zeros(len(order), np.bool_)
        is_best[order] = firsts
        return facts.take(~concerned | (is_best & ~np.isin(questions, answered)))

    return keep


def fitting_types(dataset: Dataset, relation: int) -> Filter:
    """Return a filter: subject and object have a type, by `relation`, that train shows at their place.

    Where classes are ordered (see `all_types`), a class above the type of the entity will do.
    """
    types = _Types(dataset, relation)

    def keep(facts: FactColumns) -> FactColumns:
        subjects, relations, objects = facts.triples.T
        return facts.take(types.fit(0, relations, subjects) & types.fit(1, relations, objects))

    return keep


class _Types:
    """The types of entities, and those seen as subjects (place 0) and objects (place 1) of each relation."""

    def __init__(self, dataset: Dataset, relation: int) -> None:
        train, self._n_relations = dataset.train.triples, dataset.vocabulary.n_relations
        self._width = dataset.vocabulary.n_entities
        stated = _TypesOf(stated_types(dataset, relation), self._width)
        seen = [self._keys(stated, place, train[:, 1], train[:, 2 * place])[1] for place in (0, 1)]
        self._seen = np.unique(np.concatenate(seen))
        self._all = _TypesOf(all_types(dataset, relation), self._width)

    def _keys(
        self, types: _TypesOf, place: int, relations: NDArray[np.int32], entities: NDArray[np.int32]
    ) -> tuple[Ints, Ints]:
        """Return for each type of each entity its row, and a number for place, relation and type."""
        rows, found = types.of(entities)
        return rows, (place * self._n_relations + relations[rows].astype(np.int64)) * self._width + found

    def fit(self, place: int, relations: NDArray[np.int32], entities: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each entity has a type that was seen at this place of its relation."""
        rows, keys = self._keys(self._all, place, relations, entities)
        return np.bincount(rows[np.isin(keys, self._seen)], minlength=len(entities)) > 0


class _TypesOf:
    """The types of each entity, one after the other."""

    def __init__(self, pairs: pl.DataFrame, n_entities: int) -> None:
        ordered = pairs.sort("entity", maintain_order=True)
        self._types = ordered["type"].to_numpy().astype(np.int64)
        counts = np.bincount(ordered["entity"].to_numpy(), minlength=n_entities)
        self._starts = np.concatenate([[0], np.cumsum(counts)])

    def of(self, entities: NDArray[np.int32]) -> tuple[Ints, Ints]:
        """Return the types of many entities, and beside each the row of its entity."""
        sizes = self._starts[entities + 1] - self._starts[entities]
        rows = np.repeat(np.arange(len(entities)), sizes)
        offsets = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        return rows, self._types[self._starts[entities[rows]] + offsets]


def _questions(triples: NDArray[np.int32], n_relations: int) -> Ints:
    """Return a number for the question (subject, relation, ?) of each triple."""
    return triples[:, 0].astype(np.int64) * n_relations + triples[:, 1]


FACTS_AT_A_TIME = 1 << 16
SECONDS_AT_A_TIME = 5.0  # what is found is handed on at least so often

Scores = NDArray[np.float64]


def complete_graph(
    ranker: Ranker,
    dataset: Dataset,
    options: CompleteOptions,
    *,
    names: Names | None = None,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the facts that `options` ask for, some at a time: there is always at least one frame.

    `progress` is called with the number of entities asked about.
    """
    ranker.check_data(dataset)
    callback("progress", progress)
    least = _least_scores(dataset.vocabulary, options, names or Names(), calibration)
    frames = _Frames(ranker, names, calibration, with_reasons=options.reasons)
    find = _finding(ranker, dataset, options, names or Names(), progress)
    n_relations = dataset.vocabulary.n_relations
    if options.top is not None and options.per == "relation":
        decides = ranker.reranker is None and ranker.aggregation.n_counted == 1
        found = best_by_relation(find, least, options.top, in_levels=decides)
    else:
        found = find(least)
        if options.top is not None:
            top, per = options.top, options.per
            found = (best_of_each(facts, groups_of(facts, per, n_relations), top) for facts in found)
    n_frames = 0
    for facts in _collected(found):
        yield frames.frame(facts)
        n_frames += 1
    if not n_frames:
        yield frames.frame(FactColumns.empty())


def _finding(
    ranker: Ranker, dataset: Dataset, options: CompleteOptions, names: Names, progress: Progress | None
) -> Find:
    """Return what finds facts with at least some scores, the filters of the options applied."""
    vocabulary, subjects = dataset.vocabulary, None
    if options.subjects is not None:
        subjects = np.array([names.entity_id(label, vocabulary) for label in options.subjects], np.int32)
    filters: list[Filter] = []
    if options.types is not None:
        (types,) = _relation_ids(vocabulary, [options.types], names)
        filters.append(fitting_types(dataset, int(types)))
    functional = (
        functional_relations(dataset)
        if options.functional == AUTO
        else _relation_ids(vocabulary, options.functional, names)
    )
    if len(functional):  # last: the best fact is chosen among those that the other filters keep
        filters.append(one_object_each(dataset, functional))

    def find(least: Scores) -> Iterator[FactColumns]:
        for facts in missing_facts(ranker, dataset, least, subjects=subjects, progress=progress):
            for keep in filters:
                facts = keep(facts)
            yield facts

    return find


def _least_scores(
    vocabulary: Vocabulary, options: CompleteOptions, names: Names, calibration: Calibration | None
) -> Scores:
    """Return the least score of each relation, inf for those that are not asked for."""
    least = np.full(vocabulary.n_relations, options.least)
    if options.relations is not None:
        chosen = np.zeros(vocabulary.n_relations, np.bool_)
        chosen[_relation_ids(vocabulary, options.relations, names)] = True
        least[~chosen] = np.inf
    if options.min_probability is not None:
        if calibration is None:
            raise OptionError(
                "min_probability needs calibrated scores: first run `anyburl calibrate` with these options"
            )
        least = np.maximum(least, calibration.least_scores(options.min_probability))
    return least


def _relation_ids(vocabulary: Vocabulary, labels: Sequence[str], names: Names) -> NDArray[np.int32]:
    return np.array([names.relation_id(label, vocabulary) for label in labels], np.int32)


def _collected(found: Iterator[FactColumns]) -> Iterator[FactColumns]:
    """Put small parts together, without waiting for more once there are enough facts, or for long."""
    waiting, n_waiting, began = list[FactColumns](), 0, time.monotonic()
    for facts in found:
        if len(facts):
            waiting.append(facts)
            n_waiting += len(facts)
        if n_waiting >= FACTS_AT_A_TIME or (waiting and time.monotonic() - began > SECONDS_AT_A_TIME):
            yield FactColumns.concat(waiting)
            waiting, n_waiting, began = [], 0, time.monotonic()
    if waiting:
        yield FactColumns.concat(waiting)


class _Frames:
    """Turns columns of ids into frames of labels."""

    def __init__(
        self, ranker: Ranker, names: Names | None, calibration: Calibration | None, *, with_reasons: bool
    ) -> None:
        self._ranker, self._names, self._calibration = ranker, names, calibration
        self._texts, self._with_reasons = RuleTexts(ranker.rules), with_reasons

    def frame(self, facts: FactColumns) -> pl.DataFrame:
        """Return one row per fact."""
        labels = self._ranker.vocabulary.decode_triples(facts.triples).to_dict()
        frame = pl.DataFrame(
            {
                **labels,
                "score": facts.scores,
                **self._meanings(facts.triples[:, 1], facts.scores),
                "rule": self._texts.of_rows(facts.rules),
                "rules": facts.n_rules,
            }
        )
        if self._names:
            named = {f"{name}_name": self._names.series(column) for name, column in labels.items()}
            frame = frame.with_columns(**named)
        if self._with_reasons:
            reasons = reasons_of(self._ranker, facts) if len(facts) else pl.Series([], dtype=TRIPLES)
            frame = frame.with_columns(facts=reasons)
        return frame

    def _meanings(self, relations: NDArray[np.int32], scores: Scores) -> dict[str, pl.Series]:
        """Return both probabilities; null where they are unknown."""
        columns = ("probability", "closed_world")
        if self._calibration is None:
            return {name: pl.Series([None] * len(scores), dtype=pl.Float64) for name in columns}
        found = self._calibration.probabilities(relations, scores), self._calibration.closed_world(relations, scores)
        return {name: pl.Series(values).fill_nan(None) for name, values in zip(columns, found, strict=True)}
