"""Drawings of nodes and arrows: their layout in columns, without overlapping texts, and SVG.

The SVG has classes and no styles, so the page chooses colours and fonts: `g.node` with its kind, `g.edge` with its ink
and, under an arrow's text, `rect.paper` in the colour of the page. An arrow leaves a node sideways, passes its text in
the gap between two columns, and arrives sideways; one that spans several columns gets room in each of those between.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from html import escape
from typing import Literal
from unicodedata import east_asian_width

Point = tuple[float, float]
Ink = Literal["fact", "prediction", "missing"]
Kind = Literal["entity", "end", "more"]
Show = Callable[[str], str]
"""Turns a label into readable text."""

NODE_HEIGHT, MARGIN = 30.0, 14.0


@dataclass(frozen=True)
class Node:
    """A box with text; `x` and `y` are its centre.

    An "end" is what is drawn: the entity in the middle, or subject and object of a prediction. A "more" node
    stands for entities that are not drawn: the neighbours of `label` along `relation` (backward: as their object), or
    along other relations if that is None. `label` is None for an entity that a rule does not name.
    """

    label: str | None
    text: str
    kind: Kind
    x: float
    y: float
    width: float
    relation: str | None = None
    backward: bool = False


@dataclass(frozen=True)
class Edge:
    """An arrow between two nodes, by their indices in `Drawing.nodes`.

    Its curve passes the points of `route` horizontally; it is straight between the second and the third, the fourth and
    the fifth and so on, where it crosses a column. A loop has no route. `count` is the number of facts that it stands
    for. The text is centred at `text_at`; None where another edge has it.
    """

    relation: str
    text: str
    source: int
    target: int
    ink: Ink
    count: int
    route: tuple[Point, ...]
    text_at: Point | None


@dataclass(frozen=True)
class Drawing:
    """Nodes and arrows with their positions; `title` is the text for screen readers."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


LONGEST_NODE, LONGEST_EDGE = 28, 26
WIDE, CAPITAL, SMALL, THIN = 13.5, 9.3, 7.7, 5.3  # pixels of a character of 13 pixels' height
BOLD = 1.1  # times as wide
EDGE_SIZE = 0.88  # of the text beside an arrow, compared with that in a node

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]+")
"""Unprintable characters, and those that change the direction of text."""


def plain(text: str) -> str:
    """Return text on one line, without unprintable characters and changes of direction."""
    return _UNSEEN.sub(" ", text).strip() or "?"


def shorten(text: str, longest: int) -> str:
    """Return the end of a path like /film/film/genre, or the beginning of another text, if it is too long."""
    if len(text) <= longest:
        return text
    if "/" in text[-longest + 2 :]:
        end = text[-longest + 2 :]
        return "…" + end[end.index("/") :]
    return text[: longest - 1] + "…"


