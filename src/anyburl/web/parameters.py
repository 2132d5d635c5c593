"""Address parameters; empty form fields count as absent.

The rule filters of an address, shared by pages and the API.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import BeforeValidator, Field

from anyburl.base.errors import UnknownLabelError
from anyburl.rules.types import RuleType
from anyburl.web.explorer import Explorer
from anyburl.web.options import ServeOptions
from anyburl.web.rule_list import Chosen, RuleChoice, Sort

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

OfType = Annotated[RuleType | None, Blank, Query()]
Length = Annotated[_Length | None, Blank, Query()]
MinConfidence = Annotated[_Share | None, Blank, Query()]
MinSupport = Annotated[_Count | None, Blank, Query()]
Order = Annotated[Sort, Query(description="highest first; value is support times confidence")]


async def _choice(
    relation: OptionalLabel = None,
    type: OfType = None,
    length: Length = None,
    min_confidence: MinConfidence = None,
    min_support: MinSupport = None,
    contains: OptionalLabel = None,
    sort: Order = "confidence",
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


AskedRules = Annotated[RuleChoice, Depends(_choice)]
"""What was asked for; labels may be names."""


def choose_rules(explorer: Explorer, asked: RuleChoice) -> tuple[RuleChoice, Chosen]:
    """Return the choice with labels, and the rules that it means."""
    choice = replace(
        asked,
        relation=asked.relation and explorer.relation(asked.relation),
        contains=asked.contains and _term(explorer, asked.contains),
    )
    return choice, explorer.rule_list.choose(choice)


def _term(explorer: Explorer, text: str) -> str:
    """Return the label of a relation or, if there is none of that name, of an entity."""
    with suppress(UnknownLabelError):
        return explorer.relation(text)
    return explorer.entity(text)
