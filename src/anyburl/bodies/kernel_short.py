"""Count single heads of unary bodies of length 1: two lists that are met, instead of a body that is grounded."""

from __future__ import annotations

from anyburl._jit import kernel, part
from anyburl.bodies.arrays import BodyArrays, HarvestArrays, Limits
from anyburl.graph.arrays import GraphArrays
from anyburl.graph.kernel import inverse, lower_bound, steps


@part
def count_common(graph: GraphArrays, start: int, end: int, other_start: int, other_end: int) -> int:
    """Return how many entities two ranges of `targets` share; the shorter is looked up in the longer."""
    if end - start > other_end - other_start:
        start, end, other_start, other_end = other_start, other_end, start, end
    n_common, place = 0, other_start
    for row in range(start, end):
        place = lower_bound(graph.targets, place, other_end, int(graph.targets[row]))
        if place < other_end and graph.targets[place] == graph.targets[row]:
            n_common += 1
    return n_common


@part
def count_constant(
    graph: GraphArrays, relation: int, constant: int, head: int, head_constant: int, object_identity: bool
) -> tuple[int, int]:
    """Return predictions and support of head(X, head_constant) <= relation(X, constant)."""
    start, end = steps(graph, constant, inverse(graph, relation))
    first, last = steps(graph, head_constant, inverse(graph, head))
    predictions = end - start
    if object_identity:
        place = lower_bound(graph.targets, start, end, head_constant)
        if place < end and graph.targets[place] == head_constant:
            predictions -= 1
    return predictions, count_common(graph, start, end, first, last)


@part
def count_dangling(
    graph: GraphArrays, relation: int, head: int, head_constant: int, object_identity: bool
) -> tuple[int, int]:
    """Return predictions and support of head(X, head_constant) <= relation(X, A)."""
    offset, end = int(graph.domain_offsets[relation]), int(graph.domain_offsets[relation + 1])
    predictions, support = end - offset, 0
    first, last = steps(graph, head_constant, inverse(graph, head))
    for row in range(first, last):
        start, stop = steps(graph, int(graph.targets[row]), relation)
        only = object_identity and stop - start == 1 and graph.targets[start] == head_constant
        if stop > start and not only:
            support += 1
    if object_identity and head_constant < graph.n_entities:
        start, stop = steps(graph, head_constant, relation)
        predictions -= stop > start
        first, last = steps(graph, head_constant, inverse(graph, relation))
        for row in range(first, last):  # those that satisfy the body only through the constant
            start, stop = steps(graph, int(graph.targets[row]), relation)
            predictions -= stop - start == 1
    return predictions, support


@kernel
def count_short(graph: GraphArrays, bodies: BodyArrays, limits: Limits, out: HarvestArrays) -> int:
    """Count the one head of each U_c or U_d body of length 1; write the rules that pass the thresholds, return how
    many.
    """
    n_rows = 0
    for k in range(len(bodies.kinds)):
        relation, constant = int(bodies.relations[k, 0]), int(bodies.constants[k])
        head, head_constant = int(bodies.heads[k]), int(bodies.head_constants[k])
        if constant >= 0:
            predictions, support = count_constant(
                graph, relation, constant, head, head_constant, limits.object_identity
            )
        else:
            predictions, support = count_dangling(graph, relation, head, head_constant, limits.object_identity)
        if support < limits.min_support or support / predictions <= limits.min_confidence:
            continue
        out.bodies[n_rows], out.heads[n_rows], out.head_constants[n_rows] = k, head, head_constant
        out.predictions[n_rows], out.supports[n_rows], out.exact[n_rows] = predictions, support, True
        n_rows += 1
    return n_rows
