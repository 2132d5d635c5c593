"""Compare B bodies in the graph before and after a change, on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import (
    BodyArrays,
    BodyChanges,
    ChangedFacts,
    Limits,
    PairTable,
    Scratch,
    SupportChanges,
    empty_pair_table,
    empty_scratch,
)
from anyburl.bodies.kernel_changes import compare_bodies
from anyburl.bodies.kernel_joins import count_supports
from anyburl.graph.arrays import GraphArrays
from anyburl.learning.engines.worker import KERNEL_WORK, START_WORK
from anyburl.learning.options import LearnOptions

PIECE = 256  # bodies that a thread looks at at a time


@dataclass(frozen=True)
class Graphs:
    """The graph before and after, over the same ids, and what lies between."""

    old: GraphArrays
    new: GraphArrays
    facts: ChangedFacts


@dataclass(frozen=True)
class Compared:
    """Bodies and how they changed; the rows of `supports` count into the bodies."""

    bodies: BodyArrays
    pairs: BodyChanges
    supports: SupportChanges

    @property
    def touched(self) -> NDArray[np.bool_]:
        """Mark the bodies of which anything changed."""
        touched = (self.pairs.gained > 0) | (self.pairs.lost > 0) | self.pairs.unfinished
        touched[self.supports.bodies] = True
        return touched


def compare(bodies: BodyArrays, graphs: Graphs, options: LearnOptions, budget: int, threads: int) -> Compared:
    """Compare `bodies` in both graphs, on `threads` cores; those that take more than `budget` are left unfinished."""
    limits = Limits(
        options.min_support, options.min_confidence, options.object_identity, budget, KERNEL_WORK, START_WORK
    )
    spare: SimpleQueue[tuple[PairTable, Scratch]] = SimpleQueue()
    for _ in range(threads):
        scratch = empty_scratch(graphs.new, bodies.relations.shape[1], witnessed=False)
        spare.put((empty_pair_table(budget + graphs.new.n_entities), scratch))

    def work(first: int) -> tuple[BodyChanges, SupportChanges]:
        buffers = spare.get()
        try:
            return _compare_piece(bodies.relations[first : first + PIECE], first, graphs, limits, buffers)
        finally:
            spare.put(buffers)

    with ThreadPoolExecutor(threads, thread_name_prefix="anyburl-update") as pool:
        parts = list(pool.map(work, range(0, len(bodies.kinds), PIECE)))
    pairs = BodyChanges(*(np.concatenate(columns) for columns in zip(*(part[0] for part in parts), strict=True)))
    supports = SupportChanges(*(np.concatenate(columns) for columns in zip(*(part[1] for part in parts), strict=True)))
    return Compared(bodies, pairs, supports)


def _compare_piece(
    bodies: NDArray[np.int32], first: int, graphs: Graphs, limits: Limits, buffers: tuple[PairTable, Scratch]
) -> tuple[BodyChanges, SupportChanges]:
    n = len(bodies)
    changes = BodyChanges(np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.bool_))
    room = 64 * PIECE + 2 * graphs.new.n_relations
    out = SupportChanges(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, np.int32))
    parts: list[SupportChanges] = []
    done = 0
    while done < n:
        done, n_rows = compare_bodies(
            graphs.old, graphs.new, graphs.facts, bodies, done, limits, *buffers, changes, out
        )
        parts.append(SupportChanges(*(column[:n_rows].copy() for column in out)))
    supports = SupportChanges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return changes, supports._replace(bodies=supports.bodies + np.int32(first))


def supports_of(
    graph: GraphArrays,
    bodies: NDArray[np.int32],
    heads: NDArray[np.int32],
    options: LearnOptions,
    threads: int,
) -> NDArray[np.int64]:
    """Return the support of one head, directed as its body runs, of each body."""
    supports = np.zeros(len(bodies), np.int64)

    def work(first: int) -> None:
        piece = slice(first, first + PIECE // 8)
        count_supports(graph, bodies[piece], heads[piece], options.object_identity, supports[piece])

    with ThreadPoolExecutor(threads, thread_name_prefix="anyburl-update") as pool:
        list(pool.map(work, range(0, len(bodies), PIECE // 8)))
    return supports
