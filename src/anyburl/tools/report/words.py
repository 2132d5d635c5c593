"""Facts, rules and chances in plain words, and the ideas that rules have in common, by which a report groups them.

Words are pieces of text with roles, which HTML and Markdown set in their own ways.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anyburl.data.names import Names, relation_name
from anyburl.rules.rule import SELF, Constant, Part, Rule, Term


@dataclass(frozen=True)
class Idea:
    """A kind of law: its name, its heading, and what it says."""

    name: str
    title: str
    meaning: str


SYMMETRIC = Idea("symmetric", "Holds both ways", "what holds from A to B also holds from B to A")
INVERSE = Idea("inverse", "The same, read backwards", "another relation says it the other way round")
IMPLIED = Idea("implied", "Follows at once", "another relation between the same two things says as much")
CHAIN = Idea("chain", "Goes on along chains", "two steps of the relation make one")
INHERITED = Idea(
    "inherited", "Handed on", "what holds for one thing holds for another that it belongs to or is part of"
)
SHARED = Idea("shared", "Shared by similar things", "things that have something in common have this in common, too")
COMPOSITION = Idea("composition", "By way of something else", "a path over other things leads there")
TYPICAL = Idea("typical", "Typical values", "what has a certain kind of fact usually has this value")
TOGETHER = Idea("together", "Values that go together", "one value comes with another")

IDEAS = (SYMMETRIC, INVERSE, IMPLIED, CHAIN, INHERITED, SHARED, COMPOSITION, TYPICAL, TOGETHER)
"""In the order in which they are read."""

Step = tuple[str, bool]
"""A relation of a body, and whether the path follows it forward."""


def find_idea(rule: Rule) -> Idea:
    """Return the idea behind a rule."""
    head, steps = rule.head.relation, find_steps(rule)
    if isinstance(rule.head.subject, Constant) or isinstance(rule.head.object, Constant):
        ends_in_constant = any(isinstance(term, Constant) for atom in rule.body for term in (atom.subject, atom.object))
        return TOGETHER if ends_in_constant else TYPICAL
    if len(steps) == 1:
        relation, forward = steps[0]
        return IMPLIED if forward else SYMMETRIC if relation == head else INVERSE
    if is_chain(rule):
        return CHAIN
    if (head, True) in (steps[0], steps[-1]):
        others = steps[:-1] if steps[-1] == (head, True) else steps[1:]
        if len(others) == 1:
            return INHERITED
        if len(others) == 2 and others[0][0] == others[1][0] and others[0][1] != others[1][1]:
            return SHARED
    return COMPOSITION


def find_steps(rule: Rule) -> list[Step]:
    """Return the relations along the path of a body, from the variable of the head."""
    return list(rule.steps[: len(rule.body)])


def is_chain(rule: Rule) -> bool:
    """Return whether a body consists of steps of the head's own relation, all forward."""
    steps = find_steps(rule)
    return len(steps) > 1 and all(step == (rule.head.relation, True) for step in steps)


Role = Literal["plain", "relation", "entity", "variable"]


class Word(NamedTuple):
    """A part of a sentence, and what it names."""

    text: str
    role: Role = "plain"


Words = tuple[Word, ...]

PREPOSITIONS = {"at", "by", "for", "from", "in", "into", "near", "of", "on", "to", "under", "with"}
VERBS = {"also", "are", "can", "has", "have", "is", "was", "were"} | {
    "belongs",
    "borders",
    "causes",
    "contains",
    "includes",
    "lives",
    "makes",
    "owns",
    "plays",
    "produces",
    "speaks",
    "uses",
    "works",
}
"""First words of names that say what is done. (Other words in s are plurals more often: sports team.)"""
NOUN_ENDINGS = ("ss", "us", "is", "ics")
VARIABLES = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SOMETHING = Word("something")
FEW = 20  # cases: counted one by one


def plain_text(words: Iterable[Word]) -> str:
    """Return a sentence without its roles."""
    return "".join(word.text for word in words)


def chance(part: int, whole: int) -> str:
    """Return how often something holds, as people say it: 9 of 10; 7 of 8 where there are few cases; all 54.

    Never all or nothing where that is not so.
    """
    if part == whole:
        return f"all {whole:,}"
    if whole <= FEW:
        return f"{part:,} of {whole:,}" if part else "none"
    share = part / whole
    if 0.05 <= share < 0.95:
        return f"{max(1, round(10 * share))} of 10"
    if share < 0.005:
        return "fewer than 1 of 100" if part else "none"
    return f"{min(99, round(100 * share))} of 100"


