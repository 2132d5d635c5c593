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


def keep_one_object(facts: Facts, stated: Iterable[Triple], functional: set[int]) -> Facts:
    """Of each question (s, r, ?) of functional relations the best fact, none where an answer is stated."""
    answered = {(s, r) for s, r, _ in stated}
    best = keep_best(facts, 1, "question")
    return {
        fact: said
        for fact, said in facts.items()
        if fact[1] not in functional or (fact in best and fact[:2] not in answered)
    }


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
