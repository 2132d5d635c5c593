"""`Theory`: what the rules say about a graph, as one record, and its sentences, which page and Markdown share."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, NamedTuple

from anyburl.base.errors import counted
from anyburl.reasoning.explanation.record import Fact, Grounding
from anyburl.tools.report.words import IDEAS, Idea, Word, Wording, Words, chance, plain_text


@dataclass(frozen=True)
class Case:
    """A prediction of a law, the facts that lead to it, and what is stated `instead` of one of its ends, `replaced`."""

    triple: Fact
    facts: Grounding
    known: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    replaced: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the case as plain values."""
        values: dict[str, Any] = {"triple": list(self.triple), "facts": [list(fact) for fact in self.facts]}
        return (
            values
            | ({"known": list(self.known)} if self.known else {})
            | ({"instead": list(self.instead), "replaced": self.replaced} if self.instead else {})
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
        order = {idea: position for position, idea in enumerate(IDEAS)}
        groups = groupby(sorted(self.laws, key=lambda law: order[law.idea]), key=lambda law: law.idea)
        listed = [(idea, sorted(laws, key=lambda law: -law.explains)) for idea, laws in groups]
        return sorted(listed, key=lambda group: -max(law.explains for law in group[1]))

    @property
    def has_one_value(self) -> bool:
        """Whether hardly any thing has two values: then, what is stated contradicts any other value."""
        return self.n_facts < ONE_VALUE * max(1, self.n_subjects)

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
    """How many of the relations are reported in full."""
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


HOW_TO_READ = (
    "How to read the chances: “9 of 10” behind a law means that of ten cases in which the condition holds, the graph "
    "states the conclusion in nine. The tenth is an exception, or a fact that the graph does not know. How much laws "
    "explain is another share: of the facts of a relation, how many follow from its laws, all taken together."
)
N_RELATIONS, N_SURE, N_DOUBTFUL, N_OPEN = 6, 5, 3, 3
ONE_VALUE = 1.05  # values of each thing, at most
LITTLE = 0.3  # of the facts of a relation that is hardly explained


def opening_text(theory: Theory) -> str:
    """Return how large the graph is and what the report was made of."""
    laws, relations = len(theory.laws), len(theory.relations)
    size = f"{theory.n_facts:,} facts about {theory.n_entities:,} things, in {counted(relations, 'relation')}."
    rules = f"{counted(theory.n_rules, 'rule')} that were learned"
    if not laws:
        return f"{size} Of {rules}, none explains enough of a relation to be a law."
    explained = sum(one.explained * one.n_facts / max(1, one.looked_at) for one in theory.relations)
    n_facts = sum(one.n_facts for one in theory.relations)
    share = "all" if explained == n_facts else f"about {chance(round(explained), n_facts)}"
    chosen = f"{counted(laws, 'law')}, chosen from {rules}, {'explains' if laws == 1 else 'explain'}"
    return f"{size} {chosen[0].upper() + chosen[1:]} {share} facts."


class Line(NamedTuple):
    """A line of the front: words, the law that they state, and a remark below."""

    words: Words
    law: Law | None = None
    remark: Words = ()


def front_parts(theory: Theory) -> list[tuple[str, list[Line]]]:
    """Return what comes first: titles, each with some lines."""
    wording = theory.wording
    relations = {one.label: one for one in theory.relations}
    hard = [one for one in theory.relations if one.explained < LITTLE * one.looked_at]
    parts = {
        "What it is about: the largest relations": [
            *(_relation_line(relation, wording) for relation in theory.relations[:N_RELATIONS]),
            *_things_line(theory),
        ],
        "Laws that hold nearly always": [
            Line(law.words, law, _example_words(law, wording)) for law in theory.sure(N_SURE)
        ],
        "Laws with exceptions": [
            Line(
                law.words,
                law,
                (Word("But "), *exception_words(law.exceptions[0], relations[law.relation], wording), Word(".")),
            )
            for law in theory.doubtful(N_DOUBTFUL)
        ],
        "What the laws leave open": [_open_line(relation, wording) for relation in hard[:N_OPEN]],
    }
    return [(title, lines) for title, lines in parts.items() if lines]


def _relation_line(relation: RelationTheory, wording: Wording) -> Line:
    name = Word(wording.relation(relation.label), "relation")
    example = wording.fact(relation.facts[0]) if relation.facts else ()
    return Line((name, Word(f", {counted(relation.n_facts, 'fact')}: for example, "), *example, Word(".")))


def _things_line(theory: Theory) -> list[Line]:
    parts: list[Word] = []
    for position, label in enumerate(theory.things):
        parts += [Word(", " if position else "Mentioned most: "), Word(theory.wording.entity(label), "entity")]
    return [Line((*parts, Word(".")))] if parts else []


def _open_line(relation: RelationTheory, wording: Wording) -> Line:
    follow = f"{relation.explained_chance} follow" if relation.explained else "none follows"
    name = Word(wording.relation(relation.label), "relation")
    return Line((name, Word(f": of {counted(relation.n_facts, 'fact')}, {follow} from others.")))


def _example_words(law: Law, wording: Wording) -> Words:
    return () if law.example is None else (Word("For example, "), *case_words(law.example, wording), Word("."))


def size_text(relation: RelationTheory) -> str:
    """Return how many facts there are, and of how many things."""
    return (
        f"{counted(relation.n_facts, 'fact')}: {counted(relation.n_subjects, 'thing')} with "
        f"{_values_of_one(relation)}, {counted(relation.n_objects, 'different value')} in all."
    )


def _values_of_one(relation: RelationTheory) -> str:
    if relation.has_one_value:
        return "one value each"
    mean = relation.n_facts / max(1, relation.n_subjects)
    return "mostly one value" if mean < 1.5 else f"about {round(mean)} values each"


def values_words(relation: RelationTheory, wording: Wording) -> Words:
    """Return the commonest values, if there are any that stand out."""
    if not relation.values:
        return ()
    parts: list[Word] = [Word("The commonest: ")]
    for position, (label, n) in enumerate(relation.values):
        parts += [Word(", ")] * (position > 0)
        parts += [Word(wording.entity(label), "entity"), Word(f" ({chance(n, relation.n_facts)})")]
    return *parts, Word(".")


def remark_on(relation: RelationTheory) -> str:
    """Return how much of a relation its laws explain."""
    if not relation.laws:
        return "No law was found: nothing else in the graph tells these facts."
    about = "" if relation.looked_at == relation.n_facts else "about "
    return f"The laws below explain {about}{relation.explained_chance} facts."


def glance_law(relation: RelationTheory) -> Law | None:
    """Return the law that explains most of a relation."""
    return max(relation.laws, key=lambda law: law.explains * law.share, default=None)


def case_words(case: Case, wording: Wording) -> Words:
    """Return a prediction with the facts that it follows from."""
    parts = [*wording.fact(case.triple)]
    for position, fact in enumerate(case.facts):
        parts += [Word(" and " if position else ", since "), *wording.fact(fact)]
    return tuple(parts)


def exception_words(case: Case, relation: RelationTheory, wording: Wording) -> Words:
    """Return a prediction that fails, and what is stated in its place; where things have several values, beside it."""
    listed: list[Word] = []
    for position, label in enumerate(case.instead):
        listed += [Word(" and " if position == len(case.instead) - 1 else ", ")] * (position > 0)
        listed.append(Word(wording.entity(label), "entity"))
    replaced = Word(wording.entity(case.replaced), "entity")
    if relation.has_one_value:
        between, end = Word(" would follow; the graph states "), (Word(" instead of "), replaced)
    else:
        between, end = Word(" would follow, but is not stated; the graph has "), (Word(" in place of "), replaced)
    return *wording.fact(case.triple), between, *listed, *end


def unknown_words(case: Case, wording: Wording) -> Words:
    """Return a prediction that nothing confirms or contradicts."""
    return *wording.fact(case.triple), Word(" would follow")


def unstated_text(law: Law, relation: RelationTheory) -> str:
    """Return how many predictions are not stated: exceptions, where what is stated contradicts them."""
    n, about = law.predictions - law.support, "" if law.exact else "About "
    if law.exceptions and relation.has_one_value:
        return f"{about}{counted(n, 'exception')}"
    remark = ": exceptions or gaps" if law.exceptions else ", and not contradicted"
    return f"{about}{counted(n, 'case')} not stated{remark}"


def law_lines(law: Law, relation: RelationTheory, wording: Wording) -> list[tuple[str, list[Words]]]:
    """Return what stands below a law: titles, each with some cases."""
    lines: list[tuple[str, list[Words]]] = []
    if law.example is not None:
        lines.append(("Example", [case_words(law.example, wording)]))
    if law.exceptions:
        cases = [exception_words(case, relation, wording) for case in law.exceptions]
        lines.append((unstated_text(law, relation), cases))
    elif law.unknown:
        lines.append((unstated_text(law, relation), [unknown_words(case, wording) for case in law.unknown[:1]]))
    return lines


def explains_text(law: Law, relation: RelationTheory) -> str:
    """Return which part of the facts of its relation a law explains, and how many rules say nearly the same."""
    share = "all" if law.explains == relation.looked_at else chance(law.explains, relation.looked_at)
    say = "says" if law.stands_for == 1 else "say"
    alike = f"; {counted(law.stands_for, 'other rule')} {say} nearly the same" if law.stands_for else ""
    return f"explains {share} facts of the relation{alike}"
