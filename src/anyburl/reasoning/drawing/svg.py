"""A drawing as an SVG element. It has classes and no styles: the page says what colours and letters look like.

Nodes are `g.node` with their kind, arrows `g.edge` with their ink. Under an arrow's text lies `rect.paper`, which takes
the colour of the page.

The parts of a drawing. Whoever makes one has placed everything; `svg.py` only writes it.

Texts in a drawing: shortened, measured and escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Literal
from unicodedata import east_asian_width

Point = tuple[float, float]
Ink = Literal["fact", "prediction", "missing"]
Kind = Literal["entity", "end", "more"]
Show = Callable[[str], str]
"""From a label to the text that people read."""

NODE_HEIGHT, MARGIN = 30.0, 14.0


@dataclass(frozen=True)
class Node:
    """A box with text; `x` and `y` are its centre.

    An "end" is what the drawing is about: the entity in the middle, or subject and object of a prediction. A "more"
    node stands for entities that are not drawn: those that `relation` (backward: as their object) leads to from
    `label`, or for whole relations if `relation` is None. `label` is None for an entity that a rule does not name.
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
    """An arrow between two nodes, by their places in `Drawing.nodes`.

    Its curve goes through the points of `route`, from side to side; it is level at each, and straight between the
    second and the third, the fourth and the fifth and so on, where it crosses a column. A loop has no route. `count` is
    the number of facts that it stands for. The text stands at `text_at`; None where another edge carries it.
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
    """Nodes and arrows on a sheet; `title` tells what it shows to those who do not see it."""

    title: str
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    width: float
    height: float


LONGEST_NODE, LONGEST_EDGE = 28, 26
WIDE, CAPITAL, NARROW = 13.5, 9.3, 7.7  # pixels of a character of 13 pixels' height
BOLD = 1.1  # times as wide
EDGE_SIZE = 0.88  # of the text beside an arrow, compared with that in a node

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]+")
"""What cannot be shown, and what turns the direction of the text around it."""


def plain(text: str) -> str:
    """Return text on one line, without characters that change how its surroundings are read."""
    return _UNSEEN.sub(" ", text).strip() or "?"


def shorten(text: str, longest: int) -> str:
    """Return the end of a path like /film/film/genre, or the beginning of another text, if it is too long."""
    if len(text) <= longest:
        return text
    if "/" in text[-longest + 2 :]:
        end = text[-longest + 2 :]
        return "…" + end[end.index("/") :]
    return text[: longest - 1] + "…"


def text_width(text: str) -> float:
    """Return how many pixels a text takes, a little more rather than less."""
    return sum(map(_character_width, text))


def _character_width(character: str) -> float:
    if character in "MWmw@%" or east_asian_width(character) in "WF":
        return WIDE
    return CAPITAL if character.isupper() else NARROW


def node_width(text: str, kind: Kind = "entity") -> float:
    """Return the width of a node; ends are written in bold."""
    return max(44.0, text_width(shorten(plain(text), LONGEST_NODE)) * (BOLD if kind == "end" else 1) + 22)


def edge_width(text: str) -> float:
    """Return the width of the text beside an arrow."""
    return text_width(shorten(plain(text), LONGEST_EDGE)) * EDGE_SIZE + 10


def written(text: str, longest: int | None = None) -> str:
    """Return text as markup shows it."""
    clean = plain(text)
    return escape(clean if longest is None else shorten(clean, longest))


def isolated(text: str) -> str:
    """Return text that keeps its own direction among others (Unicode's first strong isolate)."""
    return f"\u2068{plain(text)}\u2069"


Link = Callable[[Node], str | None]
"""Where a click on a node leads to; None for nowhere."""

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


def _label(edge: Edge, place: Point) -> str:
    (x, y), width = place, edge_width(edge.text)
    paper = f'<rect class="paper" x="{x - width / 2:.1f}" y="{y - 9:.1f}" width="{width:.1f}" height="18"/>'
    text = _text(edge.text, LONGEST_EDGE, (x, y + 4))
    return f'<g class="edge {edge.ink}"><title>{written(edge.text)}</title>{paper}{text}</g>'


def _text(text: str, longest: int, place: Point) -> str:
    """Return text around a point, read in its own direction."""
    x, y = place
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="middle" unicode-bidi="plaintext">{written(text, longest)}</text>'
    )


def _curve(route: tuple[Point, ...]) -> tuple[str, str]:
    """Return the path through the points of a route, and where the arrow's head stands."""
    (x, y), *rest = route
    parts = [f"M{x:.1f},{y:.1f}"]
    for place, (next_x, next_y) in enumerate(rest):
        if place % 2:
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
