"""Triples as dicts of directed steps, with reflexive triples rewritten to `self`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

Triple = tuple[int, int, int]
Body = tuple[int, ...]


class Graph(NamedTuple):
    """Who is reached from whom, and how.

    `steps[x, d]` is the set of entities reached from x along the directed relation d;
    `joins[x, y]` is the set of directed relations that lead from x to y.
    """

    n_entities: int
    n_relations: int
    steps: dict[tuple[int, int], set[int]]
    joins: dict[tuple[int, int], set[int]]

    @property
    def self_id(self) -> int:
        return self.n_entities


def build(triples: Iterable[Triple], n_entities: int, n_relations: int, object_identity: bool = True) -> Graph:
    """Index the triples; `(c, h, c)` becomes edges between c and `self` (section 4.4).

    Without object identity two terms may stand for the same entity: there it is an edge from c to c as well.
    """
    graph = Graph(n_entities, n_relations, {}, {})
    for row in triples:
        subject, relation, object_ = (int(value) for value in row)
        assert 0 <= subject < n_entities, row
        assert 0 <= object_ < n_entities, row
        assert 0 <= relation < n_relations, row
        if subject == object_:
            ends = [(subject, graph.self_id), (graph.self_id, subject)]
            ends += [] if object_identity else [(subject, subject)]
            edges = [(a, d, b) for a, b in ends for d in (relation, relation + n_relations)]
        else:
            edges = [(subject, relation, object_), (object_, relation + n_relations, subject)]
        for a, d, b in edges:
            graph.steps.setdefault((a, d), set()).add(b)
            graph.joins.setdefault((a, b), set()).add(d)
    return graph


def inverse(d: int, n_relations: int) -> int:
    """The same relation, read in the other direction."""
    return d - n_relations if d >= n_relations else d + n_relations


def mirror(body: Body, n_relations: int) -> Body:
    """The same body, read from its other end."""
    return tuple(inverse(d, n_relations) for d in reversed(body))
