"""Enumerate the bodies of a profile instead of sampling them, which makes the profile complete.

Sampling finds the valuable bodies first, and rare ones late or never. If the relations that can follow each other form
few enough sequences, a sweep harvests what sampling left. `SeenBodies` holds the bodies that were sampled or listed
before: each is harvested once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import BodyArrays, SeenArrays
from anyburl.bodies.kernel_binary import visiting_order
from anyburl.bodies.kernel_paths import enter_keys, mark_followers, move_keys, record_rules
from anyburl.bodies.paths import KINDS_OF_PATHS, canonical, make_bodies
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import segment_entities
from anyburl.rules.types import PathProfile

MOST_SEQUENCES = 1_000_000
MOST_PAIRS = 10**8


@dataclass(frozen=True)
class Sweep:
    """The bodies of a profile, a batch at a time, and how many there are."""

    n_bodies: int
    batches: Iterator[BodyArrays]

    def __iter__(self) -> Iterator[BodyArrays]:
        return self.batches


def followers(graph: GraphArrays) -> NDArray[np.bool_]:
    """Return for each pair of directed relations whether the second can be walked after the first."""
    n_directed = 2 * graph.n_relations
    follows = np.zeros((n_directed, n_directed), np.bool_)
    mark_followers(graph, follows)
    return follows


def can_list(graph: GraphArrays) -> bool:
    """Whether the pairs of relations are few enough to be listed."""
    return (2 * graph.n_relations) ** 2 <= MOST_PAIRS


def sequences(
    graph: GraphArrays, length: int, most: int = MOST_SEQUENCES, follows: NDArray[np.bool_] | None = None
) -> NDArray[np.int32] | None:
    """Return all sequences of directed relations of this length that can follow each other, or None if over `most`.

    `follows` is what `followers` returns, where that is known already.
    """
    present = np.flatnonzero(np.diff(graph.domain_offsets) > 0).astype(np.int32)
    found = present[:, None]
    if length == 1:
        return found
    if not can_list(graph):
        return None
    if follows is None:
        follows = followers(graph)
    n_followers = follows.sum(axis=1)
    for _ in range(length - 1):
        last = found[:, -1]
        if n_followers[last].sum() > most:
            return None
        rows, following = np.nonzero(follows[last])
        found = np.hstack([found[rows], following[:, None].astype(np.int32)])
    return found


def sweep(
    graph: GraphArrays,
    profile: PathProfile,
    *,
    grounded: bool,
    seed: int,
    batch: int = 4096,
    follows: NDArray[np.bool_] | None = None,
) -> Sweep | None:
    """Return every body of `profile`, each once, in a random order; None if there are too many to list.

    First come the bodies without constants, then those with.
    """
    listed = sequences(graph, profile.rule_length, follows=follows)
    if listed is None:
        return None
    rng = np.random.default_rng([seed, profile.rule_length, int(profile.cyclic)])
    order = free = rng.permutation(listed)
    kind = KINDS_OF_PATHS[profile.cyclic][0]
    if profile.cyclic:
        ways = canonical(graph, order)[0]
        free = ways[np.sort(np.unique(make_bodies(graph, kind, ways).keys, return_index=True)[1])]
    without = _cut(graph, kind, free, None, batch)
    if profile.cyclic and not grounded:
        return Sweep(len(free), without)
    n_constants = _count_constants(graph, profile, order)
    return Sweep(len(free) + n_constants, chain(without, _with_constants(graph, profile, order, rng, batch)))


def _with_constants(
    graph: GraphArrays, profile: PathProfile, order: NDArray[np.int32], rng: np.random.Generator, batch: int
) -> Iterator[BodyArrays]:
    """Yield the bodies that end in a constant."""
    kind = KINDS_OF_PATHS[profile.cyclic][1]
    if profile.rule_length == 1:
        yield from _constant_bodies(graph, kind, rng, batch)
        return
    for body in order:
        constants = _ends(graph, int(body[-1]), with_self=not profile.cyclic)
        repeated = np.repeat(body[None, :], len(constants), axis=0)
        yield from _cut(graph, kind, repeated, constants, batch)


def _count_constants(graph: GraphArrays, profile: PathProfile, order: NDArray[np.int32]) -> int:
    """Return how many bodies `_with_constants` yields, without making them."""
    if profile.rule_length == 1:
        token = graph.n_entities
        own = graph.segment_relations[graph.segment_offsets[token] : graph.segment_offsets[token + 1]]
        return len(graph.segment_relations) - int(np.count_nonzero(own < graph.n_relations))
    relations, counts = np.unique(order[:, -1], return_counts=True)
    ends = [len(_ends(graph, int(relation), with_self=not profile.cyclic)) for relation in relations]
    return int(counts @ np.array(ends, np.int64))


def _cut(
    graph: GraphArrays,
    kind: int,
    relations: NDArray[np.int32],
    constants: NDArray[np.int32] | None,
    batch: int,
) -> Iterator[BodyArrays]:
    for start in range(0, len(relations), batch):
        chosen = slice(start, start + batch)
        yield make_bodies(graph, kind, relations[chosen], None if constants is None else constants[chosen])


def _constant_bodies(graph: GraphArrays, kind: int, rng: np.random.Generator, batch: int) -> Iterator[BodyArrays]:
    """Yield all U_c bodies of length 1: a segment of c leads to the entities that satisfy the body that ends in c.

    There may be as many as triples, so their order is drawn without listing them.
    """
    n_segments = len(graph.segment_relations)
    first, stride = visiting_order(n_segments, np.uint64(rng.integers(2**63)))
    for start in range(0, n_segments, batch):
        places = np.arange(min(batch, n_segments - start))
        segments = ((first + start * stride) % n_segments + places * stride) % n_segments  # start * stride may be large
        constants = segment_entities(graph, segments)
        relations = inverses(graph.segment_relations[segments].astype(np.int32), graph.n_relations)
        forward = (constants < graph.n_entities) | (relations < graph.n_relations)
        if forward.any():
            yield make_bodies(graph, kind, relations[forward, None], constants[forward])


def _ends(graph: GraphArrays, relation: int, *, with_self: bool) -> NDArray[np.int32]:
    """Return the constants in which a body with this last relation can end."""
    back = int(inverses(np.array([relation], np.int32), graph.n_relations)[0])
    ends = graph.domains[graph.domain_offsets[back] : graph.domain_offsets[back + 1]]
    token = graph.n_entities
    own = graph.segment_relations[graph.segment_offsets[token] : graph.segment_offsets[token + 1]]
    if with_self and relation < graph.n_relations and back in own:
        return np.append(ends, np.int32(token))
    return ends


Harvested = tuple[NDArray[np.uint64], NDArray[np.int32]]
"""Keys of bodies, and how many rules each gave."""


def join_harvested(parts: Iterable[Harvested]) -> Harvested:
    """Concatenate lists of harvested bodies."""
    columns = list(zip(*parts, strict=True)) or [(), ()]
    return np.concatenate([np.empty(0, np.uint64), *columns[0]]), np.concatenate([np.empty(0, np.int32), *columns[1]])


def _empty_table(size: int) -> SeenArrays:
    return SeenArrays(
        keys=np.zeros(size, np.uint64),
        first_spans=np.full(size, -1, np.int32),
        last_spans=np.full(size, -1, np.int32),
        n_rules=np.zeros(size, np.int32),
    )


class SeenBodies:
    """A growing set of body keys that all workers share, with how many rules each body gave."""

    def __init__(self) -> None:
        self._table = _empty_table(1 << 16)
        self._lock = Lock()
        self._log: list[Harvested] = []
        self.n_bodies = 0

    def enter(self, keys: NDArray[np.uint64], span: int) -> tuple[NDArray[np.bool_], int]:
        """Enter `keys`; return which were new, and how many rules of earlier spans were met again in this one."""
        is_new = np.empty(len(keys), np.bool_)
        with self._lock:
            self._make_room(len(keys))
            n_new, n_known_rules = enter_keys(self._table, keys, span, is_new)
            self.n_bodies += n_new
        return is_new, n_known_rules

    def record(self, keys: NDArray[np.uint64], counts: NDArray[np.int64]) -> None:
        """Note how many rules each of these bodies gave when it was harvested just now."""
        self.note((keys, counts))
        self._log.append((keys, counts.astype(np.int32)))

    def note(self, harvested: tuple[NDArray[np.uint64], NDArray[np.integer]]) -> None:
        """Note how many rules bodies gave that were harvested earlier or elsewhere."""
        keys, counts = harvested
        with self._lock:
            record_rules(self._table, keys, counts.astype(np.int64))

    def take_harvested(self) -> Harvested:
        """Return what was recorded since the last call."""
        log, self._log = self._log, []
        return join_harvested(log)

    def _make_room(self, n_keys: int) -> None:
        """Keep the table at most half full."""
        size = len(self._table.keys)
        while 2 * (self.n_bodies + n_keys) > size:
            size *= 2
        if size > len(self._table.keys):
            larger = _empty_table(size)
            move_keys(self._table, larger)
            self._table = larger
