"""`missing_facts`: every fact that the rules imply and no split states, in columns of ids, some subjects at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.facts import FactColumns
from anyburl.completion.merging import merge_directions
from anyburl.completion.search import Search, make_search
from anyburl.graph.lookup import held_by
from anyburl.ranking.backends.base import Progress
from anyburl.ranking.ranker import Ranker
from anyburl.triples.dataset import SPLITS, Dataset

SUBJECTS_AT_A_TIME = 64
LISTED_AT_A_TIME = 16  # where candidates are listed with their evidence


def missing_facts(
    ranker: Ranker,
    dataset: Dataset,
    least: NDArray[np.float64],
    *,
    stated: Sequence[str] = SPLITS,
    subjects: NDArray[np.int32] | None = None,
    progress: Progress | None = None,
) -> Iterator[FactColumns]:
    """Yield the facts with at least the `least` score of their relation (inf: none) that no split of `stated` holds.

    A fact's score is what it has as an answer: to (s, r, ?) or to (?, r, o), whichever is higher. Those of a subject
    come together. `subjects` are the ids of those that matter, by default all; `progress` is called with the number of
    entities asked about.
    """
    search = make_search(ranker, least)
    entities = np.arange(ranker.graph.n_entities, dtype=np.int32)
    if subjects is not None and not search.both_ways:
        entities = np.unique(subjects)
    found = _found(ranker, search, entities, progress)
    if search.both_ways:
        found = merge_directions(found if subjects is None else _only_about(found, subjects))
    bits = np.uint8(sum(1 << SPLITS.index(split) for split in stated))
    for facts in found:
        yield facts.take(held_by(dataset, facts.triples) & bits == 0)


def _found(
    ranker: Ranker, search: Search, entities: NDArray[np.int32], progress: Progress | None
) -> Iterator[FactColumns]:
    if not len(search.finder.heads):
        return
    size = LISTED_AT_A_TIME if search.model else SUBJECTS_AT_A_TIME
    parts = [entities[start : start + size] for start in range(0, len(entities), size)]
    for part, facts in zip(parts, ranker.backend.map(search, parts), strict=True):
        if progress:
            progress(len(part))
        yield facts


def _only_about(found: Iterator[FactColumns], subjects: NDArray[np.int32]) -> Iterator[FactColumns]:
    for facts in found:
        yield facts.take(np.isin(facts.triples[:, 0], subjects))
