"""Nodes in columns and arrows between them; no text lies on another.

An arrow leaves a node sideways, passes its text, which has a place of its own in the gap between two columns, and
arrives sideways. One that spans several columns gets room in each of those between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from anyburl.reasoning.drawing.svg import (
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

ROW, PASSING_ROW, LOOP, LINE = 46.0, 26.0, 40.0, 22.0
GAP = 64.0  # beside the texts between two columns
ANYTHING = "?"

Place = tuple[int, str | None]
"""A column and an entity's label; None for an entity that the rule does not name."""

Arrow = tuple[Place, Place, str]
Item = Place | Arrow
"""What has a row in a column: a node, or an arrow that passes through."""


@dataclass
class Layers:
    """Nodes by column, and arrows between them; `draw` finds out where everything stands."""

    columns: dict[int, list[Item]] = field(default_factory=dict)
    arrows: dict[Arrow, Ink] = field(default_factory=dict)

    def add_node(self, place: Place) -> None:
        """Put a node below those of its column, once."""
        items = self.columns.setdefault(place[0], [])
        if place not in items:
            items.append(place)

    def add_arrow(self, here: Place, there: Place, relation: str, ink: Ink) -> None:
        """Join two nodes; the first ink counts."""
        self.add_node(here)
        self.add_node(there)
        self.arrows.setdefault((here, there, relation), ink)

    def draw(self, title: str, ends: Sequence[Place], show: Show) -> Drawing:
        """Return the drawing; `ends` are the nodes that it is about."""
        return _Layout(self, ends, show).drawing(title)


