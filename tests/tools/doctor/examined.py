"""What the tests of the doctor share."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from anyburl import Dataset, Finding
from anyburl.tools.doctor.findings import DatasetFacts

Fact = tuple[str, str, str]


def facts_of(train: Iterable[Fact], valid: Iterable[Fact] = (), test: Iterable[Fact] = ()) -> DatasetFacts:
    return DatasetFacts(Dataset.from_triples(list(train), list(valid) or None, list(test) or None))


def rows_of(finding: Finding) -> list[dict[str, object]]:
    """The examples, each as a dictionary."""
    return [dict(zip(finding.columns, row, strict=True)) for row in finding.examples]


def area_under_curve(scores: NDArray[np.float64], is_wrong: NDArray[np.bool_]) -> float:
    """The chance that a wrong fact has a higher score than a right one, ties counted half."""
    _, places, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    n_wrong = int(is_wrong.sum())
    return float((ranks[is_wrong].sum() - n_wrong * (n_wrong + 1) / 2) / n_wrong / (len(scores) - n_wrong))
