"""Rules beyond memory go to temporary files; nothing else changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from anyburl import RuleSet, learn, load_dataset
from anyburl.learning.store import RuleStore
from anyburl.ruleset.columns import COLUMN_TYPES


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
    assert all(is_mapped(getattr(found, name)) for name in COLUMN_TYPES)
    assert not any(getattr(found, name).flags.writeable for name in COLUMN_TYPES)
    assert found.to_polars().equals(RuleSet.concat(parts).to_polars())
