"""What temporal kernels read: the history of every entity, the tables of rules, and questions with a moment.

Relations are directed: `r + n_relations` is `r` read from its object, so that every question is (x, h, ?, t), and the
facts of an entity are all those that it takes part in. A rule's body is looked up in the facts before t only. Rules
with constants and rules of two and three hops are counted over the last facts of an entity before each case.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, part

Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]

RECENCY = (1, 2, 3, 4, 6, 8, 11, 15, 21, 30, 45, 65, 95, 140, 210)
"""The first age, in steps of the clock, of each bin of recency."""
FREQUENCY = (1, 2, 3, 5, 9, 17)
"""The first count of each bin of frequency."""
N_RECENCY = len(RECENCY)
N_FREQUENCY = len(FREQUENCY)
N_CELLS = N_RECENCY * N_FREQUENCY
N_FADES = 3
"""How many speeds the popularity of an entity fades at."""


class HistoryArrays(NamedTuple):
    """All facts in both directions, by entity and time, and by relation and object."""

    n_entities: int
    n_relations: int  # directed ones
    fact_offsets: Ints  # entity -> its facts, in the order of time
    fact_times: Ints
    fact_triples: Ids  # fact -> its triple, counted from the first one of the entity
    fact_relations: Ids
    fact_objects: Ids
    triple_offsets: Ints  # entity -> its distinct triples, in the order of their first time
    triple_relations: Ids
    triple_objects: Ids
    time_offsets: Ints  # triple -> its times, ascending
    times: Ints
    fresh: Floats  # (times, 1): the faded count of the triple just after each of its times
    favourite_offsets: Ints  # relation -> its distinct objects
    favourites: Ids
    favour_offsets: Ints  # favourite -> the moments at which it was the object, ascending
    favour_times: Ints
    favours: Floats  # (moments, fades): the faded count just after the moment
    total_offsets: Ints  # relation -> the moments at which it has facts, ascending
    total_times: Ints
    totals: Floats  # (moments, fades): the faded count of all its objects just after the moment
    fades: Doubles  # what is lost in a step, as an exponent


class CellArrays(NamedTuple):
    """The bin of every age and count, up to the longest that have bins of their own."""

    recency: Ids
    frequency: Ids


class CaseArrays(NamedTuple):
    """Questions whose answers are known, sorted by relation, entity and time."""

    offsets: Ints  # relation -> its cases
    entities: Ids
    times: Ints
    moments: Ints  # case -> the moment of the entity
    answer_offsets: Ints  # case -> its answers
    answers: Ids
    facts: Ints  # answer -> its fact, by entity and time


class MomentArrays(NamedTuple):
    """The distinct triples of an entity before each of its moments, counted by code: relation * N_CELLS + cell."""

    offsets: Ints  # moment -> its codes
    codes: Ids
    tallies: Ids  # how many triples have the code
    answer_offsets: Ints  # fact, by entity and time -> the codes of the triples with its object
    answer_codes: Ids


class PairArrays(NamedTuple):
    """Rules h(X,Y,T) <= b(X,Y,U): a row per pair (h, b) that was ever seen together, with one value per cell."""

    slots: Ids  # (relations, relations): the row, -1 if there is none
    values: Floats  # (rows, cells)


class ConstantArrays(NamedTuple):
    """Rules h(X,c,T) <= b(X,d,U), and with any b or any d, in the last facts of X; sorted by head and body."""

    head_offsets: Ints  # relation -> its bodies
    bodies: Ints  # keys, see `body_key`, ascending for a relation
    rule_offsets: Ints  # body -> its rules
    constants: Ids
    confidences: Floats


class HopArrays(NamedTuple):
    """Rules h(X,Y,T) <= b(X,A,U), c(A,Y,V) in the last facts of X and A, and those of three hops, through A and B."""

    offsets: Ints  # relation -> its rules
    bodies: Ints  # b * n_relations + c, or `three_hops_key`, which is larger; ascending for a relation
    confidences: Floats


class TableArrays(NamedTuple):
    """Everything that answers are scored by."""

    pairs: PairArrays  # intensities that share the credit
    alone: Floats  # rows of pairs: the chance of a step by each rule alone, counted over all times
    favour: Doubles  # relation -> the intensity of popularity
    constants: ConstantArrays
    hops: HopArrays
    n_last: int  # facts of x that constants look at
    oldest: int  # the age up to which they look
    n_first: int  # facts of x that hops start with
    n_second: int  # facts of the entity in the middle
    n_each: int  # facts of each entity on the way that three hops follow, 0 if there are none
    vectors: Floats  # (entities, dimensions): of length 1; similar entities are the answers of similar questions


class QuestionArrays(NamedTuple):
    """Questions sorted by relation and time: facts before `before` count, and the clock shows `now`."""

    entities: Ids
    relations: Ids
    before: Ints
    now: Ints
    answer_offsets: Ints  # question -> its answers, which are ranked
    answers: Ids
    excluded_offsets: Ints  # question -> what is not ranked against
    excluded: Ids


@kernel
def fade_counts(offsets: Ints, times: Ints, counts: Ints, fades: Doubles, out: Floats) -> None:
    """Write, for every moment of every list, the sum of all counts so far, faded since their moments."""
    for i in range(len(offsets) - 1):
        for k in range(len(fades)):
            total = 0.0
            for row in range(offsets[i], offsets[i + 1]):
                if row > offsets[i]:
                    total *= np.exp(-fades[k] * (times[row] - times[row - 1]))
                total += counts[row]
                out[row, k] = total


@inlined
def first_not_before(values: Ints, start: int, end: int, value: int) -> int:
    """Return the first of the ascending values that is at least `value`."""
    low, high = start, end
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@inlined
def cell_of(cells: CellArrays, age: int, count: int) -> int:
    """Return the cell of what was seen `count` times, the last time `age` steps ago."""
    recency = cells.recency[min(age, len(cells.recency) - 1)]
    frequency = cells.frequency[min(count, len(cells.frequency) - 1)]
    return int(recency) * N_FREQUENCY + int(frequency)


@inlined
def popularity_rows(history: HistoryArrays, relation: int, before: int) -> int:
    """Return the last moment before `before` at which the relation has facts, -1 if there is none."""
    start = int(history.total_offsets[relation])
    row = first_not_before(history.total_times, start, int(history.total_offsets[relation + 1]), before)
    return row - 1 if row > start else -1


@inlined
def faded(history: HistoryArrays, row: int, k: int, now: int) -> float:
    """Return the k-th popularity that a favourite has now, as a count, by its last moment `row`."""
    return float(history.favours[row, k] * np.exp(-history.fades[k] * (now - history.favour_times[row])))


@inlined
def faded_total(history: HistoryArrays, row: int, k: int, now: int) -> float:
    """Return the k-th popularity of all objects of a relation now, by its last moment `row`."""
    return float(history.totals[row, k] * np.exp(-history.fades[k] * (now - history.total_times[row])))


N_SHAPES = 3  # b(X,d), b(X,A) and any relation with d
EMPTY = -1


class KeyCounts(NamedTuple):
    """An open hash table: its size is a power of 2, unused keys are EMPTY; `used` lists the places of its keys."""

    keys: Ints
    counts: Ids
    used: Ints
    n_used: Ints  # of length 1


@inlined
def body_key(relation: int, object: int, n_entities: int) -> int:
    """Return one number for b(X,d); `n_entities` stands for any d, and -1 for any b."""
    return (relation + 1) * (n_entities + 1) + object


@inlined
def find_key(keys: Ints, key: int) -> int:
    """Return where a key is, or belongs, in a hash table that has room for it."""
    mask = len(keys) - 1
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    position = np.int64((mixed >> np.uint64(20)) & np.uint64(mask))
    while keys[position] != EMPTY and keys[position] != key:
        position = (position + 1) & mask
    return int(position)


@inlined
def add_key(table: KeyCounts, key: int) -> bool:
    """Count a key; return whether there was room for it."""
    position = find_key(table.keys, key)
    if table.keys[position] == EMPTY:
        n = int(table.n_used[0])
        if n == len(table.used):
            return False
        table.keys[position] = key
        table.counts[position] = 0
        table.used[n] = position
        table.n_used[0] = n + 1
    table.counts[position] += 1
    return True


@part
def latest_facts(history: HistoryArrays, entity: int, before: int, n: int) -> tuple[int, int]:
    """Return where the last `n` facts of an entity before a moment begin, and where they end."""
    start = int(history.fact_offsets[entity])
    end = first_not_before(history.fact_times, start, int(history.fact_offsets[entity + 1]), before)
    return max(start, end - n), end


@part
def recent_bodies(
    history: HistoryArrays, entity: int, before: int, now: int, n_last: int, oldest: int, seen: Ints, bodies: Ints
) -> int:
    """Write the keys of distinct bodies with a constant that hold for the last facts of an entity; return how many.

    `seen` is an empty hash table, on entry and on exit, with room for three keys of every fact; so has `bodies`.
    """
    start = int(history.fact_offsets[entity])
    end = first_not_before(history.fact_times, start, int(history.fact_offsets[entity + 1]), before)
    n, nothing = 0, history.n_entities
    for fact in range(end - 1, max(start, end - n_last) - 1, -1):
        if now - history.fact_times[fact] > oldest:
            break
        relation, object = int(history.fact_relations[fact]), int(history.fact_objects[fact])
        for shape in range(N_SHAPES):
            key = body_key(relation if shape < 2 else -1, nothing if shape == 1 else object, nothing)
            position = find_key(seen, key)
            if seen[position] == EMPTY:
                seen[position] = key
                bodies[n] = key
                n += 1
    for i in range(n):  # only then: taking out a key breaks the search for those after it
        seen[find_marked(seen, bodies[i])] = EMPTY
    return n


@inlined
def find_marked(seen: Ints, key: int) -> int:
    """Return where a key is, past places that were emptied since it was put there."""
    mask = len(seen) - 1
    mixed = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    position = np.int64((mixed >> np.uint64(20)) & np.uint64(mask))
    while seen[position] != key:
        position = (position + 1) & mask
    return int(position)


@kernel
def count_constants(
    history: HistoryArrays,
    cases: CaseArrays,
    first: int,
    last: int,
    low: int,
    high: int,
    n_last: int,
    oldest: int,
    bodies: KeyCounts,
    rules: KeyCounts,
    seen: Ints,
    recent: Ints,
) -> int:
    """Count, over the cases from `first` to before `last`, bodies with constants and the answers behind them.

    Only cases from the time `low` to before `high` count. The key of a rule is that of its body times the number of
    entities plus the answer. Return the first case that was not counted, since a table had no room left; `last` if all
    were.
    """
    n_entities = history.n_entities
    for case in range(first, last):
        time = int(cases.times[case])
        if not low <= time < high:
            continue
        n = recent_bodies(history, int(cases.entities[case]), time, time, n_last, oldest, seen, recent)
        begin, end = int(cases.answer_offsets[case]), int(cases.answer_offsets[case + 1])
        room = len(rules.used) - rules.n_used[0]
        if len(bodies.used) - bodies.n_used[0] < n or room < n * (end - begin):
            return case
        for i in range(n):
            add_key(bodies, recent[i])
            for row in range(begin, end):
                add_key(rules, recent[i] * n_entities + int(cases.answers[row]))
    return last


@kernel
def count_hops(
    history: HistoryArrays,
    cases: CaseArrays,
    head: int,
    low: int,
    high: int,
    n_first: int,
    n_second: int,
    true_paths: Ids,
    all_paths: Ids,
    used: Ids,
    n_used: int,
    stamps: Ints,
) -> int:
    """Count the ways of two hops from the entity of each case of `head`, by their two relations, and the right ones.

    Only cases from the time `low` to before `high` count. The tables, which have a row for each pair of relations, grow
    by them; `used` lists the rows that are not 0, `n_used` of them before, and their number is returned. A way back to
    the entity itself does not count.
    """
    width = history.n_relations
    for case in range(cases.offsets[head], cases.offsets[head + 1]):
        entity, time = int(cases.entities[case]), int(cases.times[case])
        if not low <= time < high:
            continue
        for i in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            stamps[cases.answers[i]] = case
        start, end = latest_facts(history, entity, time, n_first)
        for fact in range(start, end):
            middle, body = int(history.fact_objects[fact]), int(history.fact_relations[fact]) * width
            begin, stop = latest_facts(history, middle, time, n_second)
            for second in range(begin, stop):
                candidate = int(history.fact_objects[second])
                if candidate == entity:
                    continue
                path = body + int(history.fact_relations[second])
                if all_paths[path] == 0:
                    used[n_used] = path
                    n_used += 1
                all_paths[path] += 1
                if stamps[candidate] == case:
                    true_paths[path] += 1
    return n_used


@inlined
def three_hops_key(first: int, second: int, third: int, width: int) -> int:
    """Return one number for three directed relations, of `width`: larger than that of any two."""
    return ((first + 1) * width + second) * width + third


@kernel
def count_three_hops(
    history: HistoryArrays,
    cases: CaseArrays,
    first: int,
    last: int,
    low: int,
    high: int,
    n_each: int,
    every: KeyCounts,
    right: KeyCounts,
    stamps: Ints,
) -> int:
    """Count the ways of three hops from the entity of each case, by their relations, and the right ones.

    A way follows the `n_each` last facts of each entity, and the four entities on it differ. Only cases from the time
    `low` to before `high` count. Return the first case that was not counted, since a table had no room left; `last` if
    all were.
    """
    width, most = history.n_relations, n_each**3
    for case in range(first, last):
        entity, time = int(cases.entities[case]), int(cases.times[case])
        if not low <= time < high:
            continue
        if len(every.used) - every.n_used[0] < most or len(right.used) - right.n_used[0] < most:
            return case
        for i in range(cases.answer_offsets[case], cases.answer_offsets[case + 1]):
            stamps[cases.answers[i]] = case
        begin, end = latest_facts(history, entity, time, n_each)
        for one in range(begin, end):
            near = int(history.fact_objects[one])
            if near == entity:
                continue
            begin_near, end_near = latest_facts(history, near, time, n_each)
            for two in range(begin_near, end_near):
                far = int(history.fact_objects[two])
                if not (far != entity and far != near):
                    continue
                start = three_hops_key(int(history.fact_relations[one]), int(history.fact_relations[two]), 0, width)
                begin_far, end_far = latest_facts(history, far, time, n_each)
                for three in range(begin_far, end_far):
                    candidate = int(history.fact_objects[three])
                    key = start + int(history.fact_relations[three])
                    if candidate != entity and candidate != near and candidate != far:
                        add_key(every, key)
                        if stamps[candidate] == case:
                            add_key(right, key)
    return last


@kernel
def put_keys(keys: Ints, counts: Ids, table: KeyCounts) -> None:
    """Put keys with their counts into a larger, empty table."""
    for i in range(len(keys)):
        add_key(table, keys[i])
        table.counts[find_key(table.keys, keys[i])] = counts[i]


@kernel
def keep_rules(
    bodies: KeyCounts,
    rules: KeyCounts,
    n_answers: int,
    min_support: int,
    min_confidence: float,
    smoothing: float,
    kept: Ints,
) -> int:
    """Write the keys, right cases and all cases of the rules with enough support and confidence; return how many.

    The key of a rule, divided by `n_answers`, is that of its body.
    """
    n = 0
    for i in range(rules.n_used[0]):
        position = rules.used[i]
        right = int(rules.counts[position])
        if right < min_support:
            continue
        every = int(bodies.counts[find_key(bodies.keys, rules.keys[position] // n_answers)])
        if right >= min_confidence * (every + smoothing):
            kept[0, n], kept[1, n], kept[2, n] = rules.keys[position], right, every
            n += 1
    return n
