"""The proof of a prediction as a graph: from the subject on the left to the object on the right.

What joins the two stands between them, other facts about the subject to its left, those about the object to its right.
Where groundings or rules share an entity at the same distance, they share its node.
"""

from __future__ import annotations

from collections.abc import Sequence

from anyburl.drawing.layered import Layers, Place
from anyburl.drawing.shapes import Drawing, Ink, Show
from anyburl.explanation.record import Fact, NearMiss, OpenFact, Reason
from anyburl.rules.rule import Rule, Y

Step = tuple[OpenFact, Ink]


def proof_graph(reasons: Sequence[Reason], triple: Fact, show: Show = str) -> Drawing:
    """Return the facts behind one or several reasons, and what they predict; `show` turns labels into text."""
    paths: list[tuple[str, list[Step]]] = [
        (_start(reason.rule, triple), [(fact, "fact") for fact in grounding])
        for reason in reasons
        for grounding in reason.groundings
    ]
    return _Proof(triple, show).draw(paths)


def near_miss_graph(near_miss: NearMiss, triple: Fact, show: Show = str) -> Drawing:
    """Return the facts that hold, the one that is missing, and what they would predict."""
    path: list[Step] = [(fact, "fact") for fact in near_miss.facts]
    path.insert(near_miss.place, (near_miss.missing, "missing"))
    return _Proof(triple, show).draw([(_start(near_miss.rule, triple), path)])


def _start(rule: Rule, triple: Fact) -> str:
    return triple[2] if rule.variable == Y else triple[0]


def _entities(start: str, path: Sequence[Step]) -> list[str | None]:
    """Return what a path leads through, a reflexive fact being no step."""
    passed: list[str | None] = [start]
    for (subject, _, object), _ink in path:
        if subject != object:
            passed.append(object if subject == passed[-1] else subject)
    return passed


class _Proof:
    """Gives the entities of each path their columns."""

    def __init__(self, triple: Fact, show: Show) -> None:
        self.triple, self.show = triple, show
        self.is_loop = triple[0] == triple[2]
        self.layers = Layers()

    def draw(self, paths: Sequence[tuple[str, Sequence[Step]]]) -> Drawing:
        """Return the drawing of paths, each given by where it starts and its facts."""
        subject, relation, object = self.triple
        joining = [len(_entities(*path)) - 1 for path in paths if self._joins(*path)]
        self.last = 0 if self.is_loop else max([1, *joining])
        here, there = (0, subject), (self.last, object)
        self.layers.add_arrow(here, there, relation, "prediction")
        for start, path in paths:
            self._add(start, path)
        title = f"{' '.join(map(self.show, self.triple))}: the facts behind it"
        return self.layers.draw(title, (here, there), self.show)

    def _joins(self, start: str, path: Sequence[Step]) -> bool:
        """Whether a path leads from one end of the triple to the other."""
        other = self.triple[0] if start == self.triple[2] else self.triple[2]
        return not self.is_loop and _entities(start, path)[-1] == other

    def _add(self, start: str, path: Sequence[Step]) -> None:
        passed, joins = _entities(start, path), self._joins(start, path)
        places = self._places(start, passed, joins)
        depth = 0
        for (subject, relation, object), ink in path:
            here = places[depth]
            if subject == object:
                self.layers.add_arrow(here, here, relation, ink)
                continue
            depth += 1
            there = places[depth]
            self.layers.add_arrow(*((here, there) if subject == here[1] else (there, here)), relation, ink)

    def _places(self, start: str, passed: Sequence[str | None], joins: bool) -> list[Place]:
        """Return where the entities of a path stand."""
        from_object = start == self.triple[2] and not self.is_loop
        begin, outward = (self.last, 1) if from_object or self.is_loop else (0, -1)
        step = -outward if joins else outward
        places: list[Place] = [(begin + step * depth, entity) for depth, entity in enumerate(passed)]
        if joins:
            places[-1] = (self.last - begin, passed[-1])
        return places
