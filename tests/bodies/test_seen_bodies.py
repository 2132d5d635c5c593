"""The table of bodies seen before, against a dict."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.bodies.paths import SeenBodies
from kernels import examples

pytestmark = pytest.mark.kernel

body_keys = st.integers(0, 8) | st.integers(2**64 - 3, 2**64 - 1)
batches = st.lists(st.tuples(st.integers(0, 2), st.lists(body_keys)), max_size=8)


@settings(max_examples=examples(200, 60))
@given(batches)
def test_keys_are_new_once_and_their_rules_are_met_again_once_a_span(
    drawn: list[tuple[int, list[int]]],
) -> None:
    """Every body gives key % 5 rules; spans go forward, and a body new in a span is not known in it."""
    seen, rules, met_in = SeenBodies(), {}, {}
    span = 0
    for pause, keys in drawn:
        span += pause
        expected, n_known = [], 0
        for key in keys:
            expected.append(key not in rules)
            n_known += rules.get(key, 0) if met_in.get(key) != span else 0
            rules.setdefault(key, 0)
            met_in[key] = span
        array = np.array(keys, np.uint64)
        is_new, n_known_rules = seen.enter(array, span)
        assert is_new.tolist() == expected
        assert n_known_rules == n_known
        assert seen.n_bodies == len(rules)
        seen.record(array, np.array([key % 5 for key in keys], np.int64))
        rules.update((key, key % 5) for key in keys)


def test_the_table_grows_and_forgets_nothing() -> None:
    seen, n = SeenBodies(), examples(200_000, 40_000)
    keys = np.arange(n, dtype=np.uint64) * np.uint64(2**32)
    for part in np.array_split(keys, 4):
        assert seen.enter(part, 0)[0].all()
    seen.record(keys, np.full(n, 3, np.int64))
    is_new, n_known_rules = seen.enter(keys, 1)
    assert not is_new.any()
    assert n_known_rules == 3 * n
    assert seen.enter(keys, 1)[1] == 0
    assert seen.n_bodies == n
