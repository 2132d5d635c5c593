"""A drawing as an SVG element. It has classes and no styles: the page says what colours and letters look like.

Nodes are `g.node` with their kind, arrows `g.edge` with their ink. Under an arrow's text lies `rect.paper`, which takes
the colour of the page.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from anyburl.drawing.shapes import NODE_HEIGHT, Drawing, Edge, Node, Point
from anyburl.drawing.texts import LONGEST_EDGE, LONGEST_NODE, edge_width, isolated, written

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
