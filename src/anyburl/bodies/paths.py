"""The bodies of a profile: those that sampled paths generalise to (paper, section 2.2), or all of them, enumerated.

Sampling finds the valuable bodies first, and rare ones late or never. If the relations that can follow each other form
few enough sequences, a sweep harvests what sampling left, which makes the profile complete. `SeenBodies` holds the
bodies that were sampled or listed before: each is harvested once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from anyburl.bodies.arrays import (
    ALL_HEADS,
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    BodyArrays,
    HeadTriples,
    PathArrays,
    SeenArrays,
    empty_paths,
)
from anyburl.bodies.kernel_binary import visiting_order
from anyburl.bodies.kernel_paths import (
    BLOCK_BITS,
    COMING,
    enter_keys,
    list_owners,
    mark_followers,
    move_keys,
    record_rules,
    sample,
)
from anyburl.graph.build import frozen, segment_entities
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.rules.types import PathProfile

KINDS_OF_PATHS = {True: (BINARY, GROUNDED), False: (DANGLING, CONSTANT)}
"""Whether paths are cyclic -> the kinds of bodies that they give: without and with a constant."""

_KINDS_IN_ORDER = [BINARY, GROUNDED, CONSTANT, DANGLING]
"""Keys sort bodies of one length in this order: where bodies are as frequent as each other, it decides which comes
first, and a run with a path budget depends on that."""

_KIND_RANKS = np.zeros(max(_KINDS_IN_ORDER) + 1, np.uint64)
_KIND_RANKS[_KINDS_IN_ORDER] = range(len(_KINDS_IN_ORDER))


def generalise(
    graph: GraphArrays, paths: PathArrays, *, cyclic: bool, grounded: bool = True, all_heads: bool = True
) -> BodyArrays:
    """Return the bodies of the paths, with repetitions.

    An acyclic path gives a U_d body and a U_c body that ends in the path's last entity. A cyclic path gives a B body
    and, where `grounded`, two U_c bodies whose constant is also the head's: the head's object, and its subject. With
    `all_heads` False each body keeps the one head that was sampled with it.
    """
    if cyclic:
        parts = [_binary(graph, paths)]
        if grounded:
            parts += [_bodies(GROUNDED, paths.relations, paths.others, paths.heads, paths.others)]
            parts += [_far_grounded(graph, paths)]
    else:
        entity = paths.ends < graph.n_entities  # no variable can stand for `self`
        parts = [
            _bodies(DANGLING, paths.relations[entity], None, paths.heads[entity], paths.others[entity]),
            _bodies(CONSTANT, paths.relations, paths.ends, paths.heads, paths.others),
        ]
    bodies = BodyArrays(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    if all_heads:
        bodies.heads[:] = ALL_HEADS
        bodies.head_constants[:] = ALL_HEADS
    return with_keys(graph, bodies)


def make_bodies(
    graph: GraphArrays, kind: int, relations: NDArray[np.int32], constants: NDArray[np.int32] | None = None
) -> BodyArrays:
    """Return bodies of one kind, for all heads; B bodies are turned to their canonical direction."""
    if kind == BINARY:
        relations, _ = canonical(graph, relations)
    return with_keys(graph, _bodies(kind, relations, constants, None, None))


def canonical(graph: GraphArrays, relations: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.bool_]]:
    """Return of each body and its reversal the smaller, and whether that was the reversal."""
    reversal = inverses(relations[:, ::-1], graph.n_relations)
    differs = relations != reversal
    first = np.argmax(differs, axis=1)
    rows = np.arange(len(relations))
    flipped = reversal[rows, first] < relations[rows, first]
    return np.where(flipped[:, None], reversal, relations).astype(np.int32), flipped


def with_keys(graph: GraphArrays, bodies: BodyArrays) -> BodyArrays:
    """Fill in the keys: a mixed-radix number, exact while it fits 64 bits and a polynomial hash beyond.

    Bodies of all lengths share one set of keys, so the first digit tells kind and length.
    """
    with np.errstate(over="ignore"):
        keys = _KIND_RANKS[bodies.kinds] + np.uint64(len(_KINDS_IN_ORDER) * bodies.relations.shape[1])
        radix = np.uint64(2 * graph.n_relations + 1)
        for step in range(bodies.relations.shape[1]):
            keys = keys * radix + bodies.relations[:, step].astype(np.uint64)
        constants = np.uint64(graph.n_entities + 2) | np.uint64(1)
        for column, size in ((bodies.constants, constants), (bodies.heads, radix), (bodies.head_constants, constants)):
            keys = keys * size + (column + 1).astype(np.uint64)
    return bodies._replace(keys=keys)


def _binary(graph: GraphArrays, paths: PathArrays) -> BodyArrays:
    """The B body of each cyclic path in canonical direction, its head read the same way (forward if both are
    the same).
    """
    relations, flipped = canonical(graph, paths.relations)
    own_reversal = (relations == inverses(relations[:, ::-1], graph.n_relations)).all(axis=1)
    flipped = np.where(own_reversal, paths.heads >= graph.n_relations, flipped)
    heads = np.where(flipped, inverses(paths.heads, graph.n_relations), paths.heads).astype(np.int32)
    entity_only = paths.others < graph.n_entities  # `self` is a constant, never the value of a variable
    return _bodies(BINARY, relations[entity_only], None, heads[entity_only], None)


def _far_grounded(graph: GraphArrays, paths: PathArrays) -> BodyArrays:
    """The U_c body that walks each cyclic path from its far end back to its start, the constant."""
    entity_only = paths.others < graph.n_entities
    relations = inverses(paths.relations[entity_only][:, ::-1], graph.n_relations)
    heads = inverses(paths.heads[entity_only], graph.n_relations)
    starts = paths.starts[entity_only]
    return _bodies(GROUNDED, relations, starts, heads, starts)


def _bodies(
    kind: int,
    relations: NDArray[np.int32],
    constants: NDArray[np.int32] | None,
    heads: NDArray[np.int32] | None,
    head_constants: NDArray[np.int32] | None,
) -> BodyArrays:
    """Put columns together; a column that is not given is all -1. Keys are filled in later."""
    n = len(relations)
    constants, heads, head_constants = (
        np.full(n, -1, np.int32) if column is None else column.astype(np.int32)
        for column in (constants, heads, head_constants)
    )
    relations = np.ascontiguousarray(relations, dtype=np.int32)
    kinds, keys = np.full(n, kind, np.uint8), np.zeros(n, np.uint64)
    return BodyArrays(kinds, relations, constants, heads, head_constants, keys)


def sample_paths(
    graph: GraphArrays,
    heads: HeadTriples,
    profile: PathProfile,
    attempts: int,
    state: NDArray[np.uint64],
    *,
    mixed: bool = False,
) -> PathArrays:
    """Make `attempts` attempts at a straight path of `profile` and return those that succeeded.

    `heads` are the triples that a path may start from (of the target relations). Steps are uniform over edges, as in
    the paper; `mixed`, every other path's are uniform over relations, which finds more bodies where entities have very
    many edges.
    """
    paths = empty_paths(attempts, profile.rule_length)
    visited = np.empty(profile.rule_length + 2, np.int32)
    coming = np.empty(COMING + 1, np.int64)
    n_paths = sample(graph, heads, profile.cyclic, attempts, mixed, state, visited, coming, paths)
    return PathArrays(*(column[:n_paths] for column in paths))


def listed_heads(triples: NDArray[np.int32]) -> HeadTriples:
    """Let paths start from `triples`."""
    return HeadTriples(frozen(triples), frozen(np.empty(0, np.int32)))


def heads_of_graph(graph: GraphArrays) -> HeadTriples:
    """Let paths start from every triple of `graph`: a sixteenth of a byte a row instead of twelve bytes a triple."""
    owners: NDArray[np.int32] = np.zeros((len(graph.targets) >> BLOCK_BITS) + 1, np.int32)
    list_owners(graph, owners)
    return HeadTriples(frozen(np.empty((0, 3), np.int32)), frozen(owners))


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
    chains = present[:, None]
    if length == 1:
        return chains
    if not can_list(graph):
        return None
    if follows is None:
        follows = followers(graph)
    n_followers = follows.sum(axis=1)
    for _ in range(length - 1):
        last = chains[:, -1]
        if n_followers[last].sum() > most:
            return None
        rows, following = np.nonzero(follows[last])
        chains = np.hstack([chains[rows], following[:, None].astype(np.int32)])
    return chains


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
        positions = np.arange(min(batch, n_segments - start))
        segments = (
            (first + start * stride) % n_segments + positions * stride
        ) % n_segments  # start * stride may be large
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
