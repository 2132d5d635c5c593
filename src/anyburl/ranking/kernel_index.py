"""Sorting tens of millions of rules by small whole numbers, numbering their counts, and edges by their relation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import kernel
from anyburl.base.rng import mix
from anyburl.graph.arrays import GraphArrays, Ints
from anyburl.graph.kernel import steps


@kernel
def count_sort(keys: Ints, order: NDArray[np.int32], starts: NDArray[np.int64], out: NDArray[np.int32]) -> None:
    """Write `order` to `out`, sorted by `keys[order]`, equal keys in the order they had.

    `starts` has room for every key and one more, and is all zero on entry; spent on exit.
    """
    for i in range(len(keys)):
        starts[keys[i] + 1] += 1
    for key in range(1, len(starts)):
        starts[key] += starts[key - 1]
    for i in range(len(order)):
        row = order[i]
        key = keys[row]
        out[starts[key]] = row
        starts[key] += 1


@kernel
def count_steps(graph: GraphArrays, sizes: NDArray[np.int64]) -> None:
    """Write for each place in `domains` how many entities its entity reaches by its relation."""
    for relation in range(2 * graph.n_relations):
        for place in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[place]), relation)
            sizes[place] = last - first


@kernel
def copy_steps(graph: GraphArrays, starts: NDArray[np.int64], ends: NDArray[np.int32]) -> None:
    """Write those entities from `starts[place]` on."""
    for relation in range(2 * graph.n_relations):
        for place in range(graph.domain_offsets[relation], graph.domain_offsets[relation + 1]):
            first, last = steps(graph, int(graph.domains[place]), relation)
            for row in range(first, last):
                ends[starts[place] + row - first] = graph.targets[row]


@kernel
def number_counts(
    types: NDArray[np.uint8],
    supports: NDArray[np.int32],
    predictions: NDArray[np.int64],
    table: NDArray[np.int32],
    firsts: NDArray[np.int32],
    codes: NDArray[np.int32],
) -> int:
    """Give rules with the same type, support and predictions the same code, from 0 on, in the order of their first.

    `table` is a hash table of codes (-1: empty; its length is a power of two), `firsts` gets the first rule of each
    code. Return the number of codes, or -1 once half of the table is full.
    """
    mask, n_codes = len(table) - 1, 0
    for rule in range(len(types)):
        if 2 * n_codes >= len(table):
            return -1
        key = (np.uint64(supports[rule]) << np.uint64(34)) ^ (np.uint64(predictions[rule]) << np.uint64(2))
        place = np.int64(mix(key ^ np.uint64(types[rule])) & np.uint64(mask))
        while True:
            code = int(table[place])
            if code < 0:
                table[place] = n_codes
                firsts[n_codes] = rule
                codes[rule] = n_codes
                n_codes += 1
                break
            other = firsts[code]
            if (
                types[other] == types[rule]
                and supports[other] == supports[rule]
                and predictions[other] == predictions[rule]
            ):
                codes[rule] = code
                break
            place = (place + 1) & mask
    return n_codes


@kernel
def find_best_below(
    first_children: NDArray[np.int64],
    n_children: NDArray[np.int32],
    codes: NDArray[np.int32],
    scores: NDArray[np.int64],
    out: NDArray[np.int64],
) -> None:
    """Write for each node of the tries the highest score of the rules that end at it or below; children come later."""
    for node in range(len(codes) - 1, -1, -1):
        best = scores[codes[node]] if codes[node] >= 0 else np.int64(-1)
        for child in range(first_children[node], first_children[node] + n_children[node]):
            best = max(best, out[child])
        out[node] = best
