"""Columns of nodes: nothing lies on anything else, and arrows go where they belong."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from anyburl.reasoning.drawing import NODE_HEIGHT, Drawing, Layers, edge_width, to_svg

Box = tuple[float, float, float, float]


def node_boxes(drawing: Drawing) -> list[Box]:
    return [(n.x - n.width / 2, n.y - NODE_HEIGHT / 2, n.width, NODE_HEIGHT) for n in drawing.nodes]


def text_boxes(drawing: Drawing) -> list[Box]:
    placed = [(edge.text_at, edge_width(edge.text)) for edge in drawing.edges if edge.text_at]
    return [(at[0] - width / 2, at[1] - 9, width, 18.0) for at, width in placed]


def overlap(one: Box, other: Box) -> bool:
    (x, y, width, height), (u, v, wide, high) = one, other
    return x < u + wide and u < x + width and y < v + high and v < y + height


places = st.tuples(st.integers(-2, 3), st.sampled_from(["a", "b", "long label " * 4, "東京都庁舎", None]))
arrows = st.tuples(places, places, st.sampled_from(["r", "/film/film/genre", "R" * 50]))
inks = st.sampled_from(["fact", "prediction", "missing"])


@given(st.lists(st.tuples(arrows, inks), min_size=1, max_size=12))
def test_no_node_and_no_text_lies_on_another(drawn: list) -> None:
    layers = Layers()
    for (here, there, relation), ink in drawn:
        if here[0] != there[0] or here == there:  # neighbours in a column are never joined
            layers.add_arrow(here, there, relation, ink)
    if not layers.arrows:
        return
    drawing = layers.draw("title", [drawn[0][0][0]], str)
    boxes = node_boxes(drawing) + text_boxes(drawing)
    assert not any(overlap(*pair) for pair in combinations(boxes, 2))
    for x, y, width, height in boxes:
        assert x >= 0
        assert y >= 0
        assert x + width <= drawing.width
        assert y + height <= drawing.height
    assert drawing == layers.draw("title", [drawn[0][0][0]], str)


def test_an_arrow_ends_at_the_sides_of_its_nodes() -> None:
    layers = Layers()
    layers.add_arrow((0, "a"), (1, "b"), "r", "fact")
    layers.add_arrow((2, "c"), (1, "b"), "s", "fact")
    layers.add_arrow((0, "a"), (2, "c"), "t", "prediction")
    drawing = layers.draw("title", [(0, "a"), (2, "c")], str)
    for edge in drawing.edges:
        source, target = drawing.nodes[edge.source], drawing.nodes[edge.target]
        side = 1 if source.x < target.x else -1
        assert edge.route[0] == (source.x + side * source.width / 2, source.y)
        assert edge.route[-1] == (target.x - side * target.width / 2, target.y)
        assert len(edge.route) % 2 == 0
    assert [node.kind for node in drawing.nodes] == ["end", "entity", "end"]
    assert to_svg(drawing).count("rotate(180)") == 1
    passing = drawing.edges[2].route
    assert min(y for _, y in passing[1:-1]) < drawing.nodes[1].y - NODE_HEIGHT / 2  # over the node between
