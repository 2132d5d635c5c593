"""`complete_graph`: the missing facts that are wanted, in frames of labels."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl
from numpy.typing import NDArray

from anyburl.calibration.calibration import Calibration
from anyburl.checking import callback
from anyburl.completion.facts import FactColumns
from anyburl.completion.filters import Filter, fitting_types, functional_relations, one_object_each
from anyburl.completion.missing import missing_facts
from anyburl.completion.options import AUTO, CompleteOptions
from anyburl.completion.reasons import TRIPLES, reasons_of
from anyburl.completion.selection import Find, best_by_relation, best_of_each, groups_of
from anyburl.errors import OptionError
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.ranker import Ranker
from anyburl.ruleset.labels import RuleTexts
from anyburl.triples.dataset import Dataset
from anyburl.triples.names import Names
from anyburl.triples.vocabulary import Vocabulary

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
