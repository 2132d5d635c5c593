"""Divides questions among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

QUESTIONS_AT_A_TIME = 64

Space = TypeVar("Space")


def share_questions(
    n_questions: int, threads: int, make_space: Callable[[], Space], fill: Callable[[int, int, Space], None]
) -> None:
    """Call `fill(first, last, space)` until all questions are done; every thread has a space of its own."""
    starts = range(0, n_questions, QUESTIONS_AT_A_TIME)

    def fill_all(own: range) -> None:
        space = make_space()
        for first in own:
            fill(first, min(first + QUESTIONS_AT_A_TIME, n_questions), space)

    shares = [share for share in (starts[turn::threads] for turn in range(threads)) if share]
    if len(shares) == 1:
        fill_all(shares[0])
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(fill_all, shares))
