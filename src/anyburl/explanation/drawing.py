"""The proof of a prediction as an SVG graph.

Terms of a rule's body stand in columns, in the order of the body's path, one below the other where groundings
differ. Facts are arrows; the predicted fact is dashed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from math import atan2, degrees

from anyburl.explanation.record import Fact, NearMiss, OpenFact, Reason
from anyburl.explanation.words import ANYTHING
from anyburl.rules.rule import Y
from anyburl.triples.names import Names

CHARACTER, NODE_HEIGHT, ROW = 7.4, 34.0, 66.0
EDGE_CHARACTER, MARGIN = 6.3, 14.0
LONGEST_NODE, LONGEST_EDGE = 28, 26
ARC, LOOP = 58.0, 52.0

Place = tuple[int, str | None]
"""A column and an entity's label; None for an entity that the rule does not name."""


@dataclass
class Drawing:
    """Nodes by column, and arrows between them."""

    columns: dict[int, list[Place]] = field(default_factory=dict)
    arrows: dict[tuple[Place, Place, str], str] = field(default_factory=dict)

    def add_node(self, place: Place) -> None:
        """Put a node below those of its column, once."""
        nodes = self.columns.setdefault(place[0], [])
        if place not in nodes:
            nodes.append(place)

    def add_arrow(self, here: Place, there: Place, relation: str, style: str) -> None:
        """Join two nodes; the first style counts."""
        self.arrows.setdefault((here, there, relation), style)


def draw_reason(reason: Reason, triple: Fact, names: Names) -> str:
    """Return the groundings of one reason and what they predict."""
    drawing = Drawing()
    start = triple[2] if reason.rule.variable == Y else triple[0]
    drawing.add_node((0, start))
    ends = [_add_path(drawing, start, [(fact, "fact") for fact in grounding]) for grounding in reason.groundings]
    _add_prediction(drawing, triple, start, ends)
    return to_svg(drawing, names)


def draw_near_miss(near_miss: NearMiss, triple: Fact, names: Names) -> str:
    """Return the facts that hold, the one that is missing, and what they would predict."""
    drawing = Drawing()
    start = triple[2] if near_miss.rule.variable == Y else triple[0]
    drawing.add_node((0, start))
    path: list[tuple[OpenFact, str]] = [(fact, "fact") for fact in near_miss.facts]
    path.insert(near_miss.place, (near_miss.missing, "missing"))
    _add_prediction(drawing, triple, start, [_add_path(drawing, start, path)])
    return to_svg(drawing, names)


def _add_path(drawing: Drawing, start: str, path: Iterable[tuple[OpenFact, str]]) -> Place:
    """Add facts that lead from `start` column by column; return where they end."""
    here: Place = (0, start)
    for (subject, relation, object), style in path:
        forward = subject == here[1]
        there: Place = here if subject == object else (here[0] + 1, object if forward else subject)
        drawing.add_node(there)
        drawing.add_arrow(*((here, there) if forward else (there, here)), relation, style)
        here = there
    return here


def _add_prediction(drawing: Drawing, triple: Fact, start: str, ends: list[Place]) -> None:
    """Add the predicted fact; a constant that is not at the end of the body stands on the left."""
    subject, relation, object = triple
    other = object if start == subject else subject
    there: Place = next((end for end in ends if end[1] == other), (-1, other))
    if subject == object:
        there = (0, start)
    drawing.add_node(there)
    here: Place = (0, start)
    drawing.add_arrow(*((here, there) if start == subject else (there, here)), relation, "predicted")


def shorten(text: str, longest: int) -> str:
    """Return the end of a path like /film/film/genre, or the beginning of another text, if it is too long."""
    if len(text) <= longest:
        return text
    if "/" in text[-longest + 2 :]:
        end = text[-longest + 2 :]
        return "…" + end[end.index("/") :]
    return text[: longest - 1] + "…"


class _Layout:
    """Where everything stands."""

    def __init__(self, drawing: Drawing, names: Names) -> None:
        self.names, self.drawing = names, drawing
        self.order = sorted(drawing.columns)
        self.tallest = max(len(nodes) for nodes in drawing.columns.values())
        loops = Counter(here for here, there, _ in drawing.arrows if here == there)
        has_arc = any(is_arc(here, there, style) for (here, there, _), style in drawing.arrows.items())
        self.top = MARGIN + LOOP * max(loops.values(), default=0) + (ARC if has_arc else 0)
        self.height = self.top + (self.tallest - 1) * ROW + NODE_HEIGHT + MARGIN
        self.centres: dict[int, float] = {}
        left = MARGIN
        for column in self.order:
            width = max(self.node_width(place) for place in drawing.columns[column])
            if column != self.order[0]:
                left += self._gap(column)
            self.centres[column] = left + width / 2
            left += width
        self.width = left + MARGIN

    def label(self, place: Place) -> str:
        return ANYTHING if place[1] is None else str(self.names.get(place[1]))

    def node_width(self, place: Place) -> float:
        return max(44.0, len(shorten(self.label(place), LONGEST_NODE)) * CHARACTER + 22)

    def _gap(self, column: int) -> float:
        """Return the room between a column and the one before, for the labels of the arrows there."""
        relations = [
            relation for here, there, relation in self.drawing.arrows if {here[0], there[0]} == {column - 1, column}
        ]
        longest = max((len(shorten(self.names.get(name), LONGEST_EDGE)) for name in relations), default=0)
        return max(100.0, longest * EDGE_CHARACTER + 60)

    def centre(self, place: Place) -> tuple[float, float]:
        nodes = self.drawing.columns[place[0]]
        offset = (self.tallest - len(nodes)) / 2
        return self.centres[place[0]], self.top + NODE_HEIGHT / 2 + (nodes.index(place) + offset) * ROW


