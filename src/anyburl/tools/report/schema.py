"""The picture at the front of a report: which relations follow from which."""

from __future__ import annotations

from collections.abc import Sequence

from anyburl.reasoning.drawing import Drawing, Layers, Place
from anyburl.tools.report.record import Link, Theory

MOST_RELATIONS, MOST_LINKS, MOST_COLUMNS = 12, 14, 3
ROUNDS = 8  # of sorting columns by what their relations are joined with


def draw_schema(theory: Theory) -> Drawing | None:
    """Return the relations as nodes, with an arrow to each that follows from another; None if nothing follows."""
    links = choose_links(theory.links)
    if not links:
        return None
    columns = _columns(links)
    texts = {link.idea.name: link.idea.name for link in links}
    layers = Layers()
    for relation in _sorted_relations(links, columns):
        layers.add_node((columns[relation], relation))
    for link in links:
        ends: list[Place] = [(columns[link.source], link.source), (columns[link.target], link.target)]
        layers.add_arrow(ends[0], ends[1], link.idea.name, "fact" if link.facts < links[0].facts / 4 else "prediction")
    targets = [(columns[link.target], link.target) for link in links]
    return layers.draw(
        "Which relations follow from which", targets, lambda text: texts.get(text) or theory.wording.relation(text)
    )


def choose_links(links: Sequence[Link]) -> list[Link]:
    """Return the links that explain most facts, among few relations; of two that are each other's backs, one."""
    chosen: list[Link] = []
    relations: set[str] = set()
    for link in links:
        is_back = any((one.source, one.target) == (link.target, link.source) for one in chosen)
        both = relations | {link.source, link.target}
        if (is_back and link.source != link.target) or len(both) > MOST_RELATIONS:
            continue
        if max(_columns([*chosen, link]).values()) >= MOST_COLUMNS:
            continue
        chosen.append(link)
        relations = both
        if len(chosen) == MOST_LINKS:
            break
    return chosen


def _columns(links: Sequence[Link]) -> dict[str, int]:
    """Return a column for each relation, right of those that it follows from, as far as no circle is closed."""
    before: dict[str, set[str]] = {}
    for link in links:
        for relation in (link.source, link.target):
            before.setdefault(relation, set())
        if link.source != link.target and not _leads(before, link.target, link.source):
            before[link.target].add(link.source)
    columns: dict[str, int] = {}

    def column(relation: str) -> int:
        if relation not in columns:
            columns[relation] = max((column(one) + 1 for one in before[relation]), default=0)
        return columns[relation]

    for relation in before:
        column(relation)
    return columns


def _leads(before: dict[str, set[str]], source: str, target: str) -> bool:
    """Return whether a way leads from one relation to another."""
    waiting, seen = [target], set[str]()
    while waiting:
        relation = waiting.pop()
        if relation == source:
            return True
        if relation not in seen:
            seen.add(relation)
            waiting += before[relation]
    return False


def _sorted_relations(links: Sequence[Link], columns: dict[str, int]) -> list[str]:
    """Return the relations, those of a column in an order that lets few arrows cross: by the mean height of those that
    they are joined with.
    """
    joined: dict[str, list[str]] = {relation: [] for relation in columns}
    for link in links:
        if link.source != link.target:
            joined[link.source].append(link.target)
            joined[link.target].append(link.source)
    order = list(columns)
    for _ in range(ROUNDS):
        heights = _heights(order, columns)
        means = {one: sum(heights[other] for other in joined[one]) / len(joined[one]) for one in order if joined[one]}
        order.sort(key=lambda one: means.get(one, heights[one]))
    return order


def _heights(order: Sequence[str], columns: dict[str, int]) -> dict[str, float]:
    """Return how far down each relation stands, columns being centred."""
    heights: dict[str, float] = {}
    for column in set(columns.values()):
        stacked = [one for one in order if columns[one] == column]
        heights |= {one: place - (len(stacked) - 1) / 2 for place, one in enumerate(stacked)}
    return heights
