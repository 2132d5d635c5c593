"""What temporal kernels read: the history of every entity, the tables of rules, and questions with a moment.

Relations are directed: `r + n_relations` is `r` read from its object, so that every question is (x, h, ?, t), and the
facts of an entity are all those that it takes part in. A rule's body is looked up in the facts before t only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    """The bin of every age and count up to the longest ones told apart."""

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
