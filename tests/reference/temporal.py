"""Temporal rules, counted and applied fact by fact. A fact is (x, d, y, t), with the directed relation d.

`d + n` is the relation d read from its object. A question (x, h, t) sees the facts before t, and `now` is what the
clock shows: t, unless it stands still.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log

Fact = tuple[int, int, int, int]
Case = tuple[int, int, int]
Cell = tuple[int, int]

RECENCY = (1, 2, 3, 4, 6, 8, 11, 15, 21, 30, 45, 65, 95, 140, 210)
FREQUENCY = (1, 2, 3, 5, 9, 17)
HALF_LIVES = (3.0, 10.0, 100.0)
LEAST_POPULARITY = 1e-5
LEAST_TOTAL = 0.1


def directed(facts: Iterable[tuple[int, int, int, int]], n: int) -> set[Fact]:
    """Every fact in both directions."""
    stated = set(facts)
    return stated | {(o, r + n, s, t) for s, r, o, t in stated}


def expanded(facts: Iterable[tuple[int, int, int, int, int]], last: int) -> set[tuple[int, int, int, int]]:
    """Facts from a begin to an end, one for each step up to the last of all."""
    return {(s, r, o, t) for s, r, o, begin, end in facts for t in range(begin, min(end, last) + 1)}


def cell(age: int, count: int) -> Cell:
    """The bins of recency and frequency."""
    return bisect_right(RECENCY, age) - 1, bisect_right(FREQUENCY, count) - 1


def past(facts: Iterable[Fact], x: int, t: int) -> dict[tuple[int, int], list[int]]:
    """What x did before t: (relation, other) -> times, ascending."""
    found: dict[tuple[int, int], list[int]] = {}
    for a, d, y, u in sorted(facts, key=lambda fact: fact[3]):
        if a == x and u < t:
            found.setdefault((d, y), []).append(u)
    return found


def cases(facts: Iterable[Fact], end: int) -> dict[Case, set[int]]:
    """The questions that facts before `end` answer, with their answers."""
    found: dict[Case, set[int]] = {}
    for x, h, y, t in facts:
        if t < end:
            found.setdefault((x, h, t), set()).add(y)
    return found


def pair_counts(facts: set[Fact], end: int) -> tuple[Counter[tuple[int, int, Cell]], Counter[tuple[int, int, Cell]]]:
    """For every head, body and cell, the cases in which the body spoke for the right answer, and for any."""
    right: Counter[tuple[int, int, Cell]] = Counter()
    every: Counter[tuple[int, int, Cell]] = Counter()
    for (x, h, t), answers in cases(facts, end).items():
        for (b, y), times in past(facts, x, t).items():
            key = (h, b, cell(t - times[-1], len(times)))
            every[key] += 1
            right[key] += y in answers
    return +right, every


def step_counts(facts: set[Fact], end: int) -> Counter[tuple[int, Cell]]:
    """For every relation and cell, the steps before `end` that its triples spent there."""
    found: Counter[tuple[int, Cell]] = Counter()
    first = min((t for *_, t in facts), default=0)
    for x, d, y in {fact[:3] for fact in facts}:
        times = sorted(t for a, b, c, t in facts if (a, b, c) == (x, d, y))
        for t in range(first, end):
            before = [u for u in times if u < t]
            if before:
                found[d, cell(t - before[-1], len(before))] += 1
    return found


def popularity(facts: set[Fact], h: int, y: int, before: int, now: int) -> list[float]:
    """The share of y among the objects of h, with counts that fade."""
    shares = []
    for life in HALF_LIVES:
        weights = [(c, exp(-log(2) / life * (now - t))) for _, d, c, t in facts if d == h and t < before]
        total = sum(weight for _, weight in weights)
        shares.append(sum(weight for c, weight in weights if c == y) / total if total else 0.0)
    return shares


def shared_credit(
    facts: set[Fact], end: int, values: Mapping[tuple[int, int, Cell], float], favour: Mapping[int, Sequence[float]]
) -> tuple[Counter[tuple[int, int, Cell]], Counter[tuple[int, int, Cell]]]:
    """Credits and exposures of every cell, after one round."""
    credits: Counter[tuple[int, int, Cell]] = Counter()
    exposures: Counter[tuple[int, int, Cell]] = Counter()
    for (x, h, t), answers in cases(facts, end).items():
        if not any(d == h and u < t for _, d, _, u in facts):
            continue
        spoke = [((h, b, cell(t - times[-1], len(times))), y) for (b, y), times in past(facts, x, t).items()]
        total = sum(values[key] for key, _ in spoke) + sum(favour[h])
        for key, _ in spoke:
            exposures[key] += len(answers) / total
        for answer in answers:
            popular = zip(favour[h], popularity(facts, h, answer, t, t), strict=True)
            intensity = sum(values[key] for key, y in spoke if y == answer)
            intensity += sum(weight * (share + LEAST_POPULARITY) for weight, share in popular)
            for key, y in spoke:
                if y == answer:
                    credits[key] += values[key] / intensity
    return credits, exposures


def latest(facts: set[Fact], x: int, t: int, n: int) -> list[Fact]:
    """The last n facts of x before t, the newest first; of equal times, the larger relation and object first."""
    own = sorted((fact for fact in facts if fact[0] == x and fact[3] < t), key=lambda fact: (fact[3], *fact[1:3]))
    return own[::-1][:n]


def bodies_with_constants(facts: set[Fact], x: int, t: int, now: int, n_last: int, oldest: int) -> set[tuple[int, int]]:
    """What b(X,d), b(X,any) and any(X,d) hold for x lately; -1 stands for any."""
    recent = [fact for fact in latest(facts, x, t, n_last) if now - fact[3] <= oldest]
    return {body for _, b, d, _ in recent for body in ((b, d), (b, -1), (-1, d))}


def constant_counts(
    facts: set[Fact], end: int, n_last: int, oldest: int
) -> tuple[Counter[tuple[int, tuple[int, int], int]], Counter[tuple[int, tuple[int, int]]]]:
    """For every head, body and constant the right cases, and for every head and body all cases."""
    right: Counter[tuple[int, tuple[int, int], int]] = Counter()
    every: Counter[tuple[int, tuple[int, int]]] = Counter()
    for (x, h, t), answers in cases(facts, end).items():
        for body in bodies_with_constants(facts, x, t, t, n_last, oldest):
            every[h, body] += 1
            for answer in answers:
                right[h, body, answer] += 1
    return right, every


def ways(facts: set[Fact], x: int, t: int, n_first: int, n_second: int) -> list[tuple[int, int, int]]:
    """Two hops from x through its last facts: (first relation, second relation, end), ends other than x."""
    return [
        (b, c, y)
        for _, b, a, _ in latest(facts, x, t, n_first)
        for _, c, y, _ in latest(facts, a, t, n_second)
        if y != x
    ]


def hop_counts(
    facts: set[Fact], end: int, n_first: int, n_second: int
) -> tuple[Counter[tuple[int, int, int]], Counter[tuple[int, int, int]]]:
    """For every head and pair of relations, the ways that led to an answer, and all ways."""
    right: Counter[tuple[int, int, int]] = Counter()
    every: Counter[tuple[int, int, int]] = Counter()
    for (x, h, t), answers in cases(facts, end).items():
        for b, c, y in ways(facts, x, t, n_first, n_second):
            every[h, b, c] += 1
            right[h, b, c] += y in answers
    return +right, every


def rank(scores: Mapping[int, float], n_entities: int, answer: int, excluded: set[int]) -> tuple[int, int]:
    """How many entities rank before the answer, and how many tie with it."""
    own = scores.get(answer, 0.0)
    others = [scores.get(y, 0.0) for y in set(range(n_entities)) - excluded - {answer}]
    return sum(other > own for other in others), sum(other == own for other in others)


def excluded(facts: set[Fact], x: int, h: int, t: int, kind: str) -> set[int]:
    """Whom an answer is not ranked against: answers of the same moment, of any, or nobody."""
    if kind == "raw":
        return set()
    return {y for a, d, y, u in facts if (a, d) == (x, h) and (kind == "static" or u == t)}
