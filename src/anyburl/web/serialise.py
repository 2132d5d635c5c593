"""Objects as the API sends them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from anyburl.reasoning.reasoner import Reasoner
from anyburl.review.review import Review
from anyburl.rules.types import RuleType
from anyburl.ruleset.ruleset import RuleSet
from anyburl.web.questions import Candidate


def candidates_json(reasoner: Reasoner, candidates: Sequence[Candidate]) -> list[dict[str, Any]]:
    """Return answers, with their best rules as text; None for those that no rule predicts."""
    rows = {candidate.rule for candidate in candidates}
    texts = {row: None if row is None else str(reasoner.rules.rule(row)) for row in rows}
    return [
        {
            "rank": candidate.rank,
            "entity": candidate.entity,
            "triple": list(candidate.triple),
            "score": candidate.score,
            "probability": candidate.probability,
            "known": list(candidate.known),
            "rule": candidate.rule,
            "rule_text": texts[candidate.rule],
            "n_rules": candidate.n_rules,
        }
        for candidate in candidates
    ]


def rule_json(rules: RuleSet, row: int) -> dict[str, Any]:
    """Return one rule."""
    one = rules.slice(row, row + 1)
    return {
        "row": row,
        "rule": str(rules.rule(row)),
        "type": str(list(RuleType)[int(one.type[0])]),
        "predictions": int(one.predictions[0]),
        "support": int(one.support[0]),
        "confidence": float(one.confidence()[0]),
        "exact": bool(one.exact[0]),
    }


def review_json(review: Review) -> dict[str, Any]:
    """Return one judgement."""
    return {
        "triple": list(review.triple),
        "verdict": review.verdict,
        "note": review.note,
        "reader": review.reader,
        "time": str(review.time),
    }
