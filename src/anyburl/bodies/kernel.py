"""Harvest: ground each body of a batch once, emit every rule with that body that passes the thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl._jit import inlined, kernel
from anyburl.bodies.arrays import (
    BINARY,
    CONSTANT,
    DANGLING,
    GROUNDED,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    Scratch,
)
from anyburl.bodies.kernel_binary import ground_binary, orient
from anyburl.bodies.kernel_unary import (
    ground_constant,
    ground_dangling,
    unary_predictions,
)
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import find_segment, inverse


@inlined
def scaled(count: int, visited: int, total: int) -> int:
    """Scale a count over the visited starts up to all of them."""
    if visited == total:
        return count
    return int(round(count * (total / visited)))


@inlined
def emit(
    out: HarvestArrays,
    n_rows: int,
    limits: Limits,
    body: int,
    head: int,
    head_constant: int,
    predictions: int,
    support: int,
    visited: int,
    total: int,
) -> int:
    """Write one rule if it passes the thresholds; return the number of rows. Thresholds look at what was seen."""
    # The quotient, not a product: 0.29 * 100 is less than 29.
    if support < limits.min_support or support / predictions <= limits.min_confidence:
        return n_rows
    out.bodies[n_rows] = body
    out.heads[n_rows] = head
    out.head_constants[n_rows] = head_constant
    out.predictions[n_rows] = scaled(predictions, visited, total)
    out.supports[n_rows] = scaled(support, visited, total)
    out.exact[n_rows] = visited == total
    return n_rows + 1


@kernel
def is_own_reversal(graph: GraphArrays, body: NDArray[np.int32], length: int) -> bool:
    """Whether a body read from its far end is the same body."""
    for i in range(length):
        if body[i] != inverse(graph, int(body[length - 1 - i])):
            return False
    return True


@kernel
def harvest_binary(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    k: int,
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
    n_rows: int,
) -> tuple[int, int]:
    """Emit the B rules of body `k`; return the number of rows and the work.

    A head read backward is the forward head over the reversed body: those rules refer to body k + n.
    """
    body, length = bodies.relations[k], bodies.relations.shape[1]
    swapped = orient(graph, heads, body, length, scratch)
    pairs, visited, total, work = ground_binary(
        graph, length, limits.object_identity, limits.budget, bodies.keys[k], scratch
    )
    mirrored = is_own_reversal(graph, body, length)
    for counted in range(2 * graph.n_relations):
        support = scratch.relation_counts[counted]
        if support == 0:
            continue
        scratch.relation_counts[counted] = 0
        head = inverse(graph, counted) if swapped else counted
        if not heads.wanted_relations[head] or (length == 1 and head == body[0]):
            continue
        if bodies.heads[k] >= 0 and bodies.heads[k] != head:
            continue
        if head < graph.n_relations:
            n_rows = emit(out, n_rows, limits, k, head, -1, pairs, support, visited, total)
        elif not mirrored:
            flipped, reversed_body = head - graph.n_relations, k + len(bodies.kinds)
            n_rows = emit(out, n_rows, limits, reversed_body, flipped, -1, pairs, support, visited, total)
    return n_rows, work


@kernel
def ground_unary(
    graph: GraphArrays, heads: HeadArrays, bodies: BodyArrays, k: int, limits: Limits, scratch: Scratch
) -> tuple[int, int, int, int, int, int]:
    """Ground the unary body `k`, dangling from the front, with a constant from the back."""
    body, length = bodies.relations[k], bodies.relations.shape[1]
    if bodies.kinds[k] == DANGLING:
        for i in range(length):
            scratch.body[i] = body[i]
        return ground_dangling(graph, heads, length, limits.object_identity, limits.budget, bodies.keys[k], scratch)
    for i in range(length):
        scratch.body[i] = inverse(graph, int(body[length - 1 - i]))
    return ground_constant(
        graph,
        heads,
        length,
        int(bodies.constants[k]),
        int(bodies.kinds[k]),
        limits.object_identity,
        limits.budget,
        bodies.keys[k],
        scratch,
    )


@kernel
def harvest_unary(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    k: int,
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
    n_rows: int,
) -> tuple[int, int]:
    """Emit the unary rules of body `k`; return the number of rows and the work."""
    n_members, n_touched, visited, total, work, clock = ground_unary(graph, heads, bodies, k, limits, scratch)
    kind, length, constant = int(bodies.kinds[k]), bodies.relations.shape[1], int(bodies.constants[k])
    only_head, only_constant = int(bodies.heads[k]), int(bodies.head_constants[k])
    own_head = int(bodies.relations[k, 0]) if kind == GROUNDED and length == 1 else -1
    for i in range(n_touched):
        segment = int(scratch.touched[i])
        support = int(scratch.segment_counts[segment])
        scratch.segment_counts[segment] = 0
        if support < limits.min_support or not heads.wanted[segment]:
            continue
        head, head_constant = inverse(graph, int(graph.segment_relations[segment])), int(heads.entities[segment])
        if head == own_head or (kind == CONSTANT and head_constant == constant):
            continue
        if only_head >= 0 and (head != only_head or head_constant != only_constant):
            continue
        predictions = unary_predictions(n_members, head_constant, kind, limits.object_identity, clock, scratch)
        n_rows = emit(out, n_rows, limits, k, head, head_constant, predictions, support, visited, total)
    return n_rows, work


@kernel
def harvest(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    first: int,
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
) -> tuple[int, int]:
    """Harvest bodies from number `first` on until the work or the room of `out` ends; return the next body and the
    rows.

    `out` has room for all segments and all directed relations at least, so that one body always fits.
    """
    most = max(len(graph.segment_relations), 2 * graph.n_relations)
    n_rows, work, k = 0, 0, first
    while k < len(bodies.kinds) and work <= limits.work and n_rows + most <= len(out.heads):
        if bodies.kinds[k] == BINARY:
            n_rows, spent = harvest_binary(graph, heads, bodies, k, limits, scratch, out, n_rows)
        else:
            n_rows, spent = harvest_unary(graph, heads, bodies, k, limits, scratch, out, n_rows)
        work += spent + 1
        k += 1
    return k, n_rows


@kernel
def score(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    first: int,
    offsets: NDArray[np.int64],
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
) -> int:
    """Write predictions, support and exactness of given rules: those of body k are the rows offsets[k] to offsets[k +
    1].

    `out.heads` and `out.head_constants` say which; B heads are directed as the body runs. Returns the next body.
    """
    work, k = 0, first
    while k < len(bodies.kinds) and work <= limits.work:
        if bodies.kinds[k] == BINARY:
            work += score_binary(graph, heads, bodies, k, offsets, limits, scratch, out)
        else:
            work += score_unary(graph, heads, bodies, k, offsets, limits, scratch, out)
        k += 1
    return k


@kernel
def score_binary(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    k: int,
    offsets: NDArray[np.int64],
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
) -> int:
    """Score the wanted heads of B body `k`; return the work."""
    length = bodies.relations.shape[1]
    swapped = orient(graph, heads, bodies.relations[k], length, scratch)
    pairs, visited, total, work = ground_binary(
        graph, length, limits.object_identity, limits.budget, bodies.keys[k], scratch
    )
    for row in range(offsets[k], offsets[k + 1]):
        head = int(out.heads[row])
        counted = inverse(graph, head) if swapped else head
        out.predictions[row] = scaled(pairs, visited, total)
        out.supports[row] = scaled(int(scratch.relation_counts[counted]), visited, total)
        out.exact[row] = visited == total
    scratch.relation_counts[:] = 0
    return work


@kernel
def score_unary(
    graph: GraphArrays,
    heads: HeadArrays,
    bodies: BodyArrays,
    k: int,
    offsets: NDArray[np.int64],
    limits: Limits,
    scratch: Scratch,
    out: HarvestArrays,
) -> int:
    """Score the wanted heads of unary body `k`; return the work."""
    kind = int(bodies.kinds[k])
    n_members, n_touched, visited, total, work, clock = ground_unary(graph, heads, bodies, k, limits, scratch)
    for row in range(offsets[k], offsets[k + 1]):
        head_constant = int(out.head_constants[row])
        segment = find_segment(graph, head_constant, inverse(graph, int(out.heads[row])))
        support = int(scratch.segment_counts[segment]) if segment >= 0 else 0
        predictions = unary_predictions(n_members, head_constant, kind, limits.object_identity, clock, scratch)
        out.predictions[row] = scaled(predictions, visited, total)
        out.supports[row] = scaled(support, visited, total)
        out.exact[row] = visited == total
    for i in range(n_touched):
        scratch.segment_counts[scratch.touched[i]] = 0
    return work
