"""The random numbers are xoshiro256** and the finaliser of splitmix64, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anyburl.base.rng import batch_state
from called import mix, next_uint64, randint
from kernels import examples

pytestmark = pytest.mark.kernel

WORD = 2**64
words = st.integers(0, WORD - 1)


def rotate(value: int, by: int) -> int:
    return (value << by | value >> (64 - by)) % WORD


def expected_next(s: list[int]) -> int:
    """One step of xoshiro256** as its authors publish it, on unbounded integers."""
    result = rotate(s[1] * 5 % WORD, 7) * 9 % WORD
    shifted = (s[1] << 17) % WORD
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = rotate(s[3], 45)
    return result


def expected_mix(value: int) -> int:
    """The output of splitmix64 for the state `value`."""
    z = (value + 0x9E3779B97F4A7C15) % WORD
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ z >> 27) * 0x94D049BB133111EB % WORD
    return z ^ z >> 31


def test_the_first_numbers_are_those_that_other_implementations_give() -> None:
    state = np.array([1, 2, 3, 4], np.uint64)
    numbers = [int(next_uint64(state)) for _ in range(5)]
    assert numbers == [11520, 0, 1509978240, 1215971899390074240, 1216172134540287360]
    assert int(mix(np.uint64(0))) == 0xE220A8397B1DCDAF


@settings(max_examples=examples(100, 50))
@given(st.lists(words, min_size=4, max_size=4))
def test_numbers_and_states_agree_with_unbounded_integers(start: list[int]) -> None:
    state = np.array(start, np.uint64)
    for _ in range(5):
        assert int(next_uint64(state)) == expected_next(start)
        assert state.tolist() == start


@settings(max_examples=examples(100, 50))
@given(words)
def test_mixing_agrees_with_unbounded_integers(value: int) -> None:
    assert int(mix(np.uint64(value))) == expected_mix(value)


@settings(max_examples=examples(100, 50))
@given(st.lists(words, min_size=4, max_size=4), st.integers(1, 2**31 - 1))
def test_a_random_integer_is_the_upper_half_scaled_down(start: list[int], n: int) -> None:
    number = randint(np.array(start, np.uint64), n)
    assert number == (expected_next(start) >> 32) * n >> 32
    assert 0 <= number < n


def test_random_integers_are_uniform() -> None:
    state, n, size = batch_state(1, 2), 7, examples(70_000, 7_000)
    counts = np.bincount([randint(state, n) for _ in range(size)], minlength=n)
    chi_square = ((counts - size / n) ** 2 / (size / n)).sum()
    assert chi_square < 22.5  # 6 degrees of freedom: exceeded once in a thousand seeds


def test_every_batch_has_its_own_state_and_the_same_one_again() -> None:
    keys = [(1, 0, 0), (1, 0, 1), (1, 1, 0), (2, 0, 0), (1, 0), (1,)]
    assert len({batch_state(*key).tobytes() for key in keys}) == len(keys)
    for key in keys:
        state = batch_state(*key)
        assert state.dtype == np.uint64
        assert state.tolist() == batch_state(*key).tolist()
