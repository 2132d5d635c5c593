"""Answers to queries and their ranks (section 4.4 of the paper), rule by rule and candidate by candidate.

A query is `(entity, d)`, asking where the directed relation d leads from the entity: `(s, r)` is (s, r, ?) and
`(o, r + n_relations)` is (?, r, o). Rules come with whole scores, ordered as their confidences are; noisy-or adds
-log(1 - confidence), so that equal evidence ties exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import NamedTuple

from .graph import Triple, inverse
from .scoring import Rule, RuleLike, predicted

Query = tuple[int, int]
Answered = set[Triple]
"""(entity, d, answer) for every query (entity, d) that a rule answers."""
Strength = tuple[int, ...]
"""What candidates are compared by; that of a candidate which no rule predicts is empty."""

UNPREDICTED: Strength = ()


def answered(
    triples: Iterable[Triple], n_entities: int, n_relations: int, rule: RuleLike, object_identity: bool = True
) -> Answered:
    """Whatever the rule predicts, as the answer to both queries for it; h(x, self) is read as h(x, x).

    A rule without a body, h(X,c), answers (s, h, ?) with c, under object identity for any s but c. The other way round
    it would answer (?, h, c) with everything, which ranks nothing: it answers nothing. With `self` there is one answer
    to either.
    """
    _, head, constant, _, _ = rule = Rule(*rule)
    if rule.type == "Z" and constant != n_entities:
        assert constant is not None, rule
        return {(s, head, constant) for s in range(n_entities) if s != constant or not object_identity}
    if rule.type == "Z":
        pairs = {(s, s) for s in range(n_entities)}
    else:
        pairs = predicted(triples, n_entities, n_relations, rule, object_identity)
        pairs = {(x, x if y == n_entities else y) for x, y in pairs}
    return {(x, head, y) for x, y in pairs} | {(y, inverse(head, n_relations), x) for x, y in pairs}


def predicting(answers: Sequence[Answered], query: Query) -> dict[int, list[int]]:
    """The candidates of the query, each with the rules that predict it, as places in `answers`."""
    found: dict[int, list[int]] = {}
    for place, queries in enumerate(answers):
        for entity, d, candidate in queries:
            if (entity, d) == query:
                found.setdefault(candidate, []).append(place)
    return found


def strength(scores: Iterable[int], aggregation: str) -> Strength:
    """Best score first, compared one by one, and more are better (max); or their sum, or that of the H best."""
    downward = tuple(sorted(scores, reverse=True))
    if aggregation == "max":
        return downward
    if aggregation == "noisy-or":
        return (sum(downward),)
    return (sum(downward[: int(aggregation.removeprefix("noisy-or-top:"))]),)


def noisy_or(confidences: Iterable[float]) -> float:
    """How sure we are if every rule is a reason of its own."""
    return 1.0 - prod(1.0 - confidence for confidence in confidences)


def known_answers(tables: Iterable[Iterable[Triple]], n_relations: int, query: Query) -> set[int]:
    """What the tables state as answers."""
    entity, d = query
    stated = {triple for table in tables for triple in table}
    if d < n_relations:
        return {o for s, r, o in stated if (s, r) == (entity, d)}
    return {s for s, r, o in stated if (o, r) == (entity, d - n_relations)}


def connected(train: Iterable[Triple], entity: int) -> set[int]:
    """Every entity that a triple joins with `entity`, by any relation and either way; itself if one is reflexive."""
    return {o for s, _, o in train if s == entity} | {s for s, _, o in train if o == entity}


class Rank(NamedTuple):
    """How many entities rank before the target, and how many tie with it."""

    better: int
    equal: int

    @property
    def optimistic(self) -> int:
        return self.better + 1

    @property
    def pessimistic(self) -> int:
        return self.better + self.equal + 1

    @property
    def realistic(self) -> float:
        return (self.optimistic + self.pessimistic) / 2


def rank(strengths: Mapping[int, Strength], n_entities: int, target: int, excluded: set[int]) -> Rank:
    """Where the target stands among all entities that are not excluded; what no rule predicts ties, and comes last."""
    own = strengths.get(target, UNPREDICTED)
    others = [strengths.get(entity, UNPREDICTED) for entity in set(range(n_entities)) - excluded - {target}]
    return Rank(sum(other > own for other in others), sum(other == own for other in others))


def best(strengths: Mapping[int, Strength], k: int) -> list[int]:
    """The k best candidates; of equals, the smaller number goes first."""
    return sorted(sorted(strengths), key=lambda candidate: strengths[candidate], reverse=True)[:k]