def to_svg(drawing: Drawing, names: Names) -> str:
    """Return the drawing as an SVG element that takes its colours from the page."""
    layout = _Layout(drawing, names)
    parts = [_arrow(layout, *arrow, style) for arrow, style in drawing.arrows.items()]
    predicted = {
        place for (here, there, _), style in drawing.arrows.items() if style == "predicted" for place in (here, there)
    }
    parts += [_node(layout, place, place in predicted) for column in layout.order for place in drawing.columns[column]]
    size = (
        f'width="{layout.width:.0f}" height="{layout.height:.0f}" viewBox="0 0 {layout.width:.0f} {layout.height:.0f}"'
    )
    return f'<svg {size} role="img">{"".join(parts)}</svg>'


def _node(layout: _Layout, place: Place, is_predicted: bool) -> str:
    x, y = layout.centre(place)
    width = layout.node_width(place)
    label = layout.label(place)
    box = f'x="{x - width / 2:.1f}" y="{y - NODE_HEIGHT / 2:.1f}" width="{width:.1f}" height="{NODE_HEIGHT:.0f}" rx="9"'
    return (
        f'<g class="node{" end" if is_predicted else ""}"><title>{escape(label)}</title><rect {box}/>'
        f'<text x="{x:.1f}" y="{y + 4.5:.1f}">{escape(shorten(label, LONGEST_NODE))}</text></g>'
    )


def is_arc(here: Place, there: Place, style: str) -> bool:
    """Whether an arrow goes over the others: the predicted fact from one end of the body's path to the other."""
    return style == "predicted" and here != there and min(here[0], there[0]) >= 0


def _arrow(layout: _Layout, here: Place, there: Place, relation: str, style: str) -> str:
    """Return an arrow with its label: a loop, an arc over everything, or a line between neighbours."""
    if here == there:
        loops = [arrow for arrow in layout.drawing.arrows if arrow[:2] == (here, there)]
        path, tip, angle, label = _loop(layout, here, loops.index((here, there, relation)))
    elif is_arc(here, there, style):
        path, tip, angle, label = _arc(layout, here, there)
    else:
        path, tip, angle, label = _line(layout, here, there)
    name = str(layout.names.get(relation))
    text = escape(shorten(name, LONGEST_EDGE))
    width = len(shorten(name, LONGEST_EDGE)) * EDGE_CHARACTER + 8
    return (
        f'<g class="{style}"><title>{escape(name)}</title><path d="{path}"/>'
        f'<polygon points="0,0 -10,-4.5 -10,4.5" transform="translate({tip[0]:.1f},{tip[1]:.1f}) rotate({angle:.1f})"/>'
        f'<rect class="paper" x="{label[0] - width / 2:.1f}" y="{label[1] - 9:.1f}" width="{width:.1f}" height="17"/>'
        f'<text x="{label[0]:.1f}" y="{label[1] + 4:.1f}">{text}</text></g>'
    )


Point = tuple[float, float]
Curve = tuple[str, Point, float, Point]
"""The path, the tip of the arrow and its angle, and where the label goes."""


def _loop(layout: _Layout, place: Place, nth: int) -> Curve:
    x, y = layout.centre(place)
    top, wide = y - NODE_HEIGHT / 2, 12.0 + 12 * nth
    high = top - LOOP * (1 + nth)
    left, right = x - wide, x + wide
    path = f"M{left:.1f},{top:.1f} C{left - 14:.1f},{high:.1f} {right + 14:.1f},{high:.1f} {right:.1f},{top:.1f}"
    return path, (x + wide, top), 105.0, (x, top - (top - high) * 0.76)


def _arc(layout: _Layout, here: Place, there: Place) -> Curve:
    (x1, y1), (x2, y2) = layout.centre(here), layout.centre(there)
    top1, top2 = y1 - NODE_HEIGHT / 2, y2 - NODE_HEIGHT / 2
    high = layout.top - ARC * 1.05
    lean = (x2 - x1) * 0.12
    path = f"M{x1:.1f},{top1:.1f} C{x1 + lean:.1f},{high:.1f} {x2 - lean:.1f},{high:.1f} {x2:.1f},{top2:.1f}"
    steep = 78.0 if x2 > x1 else 102.0
    return path, (x2, top2), steep, ((x1 + x2) / 2, 0.125 * (top1 + top2) + 0.75 * high)


def _line(layout: _Layout, here: Place, there: Place) -> Curve:
    (x1, y1), (x2, y2) = layout.centre(here), layout.centre(there)
    side = 1 if x2 > x1 else -1
    x1 += side * layout.node_width(here) / 2
    x2 -= side * layout.node_width(there) / 2
    path = f"M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}"
    return path, (x2, y2), degrees(atan2(y2 - y1, x2 - x1)), ((x1 + x2) / 2, (y1 + y2) / 2)
