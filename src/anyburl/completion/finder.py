"""`Finder`: finds the facts of some subjects, on any thread or machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from anyburl.completion.arrays import (
    BodyRules,
    FactArrays,
    FindSpace,
    ListArrays,
    Stopped,
    empty_facts,
    empty_lists,
    empty_shelf,
)
from anyburl.completion.kernel import find_facts
from anyburl.ranking.aggregation import Aggregation
from anyburl.ranking.arrays import Workspace, empty_candidates, empty_firings, empty_walk
from anyburl.ranking.backends.base import NO_GROUPS
from anyburl.ranking.kernel_evidence import n_columns
from anyburl.ranking.queries import single_query
from anyburl.ranking.ready import ReadyRules

ROOM = 1 << 16  # for firings, ends of bodies and facts; it grows where that is too little
LISTS = 1 << 12
AT = Stopped()


@dataclass(frozen=True)
class Finder:
    """Answers (s, d, ?) for every d of `heads`, leaving out what the graph states.

    Answers with a key of at least `least[d]` are facts. With `groups` of rules, the `longest_list` best candidates of
    each question are listed with their evidence, and followed by those of at least `least[d]`.
    """

    ready: ReadyRules  # its trie is that of all bodies
    bodies: BodyRules
    aggregation: Aggregation
    heads: NDArray[np.int32]
    least: NDArray[np.int64]
    groups: NDArray[np.uint8] = field(default_factory=lambda: NO_GROUPS)
    longest_list: int = 0
    _spare: SimpleQueue[FindSpace] = field(default_factory=SimpleQueue, repr=False, compare=False)

    def __call__(self, subjects: NDArray[np.int32]) -> tuple[FactArrays, ListArrays]:
        """Return the facts of some subjects, one after the other, and their lists."""
        ready, space = self.ready, self._take()
        protocol = ready.protocol(self.aggregation, self.longest_list)
        room = max(ROOM, ready.graph.n_entities + 1)
        facts, lists = empty_facts(room, n_columns(self.groups)), empty_lists(LISTS)
        query, best = single_query(0, 0, np.empty(0, np.int32)), np.empty(max(self.longest_list, 1), np.int32)
        own = subjects.copy(), self.heads.copy(), self.least.copy()  # kernels are compiled for arrays of one's own
        found: list[tuple[FactArrays, ListArrays]] = []
        space.stopped[:] = 0
        while space.stopped[AT.subject] < len(subjects):
            find_facts(
                ready.graph, ready.index, self.bodies, *own, query, protocol, self.groups, best, space, facts, lists
            )
            n_facts, n_lists = int(space.stopped[AT.facts]), int(space.stopped[AT.questions])
            found.append((_cut(facts, n_facts), _cut(lists, n_lists)))
            space = _enlarged(space)
        self._spare.put(space)
        return _joined([part for part, _ in found], facts), _joined([part for _, part in found], lists)

    def _take(self) -> FindSpace:
        try:
            return self._spare.get_nowait()
        except Empty:
            n_entities, longest = self.ready.graph.n_entities, self.ready.longest
            answering = Workspace(empty_walk(n_entities, longest), empty_candidates(n_entities), empty_firings(ROOM))
            shelf = empty_shelf(self.bodies, 2 * self.ready.graph.n_relations, empty_firings(ROOM))
            gathered = empty_firings(max(ROOM, self.longest_list))
            weights = np.zeros((n_entities + 1, 4), np.int64)
            return FindSpace(answering, shelf, weights, gathered, np.zeros(len(Stopped()), np.int64))

    def __reduce__(self) -> Any:
        fields = self.ready, self.bodies, self.aggregation, self.heads, self.least, self.groups, self.longest_list
        return Finder, fields


def _enlarged(space: FindSpace) -> FindSpace:
    """Return the buffers with as much room as the kernel asked for."""
    if space.stopped[AT.firings]:
        firings = empty_firings(2 * int(space.stopped[AT.firings]))
        space = space._replace(answering=space.answering._replace(firings=firings))
    if space.stopped[AT.ends]:
        ends = empty_firings(2 * int(space.stopped[AT.ends]))
        space = space._replace(shelf=space.shelf._replace(ends=ends))
    if space.stopped[AT.gathered]:
        space = space._replace(gathered=empty_firings(2 * int(space.stopped[AT.gathered])))
    return space


def _cut(columns: Any, n: int) -> Any:
    return type(columns)(*(column[:n].copy() for column in columns))


def _joined(parts: list[Any], like: Any) -> Any:
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return _cut(like, 0)
    return type(like)(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
