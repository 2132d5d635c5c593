"""What requests may contain and what the API returns; its OpenAPI document is made from these types."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, NamedTuple

from fastapi import Depends, Path, Query
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints

from anyburl.ranking.options import FIXED_AGGREGATIONS
from anyburl.reasoning.reasoner import Reasoner
from anyburl.rules.ruleset import RuleSet
from anyburl.rules.types import KINDS, RuleType
from anyburl.tools.options import ServeOptions
from anyburl.tools.review import Review
from anyburl.web.explorer import RuleChoice, Sort
from anyburl.web.facts import Candidate, FactsOfRelation

LIMITS = ServeOptions()
LONGEST_SEARCH = 500

Blank = BeforeValidator(lambda value: None if isinstance(value, str) and not value.strip() else value)
"""Empty form fields count as absent."""

LabelText = Annotated[str, StringConstraints(min_length=1, max_length=LIMITS.longest_text)]
NoteText = Annotated[str, StringConstraints(max_length=LIMITS.longest_text)]
Triple = Annotated[list[str], Field(min_length=3, max_length=3)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]

Label = Annotated[str, Query(min_length=1, max_length=LIMITS.longest_text, examples=["France"])]
OptionalLabel = Annotated[NoteText | None, Blank, Query()]
Text = Annotated[str, Query(max_length=LONGEST_SEARCH, description="what to look for")]
Page = Annotated[int, Query(ge=1, le=LIMITS.deepest_row, description="counted from 1")]
Top = Annotated[int, Query(ge=1, le=LIMITS.largest_page)]
Offset = Annotated[int, Query(ge=0, le=LIMITS.deepest_row)]
Aggregation = Annotated[
    Annotated[str, Field(max_length=40)] | None, Blank, Query(description=f"one of {FIXED_AGGREGATIONS}")
]
Smoothing = Annotated[Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] | None, Blank, Query()]
Known = Annotated[bool, Query(description="whether answers that train states are among the answers")]
RuleRow = Annotated[int, Path(ge=0, lt=1 << 31)]
N_REASONS, MOST_REASONS = 5, 50


class ToExplain(NamedTuple):
    """The triple in an address, by labels or names, and how it is to be explained."""

    subject: str
    relation: str
    object: str
    aggregation: str | None
    smoothing: float | None
    top: int

    @property
    def triple(self) -> tuple[str, str, str]:
        return self.subject, self.relation, self.object


async def _to_explain(
    subject: Label,
    relation: Label,
    object: Label,
    aggregation: Aggregation = None,
    smoothing: Smoothing = None,
    top: Annotated[int, Query(ge=1, le=MOST_REASONS)] = N_REASONS,
) -> ToExplain:
    return ToExplain(subject, relation, object, aggregation, smoothing, top)


Explained = Annotated[ToExplain, Depends(_to_explain)]


async def _rule_filters(
    relation: OptionalLabel = None,
    type: Annotated[RuleType | None, Blank, Query()] = None,
    length: Annotated[Annotated[int, Field(ge=0, le=10)] | None, Blank, Query()] = None,
    min_confidence: Annotated[_Share | None, Blank, Query()] = None,
    min_support: Annotated[Annotated[int, Field(ge=0, lt=1 << 31)] | None, Blank, Query()] = None,
    contains: OptionalLabel = None,
    sort: Annotated[
        Sort | None,
        Blank,
        Query(
            description="highest first; value is support times confidence; by default worth if distilled, or surprise"
        ),
    ] = None,
) -> RuleChoice:
    return RuleChoice(
        relation=relation,
        type=type,
        length=length,
        min_confidence=min_confidence,
        min_support=min_support,
        contains=contains,
        sort=sort,
    )


RuleFilters = Annotated[RuleChoice, Depends(_rule_filters)]
"""The filters in an address; labels may be names, which `Explorer.choose_rules` replaces."""


class Error(BaseModel):
    """Why there is no answer; for an unknown label, similar labels."""

    error: str
    suggestions: list[str] = []


class Found(BaseModel):
    """An entity or a relation whose label or name matches."""

    label: str
    name: str
    kind: Literal["entity", "relation"]
    distance: int


class SearchResult(BaseModel):
    found: list[Found]


class Predicted(BaseModel):
    """One answer. `rule` is the row of its best rule, see /api/rules/{row}; null if no rule predicts it. `conflict`
    is a stated fact that contradicts it.
    """

    rank: int
    entity: str
    triple: Triple
    score: float
    probability: float | None
    conflict: Triple | None
    known: list[str]
    rule: int | None
    rule_text: str | None
    n_rules: int


class ValuesOfAttribute(BaseModel):
    """Numbers, dates (days since 1970-01-01) or booleans (0 and 1) of an entity, ascending, and as text."""

    attribute: str
    kind: str
    values: list[float]
    texts: list[str]


class EntityResult(BaseModel):
    label: str
    name: str
    facts: list[FactsOfRelation]
    values: list[ValuesOfAttribute]


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
    """Return answers (`Predicted`), with their best rules as text."""
    rows = {candidate.rule for candidate in candidates if candidate.rule is not None}
    texts = {row: str(reasoner.rules.rule(row)) for row in rows}
    return [
        {**vars(candidate), "rule_text": None if candidate.rule is None else texts[candidate.rule]}
        for candidate in candidates
    ]


def rule_json(rules: RuleSet, row: int) -> dict[str, Any]:
    """Return one rule (`RuleResult`)."""
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
    """Return one judgement (`Reviewed`)."""
    return {name: getattr(review, name) for name in Reviewed.model_fields}
