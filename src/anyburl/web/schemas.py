"""The types that the API sends and accepts; its OpenAPI document is made from them."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

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


class Facts(BaseModel):
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
    facts: list[Facts]


class PredictedFacts(BaseModel):
    label: str
    predicted: list[Predicted]


class Answers(BaseModel):
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


class Batch(BaseModel):
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
    type: Literal["B", "Uc", "Ud", "Z"]
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
