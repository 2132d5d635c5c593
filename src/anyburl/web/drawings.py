"""Drawings for pages: their nodes lead to the pages of entities."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from anyburl.drawing.neighbourhood import neighbourhood
from anyburl.drawing.shapes import Drawing, Node
from anyburl.drawing.svg import to_svg
from anyburl.explanation.drawing import near_miss_graph, proof_graph
from anyburl.explanation.record import Fact, NearMiss, Reason
from anyburl.web.explorer import Explorer
from anyburl.web.templating import url


def draw_reasons(explorer: Explorer, reasons: Sequence[Reason], triple: Fact) -> Markup:
    """Return the facts behind one rule or several."""
    return _svg(proof_graph(reasons, triple, explorer.text))


def draw_near_miss(explorer: Explorer, near_miss: NearMiss, triple: Fact) -> Markup:
    """Return what a rule would predict if one more fact held."""
    return _svg(near_miss_graph(near_miss, triple, explorer.text))


def draw_neighbourhood(explorer: Explorer, entity: str, predictions: Sequence[Fact]) -> Markup:
    """Return the facts around an entity, and predictions."""
    reasoner = explorer.reasoner
    graph, vocabulary = reasoner.ranker.graph, reasoner.vocabulary
    return _svg(neighbourhood(graph, vocabulary, entity, show=explorer.text, predictions=predictions))


def _svg(drawing: Drawing) -> Markup:
    return Markup(to_svg(drawing, _link))


def _link(node: Node) -> str | None:
    """Return where a node leads: to its entity, or to the facts that it stands for."""
    if node.label is None:
        return None
    if node.kind == "more":
        direction = "backward" if node.backward and node.relation is not None else None
        return url("/entity", label=node.label, relation=node.relation, direction=direction)
    return url("/entity", label=node.label)
