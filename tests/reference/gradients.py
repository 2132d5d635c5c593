"""How losses change with the scores of the candidates of one list, as they are defined."""

from __future__ import annotations

import math
from collections.abc import Sequence

Pairs = tuple[list[float], list[float]]


def choice_loss(scores: Sequence[float], labels: Sequence[bool], weights: Sequence[float]) -> float:
    """Return the cross-entropy of choosing each answer from the list; a candidate counts `weight` times."""
    total = sum(weight * math.exp(score) for score, weight in zip(scores, weights, strict=True))
    return -sum(math.log(math.exp(score) / total) for score, label in zip(scores, labels, strict=True) if label)


def pair_gradients(scores: Sequence[float], labels: Sequence[bool], weights: Sequence[float]) -> Pairs:
    """Return gradients and hessians of LambdaMART over all pairs of an answer and another candidate."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    gains = {}
    for place, i in enumerate(order):
        before = sum(weights[j] for j in order[:place])
        gains[i] = 1 / math.log2(2 + before + (weights[i] - 1) / 2)
    ideal = sum(1 / math.log2(2 + place) for place in range(sum(labels)))
    gradients, hessians = [0.0] * len(scores), [0.0] * len(scores)
    for a in range(len(scores)):
        for b in range(len(scores)):
            if labels[a] and not labels[b]:
                distance = scores[a] - scores[b]
                wrong = 1 / (1 + math.exp(distance))
                force = weights[b] * wrong * abs(gains[a] - gains[b]) / ideal / (0.01 + abs(distance))
                for i, sign in ((a, -1), (b, 1)):
                    gradients[i] += sign * force
                    hessians[i] += force * (1 - wrong)
    total = sum(abs(gradient) for gradient in gradients)
    scale = math.log2(1 + total) / total if total else 1.0
    return [scale * gradient for gradient in gradients], [scale * hessian for hessian in hessians]
