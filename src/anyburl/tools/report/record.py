"""`Theory`: what the rules say about a graph, as one record; the page, Markdown and JSON are made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from anyburl.reasoning.explanation.record import Fact, Grounding
from anyburl.tools.report.ideas import IDEAS, Idea
from anyburl.tools.report.words import Wording, Words, chance, plain_text


@dataclass(frozen=True)
class Case:
    """A prediction of a law, the facts that lead to it, and what is stated in its place."""

    triple: Fact
    facts: Grounding
    known: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the case as plain values."""
        told: dict[str, Any] = {"triple": list(self.triple), "facts": [list(fact) for fact in self.facts]}
        return (
            told
            | ({"known": list(self.known)} if self.known else {})
            | ({"instead": list(self.instead)} if self.instead else {})
        )


@dataclass(frozen=True)
class Law:
    """A rule in words, with the facts that it explains, an example and exceptions."""

    text: str
    words: Words
    idea: Idea
    relation: str
    body: tuple[str, ...]
    support: int
    predictions: int
    exact: bool
    explains: int
    """How many of the facts looked at it predicts."""
    stands_for: int
    """How many other rules say nearly the same."""
    example: Case | None
    exceptions: tuple[Case, ...]
    unknown: tuple[Case, ...]
    """Predictions that nothing states and nothing contradicts."""

    @property
    def share(self) -> float:
        return self.support / max(1, self.predictions)

    @property
    def chance(self) -> str:
        """How often it holds."""
        if self.support == self.predictions:
            return f"always, {self.support:,} times"
        return chance(self.support, self.predictions)

    def to_json(self) -> dict[str, Any]:
        """Return the law as plain values."""
        return {
            "rule": self.text,
            "sentence": plain_text(self.words),
            "idea": self.idea.name,
            "chance": self.chance,
            "support": self.support,
            "predictions": self.predictions,
            "exact": self.exact,
            "explains": self.explains,
            "stands_for": self.stands_for,
            "example": self.example and self.example.to_json(),
            "exceptions": [case.to_json() for case in self.exceptions],
            "new": [case.to_json() for case in self.unknown],
        }


@dataclass(frozen=True)
class RelationTheory:
    """What is known about one relation: its size, its commonest values, its laws, and what they leave open."""

    label: str
    n_facts: int
    n_subjects: int
    n_objects: int
    values: tuple[tuple[str, int], ...]
    """The commonest objects, with how many facts have them, where few objects have most of the facts."""
    facts: tuple[Fact, ...]
    """Some facts."""
    laws: tuple[Law, ...]
    n_rules: int
    looked_at: int
    """How many of the facts were tried with the laws."""
    explained: int
    unexplained: tuple[Fact, ...]

    @property
    def ideas(self) -> list[tuple[Idea, list[Law]]]:
        """The laws by idea, the idea that explains most first."""
        order = {idea: place for place, idea in enumerate(IDEAS)}
        groups = groupby(sorted(self.laws, key=lambda law: order[law.idea]), key=lambda law: law.idea)
        listed = [(idea, sorted(laws, key=lambda law: -law.explains)) for idea, laws in groups]
        return sorted(listed, key=lambda group: -max(law.explains for law in group[1]))

    @property
    def explained_chance(self) -> str:
        """Which part of the facts is explained."""
        return "all" if self.explained == self.looked_at else chance(self.explained, self.looked_at)

    def to_json(self) -> dict[str, Any]:
        """Return the relation as plain values."""
        return {
            "relation": self.label,
            "facts": self.n_facts,
            "subjects": self.n_subjects,
            "objects": self.n_objects,
            "values": [{"object": label, "facts": n} for label, n in self.values],
            "rules": self.n_rules,
            "looked_at": self.looked_at,
            "explained": self.explained,
            "laws": [law.to_json() for law in self.laws],
            "unexplained": [list(fact) for fact in self.unexplained],
        }


@dataclass(frozen=True)
class Link:
    """A relation that others lead to: by which idea, and how many facts that explains."""

    source: str
    target: str
    idea: Idea
    facts: float


@dataclass(frozen=True)
class Theory:
    """What a graph knows: its relations, those with most facts first, and the laws that join them."""

    name: str
    n_facts: int
    n_entities: int
    n_rules: int
    n_sections: int
    """How many of the relations are told in full."""
    things: tuple[str, ...]
    """The entities with most facts."""
    relations: tuple[RelationTheory, ...]
    seconds: float
    wording: Wording = field(repr=False)

    @property
    def laws(self) -> list[Law]:
        """All laws, those that explain most first."""
        return [law for _, law in sorted(self._weighed(), key=lambda pair: -pair[0])]

    @property
    def links(self) -> list[Link]:
        """Which relations follow from which, those that explain most facts first."""
        links: dict[tuple[str, str], Link] = {}
        for facts, law in ((facts, law) for facts, law in self._weighed() if law.share >= FOLLOWS):
            for source in dict.fromkeys(law.body):
                one = Link(source, law.relation, law.idea, facts)
                if source != law.relation or law.idea.name in ("symmetric", "chain"):
                    known = links.get((source, law.relation))
                    if known is None or known.facts < facts:
                        links[source, law.relation] = one
        return sorted(links.values(), key=lambda link: -link.facts)

    def sure(self, top: int) -> list[Law]:
        """Return the most telling laws that hold nearly always, of different relations."""
        return _different([law for law in self._telling if law.share >= NEARLY_ALWAYS and law.support >= ENOUGH], top)

    def doubtful(self, top: int) -> list[Law]:
        """Return the most telling laws that have exceptions to show, of different relations."""
        laws = [law for law in self._telling if OFTEN <= law.share < NEARLY_ALWAYS and law.exceptions]
        return _different(laws, top)

    @property
    def _telling(self) -> list[Law]:
        """All laws, short ones that explain much first."""
        return [law for _, law in sorted(self._weighed(), key=lambda pair: -pair[0] * TELLING ** len(pair[1].body))]

    def _weighed(self) -> list[tuple[float, Law]]:
        """Return every law with the number of facts that it explains, as if all facts had been looked at."""
        return [
            (law.explains * relation.n_facts / max(1, relation.looked_at), law)
            for relation in self.relations
            for law in relation.laws
        ]

    def to_json(self) -> dict[str, Any]:
        """Return the theory as plain values."""
        return {
            "data": self.name,
            "facts": self.n_facts,
            "entities": self.n_entities,
            "things": list(self.things),
            "rules": self.n_rules,
            "laws": len(self.laws),
            "seconds": round(self.seconds, 3),
            "links": [
                {"from": link.source, "to": link.target, "idea": link.idea.name, "facts": round(link.facts)}
                for link in self.links
            ],
            "relations": [relation.to_json() for relation in self.relations],
        }


NEARLY_ALWAYS, FOLLOWS, OFTEN = 0.9, 0.5, 0.4
TELLING = 0.4  # what a law counts for each of its conditions when few are shown
ENOUGH = 10  # cases that a law must hold in to be shown first


def _different(laws: list[Law], top: int) -> list[Law]:
    """Return the first laws, one for each relation, and no two that say the same backward and forward."""
    chosen: list[Law] = []
    for law in laws:
        joined = {frozenset((one.relation, *one.body)) for one in chosen}
        if all(law.relation != one.relation for one in chosen) and frozenset((law.relation, *law.body)) not in joined:
            chosen.append(law)
    return chosen[:top]
