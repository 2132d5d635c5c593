"""What is missing from a graph: ask every question, and keep the answers with a high enough score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from .graph import Triple
from .ranking import Answered, connected, known_answers, predicting, strength


class Missing(NamedTuple):
    """What is said of a missing fact: the first number of its strength, its best rule, and how many rules agree."""

    key: int
    rule: int
    n_rules: int


def missing(
    train: Sequence[Triple],
    others: Iterable[Triple],
    n_entities: int,
    n_relations: int,
    answers: Sequence[Answered],
    scores: Sequence[int],
    aggregation: str,
    least: Sequence[int],
    shown: Mapping[int, float],
    *,
    block: bool,
) -> dict[Triple, Missing]:
    """Every fact with a key of at least `least` of its relation that neither `train` nor `others` state.

    `answers` are those of each rule. Of the two questions that a fact answers, the one with the higher score counts, as
    it is `shown` for a key; of equals the one with more rules, then with the smaller rule. Where the best rule decides,
    rules below the least key are not counted.
    """
    found: dict[Triple, Missing] = {}
    stated = {*train, *others}
    for entity in range(n_entities):
        for d in range(2 * n_relations):
            relation = d % n_relations
            left_out = known_answers([train], n_relations, (entity, d)) | (connected(train, entity) if block else set())
            for candidate, rows in predicting(answers, (entity, d)).items():
                fact = (entity, d, candidate) if d < n_relations else (candidate, relation, entity)
                key = strength([scores[row] for row in rows], aggregation)[0]
                if candidate in left_out or fact in stated or key < least[relation]:
                    continue
                if aggregation in ("max", "noisy-or-top:1"):
                    rows = [row for row in rows if scores[row] >= least[relation]]
                best = max(rows, key=lambda row: (scores[row], -row))
                told = Missing(key, best, len(rows))
                known = found.get(fact)
                if known is None or _order(told, shown) > _order(known, shown):
                    found[fact] = told
    return found


def _order(told: Missing, shown: Mapping[int, float]) -> tuple[float, int, int]:
    return shown[told.key], told.n_rules, -told.rule


Said = tuple[float, int, int]
"""The score of a fact, its best rule, and how many rules agree."""
Facts = dict[Triple, Said]


def keep_fitting(facts: Facts, train: Sequence[Triple], types: int) -> Facts:
    """The facts whose subject and object have a type, by the relation `types`, that train shows at their place."""
    types_of: dict[int, set[int]] = {}
    for s, r, o in train:
        if r == types:
            types_of.setdefault(s, set()).add(o)

    def fits(relation: int, entity: int, place: int) -> bool:
        seen = {kind for fact in train if fact[1] == relation for kind in types_of.get(fact[place], ())}
        return bool(types_of.get(entity, set()) & seen)

    return {fact: said for fact, said in facts.items() if fits(fact[1], fact[0], 0) and fits(fact[1], fact[2], 2)}


def keep_best(facts: Facts, top: int, per: str) -> Facts:
    """The best facts of each relation, subject or question; of equals those with more rules, then with smaller ids."""
    groups: dict[tuple[int, ...], list[Triple]] = {}
    for fact in facts:
        group = {"relation": fact[1:2], "subject": fact[:1], "question": fact[:2]}[per]
        groups.setdefault(group, []).append(fact)

    def place(fact: Triple) -> tuple[float, int, Triple]:
        score, _, n_rules = facts[fact]
        return -score, -n_rules, fact

    return {fact: facts[fact] for members in groups.values() for fact in sorted(members, key=place)[:top]}


def best_by_level(find: Callable[[list[float]], Facts], least: Sequence[float], top: int, levels: list[float]) -> Facts:
    """The best facts of each relation, looked for with falling least scores until there are enough: where the best rule
    decides, only rules of at least that score are counted.
    """
    found: Facts = {}
    for relation, lowest in enumerate(least):
        for level in levels:
            floors = [float("inf")] * len(least)
            floors[relation] = max(lowest, level)
            facts = find(floors)
            if len(facts) >= top or floors[relation] == lowest:
                break
        found |= keep_best(facts, top, "relation")
    return found


class Known(NamedTuple):
    """Properties of relations; values are disjoint as (relation, value, other value), both ways round."""

    one_object: set[int]
    one_subject: set[int]
    asymmetric: set[int]
    irreflexive: set[int]
    obligatory: dict[int, float]
    disjoint: set[Triple]


class Limits(NamedTuple):
    """From when on a property counts as found."""

    most: float
    fewest: int
    reversed: float
    obligatory: float
    expected_together: float
    rarely: float


def properties(facts: Iterable[Triple], n_relations: int, limits: Limits) -> Known:
    """What facts show about their relations: count, and compare."""
    facts = set(facts)
    known = Known(set(), set(), set(), set(), {}, set())
    subjects_of = [{s for s, r, _ in facts if r == relation} for relation in range(n_relations)]
    for relation in range(n_relations):
        own = [fact for fact in facts if fact[1] == relation]
        if len(own) < limits.fewest:
            continue
        subjects, objects = subjects_of[relation], {o for _, _, o in own}
        if len(subjects) >= limits.most * len(own):
            known.one_object.add(relation)
        if len(objects) >= limits.most * len(own):
            known.one_subject.add(relation)
        both_ways = sum(s in objects and o in subjects for s, _, o in own)
        if both_ways >= limits.fewest:
            if sum(s != o and (o, relation, s) in facts for s, _, o in own) <= limits.reversed * both_ways:
                known.asymmetric.add(relation)
            if sum(s == o for s, _, o in own) <= (1 - limits.most) * both_ways:
                known.irreflexive.add(relation)
        if relation not in known.one_object:
            known.disjoint.update(_disjoint(own, limits))
    for relation in range(n_relations):
        subjects = subjects_of[relation]
        others = [subjects_of[other] for other in range(n_relations) if other != relation]
        telling = [other for other in others if len(other) >= max(limits.fewest, 0.5 * len(subjects))]
        share = max((len(subjects & other) / len(other) for other in telling), default=0.0)
        if len(subjects) >= limits.fewest and share >= limits.obligatory:
            known.obligatory[relation] = share
    return known


def _disjoint(own: Sequence[Triple], limits: Limits) -> set[Triple]:
    """Pairs of frequent values that subjects of one relation rarely have together; none if many have such a pair."""
    having: dict[int, set[int]] = {}
    for s, _, o in own:
        having.setdefault(o, set()).add(s)
    n_subjects = len({s for s, _, _ in own})
    rare: dict[Triple, int] = {}
    for one, of_one in having.items():
        for other, of_other in having.items():
            together, fewer = len(of_one & of_other), min(len(of_one), len(of_other))
            by_chance = len(of_one) * len(of_other) / n_subjects
            if one == other or fewer < limits.fewest or by_chance < limits.expected_together:
                continue
            if together <= limits.rarely * by_chance and together <= (1 - limits.most) * fewer:
                rare[own[0][1], one, other] = together
    return set() if sum(rare.values()) > (1 - limits.most) * len(own) else set(rare)


def contradicting(fact: Triple, stated: Iterable[Triple], known: Known) -> set[Triple]:
    """All stated facts that contradict one; it contradicts itself only where it says that something stands to itself
    as nothing does.
    """
    s, r, o = fact
    found = {fact} if s == o and r in known.irreflexive else set()
    for other in set(stated) - {fact}:
        if other[1] != r:
            continue
        same_subject, same_object = other[0] == s, other[2] == o
        if (
            (same_subject and r in known.one_object)
            or (same_object and r in known.one_subject)
            or (other == (o, r, s) and r in known.asymmetric)
            or (same_subject and (r, o, other[2]) in known.disjoint)
        ):
            found.add(other)
    return found


def contexts(facts: Facts, train: Iterable[Triple], one_object: set[int]) -> dict[Triple, int]:
    """Whether another value stands before each fact: one with a higher score where there is one object, elsewhere one
    that train states.
    """
    answered, best = {(s, r) for s, r, _ in train}, keep_best(facts, 1, "question")
    return {fact: int(fact not in best if fact[1] in one_object else fact[:2] in answered) for fact in facts}


def keep_possible(facts: Facts, stated: Sequence[Triple], known: Known) -> Facts:
    """The facts that nothing stated contradicts; where there is one object, only the best of a question."""
    best = keep_best(facts, 1, "question")
    return {
        fact: said
        for fact, said in facts.items()
        if (fact in best or fact[1] not in known.one_object) and not contradicting(fact, stated, known)
    }