@lru_cache(1 << 14)  # a page of reasons draws the same few labels many times
def text_width(text: str) -> float:
    """Return the width of a text in pixels, rather too large than too small."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in "MWmw@%" or east_asian_width(character) in "WF":
        return WIDE
    if character in "fijlrtI .,:;'|!()[]/-":
        return THIN
    return CAPITAL if character.isupper() else SMALL


def node_width(text: str, kind: Kind = "entity") -> float:
    """Return the width of a node; ends are written in bold."""
    return max(44.0, text_width(shorten(plain(text), LONGEST_NODE)) * (BOLD if kind == "end" else 1) + 22)


def edge_width(text: str) -> float:
    """Return the width of the text beside an arrow."""
    return text_width(shorten(plain(text), LONGEST_EDGE)) * EDGE_SIZE + 10


def written(text: str, longest: int | None = None) -> str:
    """Return text for markup, shortened and escaped."""
    clean = plain(text)
    return escape(clean if longest is None else shorten(clean, longest))


def isolated(text: str) -> str:
    """Return text that keeps its own direction among others (Unicode's first strong isolate)."""
    return f"\u2068{plain(text)}\u2069"


Link = Callable[[Node], str | None]
"""The address behind a node; None for none."""

INK_WORDS = {"fact": "", "prediction": "predicted: ", "missing": "missing: "}
TIP = 9.0  # the length of an arrow's head


def to_svg(drawing: Drawing, link: Link | None = None) -> str:
    """Return the drawing as an SVG element for a page."""
    size = f'viewBox="0 0 {drawing.width:.0f} {drawing.height:.0f}"'
    facts_first = sorted(drawing.edges, key=lambda edge: edge.ink != "fact")
    parts = [_edge(drawing, edge) for edge in facts_first]
    parts += [_label(edge, edge.text_at) for edge in drawing.edges if edge.text_at]  # over all curves
    parts += [_node(node, link(node) if link else None) for node in drawing.nodes]
    return (
        f'<svg class="drawing" {size} width="{drawing.width:.0f}" height="{drawing.height:.0f}" role="group" '
        f'aria-label="{written(drawing.title)}">{"".join(parts)}</svg>'
    )


def _node(node: Node, target: str | None) -> str:
    left, top = node.x - node.width / 2, node.y - NODE_HEIGHT / 2
    box = f'x="{left:.1f}" y="{top:.1f}" width="{node.width:.1f}" height="{NODE_HEIGHT:.0f}" rx="8"'
    drawn = (
        f'<g class="node {node.kind}"><title>{written(node.text)}</title><rect {box}/>'
        f"{_text(node.text, LONGEST_NODE, (node.x, node.y + 4.5))}</g>"
    )
    return f'<a href="{escape(target)}">{drawn}</a>' if target else drawn


def _edge(drawing: Drawing, edge: Edge) -> str:
    source, target = drawing.nodes[edge.source], drawing.nodes[edge.target]
    title = INK_WORDS[edge.ink] + " ".join(isolated(text) for text in (source.text, edge.text, target.text))
    path, tip = _loop(source, edge) if not edge.route else _curve(edge.route)
    return (
        f'<g class="edge {edge.ink}"><title>{escape(title)}</title><path d="{path}"/>'
        f'<polygon points="0,0 -{TIP:.0f},-4.5 -{TIP:.0f},4.5" transform="{tip}"/></g>'
    )


def _label(edge: Edge, centre: Point) -> str:
    (x, y), width = centre, edge_width(edge.text)
    paper = f'<rect class="paper" x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18"/>'
    text = _text(edge.text, LONGEST_EDGE, (x, y + 4))
    return f'<g class="edge {edge.ink}"><title>{written(edge.text)}</title>{paper}{text}</g>'


def _text(text: str, longest: int, centre: Point) -> str:
    """Return text centred at a point, in its own direction."""
    x, y = centre
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" unicode-bidi="plaintext">{written(text, longest)}</text>'
    )


def _curve(route: tuple[Point, ...]) -> tuple[str, str]:
    """Return the path through the points of a route, and the transformation of the arrow's head."""
    (x, y), *rest = route
    parts = [f"M{x:.1f},{y:.1f}"]
    for i, (next_x, next_y) in enumerate(rest):
        if i % 2:
            parts.append(f"L{next_x:.1f},{next_y:.1f}")
        else:
            middle = (x + next_x) / 2
            parts.append(f"C{middle:.1f},{y:.1f} {middle:.1f},{next_y:.1f} {next_x:.1f},{next_y:.1f}")
        x, y = next_x, next_y
    angle = 0 if route[-1][0] > route[0][0] else 180
    return " ".join(parts), f"translate({x:.1f},{y:.1f}) rotate({angle})"


def _loop(node: Node, edge: Edge) -> tuple[str, str]:
    """Return a path from the top of a node to its text and back."""
    high = edge.text_at[1] if edge.text_at else node.y - NODE_HEIGHT
    top, left, right = node.y - NODE_HEIGHT / 2, node.x - 14, node.x + 14
    path = f"M{left:.1f},{top:.1f} C{left - 12:.1f},{high:.1f} {right + 12:.1f},{high:.1f} {right:.1f},{top:.1f}"
    return path, f"translate({right:.1f},{top:.1f}) rotate(105)"


ROW, PASSING_ROW, LOOP, LINE = 46.0, 26.0, 40.0, 22.0
GAP = 64.0  # beside the texts between two columns
ANYTHING = "?"

NodeKey = tuple[int, str | None]
"""A node: its column and the entity's label, None for an entity that the rule does not name."""

Arrow = tuple[NodeKey, NodeKey, str]
Item = NodeKey | Arrow
"""Takes a row in a column: a node, or an arrow that passes through."""


@dataclass
class Layers:
    """Nodes by column, and arrows between them; `draw` computes their positions."""

    columns: dict[int, list[Item]] = field(default_factory=dict)
    arrows: dict[Arrow, Ink] = field(default_factory=dict)

    def add_node(self, spot: NodeKey) -> None:
        """Add a node below those of its column, once."""
        items = self.columns.setdefault(spot[0], [])
        if spot not in items:
            items.append(spot)

    def add_arrow(self, source: NodeKey, target: NodeKey, relation: str, ink: Ink) -> None:
        """Join two nodes; the first ink counts."""
        self.add_node(source)
        self.add_node(target)
        self.arrows.setdefault((source, target, relation), ink)

    def draw(self, title: str, ends: Sequence[NodeKey], show: Show) -> Drawing:
        """Return the drawing; `ends` are the nodes that it is about."""
        return _Layout(self, ends, show).drawing(title)


