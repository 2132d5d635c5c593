"""`IDEAS`: the ideas that rules have in common, by which a report groups them."""

from __future__ import annotations

from dataclasses import dataclass

from anyburl.rules.rule import Constant, Rule


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
