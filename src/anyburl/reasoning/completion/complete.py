"""`complete_graph`: the facts that are missing and not contradicted by stated ones, in frames of labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.base.checking import callback
from anyburl.base.errors import OptionError
from anyburl.data.dataset import Dataset, all_types, stated_types
from anyburl.data.names import Names
from anyburl.data.vocabulary import Vocabulary
from anyburl.models.calibration import Calibration
from anyburl.ranking.ranker import Progress
from anyburl.reasoning.completion.facts import (
    TRIPLES,
    FactColumns,
    Find,
    best_by_relation,
    best_of_each,
    collected,
    groups_of,
    reasons_of,
)
from anyburl.reasoning.completion.hiding import LEAST_PROBABILITY
from anyburl.reasoning.completion.judging import Judge
from anyburl.reasoning.completion.options import AUTO, CompleteOptions
from anyburl.reasoning.completion.search import Narrowed, missing_facts
from anyburl.rules.labels import RuleTexts

Filter = Callable[[FactColumns], FactColumns]
Ints = NDArray[np.int64]


def fitting_types(dataset: Dataset, relation: int) -> Filter:
    """Return a filter: subject and object have a type, by `relation`, that train shows there.

    Where classes are ordered (see `all_types`), a class above the type of the entity will do.
    """
    types = _Types(dataset, relation)

    def keep(facts: FactColumns) -> FactColumns:
        subjects, relations, objects = facts.triples.T
        return facts.take(types.fit(0, relations, subjects) & types.fit(1, relations, objects))

    return keep


class _Types:
    """The types of entities, and those seen as subjects (end 0) and objects (end 1) of each relation."""

    def __init__(self, dataset: Dataset, relation: int) -> None:
        train, self._n_relations = dataset.train.triples, dataset.vocabulary.n_relations
        self._width = dataset.vocabulary.n_entities
        stated = _TypesOf(stated_types(dataset, relation), self._width)
        seen = [self._keys(stated, end, train[:, 1], train[:, 2 * end])[1] for end in (0, 1)]
        self._seen = np.unique(np.concatenate(seen))
        self._all = _TypesOf(all_types(dataset, relation), self._width)

    def _keys(
        self, types: _TypesOf, end: int, relations: NDArray[np.int32], entities: NDArray[np.int32]
    ) -> tuple[Ints, Ints]:
        """Return for each type of each entity its row, and a number for end, relation and type."""
        rows, own_types = types.of(entities)
        return rows, (end * self._n_relations + relations[rows].astype(np.int64)) * self._width + own_types

    def fit(self, end: int, relations: NDArray[np.int32], entities: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each entity has a type that was seen at this end of its relation."""
        rows, keys = self._keys(self._all, end, relations, entities)
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


FACTS_AT_A_TIME = 1 << 16
SECONDS_AT_A_TIME = 5.0  # facts are handed on at least so often

Scores = NDArray[np.float64]