class _Layout:
    """Positions of nodes and arrows: first vertical, then horizontal."""

    def __init__(self, layers: Layers, ends: Sequence[NodeKey], show: Show) -> None:
        self.layers, self.ends, self.show = layers, ends, show
        self.order = {column: i for i, column in enumerate(sorted(layers.columns))}
        self.columns = [_with_passing(layers, column) for column in sorted(layers.columns)]
        self.loops = Counter(source for source, target, _ in layers.arrows if source == target)
        self.heights: dict[tuple[int, Item], float] = {}
        self.line_heights: dict[tuple[int, Arrow], float] = {}  # in the gap after a column
        self._stack_columns()
        self._place_lines()
        self.lefts, self.widths, self.gaps = self._spread()

    def text(self, spot: NodeKey) -> str:
        return ANYTHING if spot[1] is None else self.show(spot[1])

    def _stack_columns(self) -> None:
        """Set the middle of every item, columns centred."""
        sizes = [[self._row_height(item) for item in items] for items in self.columns]
        tallest = max(map(sum, sizes))
        for column, (items, heights) in enumerate(zip(self.columns, sizes, strict=True)):
            top = (tallest - sum(heights)) / 2
            for item, height in zip(items, heights, strict=True):
                room = ROW if len(item) == 2 else PASSING_ROW
                self.heights[column, item] = top + height - room / 2
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
            order = sorted(range(len(passing)), key=lambda i: wished[i])
            for i, height in zip(order, _apart([wished[i] for i in order]), strict=True):
                self.line_heights[gap, passing[i]] = height

    def _ends(self, arrow: Arrow) -> tuple[int, int]:
        first, last = sorted(self.order[spot[0]] for spot in arrow[:2])
        return first, last

    def _gap_of_text(self, arrow: Arrow) -> int:
        """Return the column before the gap of the text: in the middle of the arrow."""
        first, last = self._ends(arrow)
        return (first + last - 1) // 2

    def _height_at(self, column: int, arrow: Arrow) -> float:
        """Return the height at which an arrow begins, ends or passes in a column."""
        for spot in arrow[:2]:
            if self.order[spot[0]] == column:
                return self.heights[column, spot]
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

    def _node_width(self, spot: NodeKey) -> float:
        return node_width(self.text(spot), self._kind(spot))

    def _kind(self, spot: NodeKey) -> Kind:
        return "end" if spot in self.ends else "entity"

    def drawing(self, title: str) -> Drawing:
        """Return nodes and edges, moved so that all of them are on the sheet."""
        top = min([*self.heights.values(), *self.line_heights.values()]) - ROW / 2
        if any(self.loops.values()):
            top = min(top, min(self.heights.values()) - ROW / 2 - LOOP * max(self.loops.values()))
        numbers: dict[NodeKey, int] = {}
        nodes: list[Node] = []
        for column, items in enumerate(self.columns):
            for item in items:
                if len(item) == 2:
                    numbers[item] = len(nodes)
                    nodes.append(self._node(column, item, top))
        edges = [self._edge(arrow, ink, nodes, numbers, top) for arrow, ink in self.layers.arrows.items()]
        bottom = max([*self.heights.values(), *self.line_heights.values()]) + ROW / 2
        return Drawing(
            title, tuple(nodes), tuple(edges), self.lefts[-1] + self.widths[-1] + MARGIN, bottom - top + 2 * MARGIN
        )

    def _node(self, column: int, spot: NodeKey, top: float) -> Node:
        x, y = self.lefts[column] + self.widths[column] / 2, self.heights[column, spot] - top + MARGIN
        return Node(spot[1], self.text(spot), self._kind(spot), x, y, self._node_width(spot))

    def _edge(self, arrow: Arrow, ink: Ink, nodes: list[Node], numbers: dict[NodeKey, int], top: float) -> Edge:
        relation = arrow[2]
        source, target, text = numbers[arrow[0]], numbers[arrow[1]], self.show(relation)
        if arrow[0] == arrow[1]:
            nth = [known for known in self.layers.arrows if known[:2] == arrow[:2]].index(arrow)
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
            # At the ends, beside the column, so that the arrow keeps clear of wider nodes.
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
    """Return the nodes of a column with the arrows that pass through it: predictions above, others below."""
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
    heights: list[float] = []
    for height in wished:
        heights.append(max(height, heights[-1] + LINE) if heights else height)
    surplus = sum(a - b for a, b in zip(heights, wished, strict=True)) / max(1, len(heights))
    return [height - surplus for height in heights]
