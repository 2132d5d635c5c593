"""What speaks for a candidate, as numbers worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from anyburl.ranking.kernel_order import N_BEST, PER_GROUP, UNIT, n_columns, tell_evidence
from kernels import INTERPRETED

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(not INTERPRETED, reason="takes interpreted kernels: it is part of others"),
]


def test_evidence_is_the_best_scores_and_those_of_each_group() -> None:
    """Seven rules speak for entity 1, linked one to the next: 1, 5 and 3 of group 0, the rest of group 2."""
    groups = np.array([0, 2, 0, 2, 2, 0, 2, 1], np.uint8)
    scores = np.array([1, 2, 5, 2, 7, 3, 4, 9])
    firings = SimpleNamespace(scores=scores * UNIT, rules=np.arange(8), following=np.array([1, 2, 3, 4, 5, 6, -1, -1]))
    candidates = SimpleNamespace(firsts=np.array([7, 0, -1]))
    row = np.full(n_columns(groups), -1, np.float32)
    assert len(row) == N_BEST + 3 * PER_GROUP
    tell_evidence(candidates, firings, 1, groups, row)  # type: ignore[arg-type]
    assert row.tolist() == [7, 5, 4, 3, 2, *(5, 9, 3), *(0, 0, 0), *(7, 15, 4)]
    tell_evidence(candidates, firings, 0, groups, row)  # type: ignore[arg-type]
    assert row.tolist() == [9, 0, 0, 0, 0, *(0, 0, 0), *(9, 9, 1), *(0, 0, 0)]
    tell_evidence(candidates, firings, 2, groups, row)  # type: ignore[arg-type]
    assert not row.any()


def test_without_groups_no_evidence_is_told() -> None:
    assert n_columns(np.empty(0, np.uint8)) == 0