def complete_graph(
    judge: Judge,
    options: CompleteOptions,
    *,
    names: Names | None = None,
    calibration: Calibration | None = None,
    progress: Progress | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the facts that `options` ask for, some at a time: there is always at least one frame.

    `progress` is called with the number of entities asked about.
    """
    ranker, dataset, names = judge.ranker, judge.dataset, names or Names()
    ranker.check_data(dataset)
    callback("progress", progress)
    calibrated_with = judge.conflicts.properties
    judge = _adjusted(judge, options, names)
    if calibration is None and (needing := options.about_probabilities):
        raise OptionError(f"{needing} needs calibrated scores: first run `anyburl calibrate` with these options")
    if calibration is not None and options.missing is not None:
        calibration = calibration.with_missing(missing_by_id(options.missing, dataset.vocabulary, names))
    least = _least_scores(dataset.vocabulary, options, names, calibration)
    differing = judge.conflicts.properties.differing(calibrated_with)
    if options.about_probabilities:
        _refuse_other_properties(dataset.vocabulary, options, differing[np.isfinite(least[differing])])
    frames = _Frames(judge, names, calibration, options, differing)
    find = _finding(judge, options, names, calibration, progress)
    n_relations = dataset.vocabulary.n_relations
    if options.top is not None and options.per == "relation":
        decides = ranker.reranker is None and ranker.aggregation.n_counted == 1
        proposals = best_by_relation(find, least, options.top, in_levels=decides)
    else:
        proposals = find(least)
        if options.top is not None:
            top, per = options.top, options.per
            proposals = (best_of_each(facts, groups_of(facts, per, n_relations), top) for facts in proposals)
    n_frames = 0
    for facts in collected(proposals, FACTS_AT_A_TIME, SECONDS_AT_A_TIME):
        yield frames.frame(facts)
        n_frames += 1
    if not n_frames:
        yield frames.frame(FactColumns.empty())


def _adjusted(judge: Judge, options: CompleteOptions, names: Names) -> Judge:
    """Return a judge that takes the relations named in the options as they say."""
    vocabulary, conflicts = judge.dataset.vocabulary, judge.conflicts
    properties = conflicts.properties
    if options.functional != AUTO:
        properties = properties.with_one_object(_relation_ids(vocabulary, options.functional, names).tolist())
    if options.exempt:
        properties = properties.exempting(_relation_ids(vocabulary, options.exempt, names).tolist())
    return replace(judge, conflicts=replace(conflicts, properties=properties))


def _refuse_other_properties(vocabulary: Vocabulary, options: CompleteOptions, relations: Ints) -> None:
    """Refuse probabilities of relations that are not taken as they were when probabilities were found."""
    if not len(relations):
        return
    labels = ", ".join(vocabulary.relation_label(relation) for relation in relations[:3].tolist())
    more = f" and {len(relations) - 3:,} more" if len(relations) > 3 else ""
    raise OptionError(
        f"{options.about_probabilities} holds for relations as the data shows them, and functional or exempt change "
        f"{labels}{more}: use min_score with them, or choose other relations"
    )


def _finding(
    judge: Judge, options: CompleteOptions, names: Names, calibration: Calibration | None, progress: Progress | None
) -> Find:
    """Return what finds facts with at least some scores, the filters of the options applied."""
    ranker, dataset = judge.ranker, judge.dataset
    vocabulary, subjects = dataset.vocabulary, None
    if options.subjects is not None:
        subjects = np.array([names.entity_id(label, vocabulary) for label in options.subjects], np.int32)
    fits: Filter | None = None
    if options.types is not None:
        (types,) = _relation_ids(vocabulary, [options.types], names)
        fits = fitting_types(dataset, int(types))

    narrowed = Narrowed.nothing(vocabulary.n_relations)
    if not options.conflicts:
        narrowed = replace(narrowed, one_object=judge.conflicts.properties.one_object)
    if calibration is not None and (options.min_probability or 0) >= LEAST_PROBABILITY:
        narrowed = replace(narrowed, floors=calibration.floors)

    def find(least: Scores) -> Iterator[FactColumns]:
        proposals = missing_facts(ranker, dataset, least, subjects=subjects, narrowed=narrowed, progress=progress)
        for facts in proposals:
            facts = facts if fits is None else fits(facts)
            facts = replace(facts, contexts=judge.contexts_of(facts))
            kept = np.ones(len(facts), np.bool_) if options.conflicts else judge.may_be_proposed(facts)
            if calibration is not None and options.min_probability is not None:
                kept &= judge.likely(calibration, facts) >= options.min_probability
            yield facts.take(kept)

    return find


def missing_by_id(
    missing: float | Mapping[str, float], vocabulary: Vocabulary, names: Names
) -> float | dict[int, float]:
    """Return an assumption about what is missing, by the numbers of relations instead of their labels."""
    if not isinstance(missing, Mapping):
        return missing
    return {names.relation_id(label, vocabulary): share for label, share in missing.items()}


def _least_scores(
    vocabulary: Vocabulary, options: CompleteOptions, names: Names, calibration: Calibration | None
) -> Scores:
    """Return the least score of each relation, inf for those that are not asked for."""
    least = np.full(vocabulary.n_relations, options.least)
    if options.relations is not None:
        chosen = np.zeros(vocabulary.n_relations, np.bool_)
        chosen[_relation_ids(vocabulary, options.relations, names)] = True
        least[~chosen] = np.inf
    if calibration is not None and options.min_probability is not None:
        least = np.maximum(least, calibration.least_scores(options.min_probability))
    return least


def _relation_ids(vocabulary: Vocabulary, labels: Sequence[str], names: Names) -> NDArray[np.int32]:
    return np.array([names.relation_id(label, vocabulary) for label in labels], np.int32)


class _Frames:
    """Turns columns of ids into frames of labels."""

    def __init__(
        self,
        judge: Judge,
        names: Names,
        calibration: Calibration | None,
        options: CompleteOptions,
        uncalibrated: Ints,
    ) -> None:
        self._judge, self._names, self._calibration = judge, names, calibration
        self._uncalibrated = uncalibrated  # relations
        self._texts, self._options = RuleTexts(judge.ranker.rules), options

    def frame(self, facts: FactColumns) -> pl.DataFrame:
        """Return one row per fact."""
        labels = self._judge.ranker.vocabulary.decode_triples(facts.triples).to_dict()
        frame = pl.DataFrame(
            {
                **labels,
                "score": facts.scores,
                "probability": self._probabilities(facts),
                "rule": self._texts.of_rows(facts.rules),
                "rules": facts.n_rules,
            }
        )
        if self._names:
            named = {f"{name}_name": self._names.series(column) for name, column in labels.items()}
            frame = frame.with_columns(**named)
        if self._options.conflicts:
            frame = frame.with_columns(conflict=self._conflicts(facts))
        if self._options.reasons:
            reasons = reasons_of(self._judge.ranker, facts) if len(facts) else pl.Series([], dtype=TRIPLES)
            frame = frame.with_columns(facts=reasons)
        return frame

    def _probabilities(self, facts: FactColumns) -> pl.Series:
        """Return probabilities; null where scores are not calibrated."""
        known = ~np.isin(facts.triples[:, 1], self._uncalibrated)
        return pl.Series(np.where(known, self._judge.likely(self._calibration, facts), np.nan)).fill_nan(None)

    def _conflicts(self, facts: FactColumns) -> pl.Series:
        """Return the stated fact that contradicts each fact, as a list of labels; null where none does."""
        stated = self._judge.stated_facts(facts.triples, self._judge.conflicts.find(facts.triples))
        return pl.Series(stated, dtype=pl.List(pl.String))
