"""Hypothesis strategies: graphs of six entities, bodies, heads and rules of every type.

Everything drawn is plain ints and tuples, in the conventions of `tests/reference`.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

SmallGraph = tuple[int, int, list[tuple[int, int, int]]]
RuleTuple = tuple[str, int, int | None, tuple[int, ...], int | None]


@st.composite
def graphs(
    draw: DrawFn, max_entities: int = 6, max_relations: int = 3, max_triples: int = 20, min_triples: int = 0
) -> SmallGraph:
    """(n_entities, n_relations, unique triples in any order); reflexive triples occur.

    The number of triples is drawn first, so that graphs with many are as likely as graphs with few.
    """
    n_entities = draw(st.integers(1, max_entities))
    n_relations = draw(st.integers(1, max_relations))
    entities, relations = range(n_entities), range(n_relations)
    possible = [(s, r, o) for s in entities for r in relations for o in entities]
    least, most = min(min_triples, len(possible)), min(max_triples, len(possible))
    size = draw(st.integers(least, most))
    triples = draw(st.lists(st.sampled_from(possible), unique=True, min_size=size, max_size=size))
    return n_entities, n_relations, triples


def heads(n_relations: int) -> SearchStrategy[int]:
    """A directed relation."""
    return st.integers(0, 2 * n_relations - 1)


def bodies(n_relations: int, max_length: int = 3, min_length: int = 1) -> SearchStrategy[tuple[int, ...]]:
    """A tuple of directed relations."""
    return st.lists(heads(n_relations), min_size=min_length, max_size=max_length).map(tuple)


def binary_rules(n_relations: int, max_length: int = 3) -> SearchStrategy[RuleTuple]:
    """Normalised B rules: the head is read forward."""
    forward = st.integers(0, n_relations - 1)
    none = st.none()
    return st.tuples(st.just("B"), forward, none, bodies(n_relations, max_length), none)


def unary_dangling_rules(n_entities: int, n_relations: int, max_length: int = 3) -> SearchStrategy[RuleTuple]:
    """Normalised Ud rules; the head's constant may be `self`, then the head is read forward."""
    return st.tuples(st.just("Ud"), _unary_heads(n_entities, n_relations), bodies(n_relations, max_length)).map(
        lambda drawn: (drawn[0], *drawn[1], drawn[2], None)
    )


def unary_constant_rules(n_entities: int, n_relations: int, max_length: int = 3) -> SearchStrategy[RuleTuple]:
    """Normalised Uc rules; the constants may be equal, and `self`; an atom with `self` is read forward."""
    before = bodies(n_relations, max_length - 1, min_length=0)
    last = _unary_heads(n_entities, n_relations)
    return st.tuples(_unary_heads(n_entities, n_relations), before, last).map(
        lambda drawn: ("Uc", *drawn[0], (*drawn[1], drawn[2][0]), drawn[2][1])
    )


def zero_rules(n_entities: int, n_relations: int) -> SearchStrategy[RuleTuple]:
    """Rules h(X,c) <- with an empty body."""
    return _unary_heads(n_entities, n_relations).map(lambda head: ("Z", *head, (), None))


def rules(n_entities: int, n_relations: int, max_length: int = 3) -> SearchStrategy[RuleTuple]:
    """A normalised rule of any type."""
    return st.one_of(
        binary_rules(n_relations, max_length),
        unary_dangling_rules(n_entities, n_relations, max_length),
        unary_constant_rules(n_entities, n_relations, max_length),
        zero_rules(n_entities, n_relations),
    )


@st.composite
def grounded_rules(draw: DrawFn, graph: SmallGraph, max_length: int = 3) -> RuleTuple:
    """A normalised rule read off a walk in the graph (which must have a triple), so it often predicts."""
    n_entities, n_relations, triples = graph
    edges = [(s, r, o) for s, r, o in triples if s != o]
    edges += [(o, r + n_relations, s) for s, r, o in edges]
    loops = [(s, r, n_entities) for s, r, o in triples if s == o]
    x, head, y = draw(st.sampled_from(edges + loops))
    length = draw(st.integers(1, max_length))
    body: tuple[int, ...] = ()
    last = x
    while len(body) < length and last != n_entities:
        ends = loops if len(body) == length - 1 else []
        choices = [edge for edge in edges + ends if edge[0] == last]
        if not choices:
            break
        _, d, last = draw(st.sampled_from(choices))
        body = (*body, d)
    if not body:
        return "Z", head, y, (), None
    if last == n_entities:
        return "Uc", head, y, body, last
    return draw(
        st.sampled_from(
            [
                ("Uc", head, y, body, last),
                ("Ud", head, y, body, None),
                ("B", head % n_relations, None, body, None),
            ]
        )
    )


@st.composite
def graphs_and_rules(draw: DrawFn, max_length: int = 3) -> tuple[SmallGraph, RuleTuple]:
    """A graph and a rule over its entities and relations, mostly one with groundings."""
    graph = draw(graphs())
    if len(graph[2]) > 0 and draw(st.integers(0, 3)) > 0:
        return graph, draw(grounded_rules(graph, max_length))
    return graph, draw(rules(graph[0], graph[1], max_length))


def _unary_heads(n_entities: int, n_relations: int) -> SearchStrategy[tuple[int, int]]:
    """(directed relation, constant), where `self` goes with a relation read forward."""
    return st.tuples(heads(n_relations), st.integers(0, n_entities)).map(
        lambda drawn: (drawn[0] % n_relations if drawn[1] == n_entities else drawn[0], drawn[1])
    )
