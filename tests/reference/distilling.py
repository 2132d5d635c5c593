"""What rules are worth to a known answer, in the most obvious way: rank with all rules, then without each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .ranking import strength

Rules = Mapping[int, int]
"""Rules that predict a candidate, with their scores."""


def reciprocal_rank(
    candidates: Mapping[int, Rules], target: int, n_others: int, aggregation: str, without: int = -1
) -> float:
    """1 / rank of the target among its rivals, ties counted half; `n_others` are the entities that it is ranked among.

    Where no rule predicts it, it ties with all others that none predicts.
    """
    left = {c: [score for rule, score in rules.items() if rule != without] for c, rules in candidates.items()}
    strengths = {c: strength(scores, aggregation) for c, scores in left.items() if scores}
    own = strengths.pop(target, None)
    if own is None:
        return 2 / (len(strengths) + 1 + max(n_others, len(strengths)) + 1)
    better = sum(other > own for other in strengths.values())
    equal = sum(other == own for other in strengths.values())
    return 1 / (1 + better + equal / 2)


def rank_by(candidates: Mapping[int, Rules], target: int, rule: int) -> float:
    """The rank of the target if this were its only rule, and the best rule of every other candidate counted."""
    own = candidates[target][rule]
    rivals = [max(rules.values()) for c, rules in candidates.items() if c != target and rules]
    return 1 + sum(best > own for best in rivals) + sum(best == own for best in rivals) / 2


def best_value(values: Sequence[Mapping[int, float]], shares: Sequence[float], chosen: Sequence[int]) -> float:
    """What a set of rules is worth: the values of the best of them for each answer, by shares."""
    total = 0.0
    for of_rules in values:
        best = sorted((of_rules[rule] for rule in chosen if rule in of_rules), reverse=True)
        total += sum(share * value for share, value in zip(shares, best, strict=False))
    return total
