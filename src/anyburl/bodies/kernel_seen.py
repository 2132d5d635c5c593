"""The set of bodies seen before: open addressing over four arrays.

Which directed relations can follow each other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel
from anyburl.base.rng import mix
from anyburl.bodies.arrays import SeenArrays
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse


@inlined
def find_slot(table: SeenArrays, key: np.uint64) -> int:
    """Return the place of `key`, or the empty place where it belongs."""
    mask = len(table.keys) - 1
    place = np.int64(mix(key) & np.uint64(mask))
    while table.first_spans[place] >= 0 and table.keys[place] != key:
        place = (place + 1) & mask
    return int(place)


@kernel
def enter_keys(table: SeenArrays, keys: NDArray[np.uint64], span: int, is_new: NDArray[np.bool_]) -> tuple[int, int]:
    """Enter `keys`, mark the new ones; return how many, and how many rules of earlier spans were met again.

    Rules are met again once a span, however often their body is sampled in it (the paper's R_s is a set).
    The table has room for all keys.
    """
    n_new, n_known_rules = 0, 0
    for i in range(len(keys)):
        place = find_slot(table, keys[i])
        if table.first_spans[place] < 0:
            table.keys[place] = keys[i]
            table.first_spans[place] = span
            table.n_rules[place] = 0
            is_new[i] = True
            n_new += 1
        else:
            is_new[i] = False
            if table.last_spans[place] != span and table.first_spans[place] != span:
                n_known_rules += table.n_rules[place]
        table.last_spans[place] = span
    return n_new, n_known_rules


@kernel
def record_rules(table: SeenArrays, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
    """Note how many rules each body gave."""
    for i in range(len(keys)):
        table.n_rules[find_slot(table, keys[i])] = counts[i]


@kernel
def move_keys(old: SeenArrays, new: SeenArrays) -> None:
    """Enter everything of `old` into the larger, empty `new`."""
    for i in range(len(old.keys)):
        if old.first_spans[i] >= 0:
            place = find_slot(new, old.keys[i])
            new.keys[place] = old.keys[i]
            new.first_spans[place] = old.first_spans[i]
            new.last_spans[place] = old.last_spans[i]
            new.n_rules[place] = old.n_rules[i]


@kernel
def mark_followers(graph: GraphArrays, follows: NDArray[np.bool_]) -> None:
    """Mark (d, e) where some entity is reached along d and left along e; `follows` is all False on entry."""
    for entity in range(graph.n_entities):
        first, last = graph.segment_offsets[entity], graph.segment_offsets[entity + 1]
        for into in range(first, last):
            arriving = inverse(graph, int(graph.segment_relations[into]))
            for out_of in range(first, last):
                follows[arriving, graph.segment_relations[out_of]] = True
