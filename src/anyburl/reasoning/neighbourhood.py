"""A drawing of an entity and its neighbours, in groups by relation; of hubs, the most specific ones, the rest counted.

Facts with the entity as subject are on its right, those with it as object on its left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from anyburl.base.errors import InvalidOptionError
from anyburl.data.vocabulary import Vocabulary
from anyburl.graph.build import degrees, known_answers
from anyburl.graph.kernel import GraphArrays, inverses
from anyburl.reasoning.drawing import (
    MARGIN,
    NODE_HEIGHT,
    Drawing,
    Edge,
    Ink,
    Kind,
    Node,
    Point,
    Show,
    edge_width,
    node_width,
)

ROW, BETWEEN_GROUPS = 36.0, 12.0
ARM = 54.0  # between a column and the texts beside it
ENTITIES_IN_A_GROUP = 3  # at least this many can be shown, or there are fewer groups

Fact = tuple[str, str, str]


@dataclass(frozen=True)
class Group:
    """The neighbours along one directed relation: some entities, how many are left out, and predicted ones."""

    relation: int
    entities: tuple[int, ...]
    n_left_out: int
    predicted: tuple[int, ...]

    @property
    def n_rows(self) -> int:
        return len(self.entities) + len(self.predicted) + (self.n_left_out > 0)


def neighbourhood(
    graph: GraphArrays,
    vocabulary: Vocabulary,
    entity: str,
    *,
    show: Show = str,
    most: int = 40,
    stated: Sequence[Fact] = (),
    predictions: Sequence[Fact] = (),
) -> Drawing:
    """Return the facts around `entity`, at most `most` of them, facts that are `stated` besides those of the graph
    (of valid and test), and `predictions` about it.

    The relations shown are those of which this entity has the largest share: n of the m entities that the relation
    leads to. Each gets as many neighbours; of more, those are shown that more facts connect with the entity, then those
    with the most facts. `show` turns labels into text.
    """
    if most < 1:
        raise InvalidOptionError("most", "at least 1", most)
    centre = vocabulary.entity_id(entity)
    more, predicted = (_neighbours(vocabulary, centre, facts) for facts in (stated, predictions))
    groups, n_without = _choose_groups(graph, centre, most, more, predicted)
    return _Sheet(vocabulary, centre, show).drawing(groups, n_without)


def _neighbours(vocabulary: Vocabulary, centre: int, facts: Sequence[Fact]) -> dict[int, list[int]]:
    """Return the neighbours in some facts, by directed relation."""
    neighbours: dict[int, list[int]] = {}
    for subject, relation, object in facts:
        ids = vocabulary.entity_id(subject), vocabulary.relation_id(relation), vocabulary.entity_id(object)
        if ids[0] == centre:
            neighbours.setdefault(ids[1], []).append(ids[2])
        elif ids[2] == centre:
            neighbours.setdefault(ids[1] + vocabulary.n_relations, []).append(ids[0])
    return neighbours


def _choose_groups(
    graph: GraphArrays, centre: int, most: int, more: dict[int, list[int]], predicted: dict[int, list[int]]
) -> tuple[list[Group], tuple[int, int]]:
    """Return the groups to show, the most specific first, and how many relations are left out, by direction."""
    first, last = int(graph.segment_offsets[centre]), int(graph.segment_offsets[centre + 1])
    relations = np.asarray(graph.segment_relations[first:last], np.int32)
    sizes = np.diff(graph.segment_starts[first : last + 1]).astype(np.int64)
    reached = np.diff(graph.domain_offsets)[inverses(relations, graph.n_relations)]
    order = np.lexsort((relations, -sizes, -sizes / np.maximum(reached, 1)))
    kept = order[: max(1, most // ENTITIES_IN_A_GROUP)]
    left_out = relations[order[len(kept) :]]
    shares = _shares(sizes[kept], most)
    groups = [
        _group(graph, centre, relation, share, more.get(relation, []), predicted.get(relation, []))
        for relation, share in zip(relations[kept].tolist(), shares, strict=True)
    ]
    shown = {group.relation for group in groups}
    others = [relation for relation in dict.fromkeys((*more, *predicted)) if relation not in shown]
    groups += [
        _group(graph, centre, relation, 0, more.get(relation, []), predicted.get(relation, [])) for relation in others
    ]
    left_out = left_out[~np.isin(left_out, others)]
    n_backward = int((left_out >= graph.n_relations).sum())
    return groups, (len(left_out) - n_backward, n_backward)


def _shares(sizes: NDArray[np.int64], most: int) -> list[int]:
    """Return how many neighbours of each group are shown: the same number, but for groups that need less."""
    shares, left = [0] * len(sizes), most
    for done, group in enumerate(np.argsort(sizes, kind="stable").tolist()):
        shares[group] = min(int(sizes[group]), left // (len(sizes) - done))
        left -= shares[group]
    return shares


def _group(graph: GraphArrays, centre: int, relation: int, share: int, more: list[int], predicted: list[int]) -> Group:
    entities = known_answers(graph, centre, relation)
    first, last = (int(graph.segment_starts[graph.segment_offsets[centre + i]]) for i in (0, 1))
    around = graph.neighbours[first:last]  # sorted, an entity once for each fact that connects it
    n_facts = np.searchsorted(around, entities, side="right") - np.searchsorted(around, entities, side="left")
    order = np.lexsort((entities, -degrees(graph, entities), -n_facts))
    own, known = entities[order[:share]].tolist(), set(entities.tolist())
    others = [entity for entity in dict.fromkeys(more) if entity not in known]
    return Group(relation, (*own, *others), len(entities) - share, tuple(predicted))


class _Sheet:
    """Positions groups on both sides of an entity."""

    def __init__(self, vocabulary: Vocabulary, centre: int, show: Show) -> None:
        self.vocabulary, self.show = vocabulary, show
        self.label = vocabulary.entity_label(centre)
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []

    def drawing(self, groups: Sequence[Group], n_without: tuple[int, int]) -> Drawing:
        """Return the drawing."""
        n_relations = self.vocabulary.n_relations
        sides = [
            [group for group in groups if (group.relation >= n_relations) is backward] for backward in (False, True)
        ]
        heights = [_height(side, n) for side, n in zip(sides, n_without, strict=True)]
        height = max(*heights, NODE_HEIGHT) + 2 * MARGIN
        widths = [self._widths(side, n) for side, n in zip(sides, n_without, strict=True)]
        text = self.show(self.label)
        centre_width = node_width(text, "end")
        x = MARGIN + sum(widths[1]) + 2 * ARM * (widths[1][0] > 0) + centre_width / 2
        self.nodes.append(Node(self.label, text, "end", x, height / 2, centre_width))
        for backward, (side, n) in enumerate(zip(sides, n_without, strict=True)):
            self._add_side(side, n, bool(backward), (height - heights[backward]) / 2, widths[backward])
        width = x + centre_width / 2 + sum(widths[0]) + 2 * ARM * (widths[0][0] > 0) + MARGIN
        return Drawing(f"{text} and its neighbours", tuple(self.nodes), tuple(self.edges), width, height)

    def _widths(self, side: Sequence[Group], n_without: int) -> tuple[float, float]:
        """Return the widths of the relations' and of the neighbours' column."""
        if not side:
            return 0.0, 0.0
        relations = max(edge_width(self.show(self._relation(group.relation))) for group in side)
        texts = [self._entity_text(entity) for group in side for entity in (*group.entities, *group.predicted)]
        texts += [_more(group.n_left_out) for group in side] + [_more_relations(n_without)] * (n_without > 0)
        return relations, max(map(node_width, texts))

    def _relation(self, directed: int) -> str:
        return self.vocabulary.relation_label(directed % self.vocabulary.n_relations)

    def _entity_text(self, entity: int) -> str:
        return self.show(self.vocabulary.entity_label(entity))

    def _add_side(
        self, side: Sequence[Group], n_without: int, backward: bool, top: float, widths: tuple[float, float]
    ) -> None:
        centre, outward = self.nodes[0], -1 if backward else 1
        edge = centre.x + outward * centre.width / 2
        relations_x = edge + outward * (ARM + widths[0] / 2)
        half = outward * widths[0] / 2
        inner = relations_x + half + outward * ARM  # the near side of all neighbours
        for group in side:
            middle = top + group.n_rows * ROW / 2
            for row, (node, ink, count) in enumerate(self._rows(group, inner, top)):
                route = ((edge, centre.y), (relations_x - half, middle), (relations_x + half, middle), (inner, node.y))
                self._add(node, group, ink, count, route[::outward], (relations_x, middle) if not row else None)
            top += group.n_rows * ROW + BETWEEN_GROUPS
        if n_without:
            text = _more_relations(n_without)
            width = node_width(text)
            x = inner + outward * width / 2
            self.nodes.append(Node(self.label, text, "more", x, top + ROW / 2, width, None, backward))

    def _rows(self, group: Group, inner: float, top: float) -> list[tuple[Node, Ink, int]]:
        """Return the nodes of a group, each with the ink of its arrow and the number of facts."""
        backward = group.relation >= self.vocabulary.n_relations
        rows: list[tuple[Node, Ink, int]] = []

        def add(label: str, text: str, kind: Kind, relation: str | None, ink: Ink, count: int) -> None:
            width = node_width(text)
            x, y = inner + (-width if backward else width) / 2, top + (len(rows) + 0.5) * ROW
            rows.append((Node(label, text, kind, x, y, width, relation, backward), ink, count))

        for entity in group.entities:
            add(self.vocabulary.entity_label(entity), self._entity_text(entity), "entity", None, "fact", 1)
        for entity in group.predicted:
            add(self.vocabulary.entity_label(entity), self._entity_text(entity), "entity", None, "prediction", 1)
        if n := group.n_left_out:
            add(self.label, _more(n), "more", self._relation(group.relation), "fact", n)
        return rows

    def _add(
        self, node: Node, group: Group, ink: Ink, count: int, route: tuple[Point, ...], text_at: Point | None
    ) -> None:
        self.nodes.append(node)
        source, target = 0, len(self.nodes) - 1
        if group.relation >= self.vocabulary.n_relations:
            source, target = target, source
        relation = self._relation(group.relation)
        self.edges.append(Edge(relation, self.show(relation), source, target, ink, count, route, text_at))


def _height(side: Sequence[Group], n_without: int) -> float:
    gaps = BETWEEN_GROUPS * (len(side) - 1 + (n_without > 0))
    return ROW * (sum(group.n_rows for group in side) + (n_without > 0)) + max(0.0, gaps)


def _more(n: int) -> str:
    return f"+ {n:,} more"


def _more_relations(n: int) -> str:
    return f"+ {n:,} more relation{'s' if n > 1 else ''}"
