"""Harvest: ground each body of a batch once, emit every rule with that body that passes the thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from anyburl.base.jit import inlined, kernel, merged, part, prefetch
from anyburl.bodies.arrays import (
    BINARY,
    Batch,
    BodyArrays,
    HarvestArrays,
    HeadArrays,
    Limits,
    Scratch,
)
from anyburl.bodies.kernel_binary import LONGEST_LISTED, ground_binary, list_rows, orient
from anyburl.bodies.kernel_ends import AHEAD, note_facts_of_ends, pca_of_members, pca_of_pairs
from anyburl.bodies.kernel_sample import estimates, is_exact, margin_of, margin_of_members
from anyburl.bodies.kernel_unary import counts_large, ground_unary, is_given_elsewhere, predicts_all, unary_predictions
from anyburl.graph.kernel import GraphArrays, find_segment, inverse


@inlined
def scaled(count: int, visited: int, total: int) -> int:
    """Scale a count over the visited starts up to all of them."""
    if visited == total or visited == 0:
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
    margin: float,
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
    if value_of(int(out.supports[n_rows]), int(out.predictions[n_rows])) < limits.floor:
        return n_rows
    out.exact[n_rows] = margin == 0.0  # of exact counts only
    out.margins[n_rows] = margin
    return n_rows + 1


@inlined
def value_of(support: int, predictions: int) -> float:
    """Return support times confidence, computed as `value` in `rules/columns.py` does."""
    return support * (support / predictions)


@part
def is_own_reversal(graph: GraphArrays, body: NDArray[np.int32], length: int) -> bool:
    """Whether a body read from its far end is the same body."""
    for i in range(length):
        if body[i] != inverse(graph, int(body[length - 1 - i])):
            return False
    return True


@merged
def ground(graph: GraphArrays, batch: Batch, k: int, allowed: int, scratch: Scratch) -> tuple[bool, int]:
    """Ground body `k`, or continue with it, until `allowed` is spent; return whether it is done, and the work.

    B bodies lead to pairs of entities; all others to entities that satisfy them, the members.
    """
    bodies, limits = batch.bodies, batch.limits
    if bodies.kinds[k] != BINARY:
        return ground_unary(graph, bodies, k, limits, allowed, scratch)
    length = bodies.relations.shape[1]
    if not scratch.grounding[0].under_way:
        body = bodies.relations[k]
        scratch.swapped[0] = orient(graph, batch.heads, body, length, limits.first_look, scratch)
        if length <= LONGEST_LISTED:
            list_rows(graph, batch.heads, length, limits, scratch)
    return ground_binary(graph, length, limits, allowed, bodies.keys[k], scratch)


@part
def emit_binary(graph: GraphArrays, batch: Batch, k: int, scratch: Scratch, out: HarvestArrays, n_rows: int) -> int:
    """Emit the B rules of body `k`, which was grounded; return the number of rows.

    A head read backward is the forward head over the reversed body: those rules refer to body k + n.
    """
    heads, bodies, limits = batch.heads, batch.bodies, batch.limits
    body, length, state = bodies.relations[k], bodies.relations.shape[1], scratch.grounding[0]
    counted, total = state.counted, state.starts
    mirrored = is_own_reversal(graph, body, length)
    if limits.pca:
        note_facts_of_ends(graph, scratch)
    for joining in range(2 * graph.n_relations):
        support = scratch.relation_counts[joining]
        if support == 0:
            continue
        margin, pairs = margin_of(joining, limits.precision, scratch)[1], max(state.groundings, support)
        is_seen_enough = support >= limits.min_support
        if state.hubs > 0:
            pairs, support = estimates(joining, scratch)
            counted = total
        scratch.relation_counts[joining] = 0
        head = inverse(graph, joining) if scratch.swapped[0] else joining
        if not is_seen_enough or not heads.selected[head] or (length == 1 and head == body[0]):
            continue
        if bodies.heads[k] >= 0 and bodies.heads[k] != head:
            continue
        before = n_rows
        if head < graph.n_relations:
            n_rows = emit(out, n_rows, limits, k, head, -1, pairs, support, margin, counted, total)
        elif not mirrored:
            flipped, reversed_body = head - graph.n_relations, k + len(bodies.kinds)
            n_rows = emit(out, n_rows, limits, reversed_body, flipped, -1, pairs, support, margin, counted, total)
        if limits.pca and n_rows > before:
            out.pca_predictions[before] = scaled(pca_of_pairs(graph, heads, joining, scratch), counted, total)
    if limits.pca:
        scratch.pca.having[:] = 0
    return n_rows


@part
def emit_unary(graph: GraphArrays, batch: Batch, k: int, scratch: Scratch, out: HarvestArrays, n_rows: int) -> int:
    """Emit the unary rules of body `k`, which was grounded; return the number of rows."""
    heads, bodies, limits = batch.heads, batch.bodies, batch.limits
    state = scratch.grounding[0]
    n_members, counted, total, clock = state.groundings, state.counted, state.starts, state.clock
    all_count = predicts_all(int(bodies.kinds[k]), limits.object_identity)
    only_head, only_constant = int(bodies.heads[k]), int(bodies.head_constants[k])
    fewest = n_members - 1 - state.most_through  # of the predictions of any head
    is_large = counts_large(limits)
    for i in range(state.touched):
        if is_large and i + AHEAD < state.touched:
            prefetch(scratch.segment_counts, int(scratch.touched[i + AHEAD]))
            prefetch(graph.segment_relations, int(scratch.touched[i + AHEAD]))
        segment = int(scratch.touched[i])
        support = int(scratch.segment_counts[segment])
        scratch.segment_counts[segment] = 0
        head = inverse(graph, int(graph.segment_relations[segment]))
        if support < limits.min_support or support <= limits.min_confidence * fewest or not heads.selected[head]:
            continue
        if scaled(support, counted, total) < limits.floor:
            continue
        head_constant = int(scratch.touched_constants[i])
        if head_constant == graph.n_entities and head >= graph.n_relations:
            continue  # h(self, Y) says the same as h(X, self): the forward reading is kept
        if is_given_elsewhere(bodies, k, head, head_constant):
            continue
        if only_head >= 0 and (head != only_head or head_constant != only_constant):
            continue
        predictions = unary_predictions(n_members, head_constant, all_count, clock, scratch)
        before = n_rows
        margin = margin_of_members(support, predictions, scratch)
        n_rows = emit(out, n_rows, limits, k, head, head_constant, predictions, support, margin, counted, total)
        if limits.pca and n_rows > before:
            judged = pca_of_members(graph, heads, head, head_constant, predictions, all_count, scratch)
            out.pca_predictions[before] = scaled(judged, counted, total)
    if limits.pca:
        scratch.pca.having[:] = 0
    return n_rows


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

    A body that takes more work than is left stays unfinished in `scratch`: it is the next body, and the next call must
    continue with it. `out` has room for at least all segments and all directed relations, so one body always fits.
    """
    most = max(len(graph.segment_relations), 2 * graph.n_relations)
    batch = Batch(heads, bodies, limits)
    n_rows, work, k = 0, 0, first
    while k < len(bodies.kinds) and work <= limits.work and n_rows + most <= len(out.heads):
        done, spent = ground(graph, batch, k, limits.work - work, scratch)
        work += spent + 1
        if not done:
            break
        if bodies.kinds[k] == BINARY:
            n_rows = emit_binary(graph, batch, k, scratch, out, n_rows)
        else:
            n_rows = emit_unary(graph, batch, k, scratch, out, n_rows)
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

    `out.heads` and `out.head_constants` say which; B heads are directed as the body runs. Returns the next body, as
    `harvest` does.
    """
    batch = Batch(heads, bodies, limits)
    work, k = 0, first
    while k < len(bodies.kinds) and work <= limits.work:
        done, spent = ground(graph, batch, k, limits.work - work, scratch)
        work += spent + 1
        if not done:
            break
        if bodies.kinds[k] == BINARY:
            score_binary(graph, batch, k, offsets, scratch, out)
        else:
            score_unary(graph, batch, k, offsets, scratch, out)
        k += 1
    return k


@part
def score_binary(
    graph: GraphArrays, batch: Batch, k: int, offsets: NDArray[np.int64], scratch: Scratch, out: HarvestArrays
) -> None:
    """Score the given heads of B body `k`, which was grounded."""
    state, pca = scratch.grounding[0], batch.limits.pca
    if pca:
        note_facts_of_ends(graph, scratch)
    for row in range(offsets[k], offsets[k + 1]):
        head = int(out.heads[row])
        joining = inverse(graph, head) if scratch.swapped[0] else head
        support = int(scratch.relation_counts[joining])
        out.predictions[row] = scaled(max(state.groundings, support), state.counted, state.starts)
        out.supports[row] = scaled(support, state.counted, state.starts)
        if state.hubs > 0 and support > 0:
            out.predictions[row], out.supports[row] = estimates(joining, scratch)
        out.margins[row] = margin_of(joining, batch.limits.precision, scratch)[1]
        out.exact[row] = is_exact(scratch)
        if pca:
            judged = pca_of_pairs(graph, batch.heads, joining, scratch)
            out.pca_predictions[row] = scaled(judged, state.counted, state.starts)
    scratch.relation_counts[:] = 0
    if pca:
        scratch.pca.having[:] = 0


@part
def score_unary(
    graph: GraphArrays, batch: Batch, k: int, offsets: NDArray[np.int64], scratch: Scratch, out: HarvestArrays
) -> None:
    """Score the given heads of unary body `k`, which was grounded."""
    state, pca = scratch.grounding[0], batch.limits.pca
    all_count = predicts_all(int(batch.bodies.kinds[k]), batch.limits.object_identity)
    for row in range(offsets[k], offsets[k + 1]):
        head, head_constant = int(out.heads[row]), int(out.head_constants[row])
        segment = find_segment(graph, head_constant, inverse(graph, head))
        support = int(scratch.segment_counts[segment]) if segment >= 0 else 0
        predictions = unary_predictions(state.groundings, head_constant, all_count, state.clock, scratch)
        out.predictions[row] = scaled(predictions, state.counted, state.starts)
        out.supports[row] = scaled(support, state.counted, state.starts)
        out.margins[row] = margin_of_members(support, predictions, scratch)
        out.exact[row] = is_exact(scratch)
        if pca:
            judged = pca_of_members(graph, batch.heads, head, head_constant, predictions, all_count, scratch)
            out.pca_predictions[row] = scaled(judged, state.counted, state.starts)
    for i in range(state.touched):
        scratch.segment_counts[scratch.touched[i]] = 0
    if pca:
        scratch.pca.having[:] = 0
