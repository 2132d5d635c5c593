"""What addresses may hold; the empty fields of a form count as left out."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query
from pydantic import BeforeValidator

from anyburl.web.options import ServeOptions
from anyburl.web.rule_list import Sort

LIMITS = ServeOptions()
LONGEST_SEARCH = 500
ROWS = 25


def _no_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


Blank = BeforeValidator(_no_blank)
TEXT = r"^[^\x00]*$"

Label = Annotated[str, Query(min_length=1, max_length=LIMITS.longest_text, pattern=TEXT, examples=["France"])]
OptionalLabel = Annotated[str | None, Blank, Query(max_length=LIMITS.longest_text, pattern=TEXT)]
Text = Annotated[str, Query(max_length=LONGEST_SEARCH, pattern=TEXT, description="what to look for")]
Page = Annotated[int, Query(ge=1, le=LIMITS.deepest_row, description="counted from 1")]
Top = Annotated[int, Query(ge=1, le=LIMITS.largest_page)]
Offset = Annotated[int, Query(ge=0, le=LIMITS.deepest_row)]
Row = Annotated[int, Query(ge=0, lt=1 << 31)]
Aggregation = Annotated[
    str | None, Blank, Query(max_length=40, description="max, noisy-or or noisy-or-top:H", examples=["noisy-or"])
]
Smoothing = Annotated[float | None, Blank, Query(ge=0, le=1e6, allow_inf_nan=False)]
Known = Annotated[bool, Query(description="whether answers that train states are among the answers")]

RuleType = Annotated[str | None, Blank, Query(pattern="^(B|Uc|Ud|Z)$")]
Length = Annotated[int | None, Blank, Query(ge=0, le=10)]
MinConfidence = Annotated[float | None, Blank, Query(ge=0, le=1, allow_inf_nan=False)]
MinSupport = Annotated[int | None, Blank, Query(ge=0, lt=1 << 31)]
Order = Annotated[Sort, Query(description="highest first; value is support times confidence")]
