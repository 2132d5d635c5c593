"""Where walks of a few steps lead, with exact numbers."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from .graph import Triple

Shares = dict[int, Fraction]


def walk_shares(
    triples: Iterable[Triple], start: int, n_steps: int, least: Fraction
) -> tuple[list[Shares], list[Fraction]]:
    """Return the share of walks at each entity after 0, 1, ... steps, and what each edge would have got.

    From the second step on, edges that would get less than `least` are not followed.
    """
    edges = [(s, o) for s, _, o in triples] + [(o, s) for s, _, o in triples]
    found: list[Shares] = [{start: Fraction(1)}]
    tried: list[Fraction] = []
    for step in range(n_steps):
        after: Shares = {}
        for entity, share in found[-1].items():
            ends = [b for a, b in edges if a == entity]
            part = share / max(1, len(ends))
            if step:
                tried.append(part)
            if not step or part >= least:
                for end in ends:
                    after[end] = after.get(end, Fraction(0)) + part
        found.append(after)
    return found, tried