class Wording:
    """Names relations and entities, each relation by a name of its own."""

    def __init__(self, relations: Sequence[str], names: Names) -> None:
        self._names = names
        self._relations = unique_names(relations, names)

    def relation(self, label: str) -> str:
        """Return what a relation is called."""
        return self._relations.get(label) or relation_name(label, self._names)

    def entity(self, label: str) -> str:
        """Return what an entity is called; underscores in place of spaces are not shown."""
        name = str(self._names.get(label))
        return name if " " in name else name.replace("_", " ").strip() or name

    def fact(self, fact: tuple[str | None, str, str | None]) -> Words:
        """Return a fact as a clause; an end that is None is "something"."""
        subject, relation, object = fact
        ends = [SOMETHING if end is None else Word(self.entity(end), "entity") for end in (subject, object)]
        return self._clause(relation, ends[0], ends[1:])

    def rule(self, rule: Rule) -> Words:
        """Return a rule as a sentence."""
        return self._short_rule(rule) or self._long_rule(rule)

    def _long_rule(self, rule: Rule) -> Words:
        """Return "if ... and ..., then ...", with A and B for the variables of the head."""
        letters = _letters(rule)
        head = self._part(rule.head, letters)
        if not rule.length:
            return _sentence([*head])
        parts: list[Word] = [Word("If ")]
        for number, part in enumerate(rule.parts):
            parts += [*([Word(" and ")] if number else []), *self._part(part, letters)]
        return _sentence([*parts, Word(", then "), *head])

    def _short_rule(self, rule: Rule) -> Words | None:
        """Return a shorter sentence for what is handed on or shared, where the relations are nouns."""
        steps, head = find_steps(rule), rule.head.relation
        if isinstance(rule.head.subject, Constant) or isinstance(rule.head.object, Constant) or not self._is_noun(head):
            return None
        handed_on = len(steps) == rule.length > 1 and steps[-1] == (head, True) and not is_chain(rule)
        if not handed_on or not all(self._is_noun(relation) for relation, _ in steps):
            return None
        (by, forward), same = steps[0], Word(self.relation(head), "relation")
        along = Word(self.relation(by), "relation")
        if len(steps) == 2 and forward:
            return Word("A thing has the same "), same, Word(" as its "), along, Word(".")
        if len(steps) == 2:
            return Word("The "), along, Word(" of something has the same "), same, Word(" as that thing.")
        if len(steps) == 3 and steps[1] == (by, not forward) and by != head:
            shared = (
                (Word("Things with the same "), along)
                if forward
                else (Word("Things that are the "), along, Word(" of the same thing"))
            )
            return *shared, Word(" have the same "), same, Word(".")
        return None

    def _part(self, part: Part, letters: dict[Term, Word]) -> Words:
        subject, *rest = (self._piece(piece, letters) for piece in (part.subject, *part.object_words))
        return self._clause(part.relation, rest[0] if part.subject == SELF else subject, rest, is_value=part.is_value)

    def _piece(self, piece: str | Term, letters: dict[Term, Word]) -> Word:
        if isinstance(piece, str) or piece == SELF:
            return Word(piece if isinstance(piece, str) else "itself")
        return Word(self.entity(piece.label), "entity") if isinstance(piece, Constant) else letters[piece]

    def _clause(self, label: str, subject: Word, object: Sequence[Word], *, is_value: bool = False) -> Words:
        """Return "A borders B" or "the capital of A is B", whichever the name of the relation asks for; the latter for
        values.
        """
        relation = Word(self.relation(label), "relation")
        if not (is_value or self._is_noun(label)):
            return subject, Word(" "), relation, Word(" "), *object
        if object[0] == SOMETHING:
            return subject, Word(" has any "), relation
        if subject == SOMETHING:
            return *object, Word(" is the "), relation, Word(" of something")
        return Word("the "), relation, Word(" of "), subject, Word(" is "), *object

    def _is_noun(self, label: str) -> bool:
        return is_noun(self.relation(label))


def is_noun(name: str) -> bool:
    """Guess whether the name of a relation says what its object is ("capital"), or what is done to it ("borders")."""
    tokens = re.sub(r"\(.*?\)", "", name).lower().replace("-", " ").split() or [name]
    if tokens[0] in VERBS | PREPOSITIONS or tokens[-1] in PREPOSITIONS:
        return False
    return len(tokens) > 1 or not tokens[0].endswith("s") or tokens[0].endswith(NOUN_ENDINGS)


def _letters(rule: Rule) -> dict[Term, Word]:
    """Return the variables as letters, in the order in which a sentence names them: the body comes first.

    A variable that occurs only once is "something".
    """
    terms = [term for part in (*rule.parts, rule.head) for term in part.terms]
    counts = Counter(terms)
    letters: dict[Term, Word] = {}
    for term in terms:
        if not isinstance(term, Constant) and term not in letters:
            n_named = sum(word != SOMETHING for word in letters.values())
            letters[term] = Word(VARIABLES[n_named], "variable") if counts[term] > 1 else SOMETHING
    return letters


def _sentence(parts: list[Word]) -> Words:
    """Return words with a capital letter at their beginning and a full stop."""
    first = parts[0]
    begun = first._replace(text=first.text[:1].upper() + first.text[1:]) if first.role == "plain" else first
    return begun, *parts[1:], Word(".")


def unique_names(labels: Sequence[str], names: Names) -> dict[str, str]:
    """Return short names of relations, no two the same: as much of a path is written as that takes."""
    left, chosen = list(labels), dict[str, str]()
    for depth in range(N_NAMES):
        shown = {label: _names_of(label, names)[depth] for label in left}
        counts = Counter([*shown.values(), *chosen.values()])
        chosen |= {label: name for label, name in shown.items() if counts[name] == 1}
        left = [label for label in left if label not in chosen]
    return chosen | {label: label for label in left}


N_NAMES = 4


def _names_of(label: str, names: Names) -> tuple[str, str, str, str]:
    """Return names of a relation, the later ones longer: "genre", "film genre"; "award (awards won)"."""
    if label in names or not label.startswith("/"):
        name = relation_name(label, names)
        return name, name, name, label
    steps = [[_spoken(word) for word in step.strip("/").split("/")] for step in label.split("./")]
    last, kind = steps[-1][-1], steps[0][-2] if len(steps[0]) > 1 else ""
    if len(steps) == 1:
        return last, f"{kind} {last}".strip(), label, label
    before = steps[0][-1]
    name, longer = (
        (last, f"{last} ({kind})") if last == before else (f"{last} ({before})", f"{last} ({kind}: {before})")
    )
    return last, name, longer, f"{last} ({before}, {steps[-1][-2] if len(steps[-1]) > 1 else kind})"


def _spoken(word: str) -> str:
    return re.sub(r"_s$", "", word).replace("_", " ").strip() or word
