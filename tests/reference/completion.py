"""What is missing from a graph: ask every question, and keep the answers with a high enough score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
