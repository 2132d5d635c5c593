"""Rules beyond memory go to temporary files; nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anyburl import RuleSet, learn, load_dataset
from anyburl.learning.store import RuleStore, ValueCounts, most_valuable
from anyburl.rules.columns import REQUIRED, value


def is_mapped(column: Any) -> bool:
    """Whether an array is a view of a memory-mapped one."""
    while column is not None and not isinstance(column, np.memmap):
        column = column.base
    return column is not None


@pytest.mark.parametrize("max_rules", [None, 800])
def test_a_run_with_many_rules_gives_the_same_from_disk(monkeypatch: pytest.MonkeyPatch, max_rules: int | None) -> None:
    data = load_dataset("geo")
    options: dict[str, Any] = {"paths": 60_000, "seed": 1, "max_rules": max_rules}
    in_memory = learn(data, **options)
    monkeypatch.setattr("anyburl.learning.store.MOST_IN_MEMORY", 500)
    from_disk = learn(data, **options)
    assert len(in_memory) > 500
    assert from_disk.to_polars().equals(in_memory.to_polars())


def test_rules_past_the_bound_are_mapped_and_read_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anyburl.learning.store.MOST_IN_MEMORY", 100)
    rules = learn(load_dataset("geo"), paths=30_000, seed=1)
    store = RuleStore(rules.vocabulary, None)
    parts = [rules.slice(start, start + 40) for start in range(0, 240, 40)]
    for part in parts:
        store.add([part])
    found = store.rules()
    assert all(is_mapped(getattr(found, name)) for name in REQUIRED)
    assert not any(getattr(found, name).flags.writeable for name in REQUIRED)
    assert found.to_polars().equals(RuleSet.concat(parts).to_polars())


@pytest.mark.parametrize("at_a_time", [0, 30, 10_000])
def test_rules_dropped_little_by_little_leave_the_most_valuable(
    monkeypatch: pytest.MonkeyPatch, at_a_time: int
) -> None:
    monkeypatch.setattr("anyburl.learning.store.TRIMMED_AT_A_TIME", at_a_time)
    rules = learn(load_dataset("geo"), paths=30_000, seed=1).slice(0, 2000)
    store = RuleStore(rules.vocabulary, 300)
    floors = []
    for start in range(0, len(rules), 50):
        store.add([rules.slice(start, start + 50)])
        floors.append(store.floor)
        assert store.n_rules + store.n_dropped == start + 50
        assert store.n_rules <= 450 + 50
        if start == 950:
            store.mark_snapshot("half")
    assert floors == sorted(floors)
    assert floors[-1] > 0
    store.cut_to_cap()
    kept = most_valuable(rules, 300)
    assert store.rules().to_polars().equals(rules.take(kept).to_polars())
    assert store.snapshots() == {"half": int(np.searchsorted(kept, 1000))}


def test_the_floor_leaves_at_least_as_many_rules_as_asked() -> None:
    rules = learn(load_dataset("geo"), paths=30_000, seed=1)
    worth = np.sort(value(rules.support, rules.predictions))
    for n_rules in (1, 7, 100, len(rules)):
        counts = ValueCounts()
        counts.add(rules)
        floor = counts.raise_floor(n_rules)
        assert counts.n_rules == np.count_nonzero(worth >= floor) >= n_rules
        assert floor <= worth[-n_rules] <= floor * (1 + 1 / 256)
