"""The types that the API sends and accepts; its OpenAPI document is made from them.

Objects as the API sends them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from anyburl.reasoning.reasoner import Reasoner
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS, RuleType
from anyburl.tools.review import Review
from anyburl.web.facts import Candidate
from anyburl.web.parameters import LIMITS

LabelText = Annotated[str, StringConstraints(min_length=1, max_length=LIMITS.longest_text)]
NoteText = Annotated[str, StringConstraints(max_length=LIMITS.longest_text)]
Triple = Annotated[list[str], Field(min_length=3, max_length=3)]


class Error(BaseModel):
    """Why there is no answer; of an unknown label, labels like it."""

    error: str
    suggestions: list[str] = []


class Found(BaseModel):
    """An entity or a relation that is called like what was looked for."""

    label: str
    name: str
    kind: Literal["entity", "relation"]
    distance: int


class SearchResult(BaseModel):
    found: list[Found]


class StatedEnd(BaseModel):
    """The other end of a fact, and the splits that state it."""

    entity: str
    splits: list[str]


class FactsOfRelation(BaseModel):
    """The facts of an entity by one relation; `backward`: the entity is their object."""

    relation: str
    backward: bool
    n_facts: int
    facts: list[StatedEnd]


class Predicted(BaseModel):
    """One answer. `rule` is the row of its best rule, see /api/rules/{row}; null if no rule predicts it."""

    rank: int
    entity: str
    triple: Triple
    score: float
    probability: float | None
    known: list[str]
    rule: int | None
    rule_text: str | None
    n_rules: int


class EntityResult(BaseModel):
    label: str
    name: str
    facts: list[FactsOfRelation]


class PredictedFacts(BaseModel):
    label: str
    predicted: list[Predicted]


class AnswersResponse(BaseModel):
    """The answers to a question, best first; `n_candidates` counts all."""

    subject: str | None
    relation: str
    object: str | None
    aggregation: str
    smoothing: float
    n_candidates: int
    n_known: int
    answers: list[Predicted]


class Question(BaseModel):
    """A triple with its subject or object left out, or null."""

    model_config = ConfigDict(extra="forbid")

    subject: LabelText | None = None
    relation: LabelText
    object: LabelText | None = None


class QuestionBatch(BaseModel):
    """Many questions at once."""

    model_config = ConfigDict(extra="forbid")

    questions: Annotated[list[Question], Field(min_length=1, max_length=LIMITS.largest_batch)]
    top: Annotated[int, Field(ge=1, le=100, strict=True)] = 10
    known: Annotated[bool, Field(strict=True)] = False


class BatchResult(BaseModel):
    """The answers to each question, in the order of the questions."""

    answers: list[list[Predicted]]


class RuleResult(BaseModel):
    row: int
    rule: str
    type: RuleType
    predictions: int
    support: int
    confidence: float
    exact: bool


class RulesResult(BaseModel):
    """Some of the rules that pass, best first; `n_matching` counts all."""

    n_matching: int
    rules: list[RuleResult]


class ReviewRequest(BaseModel):
    """A reader's judgement of a fact."""

    model_config = ConfigDict(extra="forbid")

    subject: LabelText
    relation: LabelText
    object: LabelText
    verdict: Literal["accepted", "rejected", "withdrawn"]
    note: NoteText = ""
    reader: NoteText = ""


class Reviewed(BaseModel):
    triple: Triple
    verdict: str
    note: str
    reader: str
    time: str


class ReviewResult(BaseModel):
    """All judgements that stand, and how many predictions were right."""

    accepted: int
    rejected: int
    reviews: list[Reviewed]


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
        "type": KINDS[int(one.type[0])],
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
