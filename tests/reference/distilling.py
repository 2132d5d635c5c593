"""What rules are worth to a known answer, in the most obvious way: rank with all rules, then without each of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .ranking import strength

Rules = Mapping[int, int]
"""Rules that predict a candidate, with their scores."""


def reciprocal_rank(
    candidates: Mapping[int, Rules], target: int, aggregation: str, kept: Collection[int], harm: float = 1.0
) -> float:
    """1 / rank of the target among its rivals by the kept rules, ties counted half; 0 where none predicts it.

    A rival counts `harm`.
    """
    left = {c: [score for rule, score in rules.items() if rule in kept] for c, rules in candidates.items()}
    strengths = {c: strength(scores, aggregation) for c, scores in left.items() if scores}
    own = strengths.pop(target, None)
    if own is None:
        return 0.0
    better = sum(other > own for other in strengths.values())
    equal = sum(other == own for other in strengths.values())
    return 1 / (1 + harm * (better + equal / 2))


def best_value(values: Sequence[Mapping[int, float]], shares: Sequence[float], chosen: Sequence[int]) -> float:
    """What a set of rules is worth: the values of the best of them for each answer, by shares."""
    total = 0.0
    for of_rules in values:
        best = sorted((of_rules[rule] for rule in chosen if rule in of_rules), reverse=True)
        total += sum(share * value for share, value in zip(shares, best, strict=False))
    return total
