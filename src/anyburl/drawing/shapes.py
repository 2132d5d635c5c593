"""The parts of a drawing. Whoever makes one has placed everything; `svg.py` only writes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

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