class _Layout:
    """Where everything stands: first up and down, then from left to right."""

    def __init__(self, layers: Layers, ends: Sequence[Place], show: Show) -> None:
        self.layers, self.ends, self.show = layers, ends, show
        self.order = {column: place for place, column in enumerate(sorted(layers.columns))}
        self.columns = [_with_passing(layers, column) for column in sorted(layers.columns)]
        self.loops = Counter(here for here, there, _ in layers.arrows if here == there)
        self.heights: dict[tuple[int, Item], float] = {}
        self.line_heights: dict[tuple[int, Arrow], float] = {}  # in the gap after a column
        self._stack_columns()
        self._place_lines()
        self.lefts, self.widths, self.gaps = self._spread()

    def text(self, place: Place) -> str:
        return ANYTHING if place[1] is None else self.show(place[1])

    def _stack_columns(self) -> None:
        """Set the middle of every item, columns centred."""
        sizes = [[self._row_height(item) for item in items] for items in self.columns]
        tallest = max(map(sum, sizes))
        for place, (items, heights) in enumerate(zip(self.columns, sizes, strict=True)):
            top = (tallest - sum(heights)) / 2
            for item, height in zip(items, heights, strict=True):
                room = ROW if len(item) == 2 else PASSING_ROW
                self.heights[place, item] = top + height - room / 2
                top += height

    def _row_height(self, item: Item) -> float:
        if len(item) == 3:
            return PASSING_ROW
        return ROW + LOOP * self.loops[item]

    def _place_lines(self) -> None:
        """Set the height of each arrow in each gap: between those at its sides, and clear of the other arrows."""
        for gap in range(len(self.columns) - 1):
            passing = [arrow for arrow in self.layers.arrows if self._ends(arrow)[0] <= gap < self._ends(arrow)[1]]
            wished = [(self._height_at(gap, arrow) + self._height_at(gap + 1, arrow)) / 2 for arrow in passing]
            order = sorted(range(len(passing)), key=lambda place: wished[place])
            for place, height in zip(order, _apart([wished[place] for place in order]), strict=True):
                self.line_heights[gap, passing[place]] = height

    def _ends(self, arrow: Arrow) -> tuple[int, int]:
        first, last = sorted(self.order[place[0]] for place in arrow[:2])
        return first, last

    def _gap_of_text(self, arrow: Arrow) -> int:
        """Return the column before the gap in which the text stands: in the middle of the arrow."""
        first, last = self._ends(arrow)
        return (first + last - 1) // 2

    def _height_at(self, column: int, arrow: Arrow) -> float:
        """Return where an arrow begins, ends or passes in a column."""
        for place in arrow[:2]:
            if self.order[place[0]] == column:
                return self.heights[column, place]
        return self.heights[column, arrow]

    def _spread(self) -> tuple[list[float], list[float], list[float]]:
        """Return the left side and the width of each column, and the width of the texts in the gap after it."""
        widths = [max((self._item_width(item) for item in items), default=0.0) for items in self.columns]
        gaps = [0.0] * len(widths)
        for gap, arrow in self.line_heights:
            if gap == self._gap_of_text(arrow):
                gaps[gap] = max(gaps[gap], edge_width(self.show(arrow[2])))
        lefts, left = [], MARGIN
        for width, texts in zip(widths, gaps, strict=True):
            lefts.append(left)
            left += width + texts + GAP
        return lefts, widths, gaps

    def _item_width(self, item: Item) -> float:
        if len(item) == 3:
            return 0.0
        texts = [edge_width(self.show(arrow[2])) for arrow in self.layers.arrows if arrow[:2] == (item, item)]
        return max([self._node_width(item), *texts])

    def _node_width(self, place: Place) -> float:
        return node_width(self.text(place), self._kind(place))

    def _kind(self, place: Place) -> Kind:
        return "end" if place in self.ends else "entity"

    def drawing(self, title: str) -> Drawing:
        """Return nodes and edges, moved so that all of them are on the sheet."""
        top = min([*self.heights.values(), *self.line_heights.values()]) - ROW / 2
        if any(self.loops.values()):
            top = min(top, min(self.heights.values()) - ROW / 2 - LOOP * max(self.loops.values()))
        places: dict[Place, int] = {}
        nodes: list[Node] = []
        for column, items in enumerate(self.columns):
            for item in items:
                if len(item) == 2:
                    places[item] = len(nodes)
                    nodes.append(self._node(column, item, top))
        edges = [self._edge(arrow, ink, nodes, places, top) for arrow, ink in self.layers.arrows.items()]
        bottom = max([*self.heights.values(), *self.line_heights.values()]) + ROW / 2
        return Drawing(
            title, tuple(nodes), tuple(edges), self.lefts[-1] + self.widths[-1] + MARGIN, bottom - top + 2 * MARGIN
        )

    def _node(self, column: int, place: Place, top: float) -> Node:
        x, y = self.lefts[column] + self.widths[column] / 2, self.heights[column, place] - top + MARGIN
        return Node(place[1], self.text(place), self._kind(place), x, y, self._node_width(place))

    def _edge(self, arrow: Arrow, ink: Ink, nodes: list[Node], places: dict[Place, int], top: float) -> Edge:
        here, there, relation = arrow
        source, target, text = places[here], places[there], self.show(relation)
        if here == there:
            nth = [known for known in self.layers.arrows if known[:2] == (here, there)].index(arrow)
            node = nodes[source]
            above = node.x, node.y - NODE_HEIGHT / 2 - LOOP * (nth + 0.75)
            return Edge(relation, text, source, target, ink, 1, (), above)
        text_at = self._crossing(self._gap_of_text(arrow), arrow, top)
        route = self._route(arrow, nodes[source], nodes[target], top)
        return Edge(relation, text, source, target, ink, 1, route, text_at)

    def _crossing(self, gap: int, arrow: Arrow, top: float) -> Point:
        """Return the middle of a gap, at the height where an arrow crosses it."""
        middle = self.lefts[gap] + self.widths[gap] + (GAP + self.gaps[gap]) / 2
        return middle, self.line_heights[gap, arrow] - top + MARGIN

    def _route(self, arrow: Arrow, source: Node, target: Node, top: float) -> tuple[Point, ...]:
        """Return the points from node to node: beside each column and on both sides of the texts between them."""
        side = 1 if source.x < target.x else -1
        first, last = self._ends(arrow)
        points: list[Point] = []
        for column in range(first, last + 1):
            y, left = self._height_at(column, arrow) - top + MARGIN, self.lefts[column]
            right = left + self.widths[column]
            # Beside the columns at the ends, so that the arrow keeps clear of wider nodes there.
            points += [(right if column == first else left, y), (left if column == last else right, y)]
            if column < last:
                (x, y), half = self._crossing(column, arrow, top), self.gaps[column] / 2
                points += [(x - half, y), (x + half, y)]
        return (
            (source.x + side * source.width / 2, source.y),
            *points[::side],
            (target.x - side * target.width / 2, target.y),
        )


def _with_passing(layers: Layers, column: int) -> list[Item]:
    """Return the nodes of a column with the arrows that pass through it: what is predicted above them."""
    passing = [
        (arrow, ink)
        for arrow, ink in layers.arrows.items()
        if min(arrow[0][0], arrow[1][0]) < column < max(arrow[0][0], arrow[1][0])
    ]
    above: list[Item] = [arrow for arrow, ink in passing if ink == "prediction"]
    below: list[Item] = [arrow for arrow, ink in passing if ink != "prediction"]
    return above + layers.columns[column] + below


def _apart(wished: Sequence[float]) -> list[float]:
    """Return heights close to the wished ones, which are sorted, at least a line apart."""
    found: list[float] = []
    for height in wished:
        found.append(max(height, found[-1] + LINE) if found else height)
    surplus = sum(a - b for a, b in zip(found, wished, strict=True)) / max(1, len(found))
    return [height - surplus for height in found]
