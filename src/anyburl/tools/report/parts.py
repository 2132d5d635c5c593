"""The sentences of a report that pages and Markdown share."""

from __future__ import annotations

from typing import NamedTuple

from anyburl.base.errors import counted
from anyburl.tools.report.record import Case, Law, RelationTheory, Theory
from anyburl.tools.report.words import Word, Wording, Words, chance

HOW_TO_READ = (
    "How to read the chances: “9 of 10” means that of ten cases in which the condition holds, the graph states the "
    "conclusion in nine. The tenth is an exception, or a fact that the graph does not know."
)
N_RELATIONS, N_SURE, N_DOUBTFUL, N_OPEN = 6, 5, 3, 3
LITTLE = 0.3  # of the facts of a relation that is hardly explained


def opening_text(theory: Theory) -> str:
    """Return how large the graph is and what the report was made of."""
    laws, relations = len(theory.laws), len(theory.relations)
    size = f"{theory.n_facts:,} facts about {theory.n_entities:,} things, in {counted(relations, 'relation')}."
    rules = f"{counted(theory.n_rules, 'rule')} that were learned"
    if not laws:
        return f"{size} Of {rules}, none explains enough of a relation to be a law."
    return f"{size} From {rules}, these {counted(laws, 'law')} tell most of it."


class Line(NamedTuple):
    """A line of the front: words, the law that they state, and a remark below."""

    words: Words
    law: Law | None = None
    remark: Words = ()


def front_parts(theory: Theory) -> list[tuple[str, list[Line]]]:
    """Return what comes first: titles, each with some lines."""
    wording = theory.wording
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
            Line(law.words, law, (Word("But "), *exception_words(law.exceptions[0], wording), Word(".")))
            for law in theory.doubtful(N_DOUBTFUL)
        ],
        "What hardly any law explains": [_open_line(relation, wording) for relation in hard[:N_OPEN]],
    }
    return [(title, lines) for title, lines in parts.items() if lines]


def _relation_line(relation: RelationTheory, wording: Wording) -> Line:
    name = Word(wording.relation(relation.label), "relation")
    example = wording.fact(relation.facts[0]) if relation.facts else ()
    return Line((name, Word(f", {counted(relation.n_facts, 'fact')}: for example, "), *example, Word(".")))


def _things_line(theory: Theory) -> list[Line]:
    parts: list[Word] = []
    for place, label in enumerate(theory.things):
        parts += [Word(", " if place else "Mentioned most: "), Word(theory.wording.entity(label), "entity")]
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
    mean = relation.n_facts / max(1, relation.n_subjects)
    return "one value each" if mean < 1.05 else "mostly one value" if mean < 1.5 else f"about {round(mean)} values each"


def values_words(relation: RelationTheory, wording: Wording) -> Words:
    """Return the commonest values, if there are any that stand out."""
    if not relation.values:
        return ()
    parts: list[Word] = [Word("The commonest: ")]
    for place, (label, n) in enumerate(relation.values):
        parts += [Word(", ")] * (place > 0)
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
    for place, fact in enumerate(case.facts):
        parts += [Word(" and " if place else ", since "), *wording.fact(fact)]
    return tuple(parts)


def exception_words(case: Case, wording: Wording) -> Words:
    """Return a prediction that fails, and what is stated in its place."""
    subject, relation, object = case.triple
    others = [Word(wording.entity(label), "entity") for label in case.instead]
    listed: list[Word] = []
    for place, other in enumerate(others):
        listed += [Word(" and " if place == len(others) - 1 else ", ")] * (place > 0)
        listed.append(other)
    return (
        *wording.fact((subject, relation, object)),
        Word(" would follow; the graph states "),
        *listed,
        Word(" instead"),
    )


def unknown_words(case: Case, wording: Wording) -> Words:
    """Return a prediction that nothing confirms or contradicts."""
    return *wording.fact(case.triple), Word(" would follow")


def unstated_text(law: Law) -> str:
    """Return how many predictions are not stated."""
    n = law.predictions - law.support
    return f"{'' if law.exact else 'About '}{counted(n, 'exception' if law.exceptions else 'case')}" + (
        "" if law.exceptions else " not stated, and not contradicted"
    )


def law_lines(law: Law, wording: Wording) -> list[tuple[str, list[Words]]]:
    """Return what stands below a law: titles, each with some cases."""
    lines: list[tuple[str, list[Words]]] = []
    if law.example is not None:
        lines.append(("Example", [case_words(law.example, wording)]))
    if law.exceptions:
        lines.append((unstated_text(law), [exception_words(case, wording) for case in law.exceptions]))
    elif law.unknown:
        lines.append((unstated_text(law), [unknown_words(case, wording) for case in law.unknown[:1]]))
    return lines


def explains_text(law: Law, relation: RelationTheory) -> str:
    """Return which part of the facts of its relation a law explains, and how many rules are like it."""
    told = f"explains {'all' if law.explains == relation.looked_at else chance(law.explains, relation.looked_at)} facts"
    return told + (f", {counted(law.stands_for, 'other rule')} like it" if law.stands_for else "")
