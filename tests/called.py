"""Parts of kernels as kernels of their own, so that tests can call them from Python."""

from __future__ import annotations

from typing import Any

from anyburl.base import rng
from anyburl.base.jit import kernel
from anyburl.bodies import kernel as harvesting
from anyburl.bodies import kernel_ends
from anyburl.bodies.arrays import Batch
from anyburl.graph import kernel as graphs


@kernel
def inverse(graph: Any, relation: Any) -> Any:
    return graphs.inverse(graph, relation)


@kernel
def lower_bound(values: Any, start: Any, end: Any, wanted: Any) -> Any:
    return graphs.lower_bound(values, start, end, wanted)


@kernel
def find_segment(graph: Any, entity: Any, relation: Any) -> Any:
    return graphs.find_segment(graph, entity, relation)


@kernel
def entity_rows(graph: Any, entity: Any) -> Any:
    return graphs.entity_rows(graph, entity)


@kernel
def steps(graph: Any, entity: Any, relation: Any) -> Any:
    return graphs.steps(graph, entity, relation)


@kernel
def has_edge(graph: Any, source: Any, relation: Any, target: Any) -> Any:
    return graphs.has_edge(graph, source, relation, target)


@kernel
def joins(graph: Any, source: Any, target: Any) -> Any:
    return graphs.joins(graph, source, target)


@kernel
def next_uint64(state: Any) -> Any:
    return rng.next_uint64(state)


@kernel
def randint(state: Any, n: Any) -> Any:
    return rng.randint(state, n)


@kernel
def mix(value: Any) -> Any:
    return rng.mix(value)


@kernel
def reach(
    graph: Any,
    body: Any,
    length: Any,
    start: Any,
    extra: Any,
    object_identity: Any,
    levels: Any,
    clock: Any,
    limit: Any,
) -> Any:
    return kernel_ends.reach(graph, body, length, start, extra, object_identity, levels, clock, limit)


@kernel
def ground(graph: Any, heads: Any, bodies: Any, k: Any, limits: Any, allowed: Any, scratch: Any) -> Any:
    return harvesting.ground(graph, Batch(heads, bodies, limits), k, allowed, scratch)
