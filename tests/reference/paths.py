"""Straight paths (section 3.1) and what they generalise to (section 2.2)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .graph import Body, Graph, Triple, build, inverse, mirror
from .scoring import Rule, extend, normalise


class Path(NamedTuple):
    """A head triple `x -head-> y` and a walk from x along `body`.

    `entities` is the whole path of n + 1 steps, `(y, x, a1, ..., an)`: it goes from y to x through the head
    triple and on along the body. A cyclic path ends where it began, `an == y`.
    """

    cyclic: bool
    head: int
    entities: tuple[int, ...]
    body: Body


def is_straight(entities: Sequence[int], cyclic: bool) -> bool:
    """No entity is visited twice, except that a cyclic path ends where it began."""
    if cyclic:
        return len(entities) > 1 and entities[0] == entities[-1] and is_straight(entities[:-1], False)
    return len(set(entities)) == len(entities)


def all_acyclic_paths(triples: Iterable[Triple], n_entities: int, n_relations: int, n: int) -> set[Path]:
    """Every straight acyclic path whose rules have length n.

    The head is read in either direction. `self` may be the head's constant y or the last entity, with
    the relation there read forward.
    """
    graph = build(triples, n_entities, n_relations)
    return {
        Path(False, head, (y, *walk), body)
        for y, head, x in _heads(graph)
        for body, walk in _walks_from(graph, x, n)
        if is_straight((y, *walk), cyclic=False)
    }


def all_cyclic_paths(triples: Iterable[Triple], n_entities: int, n_relations: int, n: int) -> set[Path]:
    """Every straight cyclic path whose rules have length n.

    For n = 1 the walk is one other triple between x and y, and y may be `self` (both relations read
    forward). Longer cyclic paths never visit `self`.
    """
    graph = build(triples, n_entities, n_relations)
    return {
        Path(True, head, (y, *walk), body)
        for y, head, x in _heads(graph)
        for body, walk in _walks_from(graph, x, n)
        if is_straight((y, *walk), cyclic=True) and body != (head,) and not (n > 1 and graph.self_id in walk)
    }


def _heads(graph: Graph) -> list[tuple[int, int, int]]:
    """All `(y, head, x)` with `x -head-> y`, where only y may be `self`, and then head reads forward."""
    return [
        (y, head, x)
        for (x, y), heads in graph.joins.items()
        for head in heads
        if x != graph.self_id and (y != graph.self_id or head < graph.n_relations)
    ]


def _walks_from(graph: Graph, x: int, n: int) -> list[tuple[Body, tuple[int, ...]]]:
    """All `(body, (x, a1, ..., an))` without repeated entities; only an may be `self`, read forward."""
    found: dict[Body, set[tuple[int, ...]]] = {(): {(x,)}}
    for _ in range(n - 1):
        found = {
            (*body, d): extend(graph, before, d, object_identity=True)
            for body, before in found.items()
            for d in range(2 * graph.n_relations)
        }
    return [
        ((*body, d), (*walk, last))
        for body, before in found.items()
        for walk in before
        for d in range(2 * graph.n_relations)
        for last in graph.steps.get((walk[-1], d), ())
        if last not in walk and (last != graph.self_id or d < graph.n_relations)
    ]


def generalise(path: Path, n_entities: int, n_relations: int) -> set[Rule]:
    """The useful rules of the path's generalisation lattice (section 2.2), normalised.

    Acyclic: one Ud and one Uc rule; if the path ends in `self`, for which no variable can stand, the
    Uc rule only. Cyclic: one B rule and two Uc rules with the same constant twice; if y is `self`, the
    Uc rule with that constant only.
    """
    y, x, last = path.entities[0], path.entities[1], path.entities[-1]
    rules = [Rule("Uc", path.head, y, path.body, last)]
    if not path.cyclic and last != n_entities:
        rules.append(Rule("Ud", path.head, y, path.body, None))
    if path.cyclic and y != n_entities:
        rules.append(Rule("B", path.head, None, path.body, None))
        rules.append(Rule("Uc", inverse(path.head, n_relations), x, mirror(path.body, n_relations), x))
    return {normalise(rule, n_entities, n_relations) for rule in rules}
