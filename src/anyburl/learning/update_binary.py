"""Bring B rules up to date: compare each body's walks in the old and the new graph where they meet a changed fact."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import (
    BINARY,
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
from anyburl.bodies.generalisation import canonical, make_bodies, with_keys
from anyburl.bodies.kernel_changes import compare_bodies
from anyburl.bodies.sweep import sequences
from anyburl.graph.arrays import GraphArrays
from anyburl.learning.engines.worker import KERNEL_WORK, START_WORK
from anyburl.learning.options import LearnOptions
from anyburl.learning.reharvest import Harvester
from anyburl.ruleset.counting import rule_bodies
from anyburl.ruleset.ruleset import RuleSet

PIECE = 256  # bodies that a thread compares at a time
MOST_COMPARED = 100_000  # ways through changed facts: a body with more is harvested again


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


def update_binary(
    rules: RuleSet, length: int, graphs: Graphs, options: LearnOptions, harvester: Harvester, *, exhausted: bool
) -> tuple[NDArray[np.bool_], list[RuleSet]]:
    """Return which of `rules` (all B rules of one length) are to be replaced, and by what.

    If the run was `exhausted`, it had harvested every body of that length: those without rules are looked at, too.
    """
    wanted = rule_bodies(graphs.new, rules, length)
    plain = with_keys(graphs.new, _for_all_heads(wanted))
    keys, firsts, places = np.unique(plain.keys, return_index=True, return_inverse=True)
    bodies = plain.take(firsts)
    if exhausted:
        unknown = _unknown_bodies(graphs.new, length, keys)
        bodies = _joined(bodies, unknown) if len(rules) else unknown
    if not len(bodies.kinds):
        return np.zeros(len(rules), np.bool_), []
    compared = compare(bodies, graphs, options, harvester.threads)
    known = _Known(rules, places.reshape(-1), wanted.heads, len(keys), 2 * graphs.new.n_relations)
    again = known.to_harvest(compared, options, exhausted=exhausted)
    replaced, changed = known.changed(compared, again, options)
    fresh = harvester.harvest([bodies.take(np.flatnonzero(again))]) if again.any() else []
    return replaced, [*changed, *fresh]


class _Known:
    """The rules of a run, by body and by head as the body runs."""

    def __init__(
        self, rules: RuleSet, places: NDArray[np.int64], heads: NDArray[np.int32], n_bodies: int, n_directed: int
    ) -> None:
        self.rules, self.places, self.n_bodies, self.n_directed = rules, places, n_bodies, n_directed
        keys = places * n_directed + heads
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def rows(self, supports: SupportChanges) -> NDArray[np.int64]:
        """Return the row of the rule that each change belongs to, or -1 if there is none."""
        wanted = supports.bodies.astype(np.int64) * self.n_directed + supports.heads
        found = np.searchsorted(self._keys, wanted)
        is_there = np.append(self._keys, -1)[found] == wanted
        return np.where(is_there, np.append(self._order, -1)[found], -1)

    def to_harvest(self, compared: Compared, options: LearnOptions, *, exhausted: bool) -> NDArray[np.bool_]:
        """Mark the bodies that may have rules whose counts before are not known, so that changes do not help.

        Those are heads with more support than before; any head, where fewer predictions may lift its confidence above
        the threshold; and, if the profile was exhausted, bodies whose counts were estimated.
        """
        again = compared.pairs.unfinished.copy()
        rises = (self.rows(compared.supports) < 0) & (compared.supports.supports > 0)
        again[compared.supports.bodies[rises]] = True
        if options.min_confidence > 0:
            most = np.full(len(again), np.inf)
            most[: self.n_bodies] = 0
            np.maximum.at(most, self.places, self.rules.predictions)
            again |= (compared.pairs.lost > 0) & (most >= options.min_support / options.min_confidence)
        if exhausted:
            estimated = np.zeros(len(again), np.bool_)
            estimated[self.places[~self.rules.exact]] = True
            again |= estimated & compared.touched
        return again

    def changed(
        self, compared: Compared, again: NDArray[np.bool_], options: LearnOptions
    ) -> tuple[NDArray[np.bool_], list[RuleSet]]:
        """Return which rules are to be replaced, and those that remain of them, with their new counts."""
        replaced = again[self.places]
        rows = self.rows(compared.supports)
        support = self.rules.support.astype(np.int64)
        np.add.at(support, rows[rows >= 0], compared.supports.supports[rows >= 0])
        growth = compared.pairs.gained - compared.pairs.lost
        predictions = self.rules.predictions + growth[self.places]
        differs = ~replaced & ((support != self.rules.support) | (predictions != self.rules.predictions))
        counts = self.rules.replace(
            predictions=np.maximum(predictions, 0), support=np.maximum(support, 0).astype(np.int32)
        ).take(differs)
        passes = (counts.support >= options.min_support) & (counts.confidence() > options.min_confidence)
        return replaced | differs, [counts.take(passes)]


def compare(bodies: BodyArrays, graphs: Graphs, options: LearnOptions, threads: int) -> Compared:
    """Compare `bodies` in both graphs, on `threads` cores."""
    budget = min(options.budget, MOST_COMPARED)
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


def _for_all_heads(bodies: BodyArrays) -> BodyArrays:
    return bodies._replace(heads=np.full_like(bodies.heads, -1), head_constants=np.full_like(bodies.heads, -1))


def _unknown_bodies(graph: GraphArrays, length: int, known: NDArray[np.uint64]) -> BodyArrays:
    """Return all B bodies of this length (few enough to list), except those whose keys are known."""
    listed = sequences(graph, length)
    if listed is None:
        listed = np.empty((0, length), np.int32)
    bodies = make_bodies(graph, BINARY, np.unique(canonical(graph, listed)[0], axis=0))
    return bodies.take(np.flatnonzero(~np.isin(bodies.keys, known)))


def _joined(first: BodyArrays, second: BodyArrays) -> BodyArrays:
    return BodyArrays(*(np.concatenate(columns) for columns in zip(first, second, strict=True)))
