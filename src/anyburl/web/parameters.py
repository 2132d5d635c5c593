"""Address parameters; empty form fields count as absent."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import BeforeValidator, Field

from anyburl.web.options import ServeOptions
from anyburl.web.rule_list import Sort

LIMITS = ServeOptions()
LONGEST_SEARCH = 500


def _no_blank(value: Any) -> Any:
    return None if isinstance(value, str) and not value.strip() else value


Blank = BeforeValidator(_no_blank)

_Text = Annotated[str, Field(max_length=LIMITS.longest_text)]
_Name = Annotated[str, Field(max_length=40)]
_Smoothing = Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_Count = Annotated[int, Field(ge=0, lt=1 << 31)]
_Length = Annotated[int, Field(ge=0, le=10)]

Label = Annotated[str, Query(min_length=1, max_length=LIMITS.longest_text, examples=["France"])]
OptionalLabel = Annotated[_Text | None, Blank, Query()]
Text = Annotated[str, Query(max_length=LONGEST_SEARCH, description="what to look for")]
Page = Annotated[int, Query(ge=1, le=LIMITS.deepest_row, description="counted from 1")]
Top = Annotated[int, Query(ge=1, le=LIMITS.largest_page)]
Offset = Annotated[int, Query(ge=0, le=LIMITS.deepest_row)]
Aggregation = Annotated[_Name | None, Blank, Query(description="max, noisy-or or noisy-or-top:H")]
Smoothing = Annotated[_Smoothing | None, Blank, Query()]
Known = Annotated[bool, Query(description="whether answers that train states are among the answers")]

RuleType = Annotated[Literal["B", "Uc", "Ud", "Z"] | None, Blank, Query()]
Length = Annotated[_Length | None, Blank, Query()]
MinConfidence = Annotated[_Share | None, Blank, Query()]
MinSupport = Annotated[_Count | None, Blank, Query()]
Order = Annotated[Sort, Query(description="highest first; value is support times confidence")]
