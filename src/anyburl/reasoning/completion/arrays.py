"""The bodies of B rules, each once for all heads; and what one worker writes to while it finds facts.

Rules are walked entity by entity, not question by question: where a body leads from s is listed once, and all heads
with this body read the list.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from anyburl.ranking.arrays import FiringArrays, Workspace


class BodyRules(NamedTuple):
    """B rules by body; the bodies themselves are a trie of one root, whose `rows` number them."""

    rule_offsets: NDArray[np.int64]  # body -> its rules
    bodies: NDArray[np.int32]  # rule -> its body
    heads: NDArray[np.int32]  # directed
    codes: NDArray[np.int32]
    rows: NDArray[np.int32]  # of the rule set


class ShelfArrays(NamedTuple):
    """Where the bodies lead from one entity, and the rules that this concerns, by head."""

    ends: FiringArrays  # the entities that bodies lead to, body after body
    starts: NDArray[np.int64]  # body -> its first end
    stops: NDArray[np.int64]
    stamps: NDArray[np.int64]  # directed relation -> the number of the entity whose rules it has; at the end the number
    firsts: NDArray[np.int32]  # directed relation -> its first rule
    following: NDArray[np.int32]  # rule -> the next one with the same head, -1 at the end


class FindSpace(NamedTuple):
    """The buffers of one worker."""

    answering: Workspace
    shelf: ShelfArrays
    weights: NDArray[np.int64]  # entity -> its stamp, highest score, sum and number of scores: (entities, 4)
    gathered: FiringArrays  # the scores and rules of each chosen candidate side by side
    stopped: NDArray[np.int64]  # where the kernel stopped, see `Stopped`


class Stopped(NamedTuple):
    """Places in `FindSpace.stopped`."""

    subject: int = 0  # the next one
    head: int = 1  # the next place among the heads
    facts: int = 2  # how many facts there are
    questions: int = 3  # how many lists
    firings: int = 4  # the room that they would need, 0 if there is enough
    ends: int = 5
    gathered: int = 6


class FactArrays(NamedTuple):
    """Facts as answers: (entity, directed relation, candidate), what they are ordered by, and what speaks for them.

    If lists are asked for, `evidence` has columns, and the facts of each list stand side by side.
    """

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    candidates: NDArray[np.int32]
    keys: NDArray[np.int64]
    rules: NDArray[np.int32]  # the rule with the highest score
    n_rules: NDArray[np.int32]
    evidence: NDArray[np.float32]  # (facts, columns)


class ListArrays(NamedTuple):
    """The questions that have candidates: how many these are, how many are listed, and how many follow the list."""

    entities: NDArray[np.int32]
    relations: NDArray[np.int32]
    n_candidates: NDArray[np.int64]
    sizes: NDArray[np.int64]
    n_later: NDArray[np.int64]


def empty_facts(room: int, n_columns: int = 0) -> FactArrays:
    """Return room for `room` facts."""
    narrow = [np.empty(room, np.int32) for _ in range(5)]
    keys, evidence = np.empty(room, np.int64), np.empty((room, n_columns), np.float32)
    return FactArrays(narrow[0], narrow[1], narrow[2], keys, narrow[3], narrow[4], evidence)


def empty_lists(room: int) -> ListArrays:
    """Return room for `room` questions."""
    narrow, wide = np.empty((2, room), np.int32), np.empty((3, room), np.int64)
    return ListArrays(narrow[0], narrow[1], wide[0], wide[1], wide[2])


def empty_shelf(bodies: BodyRules, n_heads: int, ends: FiringArrays) -> ShelfArrays:
    """Return one worker's shelf."""
    starts, stops = np.zeros((2, len(bodies.rule_offsets)), np.int64)
    firsts, following = np.full(n_heads, -1, np.int32), np.full(len(bodies.heads) + 1, -1, np.int32)
    return ShelfArrays(ends, starts, stops, np.zeros(n_heads + 1, np.int64), firsts, following)
