"""Temporal rules, counted and applied fact by fact. A fact is (x, d, y, t), with the directed relation d.

`d + n` is the relation d read from its object. A question (x, h, t) sees the facts before t, and `now` is what the
clock shows: t, unless it stands still.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

Fact = tuple[int, int, int, int]
Case = tuple[int, int, int]
Cell = tuple[int, int]

RECENCY = (1, 2, 3, 4, 6, 8, 11, 15, 21, 30, 45, 65, 95, 140, 210)
FREQUENCY = (1, 2, 3, 5, 9, 17)
HALF_LIVES = (3.0, 10.0, 100.0)
LEAST_POPULARITY = 1e-5
LEAST_TOTAL = 0.1
LEAST_ALONE = 0.01


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
    for _, d, y, u in sorted((fact for fact in facts if fact[0] == x and fact[3] < t), key=lambda fact: fact[3]):
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


def popularities(facts: set[Fact], h: int, before: int, now: int) -> dict[int, list[float]]:
    """The share of every object of h among all of them, with counts that fade at each speed."""
    told = [(y, t) for _, d, y, t in facts if d == h and t < before]
    shares: dict[int, list[float]] = {y: [] for y, _ in told}
    for life in HALF_LIVES:
        sums = dict.fromkeys(shares, 0.0)
        for y, t in told:
            sums[y] += exp(-log(2) / life * (now - t))
        total = sum(sums.values())
        for y in shares:
            shares[y].append(sums[y] / total)
    return shares


def popularity(facts: set[Fact], h: int, y: int, before: int, now: int) -> list[float]:
    """The shares of one object."""
    return popularities(facts, h, before, now).get(y, [0.0] * len(HALF_LIVES))


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
        total = sum(values.get(key, 0.0) for key, _ in spoke) + sum(favour[h])
        for key, _ in spoke:
            exposures[key] += len(answers) / total
        for answer in answers:
            popular = zip(favour[h], popularity(facts, h, answer, t, t), strict=True)
            intensity = sum(values.get(key, 0.0) for key, y in spoke if y == answer)
            intensity += sum(weight * (share + LEAST_POPULARITY) for weight, share in popular)
            for key, y in spoke:
                if y == answer:
                    credits[key] += values.get(key, 0.0) / intensity
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


def ways(
    facts: set[Fact], x: int, t: int, n_first: int, n_second: int, n_each: int
) -> list[tuple[tuple[int, ...], int]]:
    """Two and three hops from x through last facts: relations and end; ends differ from x, and on three hops all do."""
    two = [
        ((b, c), y)
        for _, b, a, _ in latest(facts, x, t, n_first)
        for _, c, y, _ in latest(facts, a, t, n_second)
        if y != x
    ]
    three = [
        ((b, c, d), y)
        for _, b, a, _ in latest(facts, x, t, n_each)
        for _, c, e, _ in latest(facts, a, t, n_each)
        for _, d, y, _ in latest(facts, e, t, n_each)
        if len({x, a, e, y}) == 4
    ]
    return two + three


def hop_counts(
    facts: set[Fact], end: int, n_first: int, n_second: int, n_each: int
) -> tuple[Counter[tuple[int, ...]], Counter[tuple[int, ...]]]:
    """For every head and relations of hops, the ways that led to an answer, and all ways."""
    right: Counter[tuple[int, ...]] = Counter()
    every: Counter[tuple[int, ...]] = Counter()
    for (x, h, t), answers in cases(facts, end).items():
        for relations, y in ways(facts, x, t, n_first, n_second, n_each):
            every[h, *relations] += 1
            right[h, *relations] += y in answers
    return +right, every


def context(own_past: Mapping[tuple[int, int], Sequence[int]], h: int) -> int:
    """How much the entity did before, and how often just this."""
    n_own = sum(len(times) for (d, _), times in own_past.items() if d == h)
    if not n_own:
        return 1 if own_past else 0
    return 2 + (n_own >= 3) + (n_own >= 10)


@dataclass(frozen=True)
class Tables:
    """What scores are made of: functions from rules to numbers, and the weights of each context."""

    value: Callable[[int, int, Cell], float]
    alone: Callable[[int, int, Cell], float]
    constant: Callable[[int, tuple[int, int]], Mapping[int, float]]
    hop: Callable[[int, tuple[int, ...]], float]
    favour: Sequence[float]
    weights: Sequence[Sequence[float]]
    limits: tuple[int, int, int, int, int]


def scores(facts: set[Fact], x: int, h: int, before: int, now: int, n: int, tables: Tables) -> dict[int, float]:
    """The score of every candidate that anything speaks for; `n` is the number of relations, read one way."""

    def opposite(d: int) -> int:
        return d + n if d < n else d - n

    own = past(facts, x, before)
    n_last, oldest, *lengths = tables.limits
    pairs, alone, reverse, constants, hops = (Counter[int]() for _ in range(5))
    for (b, y), times in own.items():
        place = cell(now - times[-1], len(times))
        pairs[y] += tables.value(h, b, place)
        alone[y] += tables.alone(h, b, place)
        reverse[y] += tables.value(opposite(h), opposite(b), place)
    for body in bodies_with_constants(facts, x, before, now, n_last, oldest):
        for y, confidence in tables.constant(h, body).items():
            constants[y] = max(constants[y], confidence)
    for relations, y in ways(facts, x, before, *lengths):
        hops[y] = max(hops[y], tables.hop(h, relations))
    popular = popularities(facts, h, before, now)
    for y, shares in popular.items():
        pairs[y] += sum(weight * share for weight, share in zip(tables.favour, shares, strict=True))
    total = sum(pairs.values()) + sum(tables.favour) * (not popular)
    parts: list[tuple[Mapping[int, float], float]] = [
        (pairs, total),
        (constants, max(sum(constants.values()), LEAST_TOTAL)),
        (hops, max(sum(hops.values()), LEAST_TOTAL)),
        (alone, max(sum(alone.values()), LEAST_ALONE)),
        (reverse, max(sum(reverse.values()), LEAST_TOTAL)),
    ]
    parts += [({y: shares[k] for y, shares in popular.items()}, 1.0) for k in range(len(HALF_LIVES))]
    weights = tables.weights[context(own, h)]
    listed = {y for part, _ in parts for y, value in part.items() if value}
    return {
        y: sum(weight * part.get(y, 0.0) / whole for weight, (part, whole) in zip(weights, parts, strict=True) if whole)
        for y in listed
    }


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
