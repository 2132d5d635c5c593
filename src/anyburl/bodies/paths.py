"""From sampled paths to the bodies they generalise to (paper, section 2.2).

Sample a batch of paths of one profile.

The triples that paths start from.
"""

from __future__ import annotations

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
    empty_paths,
)
from anyburl.bodies.kernel_paths import BLOCK_BITS, COMING, list_owners, sample
from anyburl.graph.arrays import GraphArrays, inverses
from anyburl.graph.build import frozen
from anyburl.rules.types import PathProfile

KINDS_OF_PATHS = {True: (BINARY, GROUNDED), False: (DANGLING, CONSTANT)}
"""Whether paths are cyclic -> the kinds of bodies that they give: without and with a constant."""

_KINDS_IN_ORDER = [BINARY, GROUNDED, CONSTANT, DANGLING]
"""Keys sort bodies of one length in this order: where bodies are as frequent as each other, it decides which comes
first, and a run with a path budget depends on that."""

_PLACES = np.zeros(max(_KINDS_IN_ORDER) + 1, np.uint64)
_PLACES[_KINDS_IN_ORDER] = range(len(_KINDS_IN_ORDER))


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
        keys = _PLACES[bodies.kinds] + np.uint64(len(_KINDS_IN_ORDER) * bodies.relations.shape[1])
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
