"""Random numbers as an argument: xoshiro256** over a four-word state that the caller owns.

The same `(seed, span, batch)` gives the same numbers on any thread, engine or machine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined


def batch_state(seed: int, *key: int) -> NDArray[np.uint64]:
    """Return the generator state of one batch, named by `key` (for instance span, core and batch)."""
    state: NDArray[np.uint64] = (
        np.random.SeedSequence(seed, spawn_key=key).generate_state(4, np.uint64).astype(np.uint64)
    )
    return state


@inlined
def next_uint64(state: NDArray[np.uint64]) -> np.uint64:
    """Advance `state` and return 64 random bits."""
    product = state[1] * np.uint64(5)
    rotated = (product << np.uint64(7)) | (product >> np.uint64(57))
    result: np.uint64 = rotated * np.uint64(9)
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = (state[3] << np.uint64(45)) | (state[3] >> np.uint64(19))
    return result


@inlined
def randint(state: NDArray[np.uint64], n: int) -> int:
    """Return a random integer in [0, n), n below 2**31 (bias below n / 2**32)."""
    high = next_uint64(state) >> np.uint64(32)
    return int(np.int64((high * np.uint64(n)) >> np.uint64(32)))


@inlined
def mix(value: np.uint64) -> np.uint64:
    """Scramble 64 bits one to one (the finaliser of splitmix64)."""
    z = value + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))
